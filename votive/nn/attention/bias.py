"""Causal biases that are never written out as matrices. The names are torch's."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto
from typing import Any

from ...core import dtype as dt
from ...core.attention_kernels import allowed
from ...core.device import device as as_device
from ...ops.registry import F
from ...tensor import Tensor
from .. import functional

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the triangle of a causal bias stands if queries and keys differ in number.

    UPPER_LEFT lets query i see the keys 0..i; LOWER_RIGHT lets the last query see all keys.

    >>> votive.nn.attention.bias.CausalVariant.LOWER_RIGHT
    <CausalVariant.LOWER_RIGHT: 2>
    """

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias:
    """A causal `attn_mask` for `scaled_dot_product_attention` that costs no memory: the kernel skips what it hides.

    torch's is a tensor without elements; this one is no tensor, and `_materialize()` gives the bool matrix.

    >>> bias = votive.nn.attention.bias.causal_lower_right(1, 3)
    >>> q, k = votive.zeros(1, 2), votive.zeros(3, 2)
    >>> votive.nn.functional.scaled_dot_product_attention(q, k, votive.ones(3, 2), bias)
    tensor([[1., 1.]])
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant)}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                f"Lower right causal bias: with seq_len_q={seq_len_q} > seq_len_kv={seq_len_kv} the first queries see "
                "no key, and their rows of the result are zero.",
                stacklevel=2,
            )

    @property
    def shape(self) -> tuple[int, int]:
        return self.seq_len_q, self.seq_len_kv

    @property
    def _offset(self) -> int:
        """How many keys beyond its own number a query sees."""
        return self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0

    def _materialize(self, device: Any = None) -> Tensor:
        """The bias as a bool matrix (queries, keys)."""
        seen = F.ones(self.shape, dtype=dt.bool_, device=as_device("cpu") if device is None else device)
        return seen.tril(self._offset)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        dropout_p: float,
        is_causal: bool,
        scale: float | None,
        enable_gqa: bool,
    ) -> Tensor:
        """`scaled_dot_product_attention` with this bias."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        fits = (query.shape[-2], key.shape[-2]) == self.shape
        if fits and dropout_p == 0 and query.ndim == 4 and not allowed.restricted and not enable_gqa:
            if query.shape[:2] == key.shape[:2] == value.shape[:2]:
                return F._attention(query, key, value, None, offset=self._offset, is_causal=True, scale=scale)[0]
        mask = None
        if self.variant is CausalVariant.UPPER_LEFT:
            is_causal = True  # the same triangle whatever the lengths
        else:
            mask = self._materialize(query.device)
        return functional.scaled_dot_product_attention(
            query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The bias that lets query i see the keys 0..i.

    >>> votive.nn.attention.bias.causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_two("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """The bias that lets the last query see all keys, the one before it all but the last, and so on.

    >>> votive.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two("causal_lower_right", size))


def _two(name: str, size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors, got sizes {size}")
    return size[0], size[1]
