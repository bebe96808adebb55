"""Tensors that stand for others while a transformation runs: a batch of them under `vmap`, a value with its tangent.

They are Tensors whose spec is not in its slot, so calls on them take the general way and come to `interpret`. Wrapped
tensors nest; the highest level, that of the innermost transformation, is on the outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NoReturn

from ..core.errors import NeedsExamples
from ..core.layout import Spec
from ..core.mode import mode
from ..dispatch import disabled
from ..ops.registry import F
from ..tensor import Tensor

_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations."
)
_CONTROL = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet; votive.where() may say the same."
)


class Wrapped(Tensor):
    """What both kinds share: everything is asked of the tensor inside."""

    __torch_function__ = disabled
    _value: Any  # the tensor inside

    def _inner(self) -> tuple[Any, ...]:
        """All tensors inside."""
        return (self._value,)

    @property
    def _spec(self) -> Spec:  # type: ignore[override]
        return self._value._spec

    @property
    def _rg(self) -> bool:
        return any(t._rg for t in self._inner())

    @_rg.setter
    def _rg(self, value: bool) -> None:
        for t in self._inner():
            t._rg = value

    @property
    def _storage(self) -> Any:
        return self._value._storage

    @property
    def _inference(self) -> bool:  # type: ignore[override]
        return self._value._inference

    @property
    def _differentiated(self) -> bool:  # type: ignore[override]
        return any(t._differentiated for t in self._inner())

    @property
    def grad_fn(self) -> Any:
        return self._value.grad_fn

    @property  # type: ignore[misc]
    def grad(self) -> Any:
        return None

    def data_ptr(self) -> NoReturn:
        raise RuntimeError("data_ptr: a tensor inside a transformation of a function has no memory of its own.")

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self._value.requires_grad_(requires_grad)
        return self

    def _like(self, *inner: Any) -> Any:
        """The same kind of tensor around others."""
        raise NotImplementedError

    def _take(self, other: Any) -> None:
        """Become what another tensor of the same kind is."""
        if other._level != self._level:
            raise RuntimeError("a tensor inside a transformation cannot become one outside of it in place.")
        self.__dict__.update(other.__dict__)

    def detach(self) -> Any:
        return self._like(*(t if t is None else t.detach() for t in self._inner()))

    @property  # type: ignore[misc]
    def data(self) -> Any:
        return self.detach()

    def backward(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("backward() inside a transformation of a function; use votive.func.grad or autograd.grad.")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.clone()

    __copy__ = __deepcopy__  # type: ignore[assignment]


class Batched(Wrapped):
    """A tensor for every example of a batch: the examples lie along one dimension of the tensor inside."""

    _bdim: int

    @property
    def _spec(self) -> Spec:  # type: ignore[override]
        spec, b = self._value._spec, self._bdim
        cut = [*range(b), *range(b + 1, spec.ndim)]
        return spec.like(tuple(spec.shape[d] for d in cut), strides=tuple(spec.strides[d] for d in cut))

    @property
    def _data(self) -> NoReturn:
        raise RuntimeError("vmap: a tensor that stands for a batch has no memory that could be used here.")

    def _like(self, *inner: Any) -> Batched:
        return batched(inner[0], self._bdim, self._level)

    def _blank(self, shape: Any) -> Batched:
        return batched(self._value._blank((self._value.shape[self._bdim], *shape)), 0, self._level)

    def item(self) -> NoReturn:
        raise NeedsExamples(_ITEM)

    def __bool__(self) -> NoReturn:
        raise NeedsExamples(_CONTROL)

    def tolist(self) -> NoReturn:
        raise NeedsExamples(_ITEM.replace(".item()", ".tolist()"))

    def numpy(self, *, force: bool = False) -> NoReturn:
        raise NeedsExamples("vmap: cannot give the values of a tensor that stands for a batch to NumPy.")

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        text = repr(self._value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self._level}, bdim={self._bdim}, value=\n    {text}\n)"


class Dual(Wrapped):
    """A value and how it changes: its tangent, or None where that is zero.

    Tangents may share memory with others, so they are replaced and never written. A view finds its own in the tangent
    of what it is a view of: `_of` is that tensor and a function that gives the view.
    """

    _differentiated = True
    _moved: Any
    _of: tuple[Dual, Callable[[Any], Any]] | None = None

    @property
    def _tangent(self) -> Any:
        if self._of is None:
            return self._moved
        whole, look = self._of
        return None if whole._tangent is None else look(whole._tangent)

    def _move(self, tangent: Any) -> None:
        """Have another tangent from now on; what this is a view of has it, too."""
        if self._of is None:
            self._moved = tangent
            return
        whole, look = self._of
        if whole._tangent is None and tangent is None:
            return
        old = whole._value if whole._tangent is None else whole._tangent
        new = F.zeros_like(old) if whole._tangent is None else F.clone(old)
        F.copy_(look(new), tangent) if tangent is not None else F.zero_(look(new))
        whole._move(new)

    def _inner(self) -> tuple[Any, ...]:
        return (self._value,) if self._tangent is None else (self._value, self._tangent)

    @property
    def _data(self) -> Any:
        return self._value._data

    @property
    def _offset(self) -> int:  # type: ignore[override]
        return self._value._offset

    def _like(self, *inner: Any) -> Dual:
        return dual(inner[0], inner[1] if len(inner) > 1 else None, self._level)

    def _blank(self, shape: Any) -> Dual:
        return dual(self._value._blank(shape), None, self._level)

    def item(self) -> Any:
        return self._value.item()

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return f"{repr(self._value)[:-1]}, tangent={self._tangent!r})"


_new = object.__new__


def batched(value: Any, bdim: int, level: int) -> Batched:
    out = _new(Batched)
    out._value, out._bdim, out._level = value, bdim, level
    return out


def dual(value: Any, tangent: Any, level: int) -> Dual:
    out = _new(Dual)
    out._value, out._moved, out._level = value, tangent, level
    return out


class Level:
    """A transformation that runs: `size` examples, drawing at random as `randomness` says; or tangents."""

    forward = False  # one that `autograd.forward_ad` has entered

    def __init__(self, number: int, size: int | None = None, randomness: str = "error") -> None:
        self.number, self.size, self.randomness = number, size, randomness


# Never used twice, so that a tensor that outlives its transformation is not taken for one of another.
_numbers = itertools.count(1)


def next_level(size: int | None = None, randomness: str = "error") -> Level:
    """The level of a transformation that is about to run, inside those that do."""
    return Level(next(_numbers), size, randomness)


class inside:
    """Runs with these transformations around; random draws take what each example needs."""

    def __init__(self, levels: tuple[Level, ...]) -> None:
        self._levels = levels

    def __enter__(self) -> None:
        self._before = mode.levels, mode.draws
        draws = 1
        for level in self._levels:
            if level.size is not None and level.randomness == "different":
                draws *= level.size
        mode.levels, mode.draws = self._levels, draws

    def __exit__(self, *exc: object) -> None:
        mode.levels, mode.draws = self._before


def below(number: int) -> inside:
    """Runs what a transformation makes of a call: only those outside of it are around."""
    return inside(tuple(level for level in mode.levels if level.number < number))


def front(x: Any, bdim: int) -> Any:
    """The tensor with the examples along its first dimension."""
    return x if bdim == 0 else F.movedim(x, bdim, 0)


def expanded(x: Any, size: int) -> Any:
    """The same tensor for every example, without copying."""
    return F.expand(F.unsqueeze(x, 0), (size, *x.shape))


def lift(x: Any, level: Level) -> Any:
    """A tensor that has an example of its own for each of a batch."""
    if x._level > level.number:
        inner = [lift(t, level) for t in x._inner()]
        return x._like(*inner)
    if x._level == level.number:
        return x
    assert level.size is not None
    return batched(expanded(x, level.size), 0, level.number)


def expose(x: Any, level: int, size: int) -> Any:
    """The tensor without a level of examples, which become its first dimension."""
    if x._level > level:
        if isinstance(x, Batched):
            return batched(expose(x._value, level, size), x._bdim + 1, x._level)
        return x._like(*(expose(t, level, size) for t in x._inner()))
    return front(x._value, x._bdim) if x._level == level else expanded(x, size)


def bury(x: Any, bdim: int, level: int) -> Any:
    """The opposite: a dimension becomes the examples of a level, below those that the tensor has already."""
    if x._level > level:
        if isinstance(x, Batched):
            at = bdim if bdim < x._bdim else bdim + 1
            return batched(bury(x._value, at, level), x._bdim if x._bdim < at else x._bdim - 1, x._level)
        return x._like(*(bury(t, bdim, level) for t in x._inner()))
    return batched(x, bdim, level)


def parts(x: Any, level: int) -> tuple[Any, Any]:
    """Value and tangent of a level; the tangent is None where it is zero."""
    if x._level > level:
        inner = [parts(t, level) for t in x._inner()]
        if isinstance(x, Batched):
            ((value, tangent),) = inner
            return x._like(value), None if tangent is None else x._like(tangent)
        value = x._like(*(v for v, _ in inner))
        if all(t is None for _, t in inner):
            return value, None
        zeros = [F.zeros_like(v) if t is None else t for v, t in inner]
        return value, x._like(*zeros)
    return (x._value, x._tangent) if x._level == level else (x, None)


def bury_dual(value: Any, tangent: Any, level: int) -> Any:
    """A value with its tangent at a level, below those that either has already."""
    above = max(value._level, 0 if tangent is None else tangent._level)
    if above <= level:
        return dual(value, tangent, level)
    one = value if value._level == above else tangent
    if isinstance(one, Batched):
        size = one._value.shape[one._bdim]
        value, tangent = (None if t is None else expose(t, above, size) for t in (value, tangent))
        return batched(bury_dual(value, tangent, level), 0, above)
    (p, p_moved), (t, t_moved) = parts(value, above), (None, None) if tangent is None else parts(tangent, above)
    if p_moved is None and t_moved is None:
        return bury_dual(p, t, level)
    p_moved = F.zeros_like(p) if p_moved is None else p_moved
    return dual(bury_dual(p, t, level), bury_dual(p_moved, t_moved, level), above)
