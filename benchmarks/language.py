"""Language models next to transformers on torch: time per token, load time, prefill.

    python -m benchmarks.language                    # a Qwen3 of 0.6 billion parameters
    python -m benchmarks.language --layers 4 --tokens 16 --json out.json

Both read the same folder of random weights, written once. Decoding takes turns token by token, so
that both see the same machine; each token is greedy and fed back. Loading runs in processes of its
own, in turns, with the file in the page cache for both.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import votive
from votive import nn
from votive.models import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM

SHAPE = {
    "vocab_size": 151936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "tie_word_embeddings": True,
    "max_position_embeddings": 4096,
    "rope_theta": 1e6,
}

_LOAD = {
    "votive": "from votive.models import AutoModelForCausalLM as A, Qwen3ForCausalLM\n"
    "import votive.io\n"
    "t = time.perf_counter(); m = A.from_pretrained(sys.argv[1])\n",
    # Its modules are imported before the clock starts.
    "torch": "import torch, transformers; transformers.logging.disable_progress_bar()\n"
    "from transformers import AutoModelForCausalLM as A\n"
    "from transformers.models.qwen3 import modeling_qwen3\n"
    "t = time.perf_counter(); m = A.from_pretrained(sys.argv[1])\n",
}
# The first token reads every weight: a load that only maps the file pays here.
_FIRST = {
    "votive": "import votive\nwith votive.no_grad(): m(votive.tensor([[1, 2, 3]]))\n",
    "torch": "with torch.no_grad(): m(torch.tensor([[1, 2, 3]]))\n",
}


def written(folder: Path, dtype: Any, layers: int) -> Path:
    """A model folder with random weights."""
    votive.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config(**{**SHAPE, "num_hidden_layers": layers}))
    model.to(dtype).save_pretrained(folder)
    return folder


def load_seconds(kind: str, folder: Path) -> tuple[float, float]:
    """Seconds to load, and to load and give a first token, in a fresh process."""
    code = f"import time, sys\n{_LOAD[kind]}a = time.perf_counter()\n{_FIRST[kind]}"
    code += "b = time.perf_counter(); print(a - t, b - t)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(folder)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    load, first = map(float, done.stdout.split()[-2:])
    return load, first


def ratios(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """Medians, the median of paired ratios and its spread."""
    paired = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    low, high = paired[len(paired) // 10], paired[-1 - len(paired) // 10]
    return {
        "votive": statistics.median(ours),
        "torch": statistics.median(theirs),
        "ratio": statistics.median(paired),
        "low": low,
        "high": high,
        "best": min(ours) / min(theirs),
    }


def decode(folder: Path, prompt: int, tokens: int) -> tuple[dict[str, float], dict[str, float], int]:
    """Time per token and of the prompt, and how many tokens were the same in both."""
    import torch
    import transformers

    torch.set_num_threads(votive.get_num_threads())
    transformers.logging.disable_progress_bar()
    ours = AutoModelForCausalLM.from_pretrained(folder)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = [(i * 7919) % 50000 for i in range(prompt)]
    prefill: tuple[list[float], list[float]] = ([], [])
    step: tuple[list[float], list[float]] = ([], [])
    same = 0
    with votive.inference_mode(), torch.inference_mode():
        for _ in range(3):
            cache_a, cache_b = nn.DynamicCache(), transformers.DynamicCache()
            start = time.perf_counter()
            a = ours(votive.tensor([ids]), past_key_values=cache_a, logits_to_keep=1).logits
            middle = time.perf_counter()
            b = theirs(torch.tensor([ids]), past_key_values=cache_b, logits_to_keep=1).logits
            prefill[0].append(middle - start)
            prefill[1].append(time.perf_counter() - middle)
        next_a, next_b = int(a[0, -1].argmax()), int(b[0, -1].argmax())
        for i in range(tokens + 3):
            start = time.perf_counter()
            a = ours(votive.tensor([[next_b]]), past_key_values=cache_a).logits
            next_a = int(a[0, -1].argmax())
            middle = time.perf_counter()
            b = theirs(torch.tensor([[next_b]]), past_key_values=cache_b).logits
            next_b = int(b[0, -1].argmax())
            end = time.perf_counter()
            same += next_a == next_b
            if i >= 3:  # the first ones warm up
                step[0].append(middle - start)
                step[1].append(end - middle)
    return ratios(*step), ratios(*prefill), same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=SHAPE["num_hidden_layers"])
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--loads", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows: dict[str, Any] = {"threads": votive.get_num_threads(), "layers": args.layers}
    print(f"{votive.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    for name in args.dtypes.split(","):
        with tempfile.TemporaryDirectory() as where:
            folder = written(Path(where) / "model", getattr(votive, name), args.layers)
            loads = [(load_seconds("votive", folder), load_seconds("torch", folder)) for _ in range(args.loads)]
            step, prefill, same = decode(folder, args.prompt, args.tokens)
        found = {
            "one token": step,
            f"prompt of {args.prompt}": prefill,
            "load": ratios([a[0] for a, _ in loads], [b[0] for _, b in loads]),
            "load and first token": ratios([a[1] for a, _ in loads], [b[1] for _, b in loads]),
        }
        rows[name] = {**found, "same tokens": f"{same} of {args.tokens + 3}"}
        for what, r in found.items():
            print(
                f"{name:9s} {what:20s} votive {r['votive'] * 1e3:8.1f} ms  torch "
                f"{r['torch'] * 1e3:8.1f} ms  ratio {r['ratio']:.2f} "
                f"({r['low']:.2f}..{r['high']:.2f})"
            )
        print(f"{name:9s} same tokens: {same} of {args.tokens + 3}")
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
