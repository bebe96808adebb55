"""Which sizes of a program's inputs may change: `Dim`, and what `dynamic_shapes` says of a leaf. Knows no graphs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...nn import Module
from ...tensor import Tensor
from ..overlays._dynamo.exc import UserError
from . import trees as pytree


class DimHint:
    """`Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC`: a wish without a name."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.type, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> DimHint:
        return DimHint(self.type, min, max)

    def __repr__(self) -> str:
        return f"DimHint({self.type})"


class Dim:
    """The name and range of a size. Arithmetic with whole numbers gives sizes that follow from it."""

    AUTO = DimHint("AUTO")
    DYNAMIC = DimHint("DYNAMIC")
    STATIC = DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low, high = 0 if min is None else min, max
        if high is not None and high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={low}, max={high}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high

    # A size that follows from another: `times * root + plus`.
    times, plus = 1, 0

    @property
    def root(self) -> Dim:
        """The size that this one follows from."""
        return self

    def _derived(self, times: int, plus: int) -> Dim:
        return _DerivedDim(self.root, times, plus)

    def __add__(self, other: int) -> Dim:
        return self._derived(self.times, self.plus + _whole(other, "+"))

    def __sub__(self, other: int) -> Dim:
        return self._derived(self.times, self.plus - _whole(other, "-"))

    def __mul__(self, other: int) -> Dim:
        if _whole(other, "*") <= 0:
            raise NotImplementedError(f"Attempted to multiply {self.__name__} with {other}, expected a positive int.")
        return self._derived(self.times * other, self.plus * other)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        parts = [repr(self.__name__), f"min={self.min}"] + ([] if self.max is None else [f"max={self.max}"])
        return f"Dim({', '.join(parts)})"


class _DerivedDim(Dim):
    def __init__(self, root: Dim, times: int, plus: int) -> None:
        self._root, self.times, self.plus = root, times, plus
        name = root.__name__ if times == 1 else f"{times}*{root.__name__}"
        self.__name__ = name if not plus else f"{name} {'+' if plus > 0 else '-'} {abs(plus)}"
        self.min = root.min * times + plus
        self.max = None if root.max is None else root.max * times + plus

    @property
    def root(self) -> Dim:
        return self._root

    def __repr__(self) -> str:
        return self.__name__


def _whole(value: object, sign: str) -> int:
    if type(value) is not int:
        raise NotImplementedError(f"Attempted to use {sign} with {value}, where an integer was expected.")
    return value


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes at once."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Shapes by the tensor that they belong to, for inputs that are nested."""

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}

    def __setitem__(self, tensor: Any, shape: Any) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"Cannot assign shape to a value of type {type(tensor).__name__}; it must be a tensor.")
        self._shapes[id(tensor)] = shape

    def __getitem__(self, tensor: Any) -> Any:
        return self._shapes.setdefault(id(tensor), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The shapes by parameter, as `export` takes them."""
        return pytree.tree_map(lambda leaf: self._shapes.get(id(leaf)), combined(m, args, kwargs or {}))


class AdditionalInputs:
    """Further example inputs: sizes that differ among them are dynamic."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """One more example."""
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """What differs among the examples, as `export` takes it."""
        trees = [combined(m, args, kwargs or {}), *[combined(m, a, k) for a, k in self._examples]]
        first, spec = pytree.tree_flatten(trees[0])
        others = [pytree.tree_leaves(tree) for tree in trees[1:]]
        if any(len(other) != len(first) for other in others):
            raise ValueError("AdditionalInputs: the examples differ in more than sizes and values.")
        found: list[Any] = []
        for i, leaf in enumerate(first):
            if not isinstance(leaf, Tensor):
                found.append(None)
                continue
            sizes = [leaf.shape, *[other[i].shape for other in others]]
            if len({len(s) for s in sizes}) > 1:
                raise ValueError("AdditionalInputs: tensors differ in their number of dimensions.")
            found.append(tuple(None if len(set(n)) == 1 else Dim.DYNAMIC for n in zip(*sizes, strict=True)))
        return pytree.tree_unflatten(found, spec)

    def verify(self, ep: Any) -> None:
        """Run an exported program on every example."""
        for args, kwargs in self._examples:
            ep.module()(*args, **kwargs)


def combined(mod: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the name of their parameter; what `*args` takes is a tuple."""
    fn = mod.forward if isinstance(mod, Module) else mod
    bound = inspect.signature(fn).bind(*args, **kwargs).arguments
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(fn).parameters.items():
        if name in bound:
            if parameter.kind is parameter.VAR_KEYWORD:
                found |= bound[name]
            else:
                found[name] = bound[name]
    return found


def _is_shape(value: Any) -> bool:
    """Whether a value says of one tensor what its sizes are."""
    plain: Callable[[Any], bool] = lambda v: v is None or isinstance(v, (int, Dim, DimHint))
    if isinstance(value, dict):
        return bool(value) and all(isinstance(k, int) and plain(v) for k, v in value.items())
    return isinstance(value, (tuple, list)) and bool(value) and all(plain(v) for v in value)


def leaf_shapes(given: dict[str, Any], shapes: Any) -> list[dict[int, Any]]:
    """For every leaf of the arguments its dynamic dimensions: a `Dim` or a `DimHint` each."""
    if shapes is None:
        return [{} for _ in pytree.tree_leaves(given)]
    if isinstance(shapes, dict):
        if set(shapes) != set(given):
            raise UserError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                f"{list(given)} of `inputs`, but here they are {list(shapes)}."
            )
        pairs = [(name, given[name], shapes[name]) for name in given]
    else:
        if not isinstance(shapes, (tuple, list)) or len(shapes) != len(given):
            raise UserError(f"dynamic_shapes must match the {len(given)} inputs {list(given)}, got {shapes!r}.")
        pairs = [(name, value, shape) for (name, value), shape in zip(given.items(), shapes, strict=True)]
    return [found for name, value, shape in pairs for found in _matched(name, value, shape)]


def _matched(where: str, value: Any, shape: Any) -> Iterator[dict[int, Any]]:
    if isinstance(value, Tensor):
        yield _of_tensor(where, value, shape)
    elif shape is None:
        yield from ({} for _ in pytree.tree_leaves(value))
    elif isinstance(value, dict) and isinstance(shape, dict) and set(value) == set(shape):
        for key in value:
            yield from _matched(f"{where}[{key!r}]", value[key], shape[key])
    elif isinstance(value, (tuple, list)) and isinstance(shape, (tuple, list)) and len(value) == len(shape):
        for i, (v, s) in enumerate(zip(value, shape, strict=True)):
            yield from _matched(f"{where}[{i}]", v, s)
    elif pytree.tree_is_leaf(value):
        raise UserError(f"dynamic_shapes of {where}: only sizes of tensors may change, got {type(value).__name__}.")
    else:
        inner = pytree.tree_leaves(value)
        told = pytree.tree_leaves(shape, is_leaf=lambda s: s is None or _is_shape(s))
        if len(inner) != len(told):
            raise UserError(f"dynamic_shapes of {where} does not match the input.")
        for v, s in zip(inner, told, strict=True):
            yield from _matched(where, v, s)


def _of_tensor(where: str, tensor: Tensor, shape: Any) -> dict[int, Any]:
    if shape is None:
        return {}
    items: Iterable[tuple[int, Any]]
    if isinstance(shape, dict):
        items = shape.items()
    elif isinstance(shape, (tuple, list)) and len(shape) == tensor.ndim:
        items = enumerate(shape)
    else:
        raise UserError(f"dynamic_shapes of {where}: a tensor of {tensor.ndim} dimensions does not match {shape!r}.")
    found: dict[int, Any] = {}
    for d, size in items:
        if not isinstance(d, int) or not -tensor.ndim <= d < tensor.ndim:
            raise UserError(f"dynamic_shapes of {where}: there is no dimension {d!r} in {tuple(tensor.shape)}.")
        if isinstance(size, int) and size != tensor.shape[d]:
            raise UserError(f"dynamic_shapes of {where}: dimension {d} is {tensor.shape[d]}, not {size}.")
        if size is None or isinstance(size, int) or (isinstance(size, DimHint) and size.type == "STATIC"):
            continue
        if not isinstance(size, (Dim, DimHint)):
            raise UserError(f"dynamic_shapes of {where}: expected a Dim, a whole number or None, got {size!r}.")
        found[d % tensor.ndim] = size
    return found
