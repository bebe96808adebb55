"""Forward-mode differentiation: tensors that carry tangents. The functions themselves are in `votive.func.forward`,
which lies above this layer and is imported when one is used.
"""

from __future__ import annotations

from importlib import import_module

_NAMES = ("UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual")
__all__ = list(_NAMES)


def __getattr__(name: str) -> object:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module("...func.forward", __name__), name)
    globals()[name] = found
    return found
