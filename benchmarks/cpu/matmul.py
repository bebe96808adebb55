"""Matrix products: squares, and the shapes of a transformer with 0.6 billion weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .case import Case, randn, tensor

HIDDEN, HEADS, KV_HEADS, HEAD, INNER, VOCABULARY = 1024, 16, 8, 128, 3072, 151_936
# (from, to) of each projection.
PROJECTIONS = {
    "q": (HIDDEN, HEADS * HEAD),
    "k": (HIDDEN, KV_HEADS * HEAD),
    "o": (HEADS * HEAD, HIDDEN),
    "up": (HIDDEN, INNER),
    "down": (INNER, HIDDEN),
    "vocabulary": (HIDDEN, VOCABULARY),
}
F = Callable[..., Any]


def _case(name: str, fn: F, shapes: list[tuple[int, ...]], dtype: str, seconds: float) -> Case:
    def setup(m: Any) -> Callable[[], object]:
        values = [tensor(m, randn(*s, dtype=dtype, seed=i)) for i, s in enumerate(shapes)]
        return lambda: fn(m, *values)

    short = {"float32": "", "bfloat16": " bf16", "float64": " f64", "float16": " f16"}[dtype]
    return Case(name + short, setup, seconds, least=2)


def _product(m: Any, a: Any, b: Any) -> Any:
    return a @ b


def _linear(m: Any, x: Any, w: Any) -> Any:
    return m.nn.functional.linear(x, w)


def _linear_bias(m: Any, x: Any, w: Any, b: Any) -> Any:
    return m.nn.functional.linear(x, w, b)


def _activated(m: Any, b: Any, x: Any, w: Any) -> Any:
    return m._addmm_activation(b, x, w, use_gelu=True)


def cases(scale: str) -> Iterator[Case]:
    """Squares in three dtypes and layouts, projections by rows, heads."""
    seconds = {"full": 0.7, "quick": 0.2, "tiny": 0.0}[scale]
    squares = {"full": (256, 512, 1024, 2048, 4096), "quick": (256, 1024), "tiny": (8,)}[scale]
    for n in squares:
        yield _case(f"square {n}", _product, [(n, n)] * 2, "float32", seconds)
    for n in squares[: -1 if len(squares) > 1 else None]:
        yield _case(f"square {n}", _product, [(n, n)] * 2, "bfloat16", seconds)
    for n in [s for s in squares if s <= 1024]:
        yield _case(f"square {n}", _product, [(n, n)] * 2, "float64", seconds)
    n = squares[len(squares) // 2]
    transposed: dict[str, F] = {
        "A^T B": lambda m, a, b: a.t() @ b,
        "A B^T": lambda m, a, b: a @ b.t(),
        "A^T B^T": lambda m, a, b: a.t() @ b.t(),
        "A @ strided B": lambda m, a, b: a[:, : n // 2] @ b[::2, :],
    }
    for name, fn in transposed.items():
        yield _case(f"square {n} {name}", fn, [(n, n)] * 2, "float32", seconds)
    yield _case(f"matrix-vector {n}", lambda m, a, x: a @ x, [(n, n), (n,)], "float32", seconds)
    yield _case(f"linear {n} with bias", _linear_bias, [(64, n), (n, n), (n,)], "float32", seconds)
    for dtype in ("float32", "bfloat16"):
        yield _case(f"addmm and gelu {n}", _activated, [(n,), (64, n), (n, n)], dtype, seconds)
    rows = {"full": (1, 128, 512), "quick": (1, 128), "tiny": (1, 2)}[scale]
    for dtype in ("float32", "bfloat16"):
        for m_rows in rows:
            for name, (k, n_out) in PROJECTIONS.items():
                if scale == "tiny":
                    k, n_out = 8, 6
                if name == "vocabulary" and m_rows > 1:
                    continue  # only the last token's logits are computed
                yield _case(f"{name} {m_rows}x{k}x{n_out}", _linear, [(m_rows, k), (n_out, k)], dtype, seconds)
    t, d = (8, 4) if scale == "tiny" else (512, HEAD)
    for dtype in ("float32", "bfloat16"):
        for q in (1, t):
            scores: list[tuple[int, ...]] = [(HEADS, q, d), (HEADS, d, t)]
            yield _case(f"heads q k {HEADS}x{q}x{d}x{t}", _product, scores, dtype, seconds)
            mixed: list[tuple[int, ...]] = [(HEADS, q, t), (HEADS, t, d)]
            yield _case(f"heads w v {HEADS}x{q}x{t}x{d}", _product, mixed, dtype, seconds)
    yield _case(f"batch 64 of {d}x{d}x{d}", _product, [(64, d, d)] * 2, "float32", seconds)
    yield _case(f"batch 1024 of 16x{16}x16", _product, [(1024, 16, 16)] * 2, "float32", seconds)
