"""Tile sizes of attention and of products with few rows, tried one by one on this GPU."""

from __future__ import annotations

from functools import partial
from typing import Any

from . import batch_time
from .kernels import pair


def _time(fn: Any) -> float:
    for _ in range(3):
        fn()
    return min(batch_time(fn, "votive", 10) for _ in range(3))


FORWARD = (
    (128, 128, 8, 3),
    (128, 64, 8, 3),
    (128, 64, 4, 3),
    (128, 128, 8, 2),
    (64, 64, 4, 3),
    (128, 64, 4, 4),
    (64, 128, 4, 3),
)
KEYS = (
    (64, 128, 8, 2),
    (64, 64, 4, 2),
    (32, 128, 8, 2),
    (64, 64, 8, 2),
    (32, 128, 4, 3),
    (32, 64, 4, 3),
    (64, 128, 8, 3),
    (128, 64, 8, 2),
)
QUERIES = (
    (128, 64, 8, 2),
    (128, 64, 8, 3),
    (128, 32, 4, 3),
    (64, 64, 4, 3),
    (128, 128, 8, 2),
    (64, 64, 4, 2),
)
SHAPES = ((4, 16, 4096, 128), (16, 12, 1024, 64))


def tries() -> list[tuple[Any, ...]]:
    """(shape, which kernel, tiles) of everything that is tried."""
    kinds = (("forward", FORWARD), ("keys", KEYS), ("queries", QUERIES))
    return [(s, kind, tiles) for s in SHAPES for kind, options in kinds for tiles in options]


def _table(kind: str) -> Any:
    from votive.backends.cuda import attention as forward
    from votive.backends.cuda import attention_backward as backward

    return {"forward": forward.TILES, "keys": backward.KEYS, "queries": backward.QUERIES}[kind]


def compile_share(mine: int, of: int) -> None:
    """Compile a share of the tries into Triton's cache on disk, without a GPU."""
    import dataclasses

    import votive as vt
    from votive.backends.base import TABLE
    from votive.backends.cpu.native.rows import Slot
    from votive.backends.cuda import host
    from votive.backends.cuda import program as programs
    from votive.backends.cuda import runtime as rt
    from votive.core.device import device
    from votive.core.layout import Layout, Spec

    rt.runtime.driver = host.Emulated()
    rt.begin()
    rt.runtime.properties[0] = dataclasses.replace(
        rt.runtime.property(0), multi_processor_count=132
    )
    from votive.backends.cuda import families

    families.load()
    made: list[Any] = []
    start = programs.Program.__init__

    def noted(self: Any, *args: Any, **options: Any) -> None:
        start(self, *args, **options)
        made.append(self)

    programs.Program.__init__ = noted  # type: ignore[method-assign]
    from triton.backends.compiler import GPUTarget

    for n, (shape, kind, tiles) in enumerate(tries()):
        if n % of != mine:
            continue
        _table(kind)[shape[3]] = tiles

        def slot(dims: Any, dtype: Any = vt.bfloat16) -> Any:
            return Slot(0, Spec(Layout(tuple(dims)), dtype, device("cuda", 0)))

        x, rows = slot(shape), slot(shape[:3], vt.float32)
        scale = shape[3] ** -0.5
        made.clear()
        if kind == "forward":
            TABLE["_attention", "cuda"][0].fn(x, x, x, None, None, None, 0, 0.0, True, scale)
        else:
            TABLE["_attention_backward", "cuda"][0].fn(
                x, rows, x, x, x, None, x, rows, None, None, 0, 0.0, True, scale, False
            )
        name = {"forward": "_attend", "keys": "_by_keys", "queries": "_by_queries"}[kind]
        for p in made:
            if p.fn.__name__ == name:
                try:
                    p.compile(True, GPUTarget("cuda", 90, 32))
                except Exception as e:
                    print(shape, kind, tiles, f"{type(e).__name__} {e}"[:100])


def attention() -> None:
    import votive
    import votive.nn.functional as F
    from votive.dispatch.plan import drop_plans

    for shape in SHAPES:
        B, H, T, D = shape
        q, k, v, g = (pair(*shape)[0] for _ in range(4))
        work = 4 * B * H * T * T * D / 2
        a, b, c = (x.clone().requires_grad_() for x in (q, k, v))
        out = F.scaled_dot_product_attention(a, b, c, is_causal=True)
        runs = {
            "forward": partial(F.scaled_dot_product_attention, q, k, v, is_causal=True),
            "keys": partial(votive.autograd.grad, out, (a, b, c), g, retain_graph=True),
        }
        runs["queries"] = runs["keys"]
        base = {kind: _table(kind)[D] for kind in runs}
        for at, kind, tiles in tries():
            if at != shape:
                continue
            _table(kind)[D] = tiles
            drop_plans("_attention")
            drop_plans("_attention_backward")
            try:
                flops = work * (1 if kind == "forward" else 2.5)
                print(
                    f"{kind} {D} {tiles}: {flops / _time(runs[kind]) / 1e9:.0f} TFLOP/s", flush=True
                )
            except Exception as e:
                print(f"{kind} {D} {tiles}: {type(e).__name__} {e}"[:160], flush=True)
            _table(kind)[D] = base[kind]


def few_rows() -> None:
    from votive.backends.cuda import matmul_kernels
    from votive.backends.cuda.program import Program

    for n, k in ((3072, 1024), (1024, 1024), (1024, 3072), (2048, 1024), (151936, 1024)):
        weights = [pair(n, k)[0] for _ in range(max(1, min(48, int(2e8 / (2 * n * k)))))]
        x, y = pair(1, k)[0], pair(1, n)[0]
        best = []
        for bn in (1, 2, 4, 8, 16):
            for bk in (256, 512, 1024):
                if k % bk:
                    continue
                for warps in (1, 2, 4, 8):
                    p = Program(
                        matmul_kernels._few_rows,
                        ["*bf16"] * 4 + ["i32", "i32", "i64", "i64", "i64"],
                        {"M": 1, "BIAS": False, "KIND": 0, "EVEN": True, "BN": bn, "BK": bk},
                        warps=warps,
                    )
                    p.divisible = (4, 5, 6, 7, 8)

                    def run(
                        p: Any = p, bn: int = bn, weights: Any = weights, x: Any = x, y: Any = y,
                        n: int = n, k: int = k,
                    ) -> None:  # fmt: skip
                        to, row = y._data.ptr, x._data.ptr
                        for w in weights:
                            p((-(-n // bn),), to, row, w._data.ptr, row, n, k, k, k, n)

                    try:
                        import votive

                        for _ in range(2):
                            run()
                        graphed = votive.cuda.make_graphed(run)
                        best.append((_time(graphed) / len(weights) * 1e3, bn, bk, warps))
                    except Exception as e:
                        print(n, k, bn, bk, warps, f"{type(e).__name__} {e}"[:120], flush=True)
        best.sort()
        print(
            f"few rows {n} x {k}:",
            ", ".join(f"{t:.2f} us {b}" for t, *b in best[:4]),
            f"floor {2 * n * k / 4.2e6:.2f} us",
            flush=True,
        )


if __name__ == "__main__":
    import sys

    if sys.argv[1] == "compile":
        compile_share(int(sys.argv[2]), int(sys.argv[3]))
    else:
        globals()[sys.argv[1]]()
