"""Attention to keys and values in blocks, and rows of numbers written as blocks: what caches of few bits ask for.

Where the fused operator does not serve (gradients, dropout, another device), the blocks become numbers first and the
ordinary attention runs. Knows no cache.
"""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core.attention_kernels import allowed
from ..core.blocks import block_dtype
from ..core.dtype import dtype as Dtype
from ..core.errors import UnsupportedError
from ..core.mode import mode
from ..dispatch.autocast import cast
from ..dispatch.state import state
from ..ops.attention import _plain, scaled_dot_product_attention
from ..ops.autocast_policy import LOWER
from ..ops.registry import F
from ..tensor import Tensor
from .block_tensor import BlockTensor


def rows_as_blocks(x: Tensor, format: block_dtype) -> Tensor:
    """The bytes of rows of numbers in blocks, each rounded once.

    >>> from votive.surface.block_attention import rows_as_blocks
    >>> rows_as_blocks(votive.ones(2, 3, 32), votive.q8_0).shape
    votive.Size([2, 3, 34])
    """
    made: Tensor = F._block_encode(x, format) if x.device.type != "cuda" else F._block_encode_composite(x, format)
    return made


def as_numbers(x: Tensor, dtype: Dtype) -> Tensor:
    """A tensor in blocks as numbers; any other as it is.

    >>> from votive.surface.block_attention import as_numbers
    >>> as_numbers(votive.ones(1, 32).to(votive.q8_0), votive.float32).dtype
    votive.float32
    """
    return x.dequantize(dtype) if isinstance(x, BlockTensor) else x


def _bytes(x: Tensor) -> tuple[Tensor, block_dtype | None]:
    """What the operator takes: bytes that lie side by side and their format, or numbers."""
    if not isinstance(x, BlockTensor):
        return x, None
    data = x._bytes
    return data if data.stride(-1) == 1 else data.contiguous(), x._format


def _fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, gqa: bool) -> bool:
    """Whether the operator takes the tensors as they are, and nobody looks who would want to see numbers."""
    if q.device.type != "cpu" or state.observers or mode.special or allowed.restricted:
        return False
    if mode.grad and any(x.requires_grad for x in (q, k, v, mask) if x is not None):
        return False
    return _plain(q, k, v, mask, gqa) and not any(isinstance(x, BlockTensor) and x._flipped for x in (k, v))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    for name, x in (("query", query), ("attn_mask", attn_mask)):
        if isinstance(x, BlockTensor):
            raise UnsupportedError(f"scaled_dot_product_attention: {name} is in {x._format.name} blocks; {x._advice}")
    if mode.autocast:
        query, key, value, attn_mask = cast(LOWER, (query, key, value, attn_mask))
    if dropout_p == 0 and _fused(query, key, value, attn_mask, enable_gqa):
        (k, key_format), (v, value_format) = _bytes(key), _bytes(value)
        made: Tensor = F._block_attention(query, k, v, attn_mask, key_format, value_format, is_causal, scale)[0]
        return made
    # Kernels of the CPU compute half types in single precision, and so do those that read blocks: the same bits come
    # out whether somebody looks or not.
    wide = dt.float32 if query.dtype in dt.HALF and query.device.type == "cpu" else query.dtype
    q, k, v = query.to(wide), *(as_numbers(x, wide).to(wide) for x in (key, value))
    mask = attn_mask if attn_mask is None or attn_mask.dtype in (dt.bool_, dt.float32) else attn_mask.to(wide)
    # As it is written: types were lowered above.
    composite: Any = scaled_dot_product_attention
    plain: Tensor = composite.fn(q, k, v, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return plain.to(query.dtype)


BlockTensor._rules["nn.functional.scaled_dot_product_attention"] = _attention
