"""Which blocks of queries and keys see each other: lists of blocks, and what they say. Knows no attention."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from ...core import dtype as dt
from ...ops.registry import F
from ...tensor import Tensor

MaskMod = Callable[..., Any]
BLOCK = 128
MINE = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
TURNED = ("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask_mod that hides nothing.

    >>> zero = votive.tensor(0)
    >>> votive.nn.attention.flex_attention.noop_mask(zero, zero, zero, zero)
    tensor(True)
    """
    return batch.new_ones((), dtype=dt.bool_)


def sliced(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
    """The mask_mod of a part of a mask: indices would mean other places than they did."""
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask; create a mask for the part, or set its mask_mod.")


def ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row count, and the blocks' numbers with those in front."""
    dense = dense.to(dt.int32)
    return dense.sum(-1).to(dt.int32), dense.argsort(-1, descending=True, stable=True).to(dt.int32).contiguous()


def dense(count: Tensor, indices: Tensor, columns: int) -> Tensor:
    """The opposite of `ordered`: 1 where a block counts."""
    used = F.arange(indices.shape[-1], device=indices.device) < count.unsqueeze(-1)
    # What does not count is written to one more column, which is left out.
    target = F.where(used, indices.to(dt.int64), columns)
    empty = F.zeros((*indices.shape[:-1], columns + 1), dtype=dt.int32, device=indices.device)
    return empty.scatter(-1, target, 1)[..., :columns]


class BlockMask:
    """A mask in blocks: for each row of blocks the blocks of keys that are seen in part, and those seen as a whole.

    Partly seen blocks are masked by `mask_mod`, the others are not looked at. It is made by `create_block_mask` or
    `BlockMask.from_kv_blocks`, and holds the same lists by blocks of keys (`q_*`) if asked to.

    >>> from votive.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, device="cpu", BLOCK_SIZE=2)
    >>> mask.to_dense()[0, 0], mask.sparsity()
    (tensor([[1, 0],
            [1, 1]], dtype=votive.int32), 25.0)
    """

    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (BLOCK, BLOCK),
        mask_mod: MaskMod = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = BLOCK,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask from the blocks that each row of blocks sees: their numbers (..., rows, columns), the first
        `kv_num_blocks` (..., rows) of which count.

        >>> rows, seen = votive.tensor([[[1, 2]]]), votive.tensor([[[[0, 1], [0, 1]]]])
        >>> votive.nn.attention.flex_attention.BlockMask.from_kv_blocks(rows, seen, BLOCK_SIZE=4).shape
        (1, 1, 8, 8)
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        rows, columns = kv_indices.shape[-2:]
        lists: Any = [kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *[None] * 4]
        if compute_q_blocks:
            lists[4:6] = ordered(dense(kv_num_blocks, kv_indices, columns).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                lists[6:] = ordered(dense(full_kv_num_blocks, full_kv_indices, columns).transpose(-2, -1))
        lengths = (rows * size[0], columns * size[1]) if seq_lengths is None else seq_lengths
        mod = noop_mask if mask_mod is None else mask_mod
        return cls(lengths, **dict(zip(MINE + TURNED, lists, strict=True)), BLOCK_SIZE=size, mask_mod=mod)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Everything the mask is made of; `flatten` writes out lengths and block sizes as four numbers."""
        lengths: tuple[Any, ...] = self.seq_lengths if flatten else (self.seq_lengths,)
        size: tuple[Any, ...] = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *(getattr(self, name) for name in MINE + TURNED), *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many places the mask has, seen or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many percent of the places are not computed."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """1 for each block that is seen, in part or as a whole."""
        seen = dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return seen
        return seen | dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])

    def __getitem__(self, index: Any) -> BlockMask:
        given = index if isinstance(index, tuple) else (index,)
        sizes = self.kv_num_blocks.shape
        at = tuple(
            slice(i % n, i % n + 1)
            if isinstance(i, int) and -n <= i < n
            else slice(i, i + 1)
            if isinstance(i, int)
            else i
            for i, n in zip((*given, slice(None), slice(None), slice(None))[: len(sizes)], sizes, strict=True)
        )
        lists: Any = [None if (x := getattr(self, name)) is None else x[at] for name in MINE]
        return BlockMask.from_kv_blocks(
            **dict(zip(MINE, lists, strict=True)),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=sliced,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner of the mask, for shorter sequences."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        lists: Any = []
        for count, indices in ((self.kv_num_blocks, self.kv_indices), (self.full_kv_num_blocks, self.full_kv_indices)):
            if count is None or indices is None:
                lists += [None, None]
            else:
                lists += ordered(dense(count, indices, indices.shape[-1])[..., :rows, :columns])
        return self.from_kv_blocks(
            **dict(zip(MINE, lists, strict=True)),
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
            compute_q_blocks=self.q_indices is not None,
        )

    def to(self, device: Any) -> BlockMask:
        """The same mask with its lists on another device."""
        moved: Any = [None if (x := getattr(self, name)) is None else x.to(device) for name in MINE + TURNED]
        lists = dict(zip(MINE + TURNED, moved, strict=True))
        return BlockMask(self.seq_lengths, **lists, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A drawing of the mask: full, partly seen and empty cells, at most `limit` heads; -1 draws every block."""
        seen = self.to_dense()
        *lead, rows, columns = seen.shape
        high, wide = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        down, right = (1, 1) if grid_size == -1 else (max(1, -(-rows // high)), max(1, -(-columns // wide)))
        parts = []
        for i, place in enumerate(itertools.product(*(range(n) for n in lead))):
            if i == limit:
                parts += ["...", "To print out more, set BlockMask.to_string(limit=N)"]
                parts.append("You can also index (BlockMask[batch, head]) to choose a specific batch or head")
                break
            one, lines = seen[place].numpy(), [f"{place}"]
            for r in range(0, rows, down):
                cells = (one[r : r + down, c : c + right].mean() for c in range(0, columns, right))
                lines.append("".join(("██" if m == 1 else "  " if m == 0 else "░░") for m in cells))
            parts.append("\n".join(lines) + "\n")
        return "\n".join(parts)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        def size(x: Tensor | None) -> str:
            return "None" if x is None else repr(x.shape)

        lists = [f"    {name}={size(getattr(self, name))},\n" for name in MINE + TURNED]
        name = getattr(self.mask_mod, "__name__", repr(self.mask_mod))
        return (
            f"BlockMask(\n{''.join(lists)}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={name}\n)"
        )
