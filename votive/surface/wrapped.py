"""The base of tensors that are made of other tensors: sparse, masked, nested. Knows what they share: that there is no
single block of memory behind them, and that a table of rules says how they compute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from ..core.device import device as Device
from ..core.dtype import dtype as Dtype
from ..core.errors import UnsupportedError
from ..core.mode import mode
from ..dispatch import disabled
from ..dispatch.wrapped import OwnSpec, install
from ..ops.operator import Composite, Operator
from ..tensor import Tensor

if TYPE_CHECKING:
    from ..core.device import DeviceLike

Rule = Callable[..., Any]


class NoData:
    """Stands where other tensors have their memory, and says so when it is looked at."""

    __slots__ = ("owner",)

    def __init__(self, owner: type[Wrapped]) -> None:
        self.owner = owner

    def __getattr__(self, name: str) -> NoReturn:
        raise UnsupportedError(f"a {self.owner._kind} tensor has no memory of its own; {self.owner._advice}")


class Wrapped(Tensor):
    """A tensor that is made of other tensors."""

    # Results have the class that rules give them.
    __torch_function__ = staticmethod(disabled)
    _kind: ClassVar[str] = "wrapped"
    _advice: ClassVar[str] = "use .to_dense()."
    _precedence: ClassVar[int] = 0
    # Attributes that hold the tensors it is made of, where rules read nothing else that may change: a compiled
    # program knows it by them.
    _traced: ClassVar[tuple[str, ...]] = ()
    # By the name of what is called: a function of the arguments.
    _rules: ClassVar[dict[str, Rule]] = {}
    # Functions written with others, which may run as they are written.
    _as_written: ClassVar[frozenset[str]] = frozenset()

    def _begin(self, shape: tuple[int, ...], dtype: Dtype, device: Device) -> None:
        """The fields that every tensor has."""
        self._spec = OwnSpec(shape, dtype, device)
        self._data = NoData(type(self))
        self._rg = False
        if mode.inference:
            self._inference = True

    def _parts(self) -> tuple[Tensor, ...]:
        """The tensors that this one is made of."""
        raise NotImplementedError

    @classmethod
    def _describe(cls, args: tuple[Any, ...]) -> str:
        return cls._kind

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run what was called by its rule, or say that there is none."""
        if isinstance(op, Composite) and op.namespaces and op.namespaces[0]:
            name = f"{op.namespaces[0]}.{name}"
        rule = cls._rules.get(name)
        if rule is not None:
            return rule(*args, **kwargs)
        if name in cls._as_written and isinstance(op, Composite):
            return op.fn(*args, **kwargs)
        raise UnsupportedError(
            f"{name.rpartition('.')[2].lstrip('_')}: not implemented for {cls._describe(args)} tensors; {cls._advice}"
        )

    @property
    def _storage(self) -> Any:
        return self._parts()[-1]._storage

    def _become(self, other: Tensor) -> Any:
        """Be what another tensor of this kind is: how in-place forms write."""
        if self._rg and self._edge is None and mode.grad:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        self._data, self._spec, self._rg = other._data, other._spec, other._rg
        self.__dict__.update(other.__dict__)
        return self

    def _lacks(self, what: str) -> NoReturn:
        raise UnsupportedError(f"{what}: not implemented for {self._describe((self,))} tensors; {self._advice}")

    # --- what asks for memory -----------------------------------------------------------------

    def data_ptr(self) -> int:
        self._lacks("data_ptr")

    def untyped_storage(self) -> Any:
        self._lacks("untyped_storage")

    def stride(self, dim: int | None = None) -> Any:
        self._lacks("stride")

    def storage_offset(self) -> int:
        self._lacks("storage_offset")

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(f"can't convert {self._describe((self,))} layout tensor to numpy; {self._advice}")

    def tolist(self) -> Any:
        self._lacks("tolist")

    def item(self) -> Any:
        self._lacks("item")

    def __array__(self, dtype: Dtype | None = None, copy: bool | None = None) -> Any:
        self._lacks("__array__")

    def __dlpack__(self, **options: Any) -> Any:
        self._lacks("__dlpack__")

    def set_(self, source: Any) -> Any:
        self._lacks("set_")

    def is_pinned(self, device: DeviceLike | None = None) -> bool:
        return all(p.is_pinned(device) for p in self._parts())

    @property
    def data(self) -> Any:
        return self.detach()

    @data.setter
    def data(self, value: object) -> None:
        rg, edge, grad = self._rg, self._edge, self._grad
        if type(value) is not type(self):
            raise RuntimeError(f"data: a {self._kind} tensor takes one of its own kind, got {type(value).__name__}.")
        self._rg, self._edge = False, None
        self._become(value.detach())
        self._rg, self._edge, self._grad = rg, edge, grad

    def detach_(self) -> Any:
        self._rg, self._edge = False, None
        return self


install(Wrapped)
