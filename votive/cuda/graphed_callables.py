"""Functions and modules whose forward and backward passes are graphs of their own, for training
with the rest of a program as it is. Knows a module by what it offers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..autograd import grad
from ..autograd.function import Function
from . import _here
from .devices import device_of
from .graph_arguments import checked, fill, rebuilt, tensors
from .graphs import CUDAGraph, graph, graph_pool_handle
from .streams import Stream, StreamContext, current_stream

if TYPE_CHECKING:
    from ..backends.cuda.runtime.allocator import Pool
    from ..nn import Module


class _Recorded:
    """A callable with its inputs, outputs and gradients at fixed addresses."""

    def __init__(self, fn: Any, args: tuple[Any, ...], unused: bool) -> None:
        self.fn, self.args, self.unused = fn, args, unused
        self.user = tensors(args)
        self.is_module = hasattr(fn, "parameters") and hasattr(fn, "forward")
        self.params = list(fn.parameters()) if self.is_module else []
        if self.is_module:
            _check_module(fn)
        self.inputs = [*self.user, *self.params]
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()

    def warm(self) -> None:
        """Run once, so that kernels are compiled before anything is recorded."""
        outs = [o for o in tensors(self.fn(*self.args)) if o.requires_grad]
        wanted = [x for x in self.inputs if x.requires_grad]
        if outs and wanted:
            grad(outs, wanted, [o.detach() for o in outs], allow_unused=self.unused)

    def record_forward(self, pool: Pool | None, stream: Stream) -> None:
        with graph(self.forward_graph, pool=pool, stream=stream):
            self.result = self.fn(*self.args)
        self.outputs = tensors(self.result)

    def record_backward(self, pool: Pool | None, stream: Stream) -> None:
        from ..ops.registry import F

        outs = [o for o in self.outputs if o.requires_grad]
        wanted = [x for x in self.inputs if x.requires_grad]
        self.incoming = [F.empty_like(o.detach()) if o.requires_grad else None for o in self.outputs]
        found: list[Any] = []
        self.backward_graph._repeats = self.forward_graph
        if outs and wanted:
            with graph(self.backward_graph, pool=pool, stream=stream):
                given = [g for g in self.incoming if g is not None]
                found = list(grad(outs, wanted, given, allow_unused=self.unused))
        grads = iter(found)
        self.outgoing = [next(grads, None) if x.requires_grad else None for x in self.inputs]
        self.outputs = [o.detach() for o in self.outputs]
        self.result = rebuilt(self.result, iter(self.outputs))

    def callable(self) -> Callable[..., Any]:
        recorded = self

        class Graphed(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                for mine, new in zip(recorded.user, inputs, strict=False):
                    fill("graphed callable", mine, new)
                recorded.forward_graph.replay()
                return tuple(o.detach() for o in recorded.outputs)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                for mine, new in zip(recorded.incoming, grads, strict=True):
                    if mine is not None:
                        fill("graphed callable", mine, new)
                if any(g is not None for g in recorded.outgoing):
                    recorded.backward_graph.replay()
                # Copies: the next replay writes over what the graph gave.
                return tuple(None if g is None else g.clone() for g in recorded.outgoing)

        def run(*args: Any) -> Any:
            given = checked("graphed callable", args, recorded.args)
            outs = Graphed.apply(*given, *recorded.params)
            return rebuilt(recorded.result, iter(outs if isinstance(outs, tuple) else (outs,)))

        return run


def _check_module(module: Module) -> None:
    for part in module.modules():
        if part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks:
            raise RuntimeError(
                "make_graphed_callables: modules must have no hooks registered at the time they "
                "are passed; register hooks on the graphed modules instead."
            )
    if any(b.requires_grad for b in module.buffers()):
        raise RuntimeError("make_graphed_callables: buffers must not require gradients.")


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Pool | None = None,
) -> Any:
    """Functions or modules (one, or a tuple with a tuple of arguments for each) that replay graphs
    of their forward and backward passes.

    A module is given back itself, with a graph in place of its `forward` while its training mode
    is what it was; a function as a new one. Arguments are tensors of the shapes given here, by
    position; outputs lie in the same memory at each call.

    >>> if votive.cuda.is_available():
    ...     model = votive.nn.Linear(4, 2).to("cuda")
    ...     x = votive.zeros(3, 4, device="cuda")
    ...     model = votive.cuda.make_graphed_callables(model, (x,))
    ...     model(votive.ones(3, 4, device="cuda")).sum().backward()
    """
    _here()
    single = not isinstance(callables, tuple)
    fns = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    if len(fns) != len(samples):
        raise ValueError(f"make_graphed_callables: {len(fns)} callables, but {len(samples)} tuples of arguments.")
    recorded = [
        _Recorded(f, a if isinstance(a, tuple) else (a,), allow_unused_input) for f, a in zip(fns, samples, strict=True)
    ]
    with device_of(next((t for part in recorded for t in part.inputs if t.is_cuda), None)):
        _record(recorded, num_warmup_iters, pool)
    made = [_patched(p.fn, p.callable()) if p.is_module else p.callable() for p in recorded]
    return made[0] if single else tuple(made)


def _record(recorded: list[_Recorded], warmup: int, pool: Pool | None) -> None:
    side, pool = Stream(), pool or graph_pool_handle()
    side.wait_stream(current_stream())
    with StreamContext(side):
        for part in recorded:
            for _ in range(warmup):
                part.warm()
    current_stream().wait_stream(side)
    for part in recorded:
        part.record_forward(pool, side)
    # Backwards in reverse, as they will run: what one lets go of may serve the next.
    for part in reversed(recorded):
        part.record_backward(pool, side)


def _patched(module: Module, graphed: Callable[..., Any]) -> Module:
    plain, training = module.forward, module.training

    def forward(*args: Any, **kwargs: Any) -> Any:
        if module.training == training and not kwargs:
            return graphed(*args)
        return plain(*args, **kwargs)

    module.forward = forward
    return module
