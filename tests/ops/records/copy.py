"""Records for copies and casts."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op


def same(x: Any, *_: Any, **__: Any) -> Any:
    return x


def cast(name: str, kind: str) -> Any:
    """A cast record: small non-negative whole numbers are the same in every type."""
    shown = {"b": lambda x: x != 0, "i": lambda x: x.astype(np.int64), "f": same, "c": same}
    return op(
        f"Tensor.{name}",
        samples=[(S(2, 3, values=[[0, 1, 1], [0, 1, 0]]),), (S(dtype="bool", values=True),)],
        dtypes="bif" if kind != "c" else "bifc",
        reference=shown[kind],
        grad=kind in "fc" and name not in ("half", "bfloat16", "float", "cfloat"),
    )


RECORDS = [
    op("clone", samples=[(S(2, 3),), (S(),), (S(0, 2),)], dtypes="bifc", reference=np.copy),
    op("Tensor.contiguous", samples=[(S(2, 3),), (S(),)], dtypes="bifc", reference=np.copy),
    op(
        "Tensor.copy_",
        samples=[(S(2, 3), S(2, 3)), (S(2, 3), S(3)), (S(2, 3), 1), (S(2), S(2, dtype="bool"))],
        dtypes="bifc",
        reference=lambda x, src: np.broadcast_to(src, x.shape).astype(x.dtype),
        grad=False,  # writes its argument; the gradient is tested in test_views
        errors=[((S(2), S(3)), RuntimeError), ((S(3), S(1, 3)), RuntimeError), ((S(1), [1]), TypeError)],
    ),
    op(
        "Tensor.to",
        samples=[
            (S(2, 3), vt.float64),
            (S(2), S(2, dtype="float64", grad=False)),
            (S(2), {"dtype": vt.complex128}),
            (S(2), "cpu", {"copy": True}),
            (S(2),),
        ],
        dtypes="bif",
        reference=same,
        errors=[((S(2), "nowhere"), RuntimeError), ((S(2), vt.int64, {"dtype": vt.int64}), TypeError)],
    ),
    op("Tensor.type_as", samples=[(S(2, 3), S(2, dtype="complex128", grad=False))], dtypes="bifc", reference=same),
    op(
        "Tensor.type",
        samples=[(S(2, 3), vt.complex128)],
        dtypes="bifc",
        reference=same,
        errors=[((S(2), "Nothing"), ValueError)],
    ),
    op("Tensor.cpu", samples=[(S(2, 3),)], dtypes="bifc", reference=same),
    *[
        cast(name, kind)
        for kind, names in {
            "f": ("double", "float", "half", "bfloat16"),
            "i": ("long", "int", "short", "char", "byte"),
            "b": ("bool",),
            "c": ("cfloat", "cdouble"),
        }.items()
        for name in names
    ],
]
