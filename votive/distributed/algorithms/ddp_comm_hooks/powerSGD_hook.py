"""PowerSGD: gradients of matrices travel as two factors of a low rank (Vogels, Karimireddy, Jaggi 2019).

Of a gradient M (n x m) with the part that was not sent before, ranks average P = M Q, make its columns orthonormal,
average Q = M^T P, and take P Q^T. What a rank's own M lacks of that is added to its next gradient (algorithm 1).
"""

from __future__ import annotations

import math
from typing import Any

from ....autograd.modes import no_grad
from ....core import dtype as dt
from ....futures import Future
from ....nn.parallel.buckets import GradBucket
from ....ops.registry import F
from ....random import Generator
from ....tensor import Tensor
from ...group import ProcessGroup
from ...reductions import all_reduce
from ...world import group_of
from .default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "powerSGD_hook"]


class PowerSGDState:
    """What `powerSGD_hook` remembers from step to step.

    >>> hooks = votive.distributed.algorithms.ddp_comm_hooks.powerSGD_hook
    >>> hooks.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=10).iter
    0
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
    ) -> None:
        if matrix_approximation_rank < 1:
            raise ValueError(f"matrix_approximation_rank must be 1 or more, got {matrix_approximation_rank}.")
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.iter = 0
        # The same on all ranks, as the first factors must be.
        self.generator = Generator().manual_seed(random_seed)
        self.errors: dict[int, Tensor] = {}  # by the index of a bucket: what was not sent
        self.factors: dict[tuple[int, int], Tensor] = {}  # by bucket and place: the second factor of the step before

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step with its last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compresses(self, shape: tuple[int, int]) -> bool:
        """Whether two factors are so much smaller than a matrix of this shape."""
        rows, columns = shape
        rank = min(rows, columns, self.matrix_approximation_rank)
        return (rows + columns) * rank * self.min_compression_rate < rows * columns


@no_grad()
def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """Average matrices as two factors of low rank, and what would not get smaller as it is.

    The first `start_powerSGD_iter` steps send gradients as they are.

    >>> hooks = votive.distributed.algorithms.ddp_comm_hooks.powerSGD_hook
    >>> def train():
    ...     model = votive.nn.parallel.DistributedDataParallel(votive.nn.Linear(16, 16))
    ...     model.register_comm_hook(hooks.PowerSGDState(None, start_powerSGD_iter=2), hooks.powerSGD_hook)
    ...     for _ in range(4):
    ...         model(votive.ones(1, 16)).sum().backward()
    ...     return model.module.weight.grad.shape
    >>> votive.distributed.simulate(train, 2)
    [votive.Size([16, 16]), votive.Size([16, 16])]
    """
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    group = group_of(state.process_group)
    buffer, k = bucket.buffer(), bucket.index()
    if state.use_error_feedback:
        if k in state.errors:
            buffer.add_(state.errors[k])
        state.errors[k] = buffer.clone()
    matrices, rest = [], []
    for j, g in enumerate(bucket.gradients()):
        shape = (g.shape[0], math.prod(g.shape[1:])) if g.dim() > 1 else (1, g.numel())
        if g.dim() > 1 and g.numel() and state.compresses(shape):
            matrices.append((j, g.view(shape)))
        else:
            rest.append(g)
    if rest:
        plain = F.cat([g.reshape(-1) for g in rest]).div_(group.size())
        all_reduce(plain, group=group)
        at = 0
        for g in rest:
            g.copy_(plain[at : at + g.numel()].view(g.shape))
            at += g.numel()
    _approximate(state, k, matrices, group)
    if state.use_error_feedback:
        # What was sent as it is has nothing left to send.
        state.errors[k].sub_(buffer)
        for g, e in zip(bucket.gradients(), _views(state.errors[k], bucket), strict=True):
            if any(g is r for r in rest):
                e.zero_()
    state.maybe_increase_iter(bucket)
    done: Future[Any] = Future()
    done.set_result(buffer)
    return done


def _views(flat: Tensor, bucket: GradBucket) -> list[Tensor]:
    found, at = [], 0
    for g in bucket.gradients():
        found.append(flat[at : at + g.numel()].view(g.shape))
        at += g.numel()
    return found


def _approximate(state: PowerSGDState, k: int, matrices: list[tuple[int, Tensor]], group: ProcessGroup) -> None:
    """Write the mean of low rank into matrices of gradients."""
    if not matrices:
        return
    rights: list[Tensor] = []
    for j, m in matrices:
        rank = min(m.shape[0], m.shape[1], state.matrix_approximation_rank)
        known = state.factors.get((k, j)) if state.warm_start else None
        if known is None:
            # Drawn on the host, so that every device begins alike.
            drawn = F.randn((m.shape[1], rank), generator=state.generator).to(m.device, _wide(m))
            known = _orthonormal(drawn, state.orthogonalization_epsilon)
        rights.append(known)
    lefts = [F.matmul(m.to(_wide(m)), q) for (_, m), q in zip(matrices, rights, strict=True)]
    lefts = [_orthonormal(p, state.orthogonalization_epsilon) for p in _averaged(lefts, group)]
    rights = _averaged([F.matmul(m.to(_wide(m)).t(), p) for (_, m), p in zip(matrices, lefts, strict=True)], group)
    for (j, m), p, q in zip(matrices, lefts, rights, strict=True):
        m.copy_(F.matmul(p, q.t()))
        if state.warm_start:
            state.factors[k, j] = _orthonormal(q, state.orthogonalization_epsilon)


def _wide(m: Tensor) -> dt.dtype:
    return dt.float32 if m.dtype in (dt.float16, dt.bfloat16) else m.dtype


def _averaged(parts: list[Tensor], group: ProcessGroup) -> list[Tensor]:
    flat = F.cat([p.reshape(-1) for p in parts]).div_(group.size())
    all_reduce(flat, group=group)
    found, at = [], 0
    for p in parts:
        found.append(flat[at : at + p.numel()].view(p.shape))
        at += p.numel()
    return found


def _orthonormal(matrix: Tensor, epsilon: float) -> Tensor:
    """Columns made orthonormal one after the other (Gram and Schmidt, twice, which keeps them so in float32)."""
    found = matrix.clone()
    tiny = epsilon or 1e-30  # a column of zeros stays one
    for i in range(found.shape[1]):
        column = found[:, i : i + 1]
        for _ in range(2 if i else 0):
            before = found[:, :i]
            column.sub_(F.matmul(before, F.matmul(before.t(), column)))
        column.div_(column.square().sum().sqrt() + tiny)
    return found
