"""Checkpoints that keep some results: which ones a policy says, operator by operator. The names are torch's."""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from ..autograd import checkpoint as _checkpoint
from ..core.mode import mode
from ..dispatch.execute import any_grad
from ..dispatch.observe import Call, Observer
from ..dispatch.state import state
from ..tensor import Tensor


class CheckpointPolicy(Enum):
    """Whether the result of a call is kept from the first run or computed again in the second.

    PREFER_* leaves a compiler the choice; here they mean the same as MUST_*. Results that are to be kept on the CPU are
    kept where they are.

    >>> votive.utils.checkpoint.CheckpointPolicy.MUST_SAVE
    <CheckpointPolicy.MUST_SAVE: 0>
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is told of a run: whether it is the second.

    >>> votive.utils.checkpoint.SelectiveCheckpointContext(is_recompute=False).is_recompute
    False
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


RECOMPUTED = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)
Policy = Callable[..., Any]


def _kept(policy: Policy, call: Call, again: bool) -> bool:
    """Whether a call's result is kept."""
    if call.op.mutates or call.into is not None:
        return False  # its result is an argument, which a later call may change
    found = policy(SelectiveCheckpointContext(is_recompute=again), call.op, *call.args)
    if isinstance(found, bool):
        return found
    if not isinstance(found, CheckpointPolicy):
        raise TypeError(f"a policy gives a CheckpointPolicy or a bool, got {type(found).__name__}.")
    return found not in RECOMPUTED


def _alone(out: Any) -> Any:
    """Results without their graph."""
    if isinstance(out, Tensor):
        return out.detach()
    return type(out)(_alone(x) for x in out) if isinstance(out, (tuple, list)) else out


class _Keeping(Observer):
    """The first run: results are kept in the order of the calls."""

    def __init__(self, policy: Policy, kept: dict[str, deque[Any]], mutable: bool) -> None:
        self.policy, self.kept, self.mutable = policy, kept, mutable

    def after(self, call: Call) -> None:
        if _kept(self.policy, call, False):
            out = _alone(call.result)
            versions = [] if self.mutable else [t._storage.version for t in _tensors(out)]
            self.kept[call.op.name].append((out, versions))


class _Using(Observer):
    """The second run: kept results are used instead of computing them, and recorded as if they were."""

    def __init__(self, policy: Policy, kept: dict[str, deque[Any]]) -> None:
        self.policy, self.kept = policy, kept

    def before(self, call: Call) -> Any:
        if not _kept(self.policy, call, True):
            return None
        if not self.kept[call.op.name]:
            raise _checkpoint.CheckpointError(
                f"checkpoint: {call.op.name} ran more often in the second run than in the first; "
                "the policy and the function must do the same each time, and backward runs once."
            )
        out, versions = self.kept[call.op.name].popleft()
        if versions and versions != [t._storage.version for t in _tensors(out)]:
            raise RuntimeError(
                f"checkpoint: a result of {call.op.name} that was kept has been mutated since; "
                "pass allow_cache_entry_mutation=True if that is meant."
            )
        values = call.op.values(call.args)
        if mode.grad and call.op.differentiable and any_grad(values):
            state.graph.record(call.plan, values, out)
        return out


def _tensors(out: Any) -> Iterator[Tensor]:
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor):
            yield t


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Observer, Observer]:
    """The blocks of `checkpoint(context_fn=…)` that keep results of some calls.

    `policy_fn(ctx, op, *args)` gives a CheckpointPolicy for each call of one of votive's operators (`op.name` is its
    name); a list of operators, or of their names, means to keep those.

    >>> import functools
    >>> from votive.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = functools.partial(create_selective_checkpoint_contexts, ["matmul"])
    >>> x = votive.eye(2).requires_grad_()
    >>> checkpoint(lambda t: (t @ t).exp(), x, use_reentrant=False, context_fn=keep).sum().backward()
    >>> x.grad[0, 0]
    tensor(5.4366)
    """
    if isinstance(policy_fn_or_list, (list, tuple)):
        names = {one if isinstance(one, str) else str(getattr(one, "name", one)) for one in policy_fn_or_list}

        def policy(ctx: SelectiveCheckpointContext, op: Any, *args: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op.name in names else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[str, deque[Any]] = defaultdict(deque)
    return _Keeping(policy, kept, allow_cache_entry_mutation), _Using(policy, kept)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether second runs of checkpoints made in the block end as soon as backward has what it needs.

    >>> with votive.utils.checkpoint.set_checkpoint_early_stop(False):
    ...     pass
    """
    before, _checkpoint.early_stop = _checkpoint.early_stop, enable
    try:
        yield
    finally:
        _checkpoint.early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """torch's record of both runs, which votive does not make.

    >>> with votive.utils.checkpoint.set_checkpoint_debug_enabled(False):
    ...     pass
    """
    if enabled:
        raise NotImplementedError("checkpoint: debug is not supported; use detect_anomaly().")
    yield


def check_backward_validity(inputs: Any) -> None:
    """Warn if no input of a reentrant checkpoint requires a gradient: it would have none.

    >>> votive.utils.checkpoint.check_backward_validity([votive.ones(1, requires_grad=True)])
    """
    import warnings

    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors without their graph, which require gradients as they did; other values as they are.

    >>> votive.utils.checkpoint.detach_variable((votive.ones(1, requires_grad=True), 2))
    (tensor([1.], requires_grad=True), 2)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)
