"""`torch.utils.module_tracker`: which modules are being called."""

from __future__ import annotations

from typing import Any

from ....nn import Module
from ....nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """In `with ModuleTracker() as tracker:`, `tracker.parents` are the paths of the modules that are being called."""

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: dict[int, str] = {}
        self._stack: list[str] = []

    @property
    def is_bw(self) -> bool:
        """Whether gradients are being computed; only forward calls are tracked."""
        return False

    def _name(self, module: Module) -> str:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, inner in module.named_modules():
                self._names.setdefault(id(inner), f"{root}.{name}" if name else root)
        return self._names[id(module)]

    def _enter(self, module: Module, inputs: Any) -> None:
        name = self._name(module)
        self._stack.append(name)
        self.parents.add(name)

    def _leave(self, module: Module, inputs: Any, output: Any) -> None:
        name = self._stack.pop()
        if name not in self._stack:
            self.parents.discard(name)

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
