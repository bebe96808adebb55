"""`torch._foreach_*`: one operator over lists of tensors, as optimizers outside of torch call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import votive

from ..tensor import Tensor

_UNARY = (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma"),
    *("log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt"),
    *("tan", "tanh", "trunc"),
)
# By the name: which operator computes with a second list, a list of numbers, or one number for all.
_BINARY = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "pow": "pow",
    "maximum": "maximum",
    "minimum": "minimum",
    "clamp_max": "minimum",
    "clamp_min": "maximum",
}


def _checked(name: str, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    if not isinstance(tensors, list | tuple) or not tensors:
        raise RuntimeError(f"_foreach_{name}: takes a list of at least one tensor.")
    return tensors


def _spread(name: str, other: Any, count: int) -> list[Any]:
    """The second operand of each tensor."""
    if isinstance(other, list | tuple):
        if len(other) != count:
            raise RuntimeError(f"_foreach_{name}: Tensor list must have same number of elements as the other list.")
        return list(other)
    if isinstance(other, Tensor) and other.ndim == 1 and other.numel() == count and name.startswith("addc"):
        return other.tolist()
    return [other] * count


def _unary(name: str) -> Callable[..., Any]:
    function = getattr(votive, name)
    return lambda x: function(x)


def _binary(name: str) -> Callable[..., Any]:
    function = getattr(votive, _BINARY[name])
    bounds = name in ("maximum", "minimum", "clamp_max", "clamp_min")

    def compute(x: Any, other: Any, alpha: Any = 1) -> Any:
        if bounds and not isinstance(other, Tensor):
            other = votive.full((), other, dtype=x.dtype, device=x.device)
        return function(x, other) if alpha == 1 else function(x, other, alpha=alpha)

    return compute


def _made(name: str, in_place: bool) -> Callable[..., Any]:
    """A function over lists; in place it writes into the first list and gives it back."""

    def finish(tensors: Sequence[Tensor], results: list[Any]) -> Any:
        if not in_place:
            return tuple(results)
        for x, y in zip(tensors, results, strict=True):
            x.copy_(y)
        return tensors

    if name in _UNARY:
        one = _unary(name)

        def unary(self: Sequence[Tensor]) -> Any:
            return finish(self, [one(x) for x in _checked(name, self)])

        return unary
    if name in _BINARY:
        two = _binary(name)

        def binary(self: Any, other: Any, *, alpha: Any = 1) -> Any:
            if name == "pow" and not isinstance(self, list | tuple):
                return tuple(votive.pow(self, e) for e in _checked(name, other))  # one number to many powers
            others = _spread(name, other, len(_checked(name, self)))
            return finish(self, [two(x, o, alpha) for x, o in zip(self, others, strict=True)])

        return binary
    if name == "lerp":

        def lerp(self: Sequence[Tensor], tensors1: Sequence[Tensor], weight: Any) -> Any:
            ends = _spread(name, list(tensors1), len(_checked(name, self)))
            weights = _spread(name, weight, len(self))
            return finish(self, [votive.lerp(x, e, w) for x, e, w in zip(self, ends, weights, strict=True)])

        return lerp
    function = getattr(votive, name)

    def ternary(self: Sequence[Tensor], tensor1: Any, tensor2: Any, value: Any = 1, scalars: Any = None) -> Any:
        count = len(_checked(name, self))
        first, second = _spread(name, list(tensor1), count), _spread(name, list(tensor2), count)
        factors = _spread(name, value if scalars is None else scalars, count)
        groups = zip(self, first, second, factors, strict=True)
        return finish(self, [function(x, a, b, value=v) for x, a, b, v in groups])

    return ternary


def _norm(self: Sequence[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    return tuple(votive.linalg.vector_norm(x, ord, dtype=dtype) for x in _checked("norm", self))


def _max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(x.max() for x in _checked("max", self))


def _clone(self: Sequence[Tensor], *, memory_format: Any = None) -> tuple[Tensor, ...]:
    options = {} if memory_format is None else {"memory_format": memory_format}
    return tuple(x.clone(**options) for x in _checked("clone", self))


def _zero(self: Sequence[Tensor]) -> Sequence[Tensor]:
    for x in _checked("zero_", self):
        x.zero_()
    return self


def _copy(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> Sequence[Tensor]:
    for x, y in zip(_checked("copy_", self), _spread("copy_", list(src), len(self)), strict=True):
        x.copy_(y, non_blocking)
    return self


def _mm(self: Sequence[Tensor], mat2: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(votive.mm(a, b) for a, b in zip(_checked("mm", self), mat2, strict=True))


FOREACH: dict[str, Any] = {
    "_foreach_norm": _norm,
    "_foreach_max": _max,
    "_foreach_clone": _clone,
    "_foreach_zero_": _zero,
    "_foreach_copy_": _copy,
    "_foreach_mm": _mm,
}
for _name in (*_UNARY, *_BINARY, "lerp", "addcdiv", "addcmul"):
    FOREACH[f"_foreach_{_name}"] = _made(_name, False)
    FOREACH[f"_foreach_{_name}_"] = _made(_name, True)
for _name, _function in FOREACH.items():
    _function.__name__ = _function.__qualname__ = _name
