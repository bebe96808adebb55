"""Hand-written programs compiled by votive and by torch: `python -m benchmarks.compiled cpu|cuda`.

Both are measured in turns in one process; ratios are votive's time by torch's. `--only NAME` for some of them,
`--eager` also without compiling. First calls are timed once each, with nothing cached unless the disk has it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from ..pairing import pair
from .programs import chain, decoder, empty_cache, gpt


def _first(fn: Callable[[], object], lib: Any, device: str) -> float:
    began = time.perf_counter()
    fn()
    if device == "cuda":
        lib.cuda.synchronize()
    return time.perf_counter() - began


def _chain(lib: Any, compile: bool, gradient: bool) -> Callable[[], object]:
    rows = 1024 if gradient else 2048
    lib.manual_seed(0)
    x, y = (lib.randn(rows, 1024, requires_grad=gradient) for _ in range(2))
    fn = lib.compile(chain(lib)) if compile else chain(lib)

    def step() -> None:
        if not gradient:
            fn(x, y)
            return
        x.grad = y.grad = None
        fn(x, y).sum().backward()

    return step


def _training(lib: Any, compile: bool, device: str, mode: str | None = None) -> Callable[[], object]:
    lib.manual_seed(0)
    cuda = device == "cuda"
    sizes: dict[str, Any] = {"vocabulary": 4096, "width": 256, "layers": 6, "heads": 8, "length": 256, "plain": False}
    if cuda:
        sizes = {"vocabulary": 50304, "width": 768, "layers": 12, "heads": 12, "length": 1024, "plain": True}
    model = gpt(lib, **sizes).to(device)
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4, fused=cuda or None)
    shape = (16, 1024) if cuda else (8, 256)
    ids, targets = (lib.randint(0, sizes["vocabulary"], shape, device=device) for _ in range(2))
    fn = lib.compile(model, mode=mode) if compile else model

    def step() -> Any:
        with lib.autocast(device, dtype=lib.bfloat16, enabled=cuda):
            loss = fn(ids, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item() if cuda else loss

    return step


def _decoding(lib: Any, compile: bool, shape: str, rows: int) -> Callable[[], object]:
    lib.manual_seed(0)
    lib.set_default_dtype(lib.bfloat16)
    try:
        with lib.device("cuda"):
            model = decoder(lib, shape).eval()
    finally:
        lib.set_default_dtype(lib.float32)
    cache = empty_cache(lib, shape, rows, "cuda")
    ids = lib.full((rows, 1), 7, dtype=lib.int64, device="cuda")
    position = lib.zeros(1, dtype=lib.int64, device="cuda")
    fn = lib.compile(model, mode="reduce-overhead") if compile else model

    def step() -> None:
        position.zero_()
        with lib.no_grad():
            for _ in range(50):
                ids.copy_(fn(ids, position, cache))
                position.add_(1)
        ids.tolist()

    return step


def _peak(lib: Any) -> float:
    """GiB that a training step takes at most, without recorded graphs, whose memory is not counted."""
    step = _training(lib, True, "cuda", "max-autotune-no-cudagraphs")
    for _ in range(3):
        step()
    lib.cuda.empty_cache()
    lib.cuda.reset_peak_memory_stats()
    before = lib.cuda.memory_allocated()
    step()
    model = 124.5e6 * 12  # weights and both moments in float32, which other models on the device may have, too
    return float((lib.cuda.max_memory_allocated() - before + model) / 2**30)


def _cases(device: str) -> dict[str, tuple[Callable[[Any, bool], Callable[[], object]], float]]:
    """Name -> how a step is made, and what a rate is of: tokens, or steps."""
    if device == "cpu":
        return {
            "chain of 2M": (lambda lib, c: _chain(lib, c, False), 0),
            "chain of 1M with gradient": (lambda lib, c: _chain(lib, c, True), 0),
            "gpt 6x256 training step": (lambda lib, c: _training(lib, c, "cpu"), 0),
        }
    found: dict[str, Any] = {"gpt-2 124M 16x1024 training": (lambda lib, c: _training(lib, c, "cuda"), 16 * 1024)}
    for shape, rows in (("qwen3-0.6b", 1), ("llama-8b", 1), ("llama-8b", 8), ("llama-8b", 32)):
        make = lambda lib, c, shape=shape, rows=rows: _decoding(lib, c, shape, rows)
        found[f"{shape} decoding, {rows} rows"] = (make, 50)
    return found


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=["cpu", "cuda"])
    parser.add_argument("--only", default="")
    parser.add_argument("--eager", action="store_true", help="also votive without compiling")
    parser.add_argument("--alone", action="store_true", help="votive without torch")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    import votive

    torch: Any = None
    if not args.alone:
        import torch
    print(f"{'program':34}{'votive':>12}{'torch':>12}{'ratio':>8}{'spread':>14}   rate; first calls; memory")
    for name, (make, count) in _cases(args.device).items():
        if args.only not in name:
            continue
        ours = make(votive, True)
        firsts = [_first(ours, votive, args.device)]
        for _ in range(4):  # graphs are recorded
            ours()
        theirs = ours
        if torch is not None:
            theirs = make(torch, True)
            firsts.append(_first(theirs, torch, args.device))
            for _ in range(4):
                theirs()
        row = pair(name, ours, theirs, rounds=args.rounds, seconds=60)
        rate = "" if not count else f"{count / row.votive_us * 1e6:.0f} / {count / row.torch_us * 1e6:.0f} per s; "
        memory = ""
        if "training" in name and args.device == "cuda":
            del ours, theirs
            memory = "; " + " / ".join(f"{_peak(lib):.2f} GiB" for lib in (votive, torch) if lib is not None)
        shown = f"{row.votive_us / 1e3:>9.2f} ms{row.torch_us / 1e3:>9.2f} ms{row.ratio:>8.2f}"
        called = " / ".join(f"{t:.1f} s" for t in firsts)
        print(f"{name:34}{shown}{f'{row.low:.2f}..{row.high:.2f}':>14}   {rate}{called}{memory}", flush=True)
        if args.eager:
            plain = make(votive, False)
            alone = pair(name, plain, plain, rounds=5, seconds=20)
            print(f"{'  votive eager':34}{alone.votive_us / 1e3:>9.2f} ms", flush=True)


if __name__ == "__main__":
    main()
