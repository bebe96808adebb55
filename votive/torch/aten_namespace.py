"""`torch.ops.aten`: votive's operators under torch's names, whatever overload is asked for."""

from __future__ import annotations

from functools import cache
from typing import Any

import votive

# Where ATen's name is not that of the function.
_RENAMED = {
    "_log_softmax": "log_softmax",
    "_pin_memory": "pin_memory",
    "_softmax": "softmax",
    "_to_copy": "clone",
    "_unsafe_view": "reshape",
    "alias": "positive",
}


# Names that libraries look up when they are imported; what they stand for is done otherwise here.
_ABSENT = frozenset({"_sparse_mm_reduce_impl", "_sparse_addmm"})


def _refused(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.ops.aten.{name}: votive has no such operator; use the functions of torch.")

    return refuse


def _slice(self: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return self[(*[slice(None)] * (dim % self.ndim), slice(start, end, step))]


def _index(self: Any, indices: Any) -> Any:
    return self[tuple(slice(None) if i is None else i for i in indices)]


_INDEXING = {"slice": _slice, "index": _index}


class Packet:
    """One operator of ATen. Its overloads (`.default`, `.Tensor`, `.dim_IntList`) are the same function here."""

    def __init__(self, name: str, fn: Any) -> None:
        self.__name__, self._fn = name, fn
        self._forms: dict[str, Overload] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fn(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._forms:
            self._forms[name] = Overload(self, name)
        return self._forms[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Packet) and other.__name__ == self.__name__

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class Overload:
    """One form of an operator of ATen: `torch.ops.aten.add.Tensor`."""

    namespace = "aten"

    def __init__(self, packet: Packet, form: str) -> None:
        self.overloadpacket, self._overloadname = packet, form
        self._opname = packet.__name__
        self.__name__ = f"{packet.__name__}.{form}"

    def name(self) -> str:
        """The name in a schema: `aten::add.Tensor`."""
        return f"aten::{self._opname}" + ("" if self._overloadname == "default" else f".{self._overloadname}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Overload) and other.__name__ == self.__name__

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


@cache
def packet(name: str) -> Packet | None:
    """The operator of a name: of votive, of `nn.functional`, or a method that changes a tensor in place."""
    from . import overlays

    wanted = _RENAMED.get(name, name)
    if wanted == "clone" and name == "_to_copy":
        return Packet(name, lambda x, **options: x.to(copy=True, **{k: v for k, v in options.items() if v is not None}))
    if name in _INDEXING:
        return Packet(name, _INDEXING[name])
    if name in _ABSENT:
        return Packet(name, _refused(name))
    for place in (votive, votive.nn.functional, votive.linalg, votive.special, overlays, votive.Tensor):
        found = getattr(place, wanted, None)
        if callable(found) and not isinstance(found, type):
            return Packet(name, found)
    return None
