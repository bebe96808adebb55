"""Names at the top of torch that only torch has. `__all__` of an overlay is what it puts in front of votive's."""

from __future__ import annotations

from typing import Any

import votive

from ...amp import GradScaler
from ...core import dtype as dt
from ...core.errors import OutOfMemoryError
from ...core.memory_format import contiguous_format as legacy_contiguous_format
from ...futures import Future
from ...jit import ScriptModule, fork, wait
from ...overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from ...surface.pending import negated_view as _neg_view
from .. import aten, aten_layers, aten_losses, process, symbolic
from ..checkpoint_reading import load
from ..checkpoint_writing import save
from ..checks import CHECKS
from ..custom_ops import ops
from ..foreach import FOREACH
from ..named_types import TYPES
from ..storage import UntypedStorage
from ..streams import Event, Stream
from ..tags import Tag
from ..tensor_methods import REMOVED
from ..tensor_types import NAMES, set_default_tensor_type, tensor_type
from ..typed_storage import TypedStorage, legacy
from ..version import VERSION, TorchVersion

__version__ = TorchVersion(VERSION)
Storage = legacy("Float", dt.float32)
StorageBase = UntypedStorage
AcceleratorError = type("AcceleratorError", (RuntimeError,), {"__module__": "torch"})
bit = TYPES["uint1"]
TYPE_CHECKING = False

for _name in NAMES:
    globals()[f"{_name}Tensor"] = tensor_type(_name)
_STORAGES = {**NAMES, "ComplexFloat": dt.complex64, "ComplexDouble": dt.complex128}
for _name, _kind in _STORAGES.items():
    globals()[f"{_name}Storage"] = legacy(_name, _kind)
_FUNCTIONS = {
    name: value
    for module in (aten, aten_layers, aten_losses, process, symbolic)
    for name, value in vars(module).items()
    if not name.startswith("_") and (name.startswith("has_") or getattr(value, "__module__", "") == module.__name__)
}
_FUNCTIONS = {**_FUNCTIONS, **CHECKS, **FOREACH}
globals().update(_FUNCTIONS)
grid_sampler_2d = grid_sampler_3d = aten_layers.grid_sampler
globals().update(REMOVED)
globals().update(process.BY_DEVICE)
# A dtype that votive has by now is votive's.
_NAMED = {name: kind for name, kind in TYPES.items() if not hasattr(votive, name)}
globals().update(_NAMED)


def is_tensor(obj: Any, /) -> bool:
    """Whether an object is a tensor: no object answers this itself."""
    return isinstance(obj, votive.Tensor)


def storages_by_dtype(dtype: dt.dtype) -> Any:
    """The legacy class of storages of a dtype."""
    found = {kind: name for name, kind in _STORAGES.items()}.get(dtype)
    return TypedStorage if found is None else globals()[f"{found}Storage"]


def thread_safe_generator() -> None:
    """The generator of a loader's thread; loaders have processes here, so there is none."""


def typename(obj: object, /) -> str:
    """The name of a value's type, with the dtype's legacy name for tensors."""
    if isinstance(obj, votive.Tensor):
        return str(obj.type())
    kind = type(obj)
    named = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else kind
    module = getattr(named, "__module__", "") or ""
    name = getattr(named, "__qualname__", kind.__qualname__)
    return name if module in ("builtins", "") else f"{module}.{name}"


__all__ = [
    "is_tensor",
    "AcceleratorError",
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Event",
    "Future",
    "GradScaler",
    "OutOfMemoryError",
    "ScriptModule",
    "Storage",
    "StorageBase",
    "Stream",
    "TYPE_CHECKING",
    "TypedStorage",
    "UntypedStorage",
    "__version__",
    "bit",
    "legacy_contiguous_format",
    "load",
    "ops",
    "save",
    "set_default_tensor_type",
    "thread_safe_generator",
    "typename",
]
__all__ += [f"{name}Tensor" for name in NAMES] + [f"{name}Storage" for name in _STORAGES]
__all__ += ["Tag", "fork", "wait", "_neg_view", *_FUNCTIONS, "grid_sampler_2d", "grid_sampler_3d"]
__all__ += [*REMOVED, *process.BY_DEVICE, *_NAMED]
