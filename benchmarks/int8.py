"""A dynamic int8 linear layer, 1024 to 3072 features, against float32 and torch, in turns.

OMP_NUM_THREADS=1 python -m benchmarks.int8
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import votive

ROWS = (1, 8, 64, 512)
TURNS = 15


def _torch(threads: int, weights: Any) -> dict[str, Callable[[Any], Any]]:
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(threads)
    net = torch.nn.Sequential(torch.nn.Linear(1024, 3072)).eval().requires_grad_(False)
    net.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in weights.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = torch.ao.quantization.quantize_dynamic(net)
    return {"torch float32": lambda x: net(torch.from_numpy(x)), "torch int8": lambda x: small(torch.from_numpy(x))}


def main() -> None:
    """Print a row for each number of rows of the input."""
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    votive.set_num_threads(threads)
    net = votive.nn.Sequential(votive.nn.Linear(1024, 3072)).eval().requires_grad_(False)
    small = votive.ao.quantization.quantize_dynamic(net)
    ways: dict[str, Callable[[Any], Any]] = {
        "float32": lambda x: net(votive.from_numpy(x)),
        "int8": lambda x: small(votive.from_numpy(x)),
        **_torch(threads, net.state_dict()),
    }
    print("| rows | " + " | ".join(ways) + " |")
    print("|---" * (len(ways) + 1) + "|")
    for rows in ROWS:
        x = votive.randn(rows, 1024).numpy()
        times: dict[str, list[float]] = {name: [] for name in ways}
        count = max(3, 200 // rows)
        for _ in range(TURNS):
            for name, call in ways.items():
                begin = time.perf_counter()
                for _ in range(count):
                    call(x)
                times[name].append((time.perf_counter() - begin) / count * 1e6)
        cells = (f"{median(t):,.0f} ({min(t):,.0f})" for t in times.values())
        print(f"| {rows} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
