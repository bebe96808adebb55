"""Another module of a model in the place of one, for swaps by address. Knows no model class."""

from __future__ import annotations

from collections import OrderedDict
from types import MethodType
from typing import Any

from .. import nn
from ..nn import Module
from ..nn.address import Children
from ..nn.fast_path import HOOKS
from . import values
from .address import Pattern
from .probe import unobserved
from .targets import no_match

# In the place of an address: the module gives its input on.
IDENTITY = "identity"


def check_name(model: Module, name: str) -> None:
    """Raise unless a swap can be made with what is called so."""
    names = [n for n, _ in model.named_modules()]
    if name != IDENTITY and (not name or name not in names):
        raise no_match(Pattern(name) if name else Pattern("^"), names)


def replacement_for(model: Module, at: str, name: str) -> Any:
    """The module that stands in the place `at` for the one called `name`, or for "identity".

    None says that nothing need run: the input is given on. It is made anew each time, as what it
    is made of may have changed.

    >>> from votive.glass.module_swap import replacement_for
    >>> net = votive.nn.Sequential(votive.nn.Linear(1, 1), votive.nn.Linear(1, 1))
    >>> replacement_for(net, "0", "1"), replacement_for(net, "0", "identity")
    (Linear(in_features=1, out_features=1, bias=True), None)
    """
    return bypass_for(model, at) if name == IDENTITY else shared_copy(model, at, name)


def shared_copy(model: Module, at: str, other: str) -> Any:
    """A module that computes as `other` does, with all that it holds, in the place `at`.

    It has modules of its own, so that what looks at `other` does not take it for that; and it uses
    the place's part of a key-value cache. Parameters, buffers and hooks are those of `other`, and
    so are the attributes of modules without parts; others have theirs as they are now.

    >>> from votive.glass.module_swap import shared_copy
    >>> net = votive.nn.Sequential(votive.nn.Linear(1, 1), votive.nn.Linear(1, 1))
    >>> made = shared_copy(net, "0", "1")
    >>> made.weight is net[1].weight, made is net[1]
    (True, False)
    """
    place, source = model.get_submodule(at), model.get_submodule(other)
    index = next((m.layer_idx for m in place.modules() if hasattr(m, "layer_idx")), None)
    twins = {id(m): object.__new__(type(m)) for m in source.modules()}
    for module in source.modules():
        twin = twins[id(module)]
        if not module._modules and not hasattr(module, "layer_idx"):
            object.__setattr__(twin, "__dict__", module.__dict__)
            continue
        held = {k: _moved(v, twins) for k, v in module.__dict__.items() if k != "_modules"}
        parts = {k: None if m is None else twins[id(m)] for k, m in module._modules.items()}
        twin.__dict__.update(held, _modules=Children(parts))
        if hasattr(module, "layer_idx") and index is not None:
            twin.layer_idx = index
    return twins[id(source)]


def _moved(value: Any, twins: dict[int, Any]) -> Any:
    """What an attribute is for a twin: modules, their methods and lists of them are its own."""
    if isinstance(value, nn.Module):
        return twins.get(id(value), value)
    if isinstance(value, MethodType):
        return MethodType(value.__func__, _moved(value.__self__, twins))
    if value.__class__ in (list, tuple):
        moved = [_moved(v, twins) for v in value]
        same = all(a is b for a, b in zip(moved, value, strict=True))
        return value if same else value.__class__(moved)
    if value.__class__ is dict:
        held = {k: _moved(v, twins) for k, v in value.items()}
        return value if all(held[k] is value[k] for k in value) else held
    return value


class Bypass(nn.Module):
    """A module that gives its input on, in the form of its output.

    What it stands for runs all the same, unobserved: it may have a part of a key-value cache to fill.

    >>> from votive.glass.module_swap import Bypass
    >>> Bypass(votive.nn.Linear(2, 2))(votive.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: object, **kwargs: object) -> Any:
        with unobserved():
            out = self.module(*args, **kwargs)
        given = args[0] if args else values.first(kwargs)
        path = values.first_path(out)
        if path is None or given is None:
            raise LookupError("skip: the module has no tensor as input and output.")
        return values.put(out, path, given)


def bypass_for(model: Module, at: str) -> Bypass | None:
    """What lets a module be skipped that has a part of a cache; None for one that has not."""
    place = dict(model.named_modules()).get(at)
    if place is None or not any(hasattr(m, "layer_idx") for m in place.modules()):
        return None
    made = shared_copy(model, at, at)
    # What runs before the module has run already, and what runs behind it is skipped as it is.
    made.__dict__.update((name, OrderedDict()) for name in HOOKS)
    return Bypass(made)
