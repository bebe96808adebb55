"""Recurrent layers of random sizes, votive against torch on the CPU: `python -m benchmarks.recurrent`.

    --cases 60      how many networks, drawn from `--seed`
    --threads 1     of both sides
    --filter REGEX  only cases whose name matches
    --dtype float32

Both sides have the same numbers and run in turns; a row is the least of several rounds, forward alone (without a
graph) and forward with backward. Ratios below 1 mean that votive is faster.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Net:
    """A network and its batch: kind, steps, samples, features, units, layers, directions."""

    kind: str
    T: int
    B: int
    features: int
    units: int
    layers: int
    both: bool

    def __str__(self) -> str:
        ways = " both ways" if self.both else ""
        return f"{self.kind} {self.T}x{self.B}x{self.features}->{self.units} x{self.layers}{ways}"


def drawn(rng: np.random.Generator) -> Net:
    """Sizes that are even on a logarithmic scale."""

    def size(low: int, high: int) -> int:
        return round(math.exp(rng.uniform(math.log(low), math.log(high))))

    kind = str(rng.choice(["LSTM", "GRU", "RNN"]))
    sizes = size(1, 200), size(1, 64), size(4, 512), size(4, 512)
    return Net(kind, *sizes, int(rng.choice([1, 1, 2, 3])), bool(rng.random() < 0.35))


def runs(m: Any, net: Net, dtype: str, values: np.ndarray[Any, Any]) -> list[Callable[[], Any]]:
    """Forward without a graph, and forward with backward."""
    m.manual_seed(0)
    kind = getattr(m, dtype)
    layer = getattr(m.nn, net.kind)(net.features, net.units, net.layers, bidirectional=net.both).to(kind)
    x = m.from_numpy(values.copy()).to(kind)
    seed = m.ones(net.T, net.B, net.units * (1 + net.both), dtype=kind)

    def forward() -> None:
        with m.no_grad():
            layer(x)

    def both() -> None:
        leaf = x.detach().requires_grad_()
        layer(leaf)[0].backward(seed)
        for p in layer.parameters():
            p.grad = None

    return [forward, both]


def least(ours: Callable[[], Any], theirs: Callable[[], Any], seconds: float, threads: int) -> tuple[float, float]:
    """Seconds per call of each side, in turns; of one thread those it had a processor, which others disturb less."""
    clock = time.process_time if threads == 1 else time.perf_counter
    best = [math.inf, math.inf]
    pair = (ours, theirs)
    for fn in pair:
        fn()
        fn()
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < 5 or (time.perf_counter() < end and rounds < 200):
        for k, fn in enumerate(pair):
            start = clock()
            fn()
            best[k] = min(best[k], clock() - start)
        rounds += 1
    return best[0], best[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--filter", default="")
    parser.add_argument("--dtype", default="float32")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(given.threads)

    import torch

    import votive

    torch.set_num_threads(given.threads)
    votive.set_num_threads(given.threads)
    rng = np.random.default_rng(given.seed)
    ratios: list[list[tuple[float, str]]] = [[], []]
    total = np.zeros((2, 2))
    for _ in range(given.cases):
        net = drawn(rng)
        if not re.search(given.filter, str(net)):
            continue
        values = np.random.default_rng(1).normal(size=(net.T, net.B, net.features)).astype(np.float32)
        line = f"{net!s:42}"
        sides = [runs(m, net, given.dtype, values) for m in (votive, torch)]
        for k, (ours, theirs) in enumerate(zip(*sides, strict=True)):
            a, b = least(ours, theirs, given.seconds, given.threads)
            ratios[k].append((a / b, str(net)))
            total[k] += a, b
            line += f"  {a * 1e3:9.3f} / {b * 1e3:9.3f} = {a / b:5.2f}"
        print(line, flush=True)
    for name, row, sums in zip(("forward", "forward + backward"), ratios, total, strict=True):
        mean = math.exp(sum(math.log(r) for r, _ in row) / len(row))
        above = sum(r > 1 for r, _ in row)
        print(f"{name}: mean {mean:.2f}, total {sums[0] / sums[1]:.2f}, above 1: {above} of {len(row)}; worst")
        for r, net_name in sorted(row, reverse=True)[:5]:
            print(f"   {r:5.2f}  {net_name}")


if __name__ == "__main__":
    main()
