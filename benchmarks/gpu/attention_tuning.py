"""Tiles of attention, tried one by one on this GPU: `python -m benchmarks.gpu.tuning attention`.

All tries are compiled first, on all cores; then each kernel is launched alone, on the layouts of a
training step.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import batch_time

# (queries, keys, warps, stages, compiler options, whether the product with values comes early)
Try = tuple[int, int, int, int, dict[str, int], bool]
SHAPES = ((16, 12, 1024, 64), (4, 16, 4096, 128))
KERNEL = {"forward": "_attend", "queries": "by_queries", "keys": "by_keys"}
# Products that a kernel takes.
PRODUCTS = {"forward": 2, "queries": 3, "keys": 4}
CAP = {"maxnreg": 128}
TRIES: dict[tuple[str, int], list[tuple[Any, ...]]] = {
    ("forward", 64): [
        (64, 64, 4, 3), (64, 64, 4, 2), (64, 64, 4, 2, {"maxnreg": 96}), (64, 128, 4, 2),
        (128, 64, 4, 3), (128, 64, 8, 3), (128, 64, 8, 2, CAP), (128, 128, 8, 2), (64, 32, 4, 3),
        (128, 32, 4, 3),
    ],
    ("queries", 64): [
        (64, 64, 4, 3), (64, 64, 4, 2), (64, 64, 4, 2, CAP), (64, 32, 4, 3), (64, 32, 4, 3, CAP),
        (128, 64, 8, 3), (128, 64, 8, 2, CAP), (128, 32, 4, 3), (128, 128, 8, 2),
    ],
    ("keys", 64): [
        (32, 64, 4, 3), (32, 64, 4, 2), (32, 64, 4, 3, CAP), (64, 64, 4, 2), (64, 64, 4, 3),
        (64, 128, 8, 2), (64, 128, 8, 3), (32, 128, 8, 3), (32, 128, 8, 3, CAP), (32, 128, 4, 3),
        (16, 64, 4, 4),
    ],
    ("forward", 128): [
        (128, 128, 8, 3), (128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 8, 4), (128, 64, 4, 3),
        (64, 64, 4, 3), (64, 128, 4, 2), (128, 32, 8, 4),
    ],
    ("queries", 128): [
        (128, 64, 8, 3), (128, 64, 8, 2), (64, 64, 4, 2), (128, 32, 8, 3), (128, 128, 8, 2),
        (64, 32, 4, 3), (128, 32, 8, 3, CAP),
    ],
    ("keys", 128): [
        (64, 128, 8, 3), (64, 128, 8, 2), (32, 128, 8, 2), (32, 128, 8, 3), (64, 64, 8, 2),
        (64, 64, 8, 3), (32, 64, 4, 2), (32, 64, 8, 3, CAP),
    ],
}  # fmt: skip


def tries() -> list[tuple[tuple[int, ...], str, Try]]:
    """(shape, kind of kernel, what is tried)."""
    out = []
    for shape in SHAPES:
        for kind in KERNEL:
            for t in TRIES[kind, shape[3]]:
                for early in (False, True) if kind != "forward" else (False,):
                    options = t[4] if len(t) > 4 else {}
                    out.append((shape, kind, (*t[:4], options, early)))
    return out  # type: ignore[return-value]


@contextmanager
def using(kind: str, width: int, t: Try) -> Iterator[None]:
    """Let new plans use a tile."""
    from votive.backends.cuda.kernels.attention import tile_sizes as sizes
    from votive.dispatch.plan import drop_plans

    table, before = sizes.TILES[kind], sizes.TILES[kind][width]
    early = sizes.AHEAD.get(kind)
    table[width] = t[:5]
    if early is not None:
        sizes.AHEAD[kind] = t[5]
    for op in ("_attention", "_attention_backward"):
        drop_plans(op)
    try:
        yield
    finally:
        table[width] = before
        if early is not None:
            sizes.AHEAD[kind] = early


def strides(shape: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """Heads of a row that holds `parts` such tensors side by side."""
    _, H, T, D = shape
    return (T * parts * H * D, D, parts * H * D, 1)


def compile_share(mine: int, of: int) -> None:
    """Compile a share of the tries into Triton's cache on disk, without a GPU."""
    import dataclasses

    import votive as vt
    from votive.backends.base import TABLE
    from votive.backends.common.slot import Slot
    from votive.backends.cuda import kernels
    from votive.backends.cuda import runtime as rt
    from votive.backends.cuda.emulated import driver as emulated
    from votive.backends.cuda.programs import program as programs
    from votive.core.device import device
    from votive.core.layout import Layout, Spec

    rt.runtime.driver = emulated.Emulated()
    rt.begin()
    rt.runtime.properties[0] = dataclasses.replace(rt.runtime.property(0), multi_processor_count=132)
    kernels.load()
    made: list[Any] = []
    start = programs.Program.__init__

    def noted(self: Any, *args: Any, **options: Any) -> None:
        start(self, *args, **options)
        made.append(self)

    programs.Program.__init__ = noted  # type: ignore[method-assign]
    from triton.backends.compiler import GPUTarget

    for shape, kind, t in tries()[mine::of]:

        def slot(dims: Any, at: Any = None, dtype: Any = vt.bfloat16) -> Any:
            return Slot(0, Spec(Layout(tuple(dims), at), dtype, device("cuda", 0)))

        x, y = slot(shape, strides(shape, 3)), slot(shape, strides(shape, 1))
        rows = slot(shape[:3], None, vt.float32)
        made.clear()
        with using(kind, shape[3], t):
            if kind == "forward":
                TABLE["_attention", "cuda"][0].fn(x, x, x, None, None, None, 0, 0.0, True, 0.125)
            else:
                TABLE["_attention_backward", "cuda"][0].fn(
                    y, rows, x, x, x, None, y, rows, None, None, 0, 0.0, True, 0.125, False
                )
        for p in made:
            if p.fn.__name__ == KERNEL[kind]:
                try:
                    p.compile(True, GPUTarget("cuda", 90, 32))
                except Exception as e:  # tiles that do not compile or fit are no candidates
                    print(shape, kind, t, f"{type(e).__name__} {e}"[:100])


def compile_all() -> None:
    """Compile every try in as many processes as there are cores."""
    n = os.cpu_count() or 1
    command = [sys.executable, "-m", "benchmarks.gpu.tuning", "compile"]
    working = [subprocess.Popen([*command, str(i), str(n)]) for i in range(n)]
    for p in working:
        p.wait()


@contextmanager
def launches() -> Iterator[dict[str, Any]]:
    """What is launched inside the block: name of the kernel -> a function that does it again."""
    from votive.backends.cuda.programs.program import Program

    found: dict[str, Any] = {}
    call = Program.__call__

    def noted(self: Any, grid: Any, *args: Any) -> None:
        found[self.fn.__name__] = lambda: call(self, grid, *args)
        call(self, grid, *args)

    Program.__call__ = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Program.__call__ = call  # type: ignore[method-assign]


def attention() -> None:
    """Print what each try takes, and the fastest of each kind."""
    import votive as vt
    from votive.nn.functional import scaled_dot_product_attention as attend

    compile_all()
    for shape in SHAPES:
        B, H, T, D = shape
        qkv = vt.randn(B, T, 3 * H * D, device="cuda", dtype=vt.bfloat16).requires_grad_()
        q, k, v = (x.view(B, T, H, D).transpose(1, 2) for x in qkv.split(H * D, 2))
        g = vt.randn(B, T, H, D, device="cuda", dtype=vt.bfloat16).transpose(1, 2)
        work = 2 * B * H * T * T * D / 2
        for kind in KERNEL:
            rows = []
            for at, what, t in tries():
                if (at, what) != (shape, kind):
                    continue
                try:
                    with using(kind, D, t), launches() as found:
                        vt.autograd.grad(attend(q, k, v, is_causal=True), (qkv,), g)
                    again = found[KERNEL[kind]]
                    for _ in range(3):
                        again()
                    ms = min(batch_time(again, "votive", 10) for _ in range(5))
                    rows.append((ms, t))
                except Exception as e:  # tiles that do not compile or fit are no candidates
                    print(f"{kind} {shape} {t}: {type(e).__name__} {e}"[:160], flush=True)
            for ms, t in sorted(rows, key=lambda r: r[0]):
                speed = PRODUCTS[kind] * work / ms / 1e9
                print(
                    f"{kind:8} {'x'.join(map(str, shape)):14} {ms * 1e3:8.1f} us {speed:5.0f} "
                    f"TFLOP/s  {t[:4]} {t[4] or ''} {'early' if t[5] else ''}",
                    flush=True,
                )
