"""Products with weights that stay in blocks of few bits, rows of such tables, and blocks as numbers. Knows shapes,
dtypes and gradients only.

The blocks come as bytes, (..., bytes of a row), with their format beside them; what users see of it is
`surface/block_tensor.py`. Gradients go to the other factor: codes have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.blocks import block_dtype
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec
from .autocast_policy import LOWER
from .embedding import check_indices
from .registry import F, structured

if TYPE_CHECKING:
    from .types import Context, Tensor

FLOATS = (dt.float64, dt.float32, *dt.HALF)


def _check(op: str, data: Spec, format: block_dtype, dtype: dt.dtype) -> None:
    if data.dtype is not dt.uint8 or data.ndim < 1:
        fail(DtypeError, op, f"blocks are rows of uint8, got {data.dtype} of shape {data.shape}.")
    if dtype not in FLOATS:
        fail(DtypeError, op, f"{format.name} weights go with {', '.join(d.name for d in FLOATS)}, got {dtype}.")


def _infer_decode(data: Spec, format: block_dtype, dtype: dt.dtype) -> Spec:
    _check("dequantize", data, format, dtype)
    return data.like((*data.shape[:-1], format.row_elements(data.shape[-1])), dtype)


def _infer_linear(x: Spec, data: Spec, bias: Spec | None, format: block_dtype, exact: bool) -> Spec:
    _check("linear", data, format, x.dtype)
    if data.ndim != 2:
        fail(ShapeError, "linear", f"a {format.name} weight must have 2 dimensions, got {data.ndim}.")
    rows, columns = data.shape[0], format.row_elements(data.shape[1])
    if x.ndim < 1 or x.shape[-1] != columns:
        fail(ShapeError, "linear", f"a weight of shape {(rows, columns)} takes rows of {columns}, got shape {x.shape}.")
    if bias is not None and (bias.dtype is not x.dtype or bias.shape != (rows,)):
        fail(ShapeError, "linear", f"bias must be {x.dtype} of shape {(rows,)}, got {bias.dtype} of {bias.shape}.")
    return x.like((*x.shape[:-1], rows))


def _infer_matmul(x: Spec, data: Spec, format: block_dtype) -> Spec:
    _check("matmul", data, format, x.dtype)
    if data.ndim != 2:
        fail(ShapeError, "matmul", f"a {format.name} factor must have 2 dimensions, got {data.ndim}.")
    if x.ndim < 1 or x.shape[-1] != data.shape[0]:
        shape = (data.shape[0], format.row_elements(data.shape[1]))
        fail(ShapeError, "matmul", f"inner sizes differ, {x.shape} @ {shape}.")
    return x.like((*x.shape[:-1], format.row_elements(data.shape[1])))


def _infer_embedding(indices: Spec, data: Spec, format: block_dtype, dtype: dt.dtype) -> Spec:
    _check("embedding", data, format, dtype)
    check_indices("embedding", "input", indices)
    if data.ndim != 2:
        fail(ShapeError, "embedding", f"weight must be (rows, features), got {data.ndim} dimensions.")
    return indices.like((*indices.shape, format.row_elements(data.shape[1])), dtype)


def _bias_gradient(c: Context, g: Tensor) -> Tensor:
    return F.sum(g, tuple(range(g.ndim - 1))) if g.ndim > 1 else g


structured(
    "_block_decode(Tensor data, any format, dtype dtype)",
    infer=_infer_decode,
    differentiable=False,
    doc="The numbers that blocks stand for: computed in float32, then rounded to `dtype`.",
)

structured(
    "_block_linear(Tensor input, Tensor data, Tensor? bias, any format, bool exact)",
    infer=_infer_linear,
    grad={"input": lambda c, g: F._block_matmul(g, c.data, c.format), "bias": _bias_gradient},
    doc="`input @ weight.T + bias` with a weight in blocks. Unless `exact`, a kernel may round the input to 8 bits per "
    "32 neighbours.",
    autocast=LOWER,
)

structured(
    "_block_matmul(Tensor input, Tensor data, any format)",
    infer=_infer_matmul,
    grad={"input": lambda c, g: F._block_linear(g, c.data, None, c.format, True)},
    doc="`input @ weight` with a weight in blocks along its last dimension: the gradient of the linear layer.",
    autocast=LOWER,
)

structured(
    "_block_embedding(Tensor indices, Tensor data, any format, dtype dtype)",
    infer=_infer_embedding,
    differentiable=False,
    doc="The rows of a table in blocks that `indices` name, as numbers.",
)
