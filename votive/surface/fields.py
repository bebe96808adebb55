"""The fields of a tensor, with their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backends.cpu.native.loader import module as native
from ..core.layout import Spec
from ..core.storage import Storage
from ..ops.registry import F

if TYPE_CHECKING:
    from ..tensor import Tensor

if TYPE_CHECKING:
    from .._operators import TensorMethods
else:
    # The methods of operators are bound when the package is imported; type checkers read their stubs.
    TensorMethods = object


class _LateStorage:
    """The storage of a small result, made on first use: most such tensors die without one."""

    def __get__(self, tensor: Tensor, owner: Any = None) -> Any:
        if tensor is None:
            return self
        # setdefault is atomic, so two threads get the same storage.
        return tensor.__dict__.setdefault("_storage", Storage(tensor._data))


class Fields(TensorMethods):
    """What a tensor is made of: slots for what every call looks at, which native code reads at their places; defaults
    of the rest live on the class, so that a new tensor sets no more than these.
    """

    __slots__ = ("_data", "_rg", "_spec")
    _storage: Any = _LateStorage() if native is None else native.LateStorage()
    _data: Any
    _spec: Spec
    _offset: int = 0
    _rg: bool  # requires_grad
    _edge: Any = None
    _differentiated: bool = False  # whether it carries a tangent
    _level: int = 0  # of tensors that stand for others, as in `vmap`: which transformation made them
    _grad: Any = None
    _base: Any = None
    _chain: tuple[Any, ...] = ()
    _seen: int = 0
    _rebased: int = 0
    _views: list[Any] | None = None
    _inference: bool = False
    _no_grad_view: bool = False
    _hooks: dict[int, Any] | None = None
    _post_hooks: dict[int, Any] | None = None
    # NumPy must leave `array * tensor` to Tensor.__rmul__.
    __array_priority__ = 1000

    def _take_fields(self, other: Fields) -> None:
        """Become the same as another tensor: its memory, its history and what users hung onto it."""
        self._data, self._spec, self._rg = other._data, other._spec, other._rg
        self.__dict__.update(other.__dict__)

    def _blank(self, shape: Any) -> Any:
        """Zeros of another shape that whatever is computed from this tensor can be written into."""
        return F.zeros(shape, dtype=self._spec.dtype, device=self._spec.device)

    def _take(self, other: Tensor) -> None:
        """Become another tensor of the same kind: only those that stand for others do."""
        raise NotImplementedError
