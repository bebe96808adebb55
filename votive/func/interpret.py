"""What becomes of a call on wrapped tensors: the innermost transformation decides, the others see what it calls."""

from __future__ import annotations

from typing import Any

from ..core.errors import DtypeError, NeedsExamples, ShapeError, fail
from ..core.mode import mode
from ..core.promotion import can_cast
from ..dispatch import state
from ..ops.operator import Composite, Op
from ..ops.registry import F
from .batching import batch_call, draws, random_call
from .custom import custom_call
from .reverse import pull
from .tangents import dual_call
from .tree import flatten, unflatten
from .wrapped import Batched, Dual, batched, below, front, parts


def top_level(values: Any) -> Any:
    """The wrapped tensor of the highest level among arguments, or None."""
    top, found = 0, None
    for v in values:
        c = v.__class__
        if c is Batched or c is Dual:
            if v._level > top:
                top, found = v._level, v
        elif c is tuple or c is list:
            inner = top_level(v)
            if inner is not None and inner._level > top:
                top, found = inner._level, inner
    return found


def interpret(op: Op, args: tuple[Any, ...], into: Any = None) -> Any:
    """The result of a call that a transformation must see; NotImplemented for all others."""
    found = top_level(args)
    if mode.levels and draws(op, args):
        sizes = [level for level in mode.levels if level.size is not None]
        if sizes and (found is None or sizes[-1].number >= found._level):
            return _written(op, into, random_call(op, args, sizes[-1]), args)
    if found is None:
        return NotImplemented
    call = batch_call if found.__class__ is Batched else dual_call
    return _written(op, into, call(op, args, found._level), args)


def _written(op: Op, into: Any, result: Any, args: tuple[Any, ...]) -> Any:
    """The result, or the tensor that a call in place has written it into."""
    if into is None:
        return result
    if not op.inplace_casts and not can_cast(result._spec.dtype, into._spec.dtype):
        what = f"result type {result._spec.dtype} can't be cast to the tensor's type {into._spec.dtype}."
        fail(DtypeError, op.name + "_", what)
    if result._spec.shape != into._spec.shape:
        what = f"the tensor's shape {into._spec.shape} doesn't match the broadcast shape {result._spec.shape}."
        fail(ShapeError, op.name + "_", what)
    write(op.name, into, result)
    return into


def write(op: str, into: Any, result: Any) -> None:
    """Let a tensor, and its views, have the values of another of the same shape."""
    if result._level > into._level:
        if isinstance(result, Batched):
            raise NeedsExamples(
                f"vmap: inplace arithmetic({op}_) is not possible because there exists a Tensor `other` in extra_args "
                "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not "
                "being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic.",
                into,
            )
        raise RuntimeError(
            f"{op}_: a tensor without a tangent is being changed in place to one that has a tangent; clone() the "
            "tensor inside the function, or use the operator that is not in place."
        )
    if into.__class__ is Batched:
        level, value = into._level, front(into._value, into._bdim)
        source = front(result._value, result._bdim) if result._level == level else F.unsqueeze(result, 0)
        F.copy_(value, source)
    elif into.__class__ is Dual:
        value, tangent = parts(result, into._level)
        F.copy_(into._value, value)
        into._move(tangent)
    else:
        F.copy_(into, result)


def each_example(c: Composite, args: tuple[Any, ...], kwargs: dict[str, Any], error: NeedsExamples) -> Any:
    """A public function that cannot go on for a batch, called for each example."""
    leaves, structure = flatten((args, kwargs))
    found = [x for x in leaves if x.__class__ is Batched]
    level = max((x._level for x in found), default=0)
    into: Any = error.into
    shared = into is not None and any(
        x.__class__ is not Batched and hasattr(x, "_spec") and x._storage.root is into._storage.root for x in leaves
    )
    in_place = c.name.endswith("_")
    if in_place and getattr(leaves[0], "_level", 0) != level:
        raise error  # one tensor would be written once for each example
    if not found or shared or any(getattr(x, "_level", 0) > level for x in leaves):
        raise error
    mine = [x.__class__ is Batched and x._level == level for x in leaves]
    size = next(x._value.shape[x._bdim] for x, m in zip(leaves, mine, strict=True) if m)
    results = []
    with below(level):
        for i in range(size):
            one = [F.select(x._value, x._bdim, i) if m else x for x, m in zip(leaves, mine, strict=True)]
            given, named = unflatten(one, structure)
            results.append(flatten(c(*given, **named)))
        if in_place:
            return leaves[0]  # its parts were written
        if not results or not all(x is None or hasattr(x, "_spec") for x in results[0][0]) or not results[0][0]:
            raise error
        for row in zip(*(r for r, _ in results), strict=True):
            if row[0] is not None and any(x._spec.shape != row[0]._spec.shape for x in row):
                raise RuntimeError(
                    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
                    f"{c.name}."
                )
        rows = zip(*(r for r, _ in results), strict=True)
        joined = [None if row[0] is None else batched(F.stack(row), 0, level) for row in rows]
    return unflatten(joined, results[0][1])


state.interpret = interpret
state.pull = pull
state.custom = custom_call
Composite.one_by_one = staticmethod(each_example)
