"""Batches of sequences of different lengths: padded, packed, and back. Works on tensors.

Packing and padding are each one gather or scatter along flat positions, so their gradients are the
operators' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ...core import dtype as dt
from ...ops.registry import F
from ...surface.interchange import as_tensor, from_numpy
from ...tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


Positions = np.ndarray[Any, Any]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences step by step: first all first elements, then all second ones, and so on.

    >>> from votive.nn.utils.rnn import pack_sequence
    >>> pack_sequence([votive.tensor([1, 2]), votive.tensor([3])]).data
    tensor([1, 3, 2])
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually; use pack_sequence or pack_padded_sequence."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same sequences with data of another dtype or on another device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """On a CUDA device."""
        return self.to(*args, **{"device": "cuda", **kwargs}) if not args else self.to(*args)

    def cpu(self) -> Self:
        """On the CPU."""
        return self.to("cpu")

    def pin_memory(self) -> Self:
        """In pinned memory."""
        return type(self)(self.data.pin_memory(), *self[1:])

    def double(self) -> Self:
        """As float64."""
        return self.to(dtype=dt.float64)

    def float(self) -> Self:
        """As float32."""
        return self.to(dtype=dt.float32)

    def half(self) -> Self:
        """As float16."""
        return self.to(dtype=dt.float16)

    def long(self) -> Self:
        """As int64."""
        return self.to(dtype=dt.int64)

    def int(self) -> Self:
        """As int32."""
        return self.to(dtype=dt.int32)

    def short(self) -> Self:
        """As int16."""
        return self.to(dtype=dt.int16)

    def char(self) -> Self:
        """As int8."""
        return self.to(dtype=dt.int8)

    def byte(self) -> Self:
        """As uint8."""
        return self.to(dtype=dt.uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another.

    >>> votive.nn.utils.rnn.invert_permutation(votive.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    return None if permutation is None else F.argsort(permutation)


def _steps(lengths: Positions) -> tuple[Positions, Positions]:
    """Step and sequence of each packed element, in packed order; longest sequence first."""
    longest = int(lengths[0]) if len(lengths) else 0
    step, sequence = np.nonzero(np.arange(longest)[:, None] < lengths)
    return step, sequence


def _position(step: Positions, sequence: Positions, n_steps: int, n_seq: int, batch_first: bool) -> Positions:
    """Flat position in a padded batch."""
    return sequence * n_steps + step if batch_first else step * n_seq + sequence


def _index(positions: Positions, like: Tensor) -> Tensor:
    return from_numpy(np.ascontiguousarray(positions.astype(np.int64))).to(like.device)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Drop the padding of a batch of shape (T, B, …), or (B, T, …) with `batch_first`.

    >>> from votive.nn.utils.rnn import pack_padded_sequence
    >>> x = votive.tensor([[1, 2, 3], [4, 0, 0]])
    >>> packed = pack_padded_sequence(x, [3, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """
    if isinstance(lengths, Tensor) and lengths.device.type != "cpu":
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got one on {lengths.device}.")
    counts: Tensor = as_tensor(lengths, dtype=dt.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        counts, sorted_indices = F.sort(counts, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    sizes = counts.numpy()
    n_seq, n_steps = (input.shape[0], input.shape[1]) if batch_first else (input.shape[1], input.shape[0])
    _check_lengths(sizes, n_seq, n_steps)
    step, sequence = _steps(sizes)
    where = _position(step, sequence, n_steps, n_seq, batch_first)
    data = input.reshape((-1, *input.shape[2:])).index_select(0, _index(where, input))
    batch_sizes = from_numpy(np.bincount(step).astype(np.int64))
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def _check_lengths(lengths: Positions, n_seq: int, n_steps: int) -> None:
    if lengths.ndim != 1 or len(lengths) != n_seq:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.shape} (batch_size={n_seq})."
        )
    if len(lengths) == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0."
        )
    if (np.diff(lengths) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement."
        )
    if lengths[0] > n_steps:
        raise RuntimeError(f"pack_padded_sequence: length {lengths[0]} exceeds the {n_steps} steps of the input.")


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """A padded batch and the lengths of its sequences: the inverse of packing.

    >>> from votive.nn.utils.rnn import pack_sequence, pad_packed_sequence
    >>> packed = pack_sequence([votive.tensor([1, 2]), votive.tensor([3])])
    >>> pad_packed_sequence(packed, batch_first=True, padding_value=9)
    (tensor([[1, 2],
            [3, 9]]), tensor([2, 1]))
    """
    data = sequence.data
    batch_sizes = sequence.batch_sizes.numpy()
    n_steps = len(batch_sizes)
    if total_length is not None:
        if total_length < n_steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {n_steps}"
            )
        n_steps = total_length
    n_seq = int(batch_sizes[0])
    lengths = (batch_sizes[:, None] > np.arange(n_seq)).sum(0)
    step, member = _steps(lengths)
    where = _position(step, member, n_steps, n_seq, False)
    padded = _scatter(data, where, (n_steps, n_seq), padding_value)
    if batch_first:
        padded = padded.transpose(0, 1)
    counts = from_numpy(lengths.astype(np.int64))
    order = sequence.unsorted_indices
    if order is None:
        return padded, counts
    return padded.index_select(0 if batch_first else 1, order), counts[order.cpu()]


def _scatter(data: Tensor, where: Positions, outer: tuple[int, int], value: float) -> Tensor:
    """Rows of `data` at flat positions of a batch, `value` elsewhere."""
    rest = tuple(data.shape[1:])
    blank = F.full((outer[0] * outer[1], *rest), value, dtype=data.dtype, device=data.device)
    return blank.index_copy(0, _index(where, data), data).reshape((*outer, *rest))


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences of shape (L, …) in one batch, padded to the longest.

    >>> from votive.nn.utils.rnn import pad_sequence
    >>> pad_sequence([votive.tensor([1, 2]), votive.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("pad_sequence: received an empty list of sequences.")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    lengths = [len(s) for s in sequences]
    n_steps, n_seq = max(lengths), len(sequences)
    starts = [n_steps - n if padding_side == "left" else 0 for n in lengths]
    step = np.concatenate([np.arange(a, a + n) for a, n in zip(starts, lengths)])
    where = _position(step, np.repeat(np.arange(n_seq), lengths), n_steps, n_seq, batch_first)
    outer = (n_seq, n_steps) if batch_first else (n_steps, n_seq)
    rows = F.cat([s.to(sequences[0].dtype) for s in sequences])
    return _scatter(rows, where, outer, padding_value)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded batch, without their padding.

    >>> from votive.nn.utils.rnn import unpad_sequence
    >>> unpad_sequence(votive.tensor([[1, 2], [3, 0]]), votive.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: max(int(n), 0)].clone() for row, n in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences of shape (L, …).

    >>> from votive.nn.utils.rnn import pack_sequence
    >>> a, b = votive.tensor([1]), votive.tensor([2, 3])
    >>> pack_sequence([a, b], enforce_sorted=False).data
    tensor([2, 1, 3])
    """
    lengths = as_tensor([len(s) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed.

    >>> from votive.nn.utils.rnn import pack_sequence, unpack_sequence
    >>> unpack_sequence(pack_sequence([votive.tensor([1, 2]), votive.tensor([3])]))
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
