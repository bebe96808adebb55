"""`torch.sparse`: the constructors of old programs, `torch.sparse.FloatTensor(indices, values, size)`."""

from __future__ import annotations

from typing import Any

import votive

from ..tensor_types import NAMES, tensortype

__all__ = [f"{name}Tensor" for name in NAMES if name != "Bool"]


class sparsetype(tensortype):
    """The class of legacy constructors of sparse tensors: indices, values and a size, or a size."""

    is_sparse = True
    layout = votive.sparse_coo

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        if not args:
            return votive.sparse_coo_tensor((0,), dtype=cls.dtype, device=device)
        if len(args) <= 3 and isinstance(args[0], votive.Tensor) and len(args) > 1:
            at, values = args[:2]
            if values.dtype is not cls.dtype:
                raise TypeError(f"torch.sparse.{cls.__name__}: expected values of {cls.dtype}, got {values.dtype}.")
            return votive.sparse_coo_tensor(at, values, args[2] if len(args) == 3 else None, device=device)
        size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        if isinstance(size, votive.Tensor):
            return size.detach()
        return votive.sparse_coo_tensor(tuple(size), dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, votive.Tensor) and instance.is_sparse and instance.dtype is cls.dtype


def __getattr__(name: str) -> Any:
    kind = NAMES.get(name.removesuffix("Tensor"))
    if name in __all__ and kind is not None:
        made = sparsetype(name, (), {"dtype": kind, "_where": "cpu", "__module__": "torch.sparse"})
        globals()[name] = made
        return made
    raise AttributeError(f"module 'torch.sparse' has no attribute {name!r}")
