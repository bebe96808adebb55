"""The state that a run starts from, so that it can be run again exactly. Knows no model.

What a run may change is put back: random generators, buffers, gradients, caches among the inputs.
Parameters and inputs that a run overwrites cannot be put back without a copy of each; they are
checked instead, and an error tells when they were changed.
"""

from __future__ import annotations

from typing import Any

import votive

from ..data.randomness import get_random_state, set_random_state
from ..nn import Module
from . import values
from .probe_hub import HUB

# A buffer larger than this is not copied; running statistics are small, tables never change.
_LARGEST = 1 << 20


class Snapshot:
    """What is needed to run `model(*args, **kwargs)` again as if it had never run."""

    def __init__(self, model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.random = get_random_state()
        self.buffers: list[tuple[Any, str, Any, int, Any]] = []
        with votive.no_grad():
            for module in model.modules():
                for name, b in module._buffers.items():
                    if b is not None:
                        small = b.numel() <= _LARGEST
                        copy = b.detach().clone() if small else None
                        self.buffers.append((module, name, b, b._writes, copy))
            self.grads = [(p, p.grad, None if p.grad is None else p.grad.detach().clone()) for p in model.parameters()]
        fixed = [(f"parameter {n}", p) for n, p in model.named_parameters()]
        given = (args, kwargs)
        fixed += [(f"input {'.'.join(map(str, p[1:]))}", t) for p, t in values.tensors(given)]
        self.fixed = [(name, t, t._writes) for name, t in fixed]
        self.caches = [(c, c.mark()) for c in _caches(given)]
        # Whoever counts runs counts this one once, however often it is repeated.
        self.probes = [(p, p.mark()) for p in HUB.probes if not p.inactive]

    def restore(self) -> None:
        """Put everything back."""
        for name, tensor, version in self.fixed:
            if tensor._writes != version:
                raise RuntimeError(
                    f"back: {name} was changed in place by the run, so the run cannot be repeated; give it a copy."
                )
        set_random_state(self.random)
        with votive.no_grad():
            for module, name, buffer, version, copy in self.buffers:
                module._buffers[name] = buffer
                if buffer._writes != version:
                    if copy is None:
                        raise RuntimeError(f"back: the large buffer {name} was changed in place.")
                    buffer.copy_(copy)
            for p, grad, copy in self.grads:
                p.grad = grad
                if grad is not None:
                    grad.copy_(copy)
        self.buffers = [(m, n, b, b._writes, c) for m, n, b, _, c in self.buffers]
        for cache, mark in self.caches:
            cache.rewind(mark)
        for probe, mark in self.probes:
            probe.rewind(mark)


def _caches(value: object) -> list[Any]:
    if hasattr(value, "mark") and hasattr(value, "rewind"):
        return [value]
    return [c for _, part in values.children(value) for c in _caches(part)]
