"""Products of 8-bit numbers: float8 with factors that bring them to size, int8 with sums in int32.
Knows shapes and dtypes only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Tensor, dtype


def _matrices(op: str, a: Spec, b: Spec) -> tuple[int, int]:
    """(rows, columns) of the product of two matrices."""
    for name, x in (("input", a), ("mat2", b)):
        if x.ndim != 2:
            fail(ShapeError, op, f"{name} must be a matrix, got shape {x.shape}.")
    if a.shape[1] != b.shape[0]:
        fail(ShapeError, op, f"inner sizes differ, {a.shape} @ {b.shape}: {a.shape[1]} != {b.shape[0]}.")
    return a.shape[0], b.shape[1]


def _infer_scaled(
    a: Spec,
    b: Spec,
    scale_a: Spec,
    scale_b: Spec,
    bias: Spec | None,
    scale_result: Spec | None,
    out_dtype: dt.dtype,
    fast: bool,
) -> Spec:
    op = "_scaled_mm"
    rows, cols = _matrices(op, a, b)
    known = a.dtype in dt.FLOAT8 and b.dtype in dt.FLOAT8
    known = known and scale_a.dtype is scale_b.dtype is dt.float32
    single = scale_a.numel == scale_b.numel == 1
    by_rows = scale_a.shape == (rows, 1) and scale_b.shape == (1, cols)
    by_rows = by_rows and scale_a.contiguous and scale_b.contiguous
    if not (known and (single or by_rows)):
        fail(
            ValueError,
            op,
            "invalid scaling: the matrices must be float8 and the scales float32, both with one "
            f"number, or contiguous with shapes ({rows}, 1) and (1, {cols}); got {a.dtype} and "
            f"{b.dtype}, scales of {scale_a.dtype} {scale_a.shape} and {scale_b.dtype} "
            f"{scale_b.shape}.",
        )
    if bias is not None and bias.numel != cols:
        fail(ShapeError, op, f"bias must have size {cols}, got shape {bias.shape}.")
    if bias is not None and (not bias.dtype.is_floating_point or bias.dtype in dt.FLOAT8):
        fail(DtypeError, op, f"bias must be a floating-point tensor, got {bias.dtype}.")
    if out_dtype not in (*dt.FLOAT8, *dt.HALF, dt.float32):
        fail(DtypeError, op, f"out_dtype must be a float8, float16, bfloat16 or float32, got {out_dtype}.")
    if scale_result is not None:
        if scale_result.numel != 1 or scale_result.dtype is not dt.float32:
            fail(
                ShapeError,
                op,
                f"scale_result must be one float32 number, got {scale_result.dtype} {scale_result.shape}.",
            )
        if out_dtype not in dt.FLOAT8:
            fail(DtypeError, op, f"scale_result is for float8 results, out_dtype is {out_dtype}.")
    return a.like((rows, cols), dtype=out_dtype)


structured(
    "_scaled_product(Tensor input, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias, "
    "Tensor? scale_result, dtype out_dtype, bool fast)",
    infer=_infer_scaled,
    doc="`(scale_a * input) @ (scale_b * mat2) + bias`, times scale_result, for float8.",
)


# torch's names have an underscore, which elsewhere marks what is not public.
@composite(out=True, method=False, namespaces=(), also=("_scaled_mm",))
def scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """Product of float8 matrices, each brought to size by its scale: one number, or one for each
    row of `input` and each column of `mat2`. `scale_result` multiplies a float8 result.

    >>> a = votive.tensor([[1.0, 2.0], [3.0, 4.0]]).to(votive.float8_e4m3fn)
    >>> scales = votive.tensor([[1.0], [0.5]]), votive.tensor([[1.0, 10.0]])
    >>> votive._scaled_mm(a, a, *scales, out_dtype=votive.float32)
    tensor([[  7.0000, 100.0000],
            [  7.5000, 110.0000]])
    """
    kind = input.dtype if out_dtype is None else out_dtype
    return F._scaled_product(input, mat2, scale_a, scale_b, bias, scale_result, kind, bool(use_fast_accum))


def _infer_whole(a: Spec, b: Spec) -> Spec:
    shape = _matrices("_int_mm", a, b)
    if a.dtype not in (dt.int8, dt.uint8) or b.dtype is not dt.int8:
        fail(DtypeError, "_int_mm", f"input must be int8 or uint8 and mat2 int8, got {a.dtype} and {b.dtype}.")
    return a.like(shape, dtype=dt.int32)


structured(
    "_whole_product(Tensor input, Tensor mat2)",
    infer=_infer_whole,
    differentiable=False,
    doc="`input @ mat2` for int8, with sums in int32.",
)


@composite(out=True, method=False, namespaces=(), also=("_int_mm",))
def int_mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Product of int8 matrices with sums in int32; `input` may be uint8.

    >>> a = votive.tensor([[100, 100]], dtype=votive.int8)
    >>> votive._int_mm(a, a.t())
    tensor([[20000]], dtype=votive.int32)
    """
    return F._whole_product(input, mat2)
