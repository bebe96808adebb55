"""Averages gradients of all ranks while backward goes on: bucket after bucket, as soon as each is full.

Knows parameters and a group of ranks; knows no module. A *round* is what one backward pass sends, or several that
together reach all parameters: from the first gradient to the end of the pass in which the last bucket was sent.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...autograd.early import FinishEarly, outermost, uses_of, when_backward_ends
from ...autograd.modes import no_grad
from ...core.layout import Spec
from ...core.mode import mode
from ...distributed import ProcessGroup, ReduceOp, all_reduce
from ...futures import Future
from ...ops.registry import F
from ...tensor import Tensor
from .agreeing import part_of
from .buckets import GradBucket, assign

# hook(state, bucket) gives the Future of the averaged buffer.
CommHook = Callable[[Any, GradBucket], Future[Any]]


class Reducer:
    """Watches the gradients of parameters, and sends them."""

    def __init__(
        self,
        named: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        caps: Sequence[float],
        find_unused: bool,
        as_view: bool,
        static: bool,
    ) -> None:
        self.names, self.parameters = [n for n, _ in named], [p for _, p in named]
        self.group, self.find_unused, self.as_view, self.static = group, find_unused and not static, as_view, static
        parts = [part_of(p) for p in self.parameters]
        lists = assign(parts, caps)
        self.buckets = [GradBucket(k, [parts[i] for i in m], k == len(lists) - 1) for k, m in enumerate(lists)]
        self.members = lists
        self.place = {i: (k, j) for k, members in enumerate(lists) for j, i in enumerate(members)}
        self.hook: CommHook | None = None
        self.hook_state: Any = None
        self.divisor: int | None = None  # in place of the number of ranks
        self.armed = False  # whether gradients are sent, or only added up
        self.running = False  # whether a round has begun and not ended
        self.ends_itself = True  # with the last bucket, or by a call at the end of the pass
        self.ready: set[int] = set()
        self.missing = [len(members) for members in lists]
        self.futures: list[Future[Any]] = []
        self.expected: Counter[int] | None = None  # how often each gradient comes, once a static graph is known
        self.seen: Counter[int] = Counter()
        self.nowhere_used: set[int] = set()
        me = weakref.ref(self)
        handles: list[Any] = []
        for i, p in enumerate(self.parameters):
            handles += [FinishEarly(p), p.register_post_accumulate_grad_hook(partial(_arrived, me, i))]
        weakref.finalize(self, _remove, handles)

    def arm(self, sends: bool) -> None:
        """Say whether the gradients of the forward pass that begins are to be sent."""
        if self.running:
            raise RuntimeError(self._unfinished())
        self.armed = sends

    def _unfinished(self) -> str:
        left = [n for i, n in enumerate(self.names) if i not in self.ready]
        text = "Expected to have finished reduction in the prior iteration before starting a new one. "
        if not left:
            return text + "An error has ended the backward pass before its end."
        shown = ", ".join(left[:8]) + (f" and {len(left) - 8} more" if len(left) > 8 else "")
        return (
            f"{text}Parameters without a gradient on rank {self.group.rank()}: {shown}. The loss does not depend on "
            "them, so the gradients of this rank were not averaged with the others'. Pass "
            "find_unused_parameters=True to DistributedDataParallel if a forward pass may leave parameters out, and "
            "let the loss depend on every result of forward."
        )

    # --- a round ------------------------------------------------------------------------------

    def arrived(self, i: int) -> None:
        """The gradient of a parameter is there."""
        if not self.armed:
            return
        self._check(i)
        if not self.running:
            self._begin()
        self.seen[i] += 1
        if self.static:
            if self.expected is None or self.seen[i] < self.expected[i]:
                return
        if i in self.ready:
            raise RuntimeError(
                f"Expected to mark a variable ready only once, but {self.names[i]} got a second gradient before all "
                "others had their first: it is used outside of forward, in several checkpointed regions "
                "(use_reentrant=True), or by backward passes each of which reaches a part of the parameters. "
                "static_graph=True counts the gradients of a graph that stays the same."
            )
        self._mark(i)

    def _check(self, i: int) -> None:
        grad: Any = part_of(self.parameters[i]._grad)
        if grad._spec.__class__ is not Spec:
            raise NotImplementedError(
                f"DistributedDataParallel: the gradient of {self.names[i]} is sparse, and only dense ones are sent; "
                "build the embedding with sparse=False."
            )
        if mode.grad:
            raise NotImplementedError(
                f"DistributedDataParallel: backward(create_graph=True) would give {self.names[i]} a gradient whose "
                "graph ends at the averaging; call the module within `no_sync()`, or take gradients by autograd.grad."
            )

    def _begin(self) -> None:
        self.running = True
        self.ready.clear()
        self.seen.clear()
        self.missing = [len(members) for members in self.members]
        self.futures.clear()
        self.ends_itself = not self.find_unused and not (self.static and self.expected is None)
        if self.static:
            if self.expected is None:
                when_backward_ends(self._end_first_static)
                return
            for i in range(len(self.parameters)):
                if not self.expected[i]:
                    self._mark(i)
        elif self.find_unused:
            # The graph tells it before its gradients come; what gets none all the same is known at the end.
            reached = uses_of(outermost().roots)
            for i, p in enumerate(self.parameters):
                if id(p) not in reached:
                    self._mark(i)
            when_backward_ends(self._end_with_unused)

    def _mark(self, i: int) -> None:
        self.ready.add(i)
        k, j = self.place[i]
        with no_grad():
            grad = self.parameters[i]._grad
            self._fill(None if grad is None else part_of(grad), self.buckets[k].gradients()[j])
        self.missing[k] -= 1
        while len(self.futures) < len(self.buckets) and not self.missing[len(self.futures)]:
            self.futures.append(self._send(self.buckets[len(self.futures)]))
        if self.ends_itself and len(self.futures) == len(self.buckets):
            when_backward_ends(self._end)

    def _fill(self, grad: Tensor | None, view: Tensor) -> None:
        """Write a gradient's share of the mean into its bucket; a hook divides for itself."""
        count = self.divisor or self.group.size()
        if grad is None:
            view.zero_()
        elif self.hook is not None or count == 1:
            if grad is not view:
                view.copy_(grad)
        elif grad is view:
            view.div_(count)
        else:
            F.div(grad, count, out=view)

    def _send(self, bucket: GradBucket) -> Future[Any]:
        if self.hook is None:
            work = all_reduce(bucket.buffer(), ReduceOp.SUM, self.group, async_op=True)
            assert work is not None
            return work.get_future()
        found = self.hook(self.hook_state, bucket)
        if not isinstance(found, Future):
            raise TypeError(f"the communication hook must return a Future of a tensor, got {type(found).__name__}.")
        return found

    @no_grad()
    def accompany(self) -> None:
        """Take part in a round of the other ranks, without gradients of this one."""
        self.futures.clear()
        for bucket in self.buckets:
            bucket.buffer().zero_()
            self.futures.append(self._send(bucket))
        if self.find_unused:
            all_reduce(F.tensor([0] * len(self.parameters)), ReduceOp.MAX, self.group)
        for future in self.futures:
            future.wait()

    # --- its end ------------------------------------------------------------------------------

    def _end_first_static(self) -> None:
        self.expected = Counter(self.seen)
        for i in range(len(self.parameters)):
            if i not in self.ready:
                self._mark(i)
        self.nowhere_used = self._nowhere_used()
        self._end()

    def _end_with_unused(self) -> None:
        for i in range(len(self.parameters)):
            if i not in self.ready:
                self._mark(i)
        self.nowhere_used = self._nowhere_used()
        self._end()

    def _nowhere_used(self) -> set[int]:
        """The parameters without a gradient on every rank."""
        used = F.tensor([int(p._grad is not None) for p in self.parameters])
        all_reduce(used, ReduceOp.MAX, self.group)
        return {i for i, n in enumerate(used.tolist()) if not n}

    @no_grad()
    def _end(self) -> None:
        """Wait for all buckets, and give parameters their averaged gradients."""
        for k, (bucket, future) in enumerate(zip(self.buckets, list(self.futures), strict=True)):
            found = future.wait()
            mean = found[0] if isinstance(found, (list, tuple)) else found
            if not isinstance(mean, Tensor):
                raise TypeError(f"the communication hook must give a tensor, got {type(mean).__name__}.")
            for i, view in zip(self.members[k], bucket.finish(mean), strict=True):
                if i not in self.nowhere_used:
                    self._take(self.parameters[i], view)
        self.running = False

    def _take(self, p: Tensor, view: Tensor) -> None:
        if part_of(p) is not p:
            # Of a distributed parameter the gradient is one, too.
            if p._grad is None:
                p._grad = F.zeros_like(p)
            part_of(p._grad).copy_(view)
        elif self.as_view:
            p._grad = view
        elif p._grad is None:
            p._grad = view.clone()
        else:
            p._grad.copy_(view)


def _arrived(ref: weakref.ref[Reducer], i: int, _: Tensor) -> None:
    reducer = ref()
    if reducer is not None:
        reducer.arrived(i)


def _remove(handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()
