"""Checkpointing: keep a function's inputs instead of its intermediates, and run it again in
backward.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..core.mode import mode
from ..core.rng import default_generator
from ..dispatch import state
from ..dispatch.autocast import resumed
from .engine import backward as run_backward
from .function import Function

if TYPE_CHECKING:
    from ..tensor import Tensor

# Called before a checkpointed function runs: each gives an object whose `ended()` is called after the
# first run, and in whose block `again()` the function runs once more: to its end if there are `edits`.
regions: list[Callable[[], Any]] = []


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not do what the first did."""


class _Stop(Exception):
    """Everything that backward needs is there again."""


early_stop: bool | None = None  # what `set_checkpoint_early_stop` says, over what each call says


def noop_context_fn() -> tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]:
    """The blocks around both runs of a function unless others are given: empty ones.

    >>> votive.utils.checkpoint.noop_context_fn()[0].__enter__()
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


class _First:
    """The first run of a function; `again()` is the block for the second."""

    def __init__(self) -> None:
        self.regions = [begin() for begin in regions]

    def ended(self) -> None:
        for region in self.regions:
            region.ended()

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for region in self.regions:
                stack.enter_context(region.again())
            yield


def _detached(x: object) -> Any:
    if not isinstance(x, state.tensor):
        return x
    return x.detach().requires_grad_(x._rg)


class _Checkpoint(Function):
    @staticmethod
    def forward(ctx: Any, fn: Callable[..., Any], preserve: bool, kwargs: dict[str, Any], *args: Any) -> Any:
        ctx.fn, ctx.kwargs = fn, kwargs
        ctx.rng = default_generator().get_state() if preserve else None
        ctx.autocast = mode.autocast
        ctx.plain = [None if isinstance(a, state.tensor) else a for a in args]
        ctx.slots = [i for i, a in enumerate(args) if isinstance(a, state.tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.slots))
        ctx.first = _First()
        out = fn(*args, **kwargs)
        ctx.first.ended()
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        args = list(ctx.plain)
        for i, t in zip(ctx.slots, ctx.saved_tensors, strict=True):
            args[i] = _detached(t)
        generator = default_generator()
        current = generator.get_state()
        saved, mode.grad = mode.grad, True
        try:
            if ctx.rng is not None:
                generator.set_state(ctx.rng)
            with resumed(ctx.autocast), ctx.first.again():
                outs = ctx.fn(*args, **ctx.kwargs)
        finally:
            mode.grad = saved
            if ctx.rng is not None:
                generator.set_state(current)
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        pairs = [
            (o, g) for o, g in zip(outs, grads, strict=True) if isinstance(o, state.tensor) and o._rg and g is not None
        ]
        run_backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, None, *(a._grad if isinstance(a, state.tensor) else None for a in args))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Run `function(*args)` keeping only its inputs; backward runs it again.

    `context_fn()` gives the blocks around the first and the second run, such as those of
    `create_selective_checkpoint_contexts`. The second run must save tensors of the same shapes,
    dtypes and devices, unless `determinism_check="none"`, and ends with `early_stop` as soon as all
    that backward needs is there. With `use_reentrant`, backward runs inside backward instead.

    >>> x = votive.tensor([2.0], requires_grad=True)
    >>> votive.utils.checkpoint.checkpoint(lambda t: t * t, x).backward()
    >>> x.grad
    tensor([4.])
    """
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    if use_reentrant and (context_fn is not noop_context_fn or debug):
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if use_reentrant and kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    if debug:
        raise NotImplementedError("checkpoint: debug=True is not supported; use detect_anomaly().")
    if not mode.grad:
        return function(*args, **kwargs)
    if use_reentrant:
        return _Checkpoint.apply(function, preserve_rng_state, kwargs, *args)
    frame = _Frame(function, args, kwargs, default_generator().get_state() if preserve_rng_state else None)
    frame.checks, frame.stops = determinism_check == "default", early_stop
    return frame.run(*context_fn())


class _Frame:
    """Values of one checkpointed call: dropped in forward, refilled by a second forward on
    demand.
    """

    def __init__(
        self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], rng: bytes | None
    ) -> None:
        self.fn, self.args, self.kwargs, self.rng = fn, args, kwargs, rng
        self.autocast, self.first = mode.autocast, _First()
        self.specs: list[Any] = []
        self.values: dict[int, Any] = {}
        self.again: Any = None
        self.checks = self.stops = True

    def run(self, around: Any, again: Any) -> Any:
        """The first run."""
        self.again = again
        self.stops = self.stops if early_stop is None else early_stop
        hooks = mode.saved_hooks
        mode.saved_hooks = (*hooks, (self.pack, self.unpack))
        mode.renew()
        try:
            with around:
                out = self.fn(*self.args, **self.kwargs)
            self.first.ended()
            # Whoever edited the first run looks at the second until its end.
            self.stops = self.stops and not any(region.edits for region in self.first.regions)
            return out
        finally:
            mode.saved_hooks = hooks
            mode.renew()

    def pack(self, t: Tensor) -> int:
        self.specs.append((tuple(t._spec.shape), t.dtype, t.device))
        return len(self.specs) - 1

    def unpack(self, index: int) -> Any:
        if index not in self.values:
            self.refill()
        if index not in self.values:
            raise CheckpointError(
                "checkpoint: the second run saved fewer values than the first; "
                "the function must do the same work each time."
            )
        return self.values.pop(index)

    def refill(self) -> None:
        self.values = {}
        seen = 0

        def keep(t: Tensor) -> Any:
            nonlocal seen
            self.values[seen] = t
            seen += 1
            if self.stops and seen == len(self.specs):
                raise _Stop
            return t

        generator = default_generator()
        current = generator.get_state()
        hooks, grad = mode.saved_hooks, mode.grad
        mode.saved_hooks = (*hooks, (keep, lambda t: t))
        mode.grad = True
        mode.renew()
        try:
            if self.rng is not None:
                generator.set_state(self.rng)
            with contextlib.suppress(_Stop), resumed(self.autocast), self.first.again(), self.again:
                self.fn(*self.args, **self.kwargs)
        finally:
            mode.saved_hooks, mode.grad = hooks, grad
            mode.renew()
            if self.rng is not None:
                generator.set_state(current)
        if seen != len(self.specs):
            raise CheckpointError(
                f"checkpoint: the first run saved {len(self.specs)} values, the second {seen}; "
                "the function must do the same work each time."
            )
        if self.checks:
            self.compare()

    def compare(self) -> None:
        """Whether the second run saved tensors like those of the first."""
        for i, spec in enumerate(self.specs):
            t = self.values[i]
            found = (tuple(t._spec.shape), t.dtype, t.device)
            if found != spec:
                names = ("shape", "dtype", "device")
                before, after = (dict(zip(names, s, strict=True)) for s in (spec, found))
                raise CheckpointError(
                    "checkpoint: Recomputed values for the following tensors have different metadata than during the "
                    f"forward pass.\ntensor at position {i}:\nsaved metadata: {before}\nrecomputed metadata: {after}"
                )


def checkpoint_sequential(
    functions: Sequence[Any], segments: int, input: Tensor, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Checkpoint a chain of functions in `segments` parts.

    >>> x = votive.tensor([1.0], requires_grad=True)
    >>> votive.utils.checkpoint.checkpoint_sequential([lambda t: t * 2, lambda t: t * 3], 2, x)
    tensor([6.], grad_fn=<MulBackward0>)
    """
    functions = list(functions)
    size = max(len(functions) // segments, 1)

    def part(start: int, end: int) -> Any:
        def run(x: Tensor) -> Any:
            for f in functions[start:end]:
                x = f(x)
            return x

        return run

    start = 0
    for _ in range(segments - 1):
        end = start + size
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, **kwargs)
        start = end
    return part(start, len(functions))(input)
