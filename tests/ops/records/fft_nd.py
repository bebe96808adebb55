"""Records for the Fourier transforms of two and more dimensions."""

from __future__ import annotations

from typing import Any

from tests.ops.catalog import S, op

from . import fft as one

SAMPLES: list[Any] = [
    (S(3, 4),),
    (S(4, 5), (2, 7)),
    (S(3, 4), (5, 2), (0, 1)),
    (S(3, 4), (4, 3), (1, 0), "ortho"),
    (S(2, 3, 4), (2, 5), (0, 2)),
    (S(3, 4), None, (0, 1), "forward"),
    (S(3, 4), (-1, 6)),
    (S(2, 3, 5), {"norm": "ortho", "dim": (-1, 0)}),
]
MANY: list[Any] = [(S(4),), (S(4, 3, 2), (3,)), (S(2, 3, 4), None, (1,)), (S(2, 3, 4), {"dim": 0, "s": 4})]
ERRORS: list[Any] = [
    ((S(3, 4), (2,), (0, 1)), RuntimeError),
    ((S(3, 4), None, (0, 0)), RuntimeError),
    ((S(3, 4), (0, 2)), RuntimeError),
    ((S(3, 4), (-2, 2)), RuntimeError),
    ((S(3, 4), None, (0, 2)), IndexError),
    ((S(3, 4), {"norm": "both"}), RuntimeError),
    ((S(3, 4, dtype="float16"),), RuntimeError),
    ((S(3, 0),), RuntimeError),
]
TOO_MANY: list[Any] = [((S(3, 4), (2, 2, 2)), RuntimeError)]
NO_DIM: list[Any] = [((S(3, 4), {"dim": ()}), RuntimeError)]
NEEDS_DIM: list[Any] = [((S(3, 4), {"dim": None}), TypeError), ((S(3),), IndexError)]
REAL: list[Any] = [((S(3, 4, dtype="complex128"),), RuntimeError)]


def places(x: Any, s: Any, dim: Any) -> tuple[list[int], list[Any]]:
    s = (s,) if isinstance(s, int) else s
    dim = (dim,) if isinstance(dim, int) else dim
    if dim is None:
        dim = range(-len(s), 0) if s is not None else range(x.ndim)
    sizes = [None] * len(dim) if s is None else [None if n == -1 else n for n in s]
    return list(dim), sizes


def complex_form(along: Any) -> Any:
    def run(x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        for d, n in zip(*places(x, s, dim), strict=True):
            x = along(x, n, d, norm)
        return x

    return run


def from_real(first: Any, rest: Any) -> Any:
    def run(x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        dims, sizes = places(x, s, dim)
        x = first(x, sizes[-1], dims[-1], norm)
        for d, n in zip(dims[:-1], sizes[:-1], strict=True):
            x = rest(x, n, d, norm)
        return x

    return run


def to_real(rest: Any, last: Any) -> Any:
    def run(x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        dims, sizes = places(x, s, dim)
        for d, n in zip(dims[:-1], sizes[:-1], strict=True):
            x = rest(x, n, d, norm)
        return last(x, sizes[-1], dims[-1], norm)

    return run


def last_two(run: Any) -> Any:
    return lambda x, s=None, dim=(-2, -1), norm=None: run(x, s, dim, norm)


FORMS: dict[str, Any] = {
    "fft": (complex_form(one.fft), "bic", []),
    "ifft": (complex_form(one.ifft), "bic", []),
    "rfft": (from_real(one.rfft, one.fft), "bi", NO_DIM + REAL),
    "ihfft": (from_real(one.ihfft, one.ifft), "bi", NO_DIM + REAL),
    "irfft": (to_real(one.ifft, one.irfft), "bic", NO_DIM),
    "hfft": (to_real(one.fft, one.hfft), "bic", NO_DIM),
}

RECORDS = []
for name, (run, kinds, errors) in FORMS.items():
    RECORDS += [
        op(f"fft.{name}n", samples=SAMPLES + MANY, reference=run, dtypes=kinds, errors=ERRORS + TOO_MANY + errors),
        op(f"fft.{name}2", samples=SAMPLES, reference=last_two(run), dtypes=kinds, errors=ERRORS + NEEDS_DIM + errors),
    ]
