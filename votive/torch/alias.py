"""The modules that programs see as `torch` and below: what overlays define, then votive's names, then refusals."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from .paths import HIDDEN, exists, has_module, overlay, targets, words
from .refusals import Refused, refusal

# What the import system and `inspect` ask a module for is the module's own.
_OWN = words(
    "__path__ __file__ __spec__ __loader__ __package__ __name__ __cached__ __builtins__ __dict__ __class__ __wrapped__ "
    "__warningregistry__ __annotations__"
)


_DICT = vars(types.ModuleType)["__dict__"]


def _own(module: types.ModuleType) -> dict[str, Any]:
    """What a module of the alias holds itself."""
    found: dict[str, Any] = _DICT.__get__(module)
    return found


class Alias(types.ModuleType):
    """One module of the alias. Reading looks through the layers; writing goes to the layer that has the name, so that
    a program that replaces `torch.nn.init.normal_` replaces what votive itself calls.
    """

    def _layers(self) -> list[types.ModuleType]:
        found = _own(self).get("__layers__")
        if found is None:
            path = self.__name__
            found = []
            front = overlay(path)
            if has_module(front):
                found.append(importlib.import_module(front))
            found += [importlib.import_module(t) for t in targets(path) if has_module(t)]
            _own(self)["__layers__"] = found
        return found

    def _layer_of(self, name: str) -> types.ModuleType | None:
        """The layer that has a name, or None."""
        front = overlay(self.__name__)
        for layer in self._layers():
            if layer.__name__ == front:
                if name in layer.__all__:
                    return layer
            elif not _internal(self.__name__, name) and _offers(layer, name):
                return layer
        return None

    def __getattr__(self, name: str) -> Any:
        if name in _OWN:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name == "__all__":
            return self._public()
        if name == "__doc__":
            return None
        layer = self._layer_of(name)
        if layer is not None:
            value = getattr(layer, name)
            # A module of votive is seen as the module of torch at that place.
            if not isinstance(value, types.ModuleType):
                if callable(value):
                    _own(self)[name] = value
                return value
        if (self.__name__, name) == ("torch", "torch"):
            return self
        path = f"{self.__name__}.{name}"
        if (not name.startswith("__") or name in ("__config__", "__future__")) and exists(path):
            return importlib.import_module(path)
        refused = refusal(path)
        if refused is not None:
            if refused.stub:
                made = _own(self)[name] = refused.make_stub(path)
                return made
            raise Refused(refused.text(path), name=name, obj=self)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _OWN and not isinstance(value, types.ModuleType):
            layer = self._layer_of(name)
            if layer is not None:
                setattr(layer, name, value)
                if name not in _own(self):
                    return
        super().__setattr__(name, value)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """What programs that go through a module's names see: all of them, as in torch."""
        found = {}
        for name in dir(self):
            try:
                found[name] = getattr(self, name)
            except (AttributeError, ImportError):
                continue
        return {**found, **{name: value for name, value in _own(self).items() if name != "__layers__"}}

    def _public(self) -> list[str]:
        return [name for name in dir(self) if not name.startswith("_")]

    def __dir__(self) -> list[str]:
        found = {name for name in _own(self) if name != "__layers__"}
        front = overlay(self.__name__)
        for layer in self._layers():
            if layer.__name__ == front:
                found |= set(layer.__all__)
            else:
                found |= {n for n in dir(layer) if not n.startswith("_") and self._shows(layer, n)}
        return sorted(found)

    def _shows(self, layer: types.ModuleType, name: str) -> bool:
        if _internal(self.__name__, name):
            return False
        if isinstance(vars(layer).get(name), types.ModuleType):
            return exists(f"{self.__name__}.{name}")
        # What a layer imports when it is asked is its own.
        return name not in vars(layer) or _offers(layer, name)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return importlib.import_module, (self.__name__,)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r} (votive)>"


def _internal(path: str, name: str) -> bool:
    return path == "torch" and name in HIDDEN


def _offers(layer: types.ModuleType, name: str) -> bool:
    """Whether a module of votive has a name that is its own: not a module or a helper that it merely imports."""
    if name.startswith("__"):
        return False
    try:
        value = getattr(layer, name)
    except AttributeError:
        return False
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith("votive.")
    home = getattr(value, "__module__", None)
    return not (isinstance(home, str) and home.split(".")[0] in ("typing", "collections", "functools", "__future__"))


def forget() -> None:
    """Drop what was remembered about layers, for modules that stay in use after the alias was removed."""
    for module in list(sys.modules.values()):
        if isinstance(module, Alias):
            _own(module).pop("__layers__", None)
