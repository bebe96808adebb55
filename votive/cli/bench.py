"""`votive bench`: how fast votive computes here, measured with itself alone.

Every figure is the median of several blocks, with the best beside it; nothing is compared with
numbers from elsewhere. Knows operators and models by their public names.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import Commands, UsageError, command
from .numbers import number, whole
from .terminal import note, print_json

if TYPE_CHECKING:
    from ..tensor import Tensor


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "bench",
        description="Measure matrix products, memory bandwidth, the cost of a call and the speed\n"
        "of generation on this machine. Medians of several blocks; best in brackets.",
        examples="  votive bench\n  votive bench --only matmul --threads 1\n"
        "  votive bench --model folder\n"
        "  votive bench --compare        next to torch, in a clone of the repository",
    )
    p.add_argument("device", nargs="?", default="cpu", choices=["cpu"], help="what to measure")
    p.add_argument("--only", metavar="TEXT", help="measurements whose name contains TEXT")
    p.add_argument(
        "--seconds", metavar="X", type=number(above=0, high=3600), help="seconds for each measurement (default 0.5)"
    )
    p.add_argument("--threads", metavar="N", type=whole(1, 4096), help="threads for operators")
    p.add_argument("--model", metavar="MODEL", help="model to generate with (default: the bundled one)")
    p.add_argument("--compare", action="store_true", help="compare with torch, using the repository's benchmarks")
    p.add_argument("--json", action="store_true", help="write JSON")


@dataclass(frozen=True)
class Case:
    """Something to time: `make()` gives the call, `amount` what it does, in `unit`."""

    name: str
    make: Callable[[], Callable[[], Any]]
    amount: float
    unit: str
    scale: float = 1.0

    def figure(self, seconds: float) -> float:
        """A rate, or for a unit of time the time."""
        if self.unit.endswith("/s"):
            return self.amount / seconds * self.scale
        return seconds / self.amount * self.scale


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    import votive

    if args.threads is not None:
        votive.set_num_threads(args.threads)
    if args.compare:
        return _compare(args)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5 * (os.cpu_count() or 1):
        note(args, f"the machine is busy (load {load:.1f}): figures will be low and scattered")
    cases = [c for c in [*_cases(), *_decoding(args)] if not args.only or args.only in c.name]
    if not cases:
        raise UsageError(f"no measurement's name contains {args.only!r}")
    threads = votive.get_num_threads()
    if not args.json:
        print(f"votive {votive.__version__}, {threads} threads, load {load:.1f}\n")
    room = max(len(c.name) for c in cases)
    rows = []
    for case in cases:
        rows.append(row := measured(case, args.seconds or 0.5))
        # No bar: a thread that draws would take time from what is measured.
        if not args.json:
            median, best = _short(row["median"]), _short(row["best"])
            print(f"{case.name:<{room}}  {median:>9}  (best {best:>9}) {case.unit}", flush=True)
    if args.json:
        print_json({"votive": votive.__version__, "threads": threads, "load": load, "results": rows})
    return 0


def _short(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 1000 else f"{figure:.4g}"


def measured(case: Case, seconds: float) -> dict[str, Any]:
    """Time a case: blocks of at least ten milliseconds, at least five of them."""
    fn = case.make()
    fn()
    began = time.perf_counter()
    fn()
    once = max(time.perf_counter() - began, 1e-8)
    loops = max(1, int(0.01 / once))
    blocks: list[float] = []
    end = time.perf_counter() + seconds
    while len(blocks) < 5 or time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(loops):
            fn()
        blocks.append((time.perf_counter() - began) / loops)
    return {
        "name": case.name,
        "unit": case.unit,
        "median": case.figure(statistics.median(blocks)),
        "best": case.figure(min(blocks)),
        "blocks": len(blocks),
    }


def _cases() -> list[Case]:
    import votive as vt

    def product(n: int, dtype: vt.dtype) -> Case:
        def make() -> Callable[[], Any]:
            a, b = vt.randn(n, n).to(dtype), vt.randn(n, n).to(dtype)
            return lambda: a @ b

        name = f"matmul {n}×{n} {str(dtype).removeprefix('votive.')}"
        return Case(name, make, 2.0 * n**3, "GFLOP/s", 1e-9)

    def vector_product() -> Callable[[], Any]:
        w, x = vt.randn(2048, 2048), vt.randn(1, 2048)
        return lambda: vt.nn.functional.linear(x, w)

    def large(fn: Callable[[Any, Any], Any]) -> Callable[[], Any]:
        a, b = vt.randn(1 << 24), vt.randn(1 << 24)
        return lambda: fn(a, b)

    def small(fn: Callable[[Any], Any], grad: bool = False) -> Callable[[], Any]:
        a = vt.ones(16, requires_grad=grad)
        return lambda: fn(a)

    def backward(a: Tensor) -> Any:
        (a * a).sum().backward()

    size = 4 * (1 << 24)
    return [
        product(256, vt.float32),
        product(1024, vt.float32),
        product(2048, vt.float32),
        product(1024, vt.bfloat16),
        Case("linear, one row of 2048×2048", vector_product, 4.0 * 2048**2, "GB/s", 1e-9),
        Case("copy 64 MiB", lambda: large(lambda a, b: b.copy_(a)), 2 * size, "GB/s", 1e-9),
        Case("add 64 MiB", lambda: large(lambda a, b: a + b), 3 * size, "GB/s", 1e-9),
        Case("gelu 64 MiB", lambda: large(lambda a, _: vt.nn.functional.gelu(a)), 2 * size, "GB/s", 1e-9),
        Case("call: 16 floats, a + a", lambda: small(lambda a: a + a), 1, "µs", 1e6),
        Case("call: 16 floats, (a * a).sum().backward()", lambda: small(backward, True), 1, "µs", 1e6),
    ]


def _decoding(args: argparse.Namespace) -> list[Case]:
    """Reading a prompt and writing tokens with a model, where there is one."""
    from ..models import bundled

    name = args.model or next(iter(bundled()), None)
    if name is None:
        note(args, "no bundled model here: generation is not measured (pass --model)")
        return []
    from .model_options import find_model, load_model

    find_model(args, name)  # report what is wrong with it before anything is measured
    prompt, new = 64, 32
    kept: list[Any] = []

    def model() -> Any:
        if not kept:
            kept.append(load_model(args, name).model)
        return kept[0]

    def reading() -> Callable[[], Any]:
        import votive

        m = model()
        ids = votive.randint(0, m.config.vocab_size, (1, prompt))

        def call() -> None:
            with votive.no_grad():
                m(ids, use_cache=False, logits_to_keep=1)

        return call

    def writing() -> Callable[[], Any]:
        import votive

        m = model()
        ids = votive.randint(0, m.config.vocab_size, (1, 1))
        # Tokens that end a text would end the measurement.
        none = {"eos_token_id": [], "do_sample": False}
        return lambda: m.generate(ids, max_new_tokens=new, **none)

    label = os.path.basename(os.path.normpath(name))
    return [
        Case(f"{label}: read a prompt of {prompt}", reading, prompt, "tokens/s"),
        Case(f"{label}: write {new} tokens", writing, new, "tokens/s"),
    ]


def _compare(args: argparse.Namespace) -> int:
    """Run the repository's paired comparison in a process of its own."""
    import subprocess
    from importlib.util import find_spec
    from pathlib import Path

    root = Path(__file__).parents[2]
    if not (root / "benchmarks" / "compare.py").is_file():
        raise UsageError("--compare needs a clone of the repository, where the benchmarks are")
    if find_spec("torch") is None:
        raise UsageError("--compare needs torch, which is not installed")
    if args.json or args.model or args.seconds:
        raise UsageError("--json, --model and --seconds do not go with --compare")
    words = [sys.executable, "-m", "benchmarks.compare", args.device, "--quick"]
    if args.only:
        words += ["--filter", args.only]
    if args.threads is not None:
        words += ["--threads", str(args.threads)]
    return subprocess.run(words, cwd=root, check=False).returncode
