"""Copies of a module on several devices whose parameters belong to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..module import Module
from .comm import as_device


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A copy of a module per device, with parameters that are copies in the graph: what they get as gradients arrives
    at the parameters of the one module. `detach` leaves that out.

    >>> layer = votive.nn.Linear(2, 1)
    >>> a, b = votive.nn.parallel.replicate(layer, ["cpu", "cpu"])
    >>> (a(votive.ones(2)) + b(votive.ones(2))).backward()
    >>> layer.bias.grad
    tensor([2.])
    """
    return [_copy(network, as_device(d), detach, {}) for d in devices]


def _copy(module: Module, device: Any, detach: bool, made: dict[int, Module]) -> Module:
    if id(module) in made:
        return made[id(module)]
    twin = module._replicate_for_data_parallel() if hasattr(module, "_replicate_for_data_parallel") else _bare(module)
    made[id(module)] = twin
    for name, child in module._modules.items():
        twin._modules[name] = None if child is None else _copy(child, device, detach, made)
    for name, parameter in module._parameters.items():
        if parameter is None:
            twin._parameters[name] = None
            continue
        # A parameter would be a leaf; a copy in the graph is an attribute beside the table.
        copied = (parameter.detach() if detach else parameter * 1).to(device)
        del twin._parameters[name]
        twin.__dict__[name] = copied
    for name, buffer in module._buffers.items():
        twin._buffers[name] = None if buffer is None else buffer.to(device)
    return twin


def _bare(module: Module) -> Module:
    """A module with tables of its own over the same things."""
    twin = module.__new__(type(module))
    twin.__dict__ = {
        key: value.copy() if key in ("_parameters", "_buffers", "_modules") else value
        for key, value in module.__dict__.items()
    }
    return twin
