"""Tensors from one stage of a pipeline to the next and back. Knows ranks and messages, not modules.

Before the tensors of a microbatch goes a header that says how many come, of which types and shapes: batches may change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtype as dt
from ...ops.registry import F
from ...tensor import Tensor
from ..buffers import from_array
from ..group import ProcessGroup
from ..messages import irecv, isend
from ..work import Work

KINDS = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
         "complex64", "complex128")  # fmt: skip
HEADER = 256
# Messages of pipelines have tags of their own; MPI promises tags up to 32767.
FIRST_TAG, LAST_TAG = 1024, 32767


class Link:
    """What one rank sends to, and gets from, the stages before and behind those that it has."""

    def __init__(self, group: ProcessGroup, homes: Sequence[int], microbatches: int, device: Any) -> None:
        self.group, self.homes, self.microbatches, self.device = group, list(homes), microbatches, device
        self.here = group.rank()
        self._ranks = max(homes) + 1
        most = FIRST_TAG + 2 * len(homes) // self._ranks * microbatches
        if most > LAST_TAG:
            raise ValueError(
                f"{len(homes)} stages on {self._ranks} ranks with {microbatches} microbatches need more tags than MPI "
                "has; take fewer microbatches."
            )
        self._local: dict[tuple[int, str, int], list[Any]] = {}
        self._headers: dict[tuple[int, str, int], tuple[Tensor, Work]] = {}
        self._sent: list[Work] = []
        self._coming: dict[tuple[int, int], list[tuple[Tensor, Work] | None]] = {}

    def _tag(self, stage: int, kind: str, microbatch: int) -> int:
        # Between two ranks the round of the stage that sends, and the direction, tell links apart.
        return FIRST_TAG + ((stage // self._ranks) * 2 + (kind == "B")) * self.microbatches + microbatch

    # --- forward ------------------------------------------------------------------------------

    def send_results(self, stage: int, microbatch: int, results: Sequence[Tensor]) -> None:
        """Send the results of a stage to the next one."""
        to = self.homes[stage + 1]
        if to == self.here:
            self._local[stage, "F", microbatch] = [(t.detach(), t.requires_grad) for t in results]
            return
        tag = self._tag(stage, "F", microbatch)
        self._sent.append(_isend(_header(results), to, self.group, tag))
        for t in results:
            self._sent.append(_isend(t.detach().contiguous(), to, self.group, tag))

    def expect_arguments(self, stage: int, microbatch: int) -> None:
        """Begin to receive what the stage before sends; may be called early, or twice."""
        key = (stage - 1, "F", microbatch)
        source = self.homes[stage - 1]
        if source == self.here or key in self._headers:
            return
        header = from_array(np.zeros(HEADER, np.int64))
        work = irecv(header, group=self.group, group_src=source, tag=self._tag(*key))
        assert work is not None, "this rank is in the group"
        self._headers[key] = header, work

    def take_arguments(self, stage: int, microbatch: int) -> list[Tensor]:
        """What the stage before has sent, as leaves of a graph of their own where they need gradients."""
        key = (stage - 1, "F", microbatch)
        source = self.homes[stage - 1]
        if source == self.here:
            found = self._local.pop(key)
        else:
            self.expect_arguments(stage, microbatch)
            header, work = self._headers.pop(key)
            work.wait()
            found, works = [], []
            for kind, shape, needs_grad in _read(header):
                t = F.empty(shape, dtype=kind, device=self.device)
                works.append(irecv(t, group=self.group, group_src=source, tag=self._tag(*key)))
                found.append((t, needs_grad))
            for one in works:
                assert one is not None, "this rank is in the group"
                one.wait()
        return [t.requires_grad_(needs_grad) for t, needs_grad in found]

    # --- backward -----------------------------------------------------------------------------

    def send_gradients(self, stage: int, microbatch: int, grads: Sequence[Tensor]) -> None:
        """Send the gradients of a stage's arguments to the stage before; of those alone that need one."""
        to = self.homes[stage - 1]
        if to == self.here:
            self._local[stage, "B", microbatch] = list(grads)
            return
        for g in grads:
            self._sent.append(_isend(g.contiguous(), to, self.group, self._tag(stage, "B", microbatch)))

    def expect_gradients(self, stage: int, microbatch: int, results: Sequence[Tensor]) -> None:
        """Begin to receive the gradients of a stage's results."""
        source = self.homes[stage + 1]
        if source == self.here or (stage, microbatch) in self._coming:
            return
        row: list[tuple[Tensor, Work] | None] = []
        for t in results:
            if not t.requires_grad:
                row.append(None)
                continue
            g = F.empty(t.shape, dtype=t.dtype, device=t.device)
            work = irecv(g, group=self.group, group_src=source, tag=self._tag(stage + 1, "B", microbatch))
            assert work is not None, "this rank is in the group"
            row.append((g, work))
        self._coming[stage, microbatch] = row

    def take_gradients(self, stage: int, microbatch: int, results: Sequence[Tensor]) -> list[Tensor | None]:
        """The gradients of a stage's results, None for those that need none."""
        if self.homes[stage + 1] == self.here:
            given = iter(self._local.pop((stage + 1, "B", microbatch)))
            return [next(given) if t.requires_grad else None for t in results]
        self.expect_gradients(stage, microbatch, results)
        found: list[Tensor | None] = []
        for one in self._coming.pop((stage, microbatch)):
            if one is not None:
                one[1].wait()
            found.append(None if one is None else one[0])
        return found

    def finish(self) -> None:
        """Wait for what was sent."""
        for work in self._sent:
            work.wait()
        self._sent.clear()

    def forget(self) -> None:
        """Drop what an error has left."""
        for held in (self._local, self._headers, self._coming):
            held.clear()
        self._sent.clear()


def _isend(t: Tensor, to: int, group: ProcessGroup, tag: int) -> Work:
    work = isend(t, group=group, group_dst=to, tag=tag)
    assert work is not None, "this rank is in the group"
    return work


def _header(tensors: Sequence[Tensor]) -> Tensor:
    words = [len(tensors)]
    for t in tensors:
        name = str(t.dtype).rpartition(".")[2]
        if name not in KINDS:
            raise TypeError(f"a pipeline sends no {t.dtype} from stage to stage; convert the result.")
        words += [KINDS.index(name), int(t.requires_grad), t.dim(), *t.shape]
    if len(words) > HEADER:
        raise ValueError(f"a stage gives {len(tensors)} tensors, too many for a pipeline; put some of them together.")
    return from_array(np.array(words + [0] * (HEADER - len(words)), np.int64))


def _read(header: Tensor) -> list[tuple[Any, tuple[int, ...], bool]]:
    words = iter(header.tolist())
    found = []
    for _ in range(next(words)):
        kind, needs_grad, dims = next(words), bool(next(words)), next(words)
        shape = tuple(next(words) for _ in range(dims))
        assert math.prod(shape) >= 0, "sizes of tensors"
        found.append((getattr(dt, KINDS[kind]), shape, needs_grad))
    return found
