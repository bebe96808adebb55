"""Records for complex numbers."""

import numpy as np

from tests.ops.catalog import S, op

# Central differences are taken in real numbers; torch checks the gradients of these.
Z = S(3, 4, dtype="complex128", grad=False)
X = [(S(3, 4),), (S(),), (S(0, 2),)]
# Away from 0, where the angle and the phase jump.
AWAY = [(S(3, 4, low=0.5, high=2),), (S(low=0.5, high=2),)]
# Half types have no complex partner, so the dtype is named.
PARTS = [(S(3, 4, dtype="float64"), S(4, dtype="float64"))]
MIXED = ((S(3, dtype="float64"), S(3, dtype="float32")), RuntimeError)
REAL = [((S(3, dtype="float64"),), RuntimeError)]
WHOLE = ((S(3, dtype="int64"), S(3, dtype="int64")), RuntimeError)

RECORDS = [
    op("complex", samples=PARTS, reference=lambda a, b: a + 1j * b, errors=[MIXED, WHOLE]),
    op(
        "polar",
        samples=[(S(3, 4, dtype="float64", low=0.5, high=2), S(4, dtype="float64"))],
        reference=lambda r, t: r * np.exp(1j * t),
        errors=[MIXED, WHOLE],
    ),
    op("angle", samples=AWAY, reference=np.angle, dtypes="ifc"),
    op(
        "sgn",
        samples=[*AWAY, (S(2, values=[0, 3 + 4j], dtype="complex128", grad=False),)],
        reference=lambda x: np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))),
        dtypes="c",
    ),
    op("conj", samples=X, reference=np.conj, dtypes="cif"),
    op("conj_physical", samples=X, reference=np.conj, dtypes="cif"),
    op("resolve_conj", samples=X, reference=np.asarray, dtypes="ifc"),
    op("resolve_neg", samples=X, reference=np.asarray, dtypes="ifc"),
    op("real", samples=[*X, (Z,)], reference=np.real, dtypes="ifc"),
    op("imag", samples=[(Z,)], reference=np.imag, grad=False, errors=REAL),
    op(
        "view_as_real",
        samples=[(Z,), (S(dtype="complex128"),)],
        grad=False,
        reference=lambda z: np.stack([z.real, z.imag], -1),
        errors=REAL,
    ),
    op(
        "view_as_complex",
        samples=[(S(3, 2, dtype="float64"),), (S(2, dtype="float64"),)],
        reference=lambda x: x[..., 0] + 1j * x[..., 1],
        # It reads pairs that lie side by side in memory: other layouts are refused.
        layouts=False,
        errors=[((S(3, dtype="float64"),), RuntimeError), ((S(2, dtype="int64"),), RuntimeError)],
    ),
    op("conj_physical_", samples=X, reference=np.conj, dtypes="cif", grad=False),
]
