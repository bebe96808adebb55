"""Another module of a model in the place of one, for swaps. Knows no model class."""

from __future__ import annotations

import copy
from typing import Any

from .. import nn
from ..glass import values


def stand_in(model: Any, at: str, other: str) -> Any:
    """A module that computes as `other` does, with its weights, in the place `at`.

    It is a copy that shares all parameters, so that what looks at `other` does not take it for
    that; and it uses the place's part of a key-value cache.

    >>> from votive.studio.stand_in import stand_in
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
    made.__dict__["stands_for"] = other
    return made


class Passing(nn.Module):
    """A module that gives its input on, in the form of its output.

    What it stands for runs all the same, unheard: it may have a part of a key-value cache to fill.

    >>> from votive.studio.stand_in import Passing
    >>> Passing(votive.nn.Linear(2, 2))(votive.ones(2))
    tensor([1., 1.])
    """

    stands_for = "identity"

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
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
