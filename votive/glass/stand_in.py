"""Another module of a model in the place of one, for swaps by address. Knows no model class."""

from __future__ import annotations

import copy
import weakref
from typing import Any

from .. import nn
from . import values
from .address import Pattern
from .probe import unheard
from .targets import no_match

# In the place of an address: the module gives its input on.
IDENTITY = "identity"
_made: weakref.WeakKeyDictionary[Any, dict[Any, tuple[Any, Any]]] = weakref.WeakKeyDictionary()


def check_name(model: Any, name: str) -> None:
    """Raise unless a swap can be made with what is called so."""
    names = [n for n, _ in model.named_modules()]
    if name != IDENTITY and (not name or name not in names):
        raise no_match(Pattern(name) if name else Pattern("^"), names)


def instead_of(model: Any, at: str, name: str) -> Any:
    """The module that stands in the place `at` for the one called `name`, or for "identity".

    None says that nothing need run: the input is given on. It is made once for each place.

    >>> from votive.glass.stand_in import instead_of
    >>> net = votive.nn.Sequential(votive.nn.Linear(1, 1), votive.nn.Linear(1, 1))
    >>> instead_of(net, "0", "1") is instead_of(net, "0", "1"), instead_of(net, "0", "identity")
    (True, None)
    """
    source = model.get_submodule(at if name == IDENTITY else name)
    # What it was made of must still be there.
    now = tuple(id(x) for m in source.modules() for x in (m, *m._parameters.values()))
    kept = _made.setdefault(model, {})
    known = kept.get((at, name))
    if known is None or known[0] != now:
        made = passing(model, at) if name == IDENTITY else stand_in(model, at, name)
        kept[at, name] = known = (now, made)
    return known[1]


def stand_in(model: Any, at: str, other: str) -> Any:
    """A module that computes as `other` does, with its weights, in the place `at`.

    It is a copy that shares all parameters, so that what looks at `other` does not take it for
    that; and it uses the place's part of a key-value cache.

    >>> from votive.glass.stand_in import stand_in
    >>> net = votive.nn.Sequential(votive.nn.Linear(1, 1), votive.nn.Linear(1, 1))
    >>> made = stand_in(net, "0", "1")
    >>> made.weight is net[1].weight, made is net[1]
    (True, False)
    """
    place, source = model.get_submodule(at), model.get_submodule(other)
    shared: dict[int, Any] = {}
    for module in source.modules():
        for t in (*module._parameters.values(), *module._buffers.values()):
            if t is not None:
                shared[id(t)] = t
        config = module.__dict__.get("config")
        if config is not None:
            shared[id(config)] = config
        # What looks at the original does not look at the copy.
        for name, hooks in module.__dict__.items():
            if name.endswith("_hooks") and isinstance(hooks, dict):
                shared[id(hooks)] = type(hooks)()
    made = copy.deepcopy(source, shared)
    index = next((m.layer_idx for m in place.modules() if hasattr(m, "layer_idx")), None)
    for module in made.modules():
        if hasattr(module, "layer_idx") and index is not None:
            module.layer_idx = index
    return made


class Passing(nn.Module):
    """A module that gives its input on, in the form of its output.

    What it stands for runs all the same, unheard: it may have a part of a key-value cache to fill.

    >>> from votive.glass.stand_in import Passing
    >>> Passing(votive.nn.Linear(2, 2))(votive.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with unheard():
            out = self.module(*args, **kwargs)
        given = args[0] if args else values.first(kwargs)
        path = values.first_path(out)
        if path is None or given is None:
            raise LookupError("skip: the module has no tensor as input and output.")
        return values.put(out, path, given)


def passing(model: Any, at: str) -> Passing | None:
    """What lets a module be skipped that has a part of a cache; None for one that has not."""
    place = dict(model.named_modules()).get(at)
    if place is None or not any(hasattr(m, "layer_idx") for m in place.modules()):
        return None
    return Passing(stand_in(model, at, at))
