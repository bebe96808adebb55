"""Gradients of several parameters side by side in one piece of memory, which is what is sent. Knows no ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ops.registry import F
from ...tensor import Tensor

MIB = 1024 * 1024


class GradBucket:
    """What a communication hook is given: the gradients of some parameters, as one flat tensor.

    >>> weights = [votive.nn.Parameter(votive.zeros(2, 2)), votive.nn.Parameter(votive.zeros(2))]
    >>> bucket = votive.nn.parallel.buckets.GradBucket(0, weights, last=True)
    >>> bucket.buffer().shape, [g.shape for g in bucket.gradients()], bucket.is_last()
    (votive.Size([6]), [votive.Size([2, 2]), votive.Size([2])], True)
    """

    def __init__(self, index: int, parameters: Sequence[Tensor], last: bool) -> None:
        self._index, self._parameters, self._last = index, list(parameters), last
        first = self._parameters[0]
        self._own = F.zeros(sum(p.numel() for p in parameters), dtype=first.dtype, device=first.device)
        self._own_gradients = self._cut(self._own)
        self._buffer, self._gradients = self._own, self._own_gradients

    def _cut(self, buffer: Tensor) -> list[Tensor]:
        found, at = [], 0
        for p in self._parameters:
            found.append(buffer[at : at + p.numel()].view(p.shape))
            at += p.numel()
        return found

    def index(self) -> int:
        """Its number among all buckets; they are sent in this order."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients, one behind the other."""
        return self._buffer

    def gradients(self) -> list[Tensor]:
        """Views of the buffer, one for each parameter."""
        return self._gradients

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients these are."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether it is the last one of a backward pass."""
        return self._last

    def set_buffer(self, buffer: Tensor) -> None:
        """Take another tensor of as many numbers as the buffer, until the mean is written into the own one."""
        if buffer.numel() != self._own.numel():
            raise ValueError(f"set_buffer: needs {self._own.numel()} numbers, got the shape {tuple(buffer.shape)}.")
        self._buffer, self._gradients = buffer, self._cut(buffer)

    def finish(self, mean: Tensor) -> list[Tensor]:
        """The gradients of all ranks, once their mean is known."""
        if mean is not self._own:
            if mean.numel() != self._own.numel():
                raise ValueError(
                    f"the communication hook gave a tensor of shape {tuple(mean.shape)} for a bucket of "
                    f"{self._own.numel()} numbers."
                )
            self._own.copy_(mean.reshape(-1))
        self._buffer, self._gradients = self._own, self._own_gradients
        return self._gradients


def assign(parameters: Sequence[Tensor], caps: Sequence[float]) -> list[list[int]]:
    """Which parameters, from the last to the first, come together: of one type on one device each.

    Bucket i ends as soon as it holds `caps[i]` bytes, the last cap serves the rest; so the first ones can be small and
    leave soon.

    >>> weights = [votive.zeros(4), votive.zeros(4), votive.zeros(4), votive.zeros(4, dtype=votive.float64)]
    >>> votive.nn.parallel.buckets.assign(weights, [16, 32])
    [[3], [2, 1], [0]]
    """
    done: list[list[int]] = []
    filling: dict[tuple[str, str], tuple[list[int], int]] = {}
    for i in reversed(range(len(parameters))):
        p = parameters[i]
        kind = (str(p.dtype), str(p.device))
        bucket, size = filling.pop(kind, ([], 0))
        bucket.append(i)
        size += p.nbytes
        if size >= caps[min(len(done), len(caps) - 1)]:
            done.append(bucket)
        else:
            filling[kind] = bucket, size
    return done + [bucket for bucket, _ in filling.values()]


def bytes_of(cap_mb: float | None, named: str) -> float:
    """A size in MiB as bytes."""
    if cap_mb is None:
        return 25 * MIB
    if not isinstance(cap_mb, (int, float)) or math.isnan(cap_mb) or cap_mb < 0:
        raise ValueError(f"DistributedDataParallel: {named} must be a number of MiB, 0 or more, got {cap_mb!r}.")
    return cap_mb * MIB
