"""Rows of numbers as blocks of few bits, and attention to keys and values that lie so. Knows shapes and dtypes only.

What a cache holds is written while a program runs: each block is rounded once, by itself, without knowledge of what it
is for. What users see of it is `surface/block_attention.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.blocks import IQ4_VALUES, block_dtype
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec, broadcast_shapes
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Tensor

OP = "scaled_dot_product_attention"
FLOATS = (dt.float64, dt.float32, *dt.HALF)
# Those whose blocks are rounded by themselves; others are fitted, and take longer than a token may.
SINGLE = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl")
GROUPED = ("absmax8", "fp8")


def _infer_encode(x: Spec, format: block_dtype) -> Spec:
    name = format.name
    if name not in SINGLE and name.partition("_")[0] not in GROUPED:
        fail(DtypeError, "encode", f"rows are written in {', '.join((*SINGLE, *GROUPED))}, not in {name}.")
    if x.dtype not in FLOATS or x.ndim < 1:
        fail(DtypeError, "encode", f"{name} is made from rows of floating-point numbers, got {x.dtype} of {x.shape}.")
    if x.shape[-1] % format.block_size:
        fail(ShapeError, "encode", f"rows must be a multiple of {format.block_size} long for {name}, got {x.shape}.")
    return x.like((*x.shape[:-1], format.row_bytes(x.shape[-1])), dt.uint8)


def _numbers(x: Spec, format: block_dtype | None, what: str, dtype: dt.dtype) -> tuple[int, ...]:
    """The shape of what rows stand for."""
    if x.ndim != 4:
        fail(ShapeError, OP, f"{what} must be (batch, heads, length, features), got {x.shape}.")
    if format is None:
        if x.dtype is not dtype:
            fail(DtypeError, OP, f"query and {what} must have one dtype, got {dtype} and {x.dtype}.")
        return x.shape
    if x.dtype is not dt.uint8:
        fail(DtypeError, OP, f"blocks of {what} are uint8, got {x.dtype}.")
    return (*x.shape[:3], format.row_elements(x.shape[3]))


def _canon(
    q: Spec,
    k: Spec,
    v: Spec,
    mask: Spec | None,
    key_format: block_dtype | None,
    value_format: block_dtype | None,
    is_causal: bool,
    scale: float | None,
) -> tuple[Any, ...]:
    if q.dtype not in FLOATS or q.ndim != 4:
        fail(ShapeError, OP, f"query must be (batch, heads, length, features) of floats, got {q.dtype} of {q.shape}.")
    if mask is not None and mask.dtype not in (dt.bool_, dt.float32, q.dtype):
        fail(DtypeError, OP, f"attn_mask must be bool, float32 or {q.dtype}, got {mask.dtype}.")
    ks, vs = _numbers(k, key_format, "key", q.dtype), _numbers(v, value_format, "value", q.dtype)
    if ks[:3] != vs[:3] or q.shape[0] != ks[0] or q.shape[3] != ks[3]:
        fail(ShapeError, OP, f"query {q.shape}, key {ks} and value {vs} do not fit together.")
    if q.shape[1] != ks[1] and (ks[1] == 0 or q.shape[1] % ks[1]):
        fail(ShapeError, OP, f"{ks[1]} key heads do not divide {q.shape[1]} query heads.")
    rows = (*q.shape[:3], ks[2])
    if mask is not None and broadcast_shapes(OP, mask.shape, rows) != rows:
        fail(ShapeError, OP, f"attn_mask of shape {mask.shape} does not fit into {rows}.")
    if scale is None:
        scale = 1 / math.sqrt(q.shape[3]) if q.shape[3] else 1.0
    return q, k, v, mask, key_format, value_format, is_causal, scale


def _infer(q: Spec, k: Spec, v: Spec, mask: Spec | None, *how: Any) -> tuple[Spec, Spec]:
    value_format: block_dtype | None = how[1]
    shape = (*q.shape[:3], v.shape[3] if value_format is None else value_format.row_elements(v.shape[3]))
    # The memory order of the query, so that heads that were split off a row merge without a copy.
    out = q.dense_like() if shape == q.shape else q.like(shape)
    return out, q.like(q.shape[:3], dtype=dt.compute_type(q.dtype))


structured(
    "_block_encode(Tensor input, any format)",
    infer=_infer_encode,
    differentiable=False,
    doc="Rows of numbers as rows of blocks. A block that holds NaN or infinity reads as NaN.",
)

structured(
    "_block_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, any? key_format, any? value_format, "
    "bool is_causal=False, float? scale=None)",
    canon=_canon,
    infer=_infer,
    differentiable=False,
    n_out=2,
    doc="""Attention to keys and values in rows of blocks, or of numbers where a format is None, and the row
    log-sum-exp: what `_attention` gives for the numbers that the blocks stand for.""",
)


# --- the composite twin, which runs where there is no kernel --------------------------------------


def _finite(x: Tensor, size: int) -> tuple[Any, Any]:
    """Blocks of single precision, and which have finite numbers only; the others are zero."""
    blocks = F.unflatten(F._to_dtype(x, dt.float32), -1, (-1, size))
    whole = F.all(F.isfinite(blocks), -1, True)
    return F.where(whole, blocks, 0.0), whole


def _inverse(scale: Tensor) -> Any:
    y = 1.0 / scale
    return F.where(F.isfinite(y), y, 0.0)


def _half(x: Tensor, whole: Tensor) -> Any:
    """A column of scales as two bytes each."""
    return F.where(whole, x, math.nan).to(dt.float16).contiguous().view(dt.uint8)


def _largest(x: Tensor) -> Any:
    return F.gather(x, -1, F.argmax(F.abs(x), -1, True))


def _nibbles(q: Tensor) -> Any:
    return q[..., :16] % 16 + q[..., 16:] % 16 * 16


def _fifths(q: Tensor) -> Any:
    bits = F.unflatten(q // 16, -1, (4, 8))
    return F.sum(bits * F.tensor([1, 2, 4, 8, 16, 32, 64, 128], device=q.device), -1)


def _nearest_away(x: Tensor) -> Any:
    whole = F.trunc(x)
    return whole + F.trunc(2.0 * (x - whole))


def _fields(name: str, x: Tensor, whole: Tensor) -> list[Any]:
    """The columns of a block, in the order of its fields."""
    if name == "q8_0":
        d = F.amax(F.abs(x), -1, True) / 127.0
        return [_half(d, whole), _nearest_away(x * _inverse(d)).to(dt.int8).view(dt.uint8)]
    if name in ("q4_0", "q5_0"):
        levels = 8 if name == "q4_0" else 16
        d = _largest(x) / float(-levels)
        q = F.clamp(F.trunc(F.mul(x, _inverse(d)) + (levels + 0.5)), 0, 2 * levels - 1).to(dt.int64)
        scales = [_half(d, whole)]
    elif name in ("q4_1", "q5_1"):
        top = 15 if name == "q4_1" else 31
        m = F.amin(x, -1, True)
        d = (F.amax(x, -1, True) - m) / float(top)
        q = F.clamp(F.trunc(F.mul(x - m, _inverse(d)) + 0.5), 0, top).to(dt.int64)
        scales = [_half(d, whole), _half(m, whole)]
    else:
        d = _largest(x) / float(IQ4_VALUES[0])
        levels_of = F.tensor(IQ4_VALUES, dtype=dt.float64, device=x.device)
        q = F.searchsorted((0.5 * (levels_of[:-1] + levels_of[1:])).to(dt.float32), x * _inverse(d))
        v, wide = levels_of[q], x.to(dt.float64)
        qx, qq = (F.cumsum(wide * wide * v * other, -1)[..., -1:] for other in (wide, v))
        scales = [_half(F.where(qq > 0, (qx / qq).to(dt.float32), d), whole)]
    return [*scales, *([_fifths(q).to(dt.uint8)] if "q5" in name else []), _nibbles(q).to(dt.uint8)]


def _grouped(kind: str, x: Tensor, whole: Tensor) -> list[Any]:
    """Codes of eight bits behind a scale in single precision."""
    top = F.amax(F.abs(x), -1, True)
    if kind == "absmax8":
        by = 127.0 / top
        codes = F.clamp(F.round(x * F.where(F.isfinite(by), by, 0.0)), -127, 127).to(dt.int8)
    else:
        top = top / 448.0
        codes = F.clamp(x * _inverse(top), -448, 448).to(dt.float8_e4m3fn)
    return [F.where(whole, top, math.nan).contiguous().view(dt.uint8), codes.view(dt.uint8)]


@composite(name="_block_encode_composite")
def block_encode_composite(input: Tensor, format: block_dtype) -> Any:
    """Rows of blocks from single operators: what the kernels agree with, and what devices without one run."""
    _infer_encode(input._spec, format)
    x, whole = _finite(input.detach(), format.block_size)
    kind = format.name.partition("_")[0]
    made = _grouped(kind, x, whole) if kind in GROUPED else _fields(format.name, x, whole)
    return F.flatten(F.cat(made, -1), -2)
