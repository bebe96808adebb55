"""What is compared with torch: votive, or torch itself as a self-check. Knows no operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import torch

# dtypes that NumPy lacks: the same bits as an integer, and the NumPy type registered by ml_dtypes.
_FOREIGN = {
    torch.bfloat16: (torch.int16, ml_dtypes.bfloat16),
    torch.float8_e4m3fn: (torch.uint8, ml_dtypes.float8_e4m3fn),
    torch.float8_e5m2: (torch.uint8, ml_dtypes.float8_e5m2),
    torch.float8_e4m3fnuz: (torch.uint8, ml_dtypes.float8_e4m3fnuz),
    torch.float8_e5m2fnuz: (torch.uint8, ml_dtypes.float8_e5m2fnuz),
    torch.float8_e8m0fnu: (torch.uint8, ml_dtypes.float8_e8m0fnu),
}
_FOREIGN_BACK = {np.dtype(array): (bits, dtype) for dtype, (bits, array) in _FOREIGN.items()}


class Unsupported(Exception):
    """Something without meaning outside torch: sparse layouts, quantized values, complex halves."""


def torch_to_numpy(t: torch.Tensor) -> np.ndarray:
    """The tensor's memory as an array; a copy only of lazy tensors (conj, neg, zero)."""
    if t.layout != torch.strided or t.is_quantized or t.is_nested or t.dtype == torch.complex32:
        raise Unsupported(f"{t.layout} {t.dtype} tensor")
    if t.dtype in _FOREIGN:
        bits, array = _FOREIGN[t.dtype]
        return t.detach().view(bits).numpy(force=True).view(array)
    return t.numpy(force=True)


def torch_from_numpy(a: np.ndarray) -> torch.Tensor:
    """The inverse of `torch_to_numpy`: the array's memory as a tensor."""
    if a.dtype in _FOREIGN_BACK:
        bits, dtype = _FOREIGN_BACK[a.dtype]
        return torch.from_numpy(a.view(str(bits).removeprefix("torch."))).view(dtype)
    return torch.from_numpy(a)


@dataclass(frozen=True)
class Subject:
    """A torch-like namespace and its two conversions."""

    name: str
    root: Any
    from_numpy: Callable[[np.ndarray], Any]
    to_numpy: Callable[[Any], np.ndarray]

    def find(self, path: str) -> Any | None:
        """The object at a dotted path below the namespace, None where a part of it is missing."""
        found = self.root
        for part in path.split("."):
            found = getattr(found, part, None)
            if found is None:
                return None
        return found

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self.root.Tensor)


class _Overlay:
    """A namespace that answers some dotted paths with replacements and the rest from its target."""

    def __init__(self, target: Any, replaced: Mapping[str, Any], prefix: str = "") -> None:
        self._target = target
        self._replaced = replaced
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        path = self._prefix + name
        if path in self._replaced:
            return self._replaced[path]
        value = getattr(self._target, name)
        return _Overlay(value, self._replaced, path + ".") if type(value) is ModuleType else value


def votive_subject() -> Subject:
    """votive itself; raises ImportError where it cannot be imported."""
    import votive

    return Subject("votive", votive, votive.from_numpy, lambda t: t.numpy(force=True))


def torch_subject(replaced: Mapping[str, Any] | None = None) -> Subject:
    """torch in votive's place, with some functions replaced: the harness must find just those."""
    root = _Overlay(torch, replaced) if replaced else torch
    return Subject("torch", root, torch_from_numpy, torch_to_numpy)
