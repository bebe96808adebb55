"""Models in blocks of few bits: products at the speed of memory, and whole models next to llama.cpp.

    python -m benchmarks.quantized                                  # kernels, one row, all formats
    python -m benchmarks.quantized --formats int4_g128 --rows 1 4 16 # kernels, products of more rows
    python -m benchmarks.quantized --file model.gguf --llama PYTHON # decode and prefill, in turns with llama.cpp
    python -m benchmarks.quantized --make 1b q4_k_m --llama PYTHON  # the same on random weights of a shape

`PYTHON` is an interpreter that has llama-cpp-python (`pip install llama-cpp-python`). Both run the same file with the
same number of threads, votive first, then llama.cpp, and again; the best of each counts, with the ratios of neighbours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import votive
from votive.backends.cpu.native.quantized import CODES
from votive.core.blocks import block_dtype, by_name
from votive.models import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from votive.models.gguf_names import to_gguf
from votive.models.gguf_types import mixture
from votive.ops.registry import F
from votive.surface.block_tensor import from_blocks

SHAPES = {
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32},
    "3b": {"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24},
}
PROMPT, TOKENS, LONG = 16, 48, 512

# Runs in the interpreter that has llama.cpp: answers each line of its input with two speeds.
LLAMA = """
import sys, time, llama_cpp, numpy as np
model = llama_cpp.Llama(sys.argv[1], n_ctx=1024, n_batch=512, n_threads=int(sys.argv[2]),
                        n_threads_batch=int(sys.argv[2]), verbose=False)
draw, high = np.random.default_rng(0), int(sys.argv[3])
prompt, tokens, long = (int(a) for a in sys.argv[4:7])
for _ in sys.stdin:
    model.reset()
    model.eval([int(t) for t in draw.integers(0, high, prompt)])
    start = time.perf_counter()
    for t in draw.integers(0, high, tokens):
        model.eval([int(t)])
    decode = tokens / (time.perf_counter() - start)
    model.reset()
    start = time.perf_counter()
    model.eval([int(t) for t in draw.integers(0, high, long)])
    print(decode, long / (time.perf_counter() - start), flush=True)
"""


def best_of(fn: Callable[[], object], seconds: float = 0.5) -> float:
    """The shortest time of a call."""
    fn()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        fn()
        best = min(best, time.perf_counter() - start)
    return best


def noise(format: block_dtype, rows: int, width: int, seed: int = 0) -> votive.Tensor:
    """Bytes of blocks with any codes and small scales."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (rows, format.row_bytes(width)), dtype=np.uint8)
    records = raw.view(format.np)
    fields = format.np.fields or {}
    for field in ("d", "m", "dmin"):
        if field in fields and fields[field][0].kind == "f":
            records[field] = 0.001 * rng.standard_normal(records.shape)
    if "z" in fields:
        records["z"] = rng.integers(0, 17, records.shape)
    return votive.from_numpy(raw)


def kernels(names: list[str], counts: list[int]) -> list[dict[str, Any]]:
    """Bytes of weights per second in products of few rows, and the share of what memory gives."""
    large = votive.ones(1 << 27)
    memory = large.nbytes / best_of(lambda: large.sum()) / 1e9
    print(f"memory, read: {memory:.1f} GB/s")
    rows = []
    for name in names:
        format = by_name(name)
        for n, k in ((2048, 2048), (8192, 2048), (2048, 8192), (65536, 2048)):
            data = noise(format, n, k)
            for count in counts:
                x = votive.randn(count, k)
                seconds = best_of(lambda d=data, f=format, x=x: F._block_linear(x, d, None, f, False))
                speed = data.nbytes / seconds / 1e9
                found = {"format": name, "shape": [n, k], "rows": count, "GB/s": speed, "of memory": speed / memory}
                rows.append(found | {"ms": seconds * 1e3})
                shown = f"{speed:6.1f} GB/s  {speed / memory:.2f} {seconds * 1e3:8.2f} ms"
                print(f"{name:12} {n:6} x {k:5} {count:4} rows {shown}")
    return rows


def make(shape: str, kind: str, path: Path, tokenizer: dict[str, Any]) -> None:
    """A GGUF file of random blocks in the manner of a recipe, for a tokenizer that llama.cpp can read."""
    vocabulary = len(tokenizer["tokenizer.ggml.tokens"])
    config = LlamaConfig(**SHAPES[shape], vocab_size=vocabulary, num_key_value_heads=8, tie_word_embeddings=True)
    with votive.nn.init.skipped(), votive.device("meta"):
        state = LlamaForCausalLM(config).state_dict()
    stand_ins = {n: votive.empty(t.shape, device="meta") for n, t in state.items() if n != "lm_head.weight"}
    metadata, tensors = to_gguf(config, stand_ins, tokenizer=tokenizer, name=f"random {shape}")
    choose, told = mixture(kind, metadata, tensors.names())
    made: dict[str, votive.Tensor] = {}
    for i, name in enumerate(tensors.names()):
        size = tuple(tensors.info(name).shape)
        stored = choose(name, size, votive.float32)
        if stored is None or stored.lower() not in CODES:
            made[name] = votive.ones(size)
        else:
            format = by_name(stored)
            made[name] = from_blocks(noise(format, size[0], size[1], i), format)
    votive.io.gguf.write(path, made, metadata | told)


def models(path: Path, llama: str | None, rounds: int, threads: int) -> dict[str, Any]:
    """Decode and prefill of a file, in turns with llama.cpp where it is at hand."""
    model = AutoModelForCausalLM.from_pretrained(path)
    high = min(model.config.vocab_size, 30000)
    prompt, long = votive.randint(0, high, (1, PROMPT)), votive.randint(0, high, (1, LONG))
    options: dict[str, Any] = {"do_sample": False, "eos_token_id": None}

    def decode(compiled: bool) -> float:
        start = time.perf_counter()
        model.generate(prompt, max_new_tokens=1, **options)
        first = time.perf_counter() - start
        start = time.perf_counter()
        model.generate(prompt, max_new_tokens=TOKENS + 1, compile=compiled, **options)
        return TOKENS / (time.perf_counter() - start - first)

    def prefill() -> float:
        with votive.no_grad():
            start = time.perf_counter()
            model(long, logits_to_keep=1)
            return LONG / (time.perf_counter() - start)

    other = None
    if llama is not None:
        words = [llama, "-c", LLAMA, str(path), str(threads), str(high), str(PROMPT), str(TOKENS), str(LONG)]
        other = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    decode(True)  # compiles
    found: list[list[float]] = []
    for _ in range(rounds):
        row = [decode(False), decode(True), prefill()]
        if other is not None and other.stdin is not None and other.stdout is not None:
            other.stdin.write("\n")
            other.stdin.flush()
            row += [float(v) for v in other.stdout.readline().split()]
        found.append(row)
    if other is not None:
        other.communicate()
    best = [max(column) for column in zip(*found, strict=True)]
    print(f"{path.name}: decode {best[0]:.1f} tokens/s, compiled {best[1]:.1f}, prefill {best[2]:.0f}")
    if llama is not None:
        pairs = [(r[0] / r[3], r[1] / r[3], r[2] / r[4]) for r in found]
        spread = [f"{min(c):.2f} to {max(c):.2f}" for c in zip(*pairs, strict=True)]
        print(f"  llama.cpp: decode {best[3]:.1f}, prefill {best[4]:.0f}")
        print(f"  votive / llama.cpp: decode {best[0] / best[3]:.2f} ({spread[0]}), compiled {best[1] / best[3]:.2f} ")
        print(f"    ({spread[1]}), prefill {best[2] / best[4]:.2f} ({spread[2]})")
    return {"file": path.name, "rounds": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, help="a GGUF file")
    parser.add_argument("--make", nargs=2, metavar=("SHAPE", "TYPE"), help="1b or 3b, and q4_k_m, q8_0, …")
    parser.add_argument("--tokenizer", type=Path, help="a GGUF file whose tokenizer --make takes")
    parser.add_argument("--llama", metavar="PYTHON", help="an interpreter with llama-cpp-python")
    parser.add_argument("--formats", nargs="*", default=list(CODES))
    parser.add_argument("--rows", nargs="*", type=int, default=[1], help="of the input, for kernels")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    votive.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as folder:
        path = args.file
        if args.make:
            if args.tokenizer is None:
                parser.error("--make needs --tokenizer FILE.gguf, since llama.cpp loads no model without one.")
            found = votive.io.gguf.GGUFFile(args.tokenizer).typed_metadata()
            tokenizer = {k: v for k, v in found.items() if k.startswith("tokenizer.")}
            tokenizer["tokenizer.ggml.tokens"] = found["tokenizer.ggml.tokens"].value
            path = Path(folder) / f"{args.make[0]}-{args.make[1]}.gguf"
            make(*args.make, path, tokenizer)
        if path is None:
            result: Any = kernels(args.formats, args.rows)
        else:
            result = models(path, args.llama, args.rounds, args.threads)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
