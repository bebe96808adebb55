"""Attention whose scores and masks are functions that the program writes. The names are torch's."""

from __future__ import annotations

import math
import warnings
from typing import Any, Literal, NamedTuple, TypedDict

from ...core import dtype as dt
from ...core.device import device as as_device
from ...core.errors import received
from ...ops.registry import F
from ...tensor import Tensor
from .. import functional
from . import index_functions
from .block_mask import BLOCK, MINE, BlockMask, MaskMod, dense, noop_mask, ordered, sliced

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]
BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")


class AuxRequest(NamedTuple):
    """What `flex_attention` returns beside its result.

    >>> votive.nn.attention.flex_attention.AuxRequest(lse=True)
    AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by `AuxRequest`: the log-sum-exp and the largest score of each query, or None.

    >>> votive.nn.attention.flex_attention.AuxOutput()
    AuxOutput(lse=None, max_scores=None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Hints for torch's Triton kernels. votive chooses for itself, so they change nothing but are checked.

    >>> votive.nn.attention.flex_attention.FlexKernelOptions(BLOCK_M=64)
    {'BLOCK_M': 64}
    """

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    BACKEND: Literal["AUTO", "TRITON", "FLASH", "TRITON_DECODE"]


def _callables(mods: tuple[MaskMod, ...]) -> None:
    if not all(callable(mod) for mod in mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mods}")


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask_mod that shows what any of these shows.

    >>> from votive.nn.attention.flex_attention import create_mask, or_masks
    >>> near, first = lambda b, h, q, k: q == k, lambda b, h, q, k: k == 0
    >>> create_mask(or_masks(near, first), 1, 1, 2, 3, device="cpu")[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    _callables(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Any:
        seen: Any = b.new_zeros((), dtype=dt.bool_)
        for mod in mask_mods:
            seen = seen | mod(b, h, q_idx, kv_idx)
        return seen

    return or_mask


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask_mod that shows what all of these show.

    >>> from votive.nn.attention.flex_attention import and_masks, create_mask
    >>> causal, near = lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 2
    >>> create_mask(and_masks(causal, near), 1, 1, 3, 3, device="cpu")[0, 0]
    tensor([[ True, False, False],
            [ True,  True, False],
            [False,  True,  True]])
    """
    _callables(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Any:
        seen: Any = b.new_ones((), dtype=dt.bool_)
        for mod in mask_mods:
            seen = seen & mod(b, h, q_idx, kv_idx)
        return seen

    return and_mask


def _device(device: Any) -> Any:
    if device is not None:
        return device if not isinstance(device, str) else as_device(device)
    from ...cuda import is_available

    return as_device("cuda" if is_available() else "cpu")


def create_mask(mod_fn: MaskMod, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The bool tensor (batch, heads, queries, keys) of a mask_mod, or of where a score_mod does not give -inf.

    >>> from votive.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2, device="cpu")
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    device = _device(device)
    if index_functions.takes_score(mod_fn):
        score = index_functions.apply(mod_fn, F.zeros(shape, device=device), shape, device)
        return ~F.isneginf(score.expand(shape))
    return index_functions.apply(mod_fn, None, shape, device).expand(shape).contiguous()


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = BLOCK,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """The BlockMask of `mask_mod(b, h, q_idx, kv_idx)`; B or H of None stand for one mask for all of them.

    >>> from votive.nn.attention.flex_attention import create_block_mask
    >>> print(create_block_mask(lambda b, h, q, k: q >= k, None, None, 512, 512, device="cpu"))
    BlockMask(shape=(1, 1, 512, 512), sparsity=37.50%,
    (0, 0)
    ██
    ████
    ██████
    ████████
    )
    """
    if index_functions.takes_score(mask_mod):
        raise AssertionError(f"create_block_mask takes a mask_mod(b, h, q_idx, kv_idx), got {received(mask_mod)}")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = functional.pad(mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    b, h, rows, columns = mask.shape
    seen = mask.reshape(b, h, rows // size[0], size[0], columns // size[1], size[1]).sum((3, 5))
    whole = seen == size[0] * size[1]
    lists: Any = [None] * 4
    if separate_full_blocks:
        lists[:2], lists[2:] = ordered((seen > 0) & ~whole), ordered(whole)
    else:
        lists[:2] = ordered(seen > 0)
    named = dict(zip(MINE, lists, strict=True))
    return BlockMask.from_kv_blocks(**named, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


def _written_out(block_mask: BlockMask, shape: tuple[int, ...], device: Any) -> Tensor:
    """What a BlockMask lets a query see: all of the full blocks, of the others what its mask_mod shows."""

    def places(count: Tensor, indices: Tensor) -> Tensor:
        seen = dense(count, indices, indices.shape[-1]).bool()
        seen = seen.repeat_interleave(block_mask.BLOCK_SIZE[0], -2).repeat_interleave(block_mask.BLOCK_SIZE[1], -1)
        seen = seen[..., : shape[2], : shape[3]]
        return seen.reshape(*[1] * (4 - seen.ndim), *seen.shape)

    shown = index_functions.apply(block_mask.mask_mod, None, shape, device)
    seen = shown & places(block_mask.kv_num_blocks, block_mask.kv_indices)
    if block_mask.full_kv_num_blocks is not None and block_mask.full_kv_indices is not None:
        seen = seen | places(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    return seen


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if not query.dtype.is_floating_point or key.dtype is not value.dtype or query.dtype is not key.dtype:
        raise ValueError(
            "Expected query, key, and value to have one floating-point dtype, "
            f"got {query.dtype}, {key.dtype} and {value.dtype}."
        )
    if not query.device == key.device == value.device:
        raise ValueError(f"query, key and value are on {query.device}, {key.device} and {value.device}; move them.")
    if any(x.ndim != 4 for x in (query, key, value)):
        raise NotImplementedError("query, key, and value must be 4D tensors: (batch, heads, length, features)")
    if query.shape[-1] != key.shape[-1] or key.shape[:3] != value.shape[:3]:
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)} and value {tuple(value.shape)} do not fit together."
        )
    heads, shared = query.shape[1], key.shape[1]
    if not enable_gqa and heads != shared:
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={heads} and Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if heads != shared and (shared == 0 or heads % shared):
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={shared}."
        )
    if query.shape[0] != key.shape[0] and (block_mask is None or key.shape[0] != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or one batch of keys and a block_mask, "
            f"but got Bq={query.shape[0]} and Bkv={key.shape[0]}."
        )
    if block_mask is None:
        return
    if block_mask.mask_mod is sliced:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if block_mask.kv_num_blocks.device != query.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device "
            f"but got {query.device} and {block_mask.kv_num_blocks.device}."
        )
    rows, columns = query.shape[2], key.shape[2]
    made = block_mask.shape[-2:]
    if (rows, columns) != made:
        smaller = rows > made[0] or columns > made[1]
        advice = (
            "a smaller length than you're using it for, you likely need to create a new block mask."
            if smaller
            else "a larger length than you're using it for, create a new block mask with the correct length, or crop "
            "this one to its upper left corner by block_mask._adjust(q_len, kv_len), which does not suit all mask_mods."
        )
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={rows} and "
            f"kv_len={columns}. As the block mask was created for {advice}"
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: MaskMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with scores changed by `score_mod(score, b, h, q_idx, kv_idx)` and places hidden by `block_mask`.

    Tensors are (batch, heads, length, features). `score_mod` gets the score `scale * q·k` of one query and key and
    where it stands, and returns another; it may look things up in tensors, which get gradients. With no `score_mod`,
    the fused kernel runs. The blocks of a BlockMask count as in torch's compiled kernels: a block that is not listed
    is not seen. A query that sees nothing gives zeros.

    >>> from votive.nn.attention.flex_attention import flex_attention
    >>> q = votive.eye(3).reshape(1, 1, 3, 3)
    >>> flex_attention(q, q, q, lambda score, b, h, i, j: votive.where(i >= j, score + i, -float("inf")))[0, 0]
    tensor([[1.0000, 0.0000, 0.0000],
            [0.3595, 0.6405, 0.0000],
            [0.2645, 0.2645, 0.4711]])
    """
    _check(query, key, value, block_mask, enable_gqa)
    if kernel_options is not None and kernel_options.get("BACKEND", "AUTO") not in BACKENDS:
        raise ValueError(f"Invalid BACKEND value '{kernel_options['BACKEND']}'. Must be one of {BACKENDS}")
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux; use return_aux=AuxRequest(lse=True).")
    if return_lse:
        warnings.warn("return_lse is deprecated; use return_aux=AuxRequest(lse=True).", FutureWarning, stacklevel=2)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    if key.shape[0] != query.shape[0]:
        key, value = (x.expand(query.shape[0], *x.shape[1:]) for x in (key, value))
    shape = (*query.shape[:3], key.shape[2])
    mask = None if block_mask is None else _written_out(block_mask, shape, query.device)
    largest = return_aux is not None and return_aux.max_scores
    if score_mod is None and not largest:
        out, lse = F._attention(query, key, value, mask, scale=scale)
        top = None
    else:
        out, lse, top = _by_operators(query, key, value, score_mod, mask, scale, shape)
    if return_aux is not None:
        return out, AuxOutput(lse if return_aux.lse else None, top if largest else None)
    return (out, lse) if return_lse else out


def _by_operators(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: MaskMod | None,
    mask: Tensor | None,
    scale: float,
    shape: tuple[int, ...],
) -> tuple[Tensor, Tensor, Tensor]:
    """Result, log-sum-exp and largest score of each query."""
    wide = dt.float64 if query.dtype is dt.float64 else dt.float32
    groups = query.shape[1] // max(key.shape[1], 1)
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = F.matmul(query.to(wide), key.to(wide).transpose(-2, -1)) * scale
    if score_mod is not None:
        scores = index_functions.apply(score_mod, scores, shape, query.device).to(wide).expand(shape)
    if mask is not None:
        scores = F.where(mask, scores, -math.inf)
    if not shape[3]:
        nothing = F.full(shape[:3], -math.inf, dtype=wide, device=query.device)
        return F.zeros((*shape[:3], value.shape[3]), dtype=query.dtype, device=query.device), nothing, nothing
    top = scores.detach().amax(-1)
    blind = top == -math.inf
    lse = F.logsumexp(F.where(blind.unsqueeze(-1), 0.0, scores), -1)
    weights = (scores - lse.unsqueeze(-1)).exp()
    weights = F.where(blind.unsqueeze(-1), 0.0, weights)
    out = F.matmul(weights, value.to(wide)).to(query.dtype)
    return out, F.where(blind, -math.inf, lse), top
