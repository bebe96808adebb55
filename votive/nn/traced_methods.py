"""Methods of modules, and clipping of gradients, while a program is traced: what they read is guarded, what they leave
behind is taken note of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..compiler.guards import Place
from ..compiler.watch import FUNCTIONS, METHODS, Watch
from ..core.words import words
from .module import Module
from .utils import clip_grad, convert_parameters

_READ = set(
    words(
        "parameters named_parameters buffers named_buffers children named_children modules named_modules "
        "get_submodule get_parameter get_buffer"
    )
)
_CHANGE = set(
    words(
        "requires_grad_ to to_empty type float double half bfloat16 cpu cuda apply load_state_dict register_parameter "
        "register_buffer register_module add_module set_submodule register_forward_hook register_forward_pre_hook "
        "register_full_backward_hook register_backward_hook register_full_backward_pre_hook compile share_memory"
    )
)


def _guard_tree(watch: Watch, module: Module, tables: tuple[str, ...] = ("_parameters", "_buffers")) -> None:
    """Let a graph hold only while a module has the same modules below it, and tensors of the same kind."""
    if not watch.is_outer(module):
        return
    for table in (*tables, "_modules"):
        held = module.__dict__[table]
        watch.guards.keys(held)
        for key, value in held.items():
            watch.reached(value, Place("attribute", held, key, module))
    for child in module._modules.values():
        if child is not None:
            _guard_tree(watch, child, tables)


def _trained(watch: Watch, module: Module, training: bool) -> bool:
    """Whether all modules are in a mode already, which is guarded."""
    _guard_tree(watch, module, ())
    for m in module.modules():
        if m.training is not training:
            return False
        watch.guards.equal(Place("attribute", m.__dict__, "training", m), training)
    return True


def traced_method(watch: Watch, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of a module."""
    module, fn = method.__self__, method.__func__
    name = fn.__name__
    if not (fn.__module__ or "").startswith(f"{__name__.split('.')[0]}.nn") or isinstance(module, type):
        return NotImplemented
    if name in _READ:
        _guard_tree(watch, module)
        found = method(*args, **kwargs)
        return _again(list(found)) if isinstance(found, Iterator) else found
    if name == "zero_grad" and fn is Module.zero_grad:
        from ..optim.compiled import without_gradients

        _guard_tree(watch, module, ("_parameters",))
        return without_gradients(watch, list(module.parameters()), *args, **kwargs)
    if fn in (Module.train, Module.eval) and watch.is_outer(module):
        training = False if name == "eval" else args[0] if args else kwargs.get("mode", True)
        if isinstance(training, bool) and _trained(watch, module, training):
            return module
        watch.stop(f"it calls {name}() of a {type(module).__name__} that is in another mode")
    elif name in _CHANGE and watch.was_there(module):
        watch.stop(f"it calls {name}() of a {type(module).__name__} that was there before")
    return NotImplemented


def _again(found: list[Any]) -> Iterator[Any]:
    yield from found


def traced_clip(watch: Watch, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Functions that read and write the gradients of parameters."""
    given = args[0] if args else kwargs.pop("parameters")
    listed = clip_grad._listed(given)
    for p in listed:
        if not watch.effects.slot(p):
            watch.stop(f"{fn.__name__} is given a tensor that is not known")
            break
    return fn(listed if isinstance(given, Iterator) and listed else given, *args[1:], **kwargs)


def refused(watch: Watch, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Functions that give tensors other memory."""
    watch.stop(f"it calls {fn.__name__}()")
    return fn(*args, **kwargs)


METHODS[Module] = traced_method
FUNCTIONS[convert_parameters.vector_to_parameters] = refused
for _fn in (
    clip_grad.clip_grad_norm_,
    clip_grad.clip_grad_norm,
    clip_grad.clip_grad_value_,
    clip_grad.clip_grads_with_norm_,
):
    FUNCTIONS[_fn] = traced_clip
