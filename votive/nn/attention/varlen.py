"""Attention of sequences of different lengths in one call, packed without padding. The names are
torch's. Knows operators, no kernel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core import dtype as dt
from ...core.errors import fail, received
from ...ops.registry import F
from ...tensor import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]
OP = "varlen_attn"


class AuxRequest(NamedTuple):
    """What `varlen_attn` returns beside its result.

    >>> votive.nn.attention.varlen.AuxRequest(lse=True)
    AuxRequest(lse=True)
    """

    lse: bool = False


def _paged(key: Tensor, value: Any, table: Any, used: Any) -> tuple[Any, Any, Any]:
    """Keys and values of a pool of pages as packed sequences, and where these end."""
    if used is None:
        fail(ValueError, OP, "block_table needs seqused_k, the number of keys of each sequence.")
    if key.ndim != 4 or value.ndim != 4 or table.ndim != 2:
        fail(
            ValueError,
            OP,
            "with block_table, key and value are (pages, page size, heads, features) and the table "
            f"is (sequences, pages), got {tuple(key.shape)}, {tuple(value.shape)} and "
            f"{tuple(table.shape)}.",
        )
    n, pages = table.shape
    room = pages * key.shape[1]
    key, value = (x[table.reshape(-1).to(dt.int64)].reshape(n * room, *x.shape[2:]) for x in (key, value))
    return key, value, F.arange(n + 1, dtype=dt.int32, device=table.device) * room


def _run(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    scale: float | None,
    window_size: Any,
    enable_gqa: bool,
    seqused_k: Tensor | None,
    block_table: Tensor | None,
    num_splits: int | None,
) -> tuple[Any, Any]:
    given = {"query": query, "key": key, "value": value, "cu_seq_q": cu_seq_q}
    for name, x in given.items():
        if not hasattr(x, "_spec"):
            raise TypeError(f"{OP}: {name} must be a Tensor, got {received(x)}.")
    if len(window_size) != 2:
        fail(ValueError, OP, f"window_size must be (left, right), got {tuple(window_size)}.")
    if num_splits is not None and num_splits < 1:
        fail(ValueError, OP, f"num_splits must be at least 1, got {num_splits}.")
    left, right = window_size
    if min(left, right) < -1:
        fail(ValueError, OP, f"window_size counts keys, or is -1 for all; got {(left, right)}.")
    if seqused_k is not None and any(x.requires_grad for x in (query, key, value)):
        what = "seqused_k" if block_table is None else "block_table"
        fail(RuntimeError, OP, f"{what} is for inference; no input may require a gradient.")
    if block_table is not None:
        key, value, cu_seq_k = _paged(key, value, block_table, seqused_k)
        max_k = key.shape[0] // max(block_table.shape[0], 1)
    elif cu_seq_k is None:
        fail(ValueError, OP, "cu_seq_k may be None only beside a block_table.")
    if query.ndim == key.ndim == 3:
        heads, shared = query.shape[1], key.shape[1]
        if not enable_gqa and heads != shared:
            fail(ValueError, OP, f"query has {heads} heads and key {shared}; use enable_gqa=True to share heads.")
        if enable_gqa and (not shared or heads % shared):
            fail(ValueError, OP, f"{shared} key heads do not divide {heads} query heads.")
    return F._varlen_attention(query, key, value, cu_seq_q, cu_seq_k, seqused_k, max_q, max_k, scale, left, right)


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """Attention within each of several packed sequences, as `scaled_dot_product_attention` would
    give one by one.

    Tensors are (positions, heads, features); sequence n has the queries `cu_seq_q[n]` to
    `cu_seq_q[n + 1]` and likewise keys, at most `max_q` and `max_k`. `window_size` is how many keys
    before and after its own place a query sees: (-1, -1) all, (-1, 0) the causal rule. The last
    query of a sequence stands at its last key. With `enable_gqa`, groups of query heads share a key
    head. For inference, `seqused_k` says how many keys of each sequence count, and `block_table`
    (sequences, pages) names the pages of a pool (pages, page size, heads, features) that hold them.
    `return_aux=AuxRequest(lse=True)` also returns the row log-sum-exp (heads, positions). Keys are
    never split, so a sequence gives the same whatever it is packed with, for any `num_splits`.

    >>> q, ends = votive.eye(3).unsqueeze(1), votive.tensor([0, 1, 3], dtype=votive.int32)
    >>> votive.nn.attention.varlen.varlen_attn(q, q, q, ends, ends, 2, 2, scale=4.0)[:, 0]
    tensor([[1.0000, 0.0000, 0.0000],
            [0.0000, 0.9820, 0.0180],
            [0.0000, 0.0180, 0.9820]])
    """
    options = (scale, window_size, enable_gqa, seqused_k, block_table, num_splits)
    out, lse = _run(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *options)
    return (out, lse) if return_aux is not None and return_aux.lse else out


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:
    """`varlen_attn`, written into `out`.

    >>> q, ends = votive.ones(2, 1, 3), votive.tensor([0, 2], dtype=votive.int32)
    >>> out = votive.empty(2, 1, 3)
    >>> votive.nn.attention.varlen.varlen_attn_out(out, q, q, q, ends, ends, 2, 2)[:, 0]
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    options = (scale, window_size, enable_gqa, seqused_k, block_table, num_splits)
    made, lse = _run(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *options)
    out.copy_(made)
    return (out, lse) if return_aux is not None and return_aux.lse else out
