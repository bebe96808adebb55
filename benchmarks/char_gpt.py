"""The char-GPT example trained by votive and by torch: same weights, same batches, losses and time.

    OMP_NUM_THREADS=2 python -m benchmarks.char_gpt --steps 300

torch runs the example's own source with `votive` replaced by `torch`, nothing else changed. The two
take turns step by step, so that both see the same state of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

import votive

from .curve import overlay

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "examples" / "char_gpt.py"
NAMES = ("votive", "torch")


def program(framework: str) -> ModuleType:
    """The example as a module that imports `framework`."""
    module = ModuleType(f"char_gpt_{framework}")
    module.__file__ = str(SOURCE)
    code = re.sub(r"\bvotive\b", framework, SOURCE.read_text())
    sys.path.insert(0, str(SOURCE.parent))  # as when the example is run itself
    try:
        exec(compile(code, str(SOURCE), "exec"), module.__dict__)
    finally:
        sys.path.remove(str(SOURCE.parent))
    return module


class Run:
    """One framework's model, optimizer and data; `step` trains on the next batch."""

    def __init__(self, framework: str, text: str, args: argparse.Namespace) -> None:
        self.program = program(framework)
        letters = {c: i for i, c in enumerate(sorted(set(text)))}
        self.data, self.held = np.split(np.array([letters[c] for c in text]), [int(0.9 * len(text))])
        self.model = self.program.GPT(len(letters), args.context, args.width, args.heads, args.layers)
        if args.double:
            self.model.double()
        self.optimizer = self.program.optimizer_of(self.model, args.lr)
        schedulers = {"votive": votive.optim, "torch": torch.optim}[framework].lr_scheduler
        self.schedule = schedulers.CosineAnnealingLR(self.optimizer, args.steps, args.lr / 10)
        self.batches = self.program.batches(self.data, args.context, args.batch, args.seed)
        self.losses: list[float] = []
        self.seconds: list[float] = []

    def step(self) -> None:
        """Train once; note the loss and how long it took."""
        x, y = next(self.batches)
        began = time.perf_counter()
        loss = self.program.train_step(self.model, self.optimizer, x, y)
        self.seconds.append(time.perf_counter() - began)
        self.schedule.step()
        self.losses.append(loss)

    def held_out(self) -> float:
        """The mean loss on text that training did not see."""
        batches = self.program.batches(self.held, self.model.context, 64, seed=1)
        losses = [self.program.loss_of(self.model, *next(batches)).item() for _ in range(4)]
        return float(np.mean(losses))


def copy_weights(source: Any, target: Any) -> None:
    """Give the torch model the votive model's weights."""
    state = {k: torch.from_numpy(v.numpy().copy()) for k, v in source.state_dict().items()}
    target.load_state_dict(state)


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Train both and report."""
    votive.manual_seed(args.seed)
    text = args.text.read_text()
    ours, theirs = (Run(name, text, args) for name in NAMES)
    copy_weights(ours.model, theirs.model)
    load = os.getloadavg()[0]
    for step in range(args.steps):
        for run in (ours, theirs) if step % 2 else (theirs, ours):
            run.step()
        if step % args.every == 0 or step == args.steps - 1:
            print(f"step {step:5}  votive {ours.losses[-1]:.6f}  torch {theirs.losses[-1]:.6f}")
    skip = min(args.warm, args.steps - 1)  # first calls build plans and fill caches
    pairs = zip(ours.seconds[skip:], theirs.seconds[skip:], strict=True)
    ratios = sorted(a / b for a, b in pairs)
    apart = np.abs(np.subtract(ours.losses, theirs.losses))
    return {
        "steps": args.steps,
        "dtype": "float64" if args.double else "float32",
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
        "cores": os.cpu_count(),
        "load_average": [load, os.getloadavg()[0]],
        "versions": {"votive": votive.__version__, "torch": torch.__version__},
        "final_loss": {name: run.losses[-1] for name, run in zip(NAMES, (ours, theirs))},
        "held_out_loss": {name: run.held_out() for name, run in zip(NAMES, (ours, theirs))},
        "largest_difference": float(apart.max()),
        "ms_per_step": {name: statistics.median(run.seconds[skip:]) * 1e3 for name, run in zip(NAMES, (ours, theirs))},
        "best_ms_per_step": {name: min(run.seconds[skip:]) * 1e3 for name, run in zip(NAMES, (ours, theirs))},
        "ratio": statistics.median(ratios),
        "ratio_10_90": [ratios[len(ratios) // 10], ratios[-1 - len(ratios) // 10]],
        "losses": {"votive": ours.losses, "torch": theirs.losses},
    }


def main() -> None:
    """Compare, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, default=ROOT / "examples" / "data" / "tiny.txt")
    parser.add_argument("--double", action="store_true", help="compute in float64")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    parser.add_argument("--svg", type=Path, help="draw both curves into this file")
    parser.add_argument("--lr", type=float, default=2e-3)
    whole = {
        "steps": 300,
        "seed": 0,
        "context": 64,
        "batch": 16,
        "width": 96,
        "heads": 4,
        "layers": 3,
        "every": 25,
        "warm": 10,
    }
    for name, value in whole.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    result = compare(args)
    low, high = result["ratio_10_90"]
    ms, best = result["ms_per_step"], result["best_ms_per_step"]
    print(f"largest difference of the losses: {result['largest_difference']:.2e}")
    print("held-out loss: " + "  ".join(f"{k} {v:.4f}" for k, v in result["held_out_loss"].items()))
    print(f"ms per step (median): votive {ms['votive']:.1f}  torch {ms['torch']:.1f}", end="  ")
    print(f"ratio {result['ratio']:.2f} (10%..90% of steps {low:.2f}..{high:.2f})")
    print(f"best ms per step: votive {best['votive']:.1f}  torch {best['torch']:.1f}", end="  ")
    print(f"ratio {best['votive'] / best['torch']:.2f}")
    before, after = result["load_average"]
    print(f"threads {result['threads']}, {result['cores']} cores, load {before:.1f}..{after:.1f}")
    if max(before, after) > result["cores"]:
        print("More work than cores: threads waited for one another, so these times mislead.")
    if args.json:
        args.json.write_text(json.dumps(result) + "\n")
    if args.svg:
        args.svg.write_text(overlay(result["losses"], "char-GPT: training loss, nats per character"))


if __name__ == "__main__":
    main()
