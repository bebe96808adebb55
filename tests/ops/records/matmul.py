"""Records for products of matrices and vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op

NAN = float("nan")
# Points of which some coincide: distances have a kink there, so only torch judges the gradient.
POINTS = S(values=[[1.0, 2.0], [3.0, 4.0]], grad=False)
SAME_POINTS = S(values=[[3.0, 4.0], [3.0, 2.0], [1.0, 2.0]], grad=False)
NANS = S(values=[[NAN, NAN], [NAN, NAN]], grad=False)

# Every pair of ranks, batches that broadcast on either side, empty sums and empty results.
RANKS: list[Any] = [
    (S(3), S(3)),
    (S(3), S(3, 2)),
    (S(2, 3), S(3)),
    (S(2, 3), S(3, 4)),
    (S(5, 2, 3), S(3)),
    (S(3), S(5, 3, 2)),
    (S(5, 2, 3), S(3, 4)),
    (S(2, 3), S(5, 3, 4)),
    (S(5, 2, 3), S(5, 3, 4)),
    (S(4, 1, 2, 3), S(5, 3, 2)),
    (S(1, 5, 2, 3), S(4, 1, 3, 2)),
    (S(2, 0), S(0, 3)),
    (S(0, 3), S(3, 2)),
    (S(0), S(0)),
    (S(0, 2, 3), S(3, 4)),
]


def added(product: Any) -> Any:
    """`beta * x + alpha * product`, with the input left out for beta 0."""

    def reference(x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
        if x.dtype == bool:
            return product(a, b) | x
        y = alpha * product(a, b)
        return y if beta == 0 else y + beta * x

    return reference


def activated(x: Any, a: Any, b: Any, use_gelu: bool = False, **factors: Any) -> Any:
    y = added(np.matmul)(x, a, b, **factors)
    if not use_gelu:
        return np.maximum(y, 0)
    return 0.5 * y * (1 + np.vectorize(math.erf, otypes=[float])(y * math.sqrt(0.5)))


def activated_in_torch(*args: Any, use_gelu: bool = False, **factors: Any) -> Any:
    """With a gradient, which torch's own function of that name has not."""
    import torch

    y = torch.addmm(*args, **factors)
    same = torch.nn.functional.gelu(y) if use_gelu else y.relu()
    fused = torch._addmm_activation(*(t.detach() for t in args), use_gelu=use_gelu, **factors)
    torch.testing.assert_close(fused, same.detach(), equal_nan=True)
    return same


def scaled(
    a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = 0, out_dtype: Any = None, use_fast_accum: bool = False
) -> Any:
    return (a @ b) * (scale_a * scale_b) + bias


def linear(x: Any, weight: Any, bias: Any = 0) -> Any:
    return x @ weight.T + bias


def bilinear(x: Any, y: Any, weight: Any, bias: Any = 0) -> Any:
    return np.einsum("...i,oij,...j->...o", x, weight, y) + bias


def cross(x: Any, y: Any, dim: int | None = None) -> Any:
    axis = list(x.shape).index(3) if dim is None else dim
    return np.cross(x, y, axis=axis)


def distances(x: Any, y: Any, p: float = 2.0, compute_mode: str = "") -> Any:
    d = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if p == 0:
        return (d != 0).sum(-1).astype(d.dtype)
    if np.isinf(p):
        return d.max(-1, initial=0)
    return (d**p).sum(-1) ** (1 / p)


BYTES = (S(17, 32, dtype="float8_e4m3fn"), S(32, 16, dtype="float8_e4m3fn"))
ONE = S(dtype="float32", low=0.5, high=1.5)
ROW_SCALES = (S(17, 1, dtype="float32", low=0.5, high=1.5), S(1, 16, dtype="float32", low=0.5, high=1.5))
WIDE = {"out_dtype": vt.float32}
MISMATCH = [((S(2, 3), S(2, 3)), RuntimeError), ((S(2, 3), S(3, 2, dtype="int64")), RuntimeError)]

RECORDS = [
    op(
        "matmul",
        samples=RANKS,
        reference=np.matmul,
        dtypes="fic",
        errors=[
            *MISMATCH,
            ((S(), S(3)), RuntimeError),
            ((S(3), S()), RuntimeError),
            ((S(2, 3, 4), S(3, 4, 5)), RuntimeError),
            ((S(2, 2, dtype="bool"), S(2, 2, dtype="bool")), NotImplementedError),
            ((S(2, 2), 3), TypeError),
        ],
    ),
    op(
        "mm",
        samples=[(S(2, 3), S(3, 4)), (S(2, 0), S(0, 3)), (S(1, 1), S(1, 1))],
        reference=np.matmul,
        dtypes="fic",
        errors=[*MISMATCH, ((S(3), S(3, 2)), RuntimeError), ((S(2, 3), S(3)), RuntimeError)],
    ),
    op(
        "bmm",
        samples=[(S(5, 2, 3), S(5, 3, 4)), (S(0, 2, 3), S(0, 3, 4)), (S(2, 3, 0), S(2, 0, 3))],
        reference=np.matmul,
        dtypes="fic",
        errors=[
            ((S(5, 2, 3), S(1, 3, 4)), RuntimeError),
            ((S(5, 2, 3), S(5, 2, 4)), RuntimeError),
            ((S(2, 3), S(3, 2)), RuntimeError),
        ],
    ),
    op(
        "mv",
        samples=[(S(2, 3), S(3)), (S(2, 0), S(0))],
        reference=np.matmul,
        dtypes="fic",
        errors=[((S(2, 3), S(2)), RuntimeError), ((S(2, 3), S(3, 1)), RuntimeError)],
    ),
    op(
        "dot",
        samples=[(S(4), S(4)), (S(0), S(0))],
        reference=np.dot,
        dtypes="fic",
        errors=[((S(3), S(4)), RuntimeError), ((S(2, 2), S(2)), RuntimeError)],
    ),
    op(
        "vdot",
        samples=[(S(4), S(4)), (S(0), S(0))],
        reference=np.vdot,
        dtypes="fic",
        errors=[((S(3), S(4)), RuntimeError), ((S(2), S(2, dtype="int64")), RuntimeError)],
    ),
    op(
        "inner",
        samples=[(S(3), S(3)), (S(2, 3), S(4, 3)), (S(2, 5, 3), S(3)), (S(), S(2, 3)), (S(3), S())],
        reference=np.inner,
        dtypes="fic",
        errors=[((S(2, 3), S(4, 4)), RuntimeError), ((S(3), S(3, dtype="int64")), RuntimeError)],
    ),
    op(
        "outer",
        samples=[(S(2), S(3)), (S(0), S(3)), (S(2), S(3, dtype="int64"))],
        reference=np.multiply.outer,
        dtypes="fibc",
        errors=[((S(2, 2), S(3)), RuntimeError), ((S(2), S()), RuntimeError)],
    ),
    op(
        "kron",
        samples=[(S(2, 2), S(3, 2)), (S(2), S(3, 2)), (S(2, 1, 2), S(2)), (S(), S(3))],
        reference=np.kron,
        dtypes="fibc",
    ),
    op(
        "addmm",
        samples=[
            (S(2, 4), S(2, 3), S(3, 4)),
            (S(4), S(2, 3), S(3, 4), {"beta": 2, "alpha": 3}),
            (S(), S(2, 0), S(0, 4), {"alpha": 3}),
            (NANS, S(2, 3), S(3, 2), {"beta": 0}),
        ],
        reference=added(np.matmul),
        dtypes="fc",
        errors=[
            ((S(5), S(2, 3), S(3, 4)), RuntimeError),
            ((S(1, 1, 1), S(2, 3), S(3, 4)), RuntimeError),
            ((S(4, dtype="int64"), S(2, 3), S(3, 4)), RuntimeError),
            ((S(4), S(3), S(3, 4)), RuntimeError),
            ((S(4), S(2, 3), S(3, 4), {"alpha": 2j}), RuntimeError),
        ],
    ),
    op(
        "_addmm_activation",
        samples=[
            (S(2, 4), S(2, 3), S(3, 4)),
            (S(4), S(2, 3), S(3, 4), {"beta": 2, "alpha": 3, "use_gelu": True}),
            (S(), S(2, 0), S(0, 4), {"alpha": 3}),
            (S(0, 4), S(0, 3), S(3, 4), {"use_gelu": True}),
            (NANS, S(2, 3), S(3, 2), {"beta": 0}),
        ],
        reference=activated,
        torch=activated_in_torch,
        errors=[
            ((S(5), S(2, 3), S(3, 4)), RuntimeError),
            ((S(4, dtype="int64"), S(2, 3), S(3, 4)), RuntimeError),
            ((S(4), S(3), S(3, 4)), RuntimeError),
            (
                (S(4, dtype="int64"), S(2, 3, dtype="int64"), S(3, 4, dtype="int64"), {"use_gelu": True}),
                NotImplementedError,
            ),
        ],
    ),
    op(
        "_scaled_mm",
        samples=[
            (*BYTES, ONE, ONE, WIDE),
            (*BYTES, *ROW_SCALES, WIDE),
            (*BYTES, *ROW_SCALES, {"bias": S(16, dtype="float32"), **WIDE}),
            (*BYTES, ONE, ONE, {"bias": S(16, dtype="bfloat16"), **WIDE, "use_fast_accum": True}),
            (S(3, 5, dtype="float8_e5m2"), S(5, 7, dtype="float8_e4m3fn"), ONE, ONE, WIDE),
            (S(3, 5, dtype="float8_e5m2"), S(5, 7, dtype="float8_e5m2"), ONE, ONE, WIDE),
            (S(0, 32, dtype="float8_e4m3fn"), BYTES[1], ONE, ONE, WIDE),
            (S(3, 0, dtype="float8_e4m3fn"), S(0, 7, dtype="float8_e4m3fn"), ONE, ONE, WIDE),
        ],
        reference=scaled,
        dtypes="w",
        tol={"float64": (1e-5, 1e-6)},  # results are float32
        grad=False,
        layouts=False,  # scales of rows lie dense
        errors=[
            ((BYTES[0], BYTES[0], ONE, ONE), RuntimeError),
            ((S(2, 3, 4, dtype="float8_e4m3fn"), BYTES[1], ONE, ONE), RuntimeError),
            ((S(17, 32), BYTES[1], ONE, ONE), ValueError),
            ((*BYTES, ONE, ROW_SCALES[1]), ValueError),
            ((*BYTES, S(dtype="float64"), ONE), ValueError),
            ((*BYTES, ONE, ONE, {"bias": S(15, dtype="float32")}), RuntimeError),
        ],
    ),
    op(
        "_int_mm",
        samples=[
            (S(17, 8, dtype="int8"), S(8, 16, dtype="int8")),
            (S(3, 5, dtype="int8", low=-128, high=127), S(5, 7, dtype="int8", low=-128, high=127)),
            (S(3, 5, dtype="uint8", low=0, high=255), S(5, 7, dtype="int8", low=-128, high=127)),
            (S(3, 0, dtype="int8"), S(0, 7, dtype="int8")),
            (S(0, 5, dtype="int8"), S(5, 7, dtype="int8")),
        ],
        reference=np.matmul,
        dtypes="w",
        grad=False,
        errors=[
            ((S(2, 3, dtype="int8"), S(2, 3, dtype="int8")), RuntimeError),
            ((S(2, 3, dtype="int32"), S(3, 3, dtype="int8")), RuntimeError),
            ((S(2, 3, dtype="int8"), S(3, 3, dtype="uint8")), RuntimeError),
            ((S(1, 2, 3, dtype="int8"), S(3, 3, dtype="int8")), RuntimeError),
        ],
    ),
    op(
        "addmv",
        samples=[
            (S(2), S(2, 3), S(3)),
            (S(), S(2, 3), S(3), {"beta": 2, "alpha": 3}),
            (S(values=[NAN, NAN], grad=False), S(2, 3), S(3), {"beta": 0}),
        ],
        reference=added(np.matmul),
        dtypes="fc",
        errors=[((S(2), S(2, 3), S(2)), RuntimeError), ((S(3), S(2, 3), S(3)), RuntimeError)],
    ),
    op(
        "baddbmm",
        samples=[
            (S(5, 2, 4), S(5, 2, 3), S(5, 3, 4)),
            (S(2, 1), S(5, 2, 3), S(5, 3, 4), {"beta": 2, "alpha": 3}),
            (NANS, S(1, 2, 3), S(1, 3, 2), {"beta": 0}),
        ],
        reference=added(np.matmul),
        dtypes="fc",
        errors=[((S(1), S(5, 2, 3), S(1, 3, 4)), RuntimeError)],
    ),
    op(
        "addbmm",
        samples=[
            (S(2, 4), S(5, 2, 3), S(5, 3, 4)),
            (S(4), S(5, 2, 3), S(5, 3, 4), {"beta": 2, "alpha": 3}),
            (S(), S(0, 2, 3), S(0, 3, 4)),
            (NANS, S(3, 2, 3), S(3, 3, 2), {"beta": 0}),
        ],
        reference=added(lambda a, b: (a @ b).sum(0)),
        dtypes="fc",
        errors=[((S(5, 2, 4), S(5, 2, 3), S(5, 3, 4)), RuntimeError), ((S(1), S(5, 2, 3), S(5, 2, 4)), RuntimeError)],
    ),
    op(
        "addr",
        samples=[
            (S(2, 3), S(2), S(3)),
            (S(3), S(2), S(3), {"beta": 2, "alpha": 3}),
            (S(dtype="int64"), S(2, dtype="int64"), S(3, dtype="int64"), {"beta": 2, "alpha": 3}),
            (S(3, dtype="bool"), S(2, dtype="bool"), S(3, dtype="bool")),
            (NANS, S(2), S(2), {"beta": 0}),
        ],
        reference=added(np.multiply.outer),
        dtypes="fc",
        errors=[
            ((S(2), S(2), S(3)), RuntimeError),
            ((S(2, 3), S(2, 1), S(3)), RuntimeError),
            ((S(3, dtype="int64"), S(2, dtype="int64"), S(3, dtype="int64"), {"alpha": 0.5}), RuntimeError),
        ],
    ),
    op(
        "nn.functional.linear",
        samples=[
            (S(2, 3), S(4, 3)),
            (S(2, 3), S(4, 3), S(4)),
            (S(3), S(4, 3), S(4)),
            (S(5, 2, 3), S(4, 3), S(1)),
            (S(5, 2, 3), S(3)),
            (S(3), S(3)),
            (S(0, 3), S(4, 3), S(4)),
            (S(2, 0), S(4, 0), S(4)),
        ],
        reference=linear,
        dtypes="fic",
        errors=[
            ((S(2, 3), S(4, 2)), RuntimeError),
            ((S(2, 3), S(4, 3), S(3)), RuntimeError),
            ((S(), S(4, 3)), RuntimeError),
            ((S(2, 3), S(5, 4, 3)), RuntimeError),
            ((S(2, 3), S(4, 3), S(4, dtype="int64")), RuntimeError),
        ],
    ),
    op(
        "nn.functional.bilinear",
        samples=[
            (S(2, 3), S(2, 4), S(5, 3, 4)),
            (S(3), S(4), S(5, 3, 4), S(5)),
            (S(2, 6, 3), S(2, 6, 4), S(5, 3, 4), S(5)),
        ],
        reference=bilinear,
        dtypes="f",
        domain=(0.0, 2.0),  # torch rounds what lies between, and cancellation would magnify that
        errors=[
            ((S(2, 3), S(1, 4), S(5, 3, 4)), RuntimeError),
            ((S(2, 3), S(2, 3), S(5, 3, 4)), RuntimeError),
            ((S(2, 3), S(2, 4), S(5, 3, 4), S(4)), RuntimeError),
        ],
    ),
    op(
        "cross",
        samples=[
            (S(2, 3), S(2, 3)),
            (S(3, 3), S(3, 3), 1),
            (S(3, 2), S(3, 1)),
            (S(0, 3), S(0, 3)),
            (S(2, 3, dtype="int64"), S(2, 3, dtype="int64")),
        ],
        reference=cross,
        dtypes="fc",
        errors=[
            ((S(2, 2), S(2, 2)), RuntimeError),
            ((S(3, 3), S(3), 1), RuntimeError),
            ((S(3, 3), S(3, 3), 5), IndexError),
        ],
    ),
    op(
        "linalg.cross",
        samples=[(S(2, 3), S(2, 3)), (S(3, 2), S(3, 2), {"dim": 0}), (S(4, 1, 3), S(1, 2, 3))],
        reference=lambda x, y, dim=-1: np.cross(x, y, axis=dim),
        dtypes="fc",
        errors=[((S(3, 4), S(3, 4)), RuntimeError), ((S(3), S(3, dtype="int64")), RuntimeError)],
    ),
    op(
        "cdist",
        samples=[
            (S(3, 2), S(4, 2)),
            (S(5, 1, 3, 2), S(2, 4, 2)),
            (S(3, 2), S(4, 2), 1.0),
            (S(3, 2), S(4, 2), 0.5),
            (S(3, 2), S(4, 2), 1.5),
            (S(3, 2), S(4, 2), 3.0),
            (S(3, 2), S(4, 2), float("inf")),
            (S(3, 2), S(4, 2), 0.0),
            (S(3, 0), S(4, 0)),
            (S(0, 2), S(4, 2)),
            (S(3, 2), S(4, 2), {"compute_mode": "donot_use_mm_for_euclid_dist"}),
            (S(30, 2), S(4, 2, low=5, high=9)),
            *[(POINTS, SAME_POINTS, p) for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))],
        ],
        reference=distances,
        dtypes="f",
        errors=[
            ((S(3), S(4, 2)), RuntimeError),
            ((S(3, 2), S(4, 3)), RuntimeError),
            ((S(3, 2), S(4, 2), -1.0), RuntimeError),
            ((S(3, 2, dtype="int64"), S(4, 2, dtype="int64")), RuntimeError),
            ((S(3, 2), S(4, 2), {"compute_mode": "mm"}), ValueError),
        ],
    ),
]
