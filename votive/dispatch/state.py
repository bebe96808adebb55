"""What every call looks at, and the classes that the layers above plug in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..tensor import Tensor


class _State:
    """What every call looks at: whether anybody listens, and the classes from the layers above."""

    # Calls take the general way: somebody observes, or inference mode or autocast is on in some thread.
    unusual: bool = False
    observers: tuple[Any, ...] = ()
    # Those who stand around calls of modules. `compiled_as()` of each says what a compiled program must show it, as a
    # value that can be hashed; None where it must see the run itself.
    lookers: tuple[Any, ...] = ()
    inference: int = 0  # how many threads are in inference mode
    autocast: int = 0  # how many threads are under autocast
    function_modes: int = 0  # how many modes that override functions are on, in all threads
    subclasses: bool = False  # whether some class of tensors answers calls itself
    # (operator, arguments, in place): the result of a call on tensors that stand for others, as in `vmap`, or
    # NotImplemented; None until there are such.
    interpret: Any = None
    # (outputs, inputs, gradients, create_graph, retain): gradients by such tensors; and (function class, arguments):
    # what becomes of a custom function of them.
    pull: Any = None
    custom: Any = None
    levels: int = 0  # how many transformations that must see every call are on
    # Sees every step of a backward pass: `before(node, grads)`, `after(node, results, grads)`.
    watcher: Any = None
    tensor: type[Tensor]
    graph: Any = None  # the module that records calls
    # (operator, arguments) -> (plan, arguments), in place of finding a plan: while nothing is computed, only sizes are.
    symbolic: Any = None
    # (plan, cause): raises the error that users see when memory or 64 bits did not suffice.
    failed: Any = None


state = _State()
