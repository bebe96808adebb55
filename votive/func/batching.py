"""How an operator runs on batches: the examples become the first dimension of what the kernel sees.

An operator says in its declaration (`batch=`) how it carries a dimension in front; formulas broadcast; rules for what
neither describes are registered by `rule`. Whatever has no rule runs example by example, which is always right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.layout import Spec
from ..core.mode import mode
from ..dispatch.arguments import normalise
from ..dispatch.build import _spec_of, pointwise_types
from ..ops.operator import Op
from ..ops.registry import F
from .wrapped import Batched, Level, batched, below, expanded, front

if TYPE_CHECKING:
    from ..tensor import Tensor

Rule = Callable[["Call"], Any]
RULES: dict[str, Rule] = {}
_DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register how one operator runs on batches."""

    def register(fn: Rule) -> Rule:
        RULES[name] = fn
        return fn

    return register


class Call:
    """A call on batches: arguments by name, examples in front, and which of them are batched."""

    def __init__(self, op: Op, args: tuple[Any, ...], level: int) -> None:
        self.op, self.level = op, level
        self.names = op.schema.names
        self.logical = args
        self.values: list[Any] = []
        self.batched: list[Any] = []
        self.size = 0
        for v in args:
            if v.__class__ in (tuple, list):
                pairs = [self._taken(x) for x in v]
                self.values.append(tuple(x for x, _ in pairs))
                self.batched.append(tuple(b for _, b in pairs))
            else:
                value, is_batched = self._taken(v)
                self.values.append(value)
                self.batched.append(is_batched)

    def _taken(self, v: object) -> tuple[Any, bool]:
        if v.__class__ is Batched and v._level == self.level:
            self.size = v._value.shape[v._bdim]
            return front(v._value, v._bdim), True
        return v, False

    def __getitem__(self, name: str) -> Any:
        return self.values[self.names.index(name)]

    def is_batched(self, name: str) -> bool:
        found = self.batched[self.names.index(name)]
        return any(found) if found.__class__ is tuple else found

    def ndim(self, name: str) -> int:
        """Dimensions of one example."""
        return self.logical[self.names.index(name)].ndim

    def full(self, name: str) -> Any:
        """An argument with a dimension of examples in any case; None stays None."""
        v, b = self.values[self.names.index(name)], self.batched[self.names.index(name)]
        if not b and not hasattr(v, "_spec") and v.__class__ is not tuple:
            return v
        if v.__class__ is tuple:
            return tuple(x if is_b else expanded(x, self.size) for x, is_b in zip(v, b, strict=True))
        return v if b else expanded(v, self.size)

    def run(self, **changed: Any) -> Any:
        """The operator with some arguments replaced."""
        return Op.apply(self.op, tuple(changed.get(n, v) for n, v in zip(self.names, self.values, strict=True)))

    def outs(self) -> Any:
        """How one example's result looks: a Spec, a tuple of them, or None when it depends on values."""
        specs = tuple(_spec_of(v) for v in self.logical)
        if self.op.canon is not None:
            specs = tuple(self.op.canon(*specs))
        assert self.op.infer is not None
        found = self.op.infer(*specs)
        return found[0] if self.op.kind == "view" else found


def batch_call(op: Op, args: tuple[Any, ...], level: int) -> Any:
    """The results of a call for all examples."""
    args = normalise(op, args)
    with below(level):
        call = Call(op, args, level)
        if op.kind == "pointwise":
            result = _broadcast_formula(call)
        else:
            how = RULES.get(op.name) or op.batch
            result = NotImplemented if how is None else _KINDS[how](call) if isinstance(how, str) else how(call)
            if result is NotImplemented:
                result = one_by_one(call)
    return wrap(result, level)


def wrap(result: object, level: int) -> Any:
    """Results with examples in front as tensors of a level."""
    if result.__class__ in (tuple, list):
        return tuple(wrap(r, level) for r in result)
    return batched(result, 0, level)


def aligned(x: Tensor, ndim: int, to: int) -> Any:
    """A batch of examples of `ndim` dimensions as one of `to`, by ones in front."""
    if ndim >= to:
        return x
    return F._view(x, (x.shape[0], *[1] * (to - ndim), *x.shape[1:]))


def _broadcast_formula(call: Call) -> Any:
    tensors = [(i, v) for i, v in enumerate(call.logical) if hasattr(v, "_spec")]
    most = max(v.ndim for _, v in tensors)
    values = list(call.values)
    for i, v in tensors:
        if call.batched[i]:
            values[i] = aligned(values[i], v.ndim, most)
    logical = pointwise_types(call.op, tuple(_spec_of(v) for v in call.logical))
    if logical != pointwise_types(call.op, tuple(_spec_of(v) for v in values)):
        # A tensor of no dimension counts less for the type of the result; a batch of them must not count more.
        for i, v in tensors:
            if v.ndim == 0 and v.dtype is not logical[0] and call.op.schema.args[i].type != "Mask":
                values[i] = F._to_dtype(values[i], logical[0])
    result = Op.apply(call.op, tuple(values))
    if result.ndim != most + 1:  # every batched operand was absent from the shape: cannot happen, but for numbers
        return NotImplemented
    return result


def _same(call: Call) -> Any:
    """Any number of dimensions in front is a batch already."""
    return _checked(call, call.run(**{n: call.full(n) for n in call.op.schema.tensor_names}))


def _broadcasting(call: Call) -> Any:
    """Dimensions in front of matrices are a batch, and broadcast."""
    ranks = [call.ndim(n) for n in call.op.schema.tensor_names if call[n] is not None]
    if max(ranks) != min(ranks) and min(ranks) < 2:
        return NotImplemented  # a vector is no matrix with ones in front
    return _aligning(call)


def _aligning(call: Call) -> Any:
    """All dimensions broadcast."""
    names = [n for n in call.op.schema.tensor_names if call[n] is not None]
    most = max(call.ndim(n) for n in names)
    changed = {n: aligned(call[n], call.ndim(n), most) for n in names if call.is_batched(n)}
    return _checked(call, call.run(**changed))


def _checked(call: Call, result: Any) -> Any:
    """A result whose shape is that of an example with the examples in front; the rule does not hold otherwise."""
    outs = call.outs()
    single = isinstance(outs, Spec)
    found = []
    for r, spec in zip((result,) if single else result, (outs,) if single else outs, strict=True):
        wanted = (call.size, *spec.shape)
        if tuple(r.shape) != wanted:
            if r.numel() or spec.numel:
                return NotImplemented
            r = F.empty(wanted, dtype=r.dtype, device=r.device)  # a result that was not asked for
        found.append(r)
    return found[0] if single else tuple(found)


def _along(call: Call) -> Any:
    """Works along dimensions that are arguments: each is one further behind."""
    tensors = [n for n in call.op.schema.tensor_names if call[n] is not None]
    first = tensors[0]
    values = {n: call.full(n) for n in tensors}
    lists = isinstance(values[first], tuple)
    ndim = (values[first][0] if lists else values[first]).ndim - 1
    outs = call.outs()
    if outs is None:
        return NotImplemented
    changed: dict[str, Any] = {}
    for a, v in zip(call.op.schema.args, call.values, strict=True):
        if a.name not in _DIMS:
            continue
        if a.is_list and not v:
            if a.name == "dims":  # none are meant, or all as one long dimension where that is the default
                if a.default == ():
                    values = {n: F.flatten(_column(x), 1) for n, x in values.items()}
                    changed[a.name] = (1,)
            else:
                changed[a.name] = tuple(range(1, max(ndim, 1) + 1))
        elif v is None and a.is_list:
            changed[a.name] = tuple(range(1, max(ndim, 1) + 1))
        elif v is None:
            values = {n: F.flatten(_column(x), 1) for n, x in values.items()}
            changed[a.name] = 1
        elif a.is_list:
            changed[a.name] = tuple(_shifted(d, ndim) for d in v)
        else:
            changed[a.name] = _shifted(v, ndim)
    if ndim == 0:
        values = {n: tuple(_column(x) for x in v) if lists else _column(v) for n, v in values.items()}
    result = call.run(**values, **changed)
    pairs = [(result, outs)] if isinstance(outs, Spec) else list(zip(result, outs, strict=True))
    if any(r.numel() != s.numel * call.size for r, s in pairs):
        return NotImplemented
    shaped = [r if tuple(r.shape[1:]) == s.shape else F.reshape(r, (call.size, *s.shape)) for r, s in pairs]
    return shaped[0] if isinstance(outs, Spec) else tuple(shaped)


def _column(x: Any) -> Any:
    return F.unsqueeze(x, -1) if x.ndim == 1 else x


def _shifted(dim: int, ndim: int) -> int:
    return dim % max(ndim, 1) + 1


def _folded(call: Call) -> Any:
    """The first dimension is a batch of samples: examples and samples become one."""
    names = [n for n in call.op.schema.tensor_names if call[n] is not None]
    outs = call.outs()
    if outs is None or any(call.ndim(n) == 0 for n in names):
        return NotImplemented
    result = call.run(**{n: F.flatten(call.full(n), 0, 1) for n in names})

    def unfolded(r: Any, s: Spec) -> Any:
        return F.reshape(r, (call.size, *s.shape))

    if isinstance(outs, Spec):
        return unfolded(result, outs)
    return tuple(unfolded(r, s) for r, s in zip(result, outs, strict=True))


_KINDS: dict[str, Rule] = {
    "same": _same,
    "broadcast": _broadcasting,
    "align": _aligning,
    "dims": _along,
    "fold": _folded,
}


def one_by_one(call: Call, counters: list[int] | None = None) -> Any:
    """The operator for each example, results stacked; `counters`: where each draws its random numbers."""
    op = call.op
    written = [n for n in op.mutates if not call.is_batched(n) and call[n] is not None and call[n] != ()]
    if written:
        raise RuntimeError(
            f"vmap: {op.name} writes into {written[0]!r}, which is not batched; pass it in with a batch dimension "
            "(in_dims)."
        )
    outs = None if op.mutates else call.outs() if op.infer is not None else None
    if outs is None and not op.mutates:
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"{op.name}."
        )
    if call.size == 0:
        return _empty(outs, 0)
    results = []
    for i in range(call.size):
        values = [_example(v, b, i) for v, b in zip(call.values, call.batched, strict=True)]
        if counters is not None:
            values[call.names.index("counter")] = counters[i]
        results.append(Op.apply(op, tuple(values)))
    if results[0].__class__ is tuple:
        return tuple(F.stack(r) for r in zip(*results, strict=True))
    return F.stack(results)


def _empty(outs: Any, size: int) -> Any:
    if isinstance(outs, Spec):
        return F.empty((size, *outs.shape), dtype=outs.dtype, device=outs.device)
    return tuple(_empty(s, size) for s in outs)


def _example(v: object, b: Any, i: int) -> Any:
    if v.__class__ is tuple:
        return tuple(_example(x, is_b, i) for x, is_b in zip(v, b, strict=True)) if any(b) else v
    return F.select(v, 0, i) if b else v


# --- random draws ---------------------------------------------------------------------------------


def draws(op: Op, args: tuple[Any, ...]) -> bool:
    """Whether a call draws random numbers. What backward repeats of a draw is none: it is the one that was made."""
    names = op.schema.names
    if "counter" not in names or mode.walk is not None:
        return False
    return "dropout_p" not in names or args[names.index("dropout_p")] != 0


def random_call(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    """A draw inside a batch: an error, the same for all examples, or one for each."""
    names = op.schema.names
    counter = args[names.index("counter")]
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if level.randomness == "same":
        if not _any_batched(args, level.number):
            return _plain(op, args, level)
        with below(level.number):
            call = Call(op, args, level.number)
            return wrap(one_by_one(call, [counter] * call.size), level.number)
    alone = mode.drawn
    assert level.size is not None
    with below(level.number):
        call = Call(op, args, level.number)
        call.size = level.size
        step = alone * mode.draws
        if "size" in names and not op.schema.tensor_names:
            if op.name.endswith("randperm"):
                return wrap(one_by_one(call, [counter + i * step for i in range(level.size)]), level.number)
            return wrap(call.run(size=(level.size, *call["size"])), level.number)
        return wrap(one_by_one(call, [counter + i * step for i in range(level.size)]), level.number)


def _any_batched(args: tuple[Any, ...], level: int) -> bool:
    return any(getattr(v, "_level", 0) == level for v in args)


def _plain(op: Op, args: tuple[Any, ...], level: Level) -> Any:
    with below(level.number):
        return Op.apply(op, args)
