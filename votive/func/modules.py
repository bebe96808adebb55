"""Modules as functions of their parameters, and many modules as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..nn.utils import stateless
from ..ops.registry import F

if TYPE_CHECKING:
    from ..nn import Module, ModuleList
    from ..tensor import Tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module as if it had the given parameters and buffers, which may come in several dicts.

    >>> layer = votive.nn.Linear(1, 1)
    >>> given = {"weight": votive.ones(1, 1), "bias": votive.zeros(1)}
    >>> votive.func.functional_call(layer, given, votive.tensor([5.0]))
    tensor([5.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        merged = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(d, dict) for d in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [k for d in parameter_and_buffer_dicts for k in d]
        repeated = sorted({k for k in names if names.count(k) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        merged = {k: v for d in parameter_and_buffer_dicts for k, v in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return stateless.functional_call(module, merged, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module] | ModuleList) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and buffers of modules of one kind, stacked: what `vmap` over an ensemble takes.

    >>> parameters, buffers = votive.func.stack_module_state([votive.nn.Linear(2, 3) for _ in range(4)])
    >>> parameters["weight"].shape
    votive.Size([4, 3, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (_stacked([dict(m.named_parameters()) for m in models]), _stacked([dict(m.named_buffers()) for m in models]))


def _stacked(tables: list[dict[str, Any]]) -> dict[str, Any]:
    found = {}
    for name in tables[0]:
        tensors = [t[name] for t in tables]
        if all(t.is_leaf for t in tensors):
            joined = F.stack([t.detach() for t in tensors])
            found[name] = joined.requires_grad_(tensors[0].requires_grad) if joined.dtype.is_inexact else joined
        else:
            found[name] = F.stack(tensors)
    return found


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: here no compiler needs mutations and views taken out of a program to transform it.

    >>> votive.func.functionalize(lambda x: x.clone().add_(1))(votive.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program f\n"
            "     remove='mutations_and_views': both inplace and out= operators, and views, will be removed"
        )
    return func


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every batch norm below a module use the batch itself and keep no statistics, which `vmap` cannot write.

    >>> net = votive.func.replace_all_batch_norm_modules_(votive.nn.Sequential(votive.nn.BatchNorm1d(2)))
    >>> net[0].running_mean is None
    True
    """
    for module in root.modules():
        if hasattr(module, "track_running_stats") and "running_mean" in module._buffers:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """The tensor inside one that a transformation has wrapped, for looking at it; all the way, or one level.

    >>> votive.func.vmap(lambda x: (print(votive.func.debug_unwrap(x)), x)[1])(votive.ones(2))
    tensor([1., 1.])
    tensor([1., 1.])
    """
    while getattr(tensor, "_level", 0):
        tensor = tensor._value
        if not recurse:
            break
    return tensor
