"""Backward hooks of a module: nodes at its inputs and outputs that see the gradients pass.

Knows tensors and the graph; knows a module only as the first argument of a hook.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..autograd.function import Function
from ..autograd.grad_hooks import checked
from ..core.mode import mode
from ..tensor import Tensor
from .handle import Hook

if TYPE_CHECKING:
    from ..autograd.graph import Node
    from .module import Module

Grads = tuple[Any, ...]


class Gate(Function):
    """Passes tensors through; its node is where the gradients of a module's border are seen."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Grads:
        return grads


class BackwardHook:
    """Runs full backward hooks and pre-hooks for one call of a module."""

    def __init__(self, module: Module, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.inputs: list[int] | None = None  # positions of tensors among the arguments
        self.n_inputs = 0
        self.outputs: list[int] = []
        self.grad_output: Grads | None = None

    def enter(self, args: Grads) -> Grads:
        """The arguments, led through a gate."""
        self.n_inputs = len(args)
        args, self.inputs, node = _through_gate(args)
        if node is not None:
            node.register_hook(self._at_inputs)
        return args

    def leave(self, result: Any) -> Any:
        """The result, led through a gate."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=5,
            )
        values = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(values)
        values, outputs, node = _through_gate(values)
        self.outputs = outputs or []
        if node is not None:
            # Before the node runs, because then outputs without a gradient still show as None.
            node.register_prehook(self._at_outputs)
        return values if isinstance(result, tuple) else values[0]

    def _at_outputs(self, grads: Grads) -> Grads:
        given = _spread(self.outputs, grads, self.n_outputs)
        for hook in self.pre_hooks:
            answer = hook(self.module, given)
            replaced = _replacement(hook, answer, given, "Backward pre hook", "output")
            given = given if replaced is None else replaced
        self.grad_output = given
        if self.inputs is None:
            self._without_inputs(given)
        return tuple([given[i] for i in self.outputs])

    def _without_inputs(self, grad_output: Grads) -> None:
        """No input needs a gradient, so its gate will never be reached: run the hooks now."""
        if self.hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module "
                "outputs since no inputs require gradients.",
                stacklevel=5,
            )
        self.grad_output = None
        for hook in self.hooks:
            replaced = hook(self.module, (None,) * self.n_inputs, grad_output)
            if replaced is not None and any(g is not None for g in replaced):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )

    def _at_inputs(self, grads: Grads, _: Grads) -> Grads | None:
        if self.grad_output is None:
            # The gradient came to the input without passing the output, as in double backward.
            return None
        assert self.inputs is not None
        given = _spread(self.inputs, grads, self.n_inputs)
        for hook in self.hooks:
            answer = hook(self.module, given, self.grad_output)
            replaced = _replacement(hook, answer, given, "Backward hook", "input")
            given = given if replaced is None else replaced
        self.grad_output = None
        return tuple([given[i] for i in self.inputs])


def _through_gate(values: Grads) -> tuple[Grads, list[int] | None, Node | None]:
    """The values with tensors led through a gate, their positions, and the gate's node.

    If none needs a gradient there is no gate, and no positions are given.
    """
    where = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not (mode.grad and any(values[i].requires_grad for i in where)):
        return values, None, None
    passed = Gate.apply(*[values[i] for i in where])
    node = next(t.grad_fn for t in passed if t.requires_grad)
    new = list(values)
    for i, t in zip(where, passed, strict=True):
        new[i] = t
    return (tuple(new) if type(values) is tuple else type(values)(*new)), where, node


def _spread(where: list[int], grads: Grads, n: int) -> Grads:
    """Gradients at their positions among all values, None elsewhere."""
    out: list[Any] = [None] * n
    for i, g in zip(where, grads, strict=True):
        out[i] = g
    return tuple(out)


def _replacement(hook: Hook, answer: Any, given: Grads, who: str, what: str) -> Grads | None:
    if answer is None:
        return None
    if not isinstance(answer, (tuple, list)):
        answer = (answer,)
    if len(answer) != len(given):
        raise RuntimeError(
            f"{who} returned an invalid number of grad_{what}, got {len(answer)}, but expected {len(given)}"
        )
    return tuple([checked(hook, old, new) for old, new in zip(given, answer, strict=True)])


# --- the older hooks, which look at one node only -------------------------------------------------


def register_partial(module: Module, hooks: list[Hook], args: tuple[Any, ...], result: Any) -> None:
    """Hang hooks on the node that made the first tensor of the result."""
    found = result
    while not isinstance(found, Tensor):
        if isinstance(found, dict):
            found = next(v for v in found.values() if isinstance(v, Tensor))
        else:
            found = found[0]
    node = found.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda gi, go, hook=hook: hook(module, gi, go))
    missing = _not_seen(args, result, node)
    if missing:
        warnings.warn(
            f"register_backward_hook: {missing}; this hook will not see all gradients. Please use "
            "register_full_backward_hook.",
            FutureWarning,
            stacklevel=5,
        )


def _not_seen(args: tuple[Any, ...], result: object, node: Node) -> str | None:
    """Why the node of the result alone does not see all gradients, or None if it does."""
    results = (result,) if isinstance(result, Tensor) else result
    if not (isinstance(results, tuple) and all(isinstance(r, Tensor) for r in results)):
        return "the module does not return a Tensor or a tuple of Tensors"
    if not all(isinstance(a, Tensor) for a in args):
        return "the module takes arguments that are not Tensors"
    if len({id(r.grad_fn) for r in results if r.grad_fn is not None}) > 1:
        return "the outputs come from different operations"
    before = {id(a.grad_fn) for a in args if a.grad_fn is not None}
    if before != {id(n) for n, _ in node.next_functions}:
        return "forward consists of several operations"
    return None
