"""A program traced for any sizes: only sizes are computed, then once more at others, to see that nothing was missed.

Nothing that the program does is real in such a trace: its tensors have no memory, and where it would do anything else,
the trace is abandoned and the program is traced as it runs. What it wrote down is compared, number by number, with a
second trace at other sizes where all sizes are plain numbers; a size that got lost on its way shows there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MethodType
from typing import Any

from ..core import rng
from ..core.layout import Layout, Spec, contiguous_strides, permuted_strides
from ..dispatch import state
from .confirm import Traced, difference, other_values
from .effects import Effects
from .entry import Entry
from .floats import SizeFloat, made_float
from .graph import Graph
from .guards import Guards, Place
from .integers import Size
from .marks import marks_of
from .sizes import Leaf, Sizes
from .structure import Template, Unknown, containers, labels
from .symbols import Symbols, is_symbolic, plain, text_of
from .trace import Tracer, Untraceable
from .unsized import Abandoned, Unsized
from .watch import FUNCTIONS, METHODS, Watch

Wanted = dict[int, Any]  # leaves -> dimensions that may change, or True for an integer
_FIXED = (range, str, repr, format, hash, bytes, chr, frozenset, set, complex)
_NO_MEMORY = {"is_leaf", "grad_fn", "output_nr", "retains_grad", "_version", "is_view", "_is_view", "grad", "backward"}


class _Nothing(Effects):
    """Nothing may be left behind."""

    def slot(self, tensor: Any, read: bool = True) -> bool:
        raise Abandoned("it uses .grad of a tensor")

    def entry(self, *given: Any) -> None:
        raise Abandoned("it changes a dict that existed before the call")

    def call(self, *given: Any) -> None:
        raise Abandoned("it changes an object that existed before the call")


class SizeWatch(Watch):
    """A watch over a program whose tensors have no memory."""

    unsized: Unsized

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.effects = _Nothing(self)

    def on_break(self) -> None:
        raise Abandoned(self.tracer.broken)

    def reached(self, value: Any, place: Place) -> Any:
        if isinstance(value, state.tensor):
            value = self.unsized.twin(value)
        elif is_symbolic(value) and value.__class__ is not tuple:
            return value
        return super().reached(value, place)

    def _of_tensor(self, x: Any, name: str) -> Any:
        if name in _NO_MEMORY:
            raise Abandoned(f"it uses .{name} of a tensor")
        return super()._of_tensor(self.unsized._known(x), name)

    def identical(self, a: Any, b: Any) -> bool:
        return super().identical(self.unsized._known(a), self.unsized._known(b))

    def item(self, obj: Any, key: Any) -> Any:
        if not isinstance(obj, state.tensor):
            key = _plain_key(key)
        return super().item(obj, key)

    def _effective(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inner = getattr(fn, "__func__", fn)
        if inner in FUNCTIONS:
            raise Abandoned(f"it calls {inner.__name__}()")
        if inner is not fn and any(k in METHODS for k in type(fn.__self__).__mro__):
            if not hasattr(fn.__self__, "_modules") or inner.__name__ in ("zero_grad", "train", "eval"):
                raise Abandoned(f"it calls {inner.__name__}() of a {type(fn.__self__).__name__}")
        return super()._effective(fn, args, kwargs)

    def call(self, line: int, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if fn is len and len(args) == 1 and isinstance(args[0], state.tensor) and args[0].ndim:
            return args[0]._spec.shape[0]
        if any(is_symbolic(a) for a in args):
            if fn is int and len(args) == 1:
                return args[0] if args[0].__class__ is Size else args[0].__trunc__()
            if fn is float and len(args) == 1:
                a = args[0]
                return a if a.__class__ is SizeFloat else made_float(a.symbols, float(a.value), f"float({text_of(a)})")
            if fn is type and len(args) == 1:
                return int if args[0].__class__ is Size else float
            if getattr(fn, "__module__", None) == "math":
                return _computed(fn, args)
            if fn in _FIXED or getattr(fn, "__module__", None) == "itertools":
                args = tuple([_plain_key(a) for a in args])
        return super().call(line, fn, *args, **kwargs)


def _plain_key(key: Any) -> Any:
    if key.__class__ is slice:
        return slice(_plain_key(key.start), _plain_key(key.stop), _plain_key(key.step))
    return key.fixed("it counts Python's steps") if key.__class__ in (Size, SizeFloat) else key


def _computed(fn: Any, args: tuple[Any, ...]) -> Any:
    """A function of `math` of sizes."""
    symbols = next(a.symbols for a in args if is_symbolic(a) and a.__class__ is not tuple)
    if fn is math.prod or any(a.__class__ in (tuple, list) for a in args):
        return fn(*args)
    value = fn(*[plain(a) for a in args])
    text = f"math.{fn.__name__}({', '.join(text_of(a) for a in args)})"
    if fn in (math.ceil, math.floor, math.trunc) and args[0].__class__ is Size:
        return args[0]
    if value.__class__ is float and math.isfinite(value):
        return made_float(symbols, value, text)
    if value.__class__ is int:
        return symbols.name(text, value)
    return fn(*[_plain_key(a) for a in args])


# --- one trace --------------------------------------------------------------------------------------


def traced(
    fn: Any,
    args: Any,
    kwargs: Any,
    flat: Any,
    options: Any,
    wanted: Wanted,
    finish: Callable[..., Any],
    names: list[str],
    values: dict[str, int] | None = None,
) -> Traced:
    """Trace a program for any sizes; with `values`, for these sizes alone, which are plain numbers then."""
    symbols = Symbols()
    unsized = Unsized(symbols)
    tracer, guards = Tracer(), Guards()
    watch = SizeWatch(tracer, guards)
    watch.unsized, watch.replays = unsized, False
    symbols.where = watch.where
    tracer.computing = unsized.suspended
    told = labels(names, args, kwargs)
    before = {g: (g._seed, g._offset) for g in rng.default_generators()}
    found: list[Traced] = []
    with unsized:
        leaves, sources = _leaves(unsized, flat, told, wanted, values)
        new = [
            leaves[i].form if i in leaves and isinstance(leaves[i].form, int) else leaf for i, leaf in enumerate(flat)
        ]
        new = [unsized.twin(leaf) if isinstance(leaf, state.tensor) else leaf for leaf in new]
        given, named = _rebuilt(args, kwargs, iter(new))
        for i, leaf in enumerate(new):
            watch.reached(leaf, Place("argument", i, told[i]))
        for c in containers([*given, *named.values()])[1:]:
            watch.given[id(c)] = c
        watch.outer[id(fn)] = fn
        if isinstance(fn, MethodType):
            watch.outer[id(fn.__self__)] = fn.__self__
        sizes = Sizes(symbols, [leaves[i] for i in sorted(leaves)], sources)

        def make(graph: Graph, guards: Guards, joint: Any, recipes: Any, build: Any, *rest: Any) -> Any:
            grads = None if joint is None else [None if g is None else g.number for g in joint.grads]
            picture = Traced(symbols, _copied(graph), list(graph.outputs), grads, recipes, [], None)
            found.append(picture)
            if values is not None:
                return _Nobody()
            graph.sizes = guards.sizes = sizes
            picture.entry = Entry(graph, guards, joint, recipes, build, *rest)
            return picture.entry

        try:
            with tracer:
                result = watch.call(0, fn, *given, **named)
                whole = Template(result, watch.is_outer)
                if watch.effects.slots or watch.effects.entries or watch.effects.calls:
                    raise Abandoned("it leaves something behind")
                finish(watch, result, options, make)
        finally:
            for g in {*before, *tracer.generators}:
                g._seed, g._offset = before.get(g) or tracer.generators[g]
            symbols.closed = True
    if not found:
        raise Abandoned("its graph was abandoned")
    found[0].leaves = whole.leaves
    return found[0]


class _Nobody:
    effects: Any = None
    captures: Any = None


def _copied(graph: Graph) -> Graph:
    """A graph as it is now: calls and their arguments, which passes change."""
    import dataclasses

    made = Graph([dataclasses.replace(n) for n in graph.nodes], list(graph.inputs), list(graph.outputs))
    made.constants = dict(graph.constants)
    return made


def _rebuilt(args: Any, kwargs: Any, leaves: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with other leaves."""

    def part(value: Any) -> Any:
        if value.__class__ is tuple or value.__class__ is list:
            return value.__class__([part(v) for v in value])
        if value.__class__ is dict:
            return {k: part(v) for k, v in value.items()}
        return next(leaves)

    return tuple([part(a) for a in args]), {k: part(v) for k, v in kwargs.items()}


def _leaves(
    unsized: Unsized, flat: Any, told: list[str], wanted: Wanted, values: dict[str, int] | None
) -> tuple[dict[int, Leaf], list[str]]:
    """Arguments whose sizes may change, and where symbols are found among them; makes tensors that stand for them."""
    symbols = unsized.symbols
    leaves: dict[int, Leaf] = {}
    sources: list[str] = []

    def symbol(hint: int, label: str, source: str) -> Any:
        sources.append(source)
        if values is not None:
            return values[f"s{len(sources) - 1}"]
        return symbols.symbol(hint, label)

    chosen = sorted(i for i in wanted if i < len(flat))
    for k, i in enumerate(chosen):
        leaf, dims, place = flat[i], wanted[i], Place("argument", i, told[i])
        if not isinstance(leaf, state.tensor):
            leaves[i] = Leaf(place, symbol(leaf, told[i], f"a{k}") if leaf >= 2 else leaf)
            continue
        have = leaf._spec
        shape = tuple(
            symbol(n, f"{told[i]}.shape[{d}]", f"a{k}.shape[{d}]") if d in dims and n >= 2 else n
            for d, n in enumerate(have.shape)
        )
        strides = _strides(have, shape)
        strides = tuple(
            symbol(n, f"{told[i]}.stride({d})", f"a{k}.strides[{d}]") if s is None and n >= 2 else n if s is None else s
            for d, (s, n) in enumerate(zip(strides, have.strides, strict=True))
        )
        spec = Spec(Layout(shape, strides), have.dtype, have.device)
        unsized.twin(leaf, spec)
        leaves[i] = Leaf(place, spec)
    return leaves, sources


def _strides(have: Spec, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Strides as expressions of sizes, where a tensor fills its memory; else those it has."""
    if have.strides == contiguous_strides(have.shape):
        return contiguous_strides(shape)
    order = sorted(range(have.ndim), key=lambda d: -have.strides[d])
    if have.strides == permuted_strides(have.shape, order):
        return permuted_strides(shape, order)
    return have.strides


# --- two traces -------------------------------------------------------------------------------------


def compiled(
    fn: Any, args: Any, kwargs: Any, flat: Any, options: Any, wanted: Wanted, finish: Any, names: list[str]
) -> tuple[Entry | None, str]:
    """A version of a program for any sizes: (it, what to tell), or (None, why there is none)."""
    try:
        found = traced(fn, args, kwargs, flat, options, wanted, finish, names)
        others = other_values(found.symbols)
        if not any(others[s.name] != s.hint for s in found.symbols.symbols):
            return None, "its sizes are fixed: " + "; ".join(found.symbols.fixed or found.symbols.conditions)
        again = traced(fn, args, kwargs, flat, options, wanted, finish, names, others)
        lost = difference(found, again, others)
        if lost:
            return None, f"a size was lost on its way: {lost}"
    except (Abandoned, Untraceable, Unknown) as e:
        return None, str(e)
    except Exception as e:  # the program itself will say so
        return None, f"it raises {type(e).__name__}: {e}"
    return found.entry, ""


# --- which sizes ------------------------------------------------------------------------------------


def signature(flat: tuple[Any, ...]) -> tuple[Any, ...]:
    """What of arguments may become symbolic: shapes of tensors and integers."""
    return tuple([_shape(leaf) for leaf in flat])


def _shape(leaf: Any) -> Any:
    if not isinstance(leaf, state.tensor):
        return leaf if leaf.__class__ is int else None
    try:
        return leaf._spec.shape
    except ValueError:  # a parameter that has no shape yet
        return None


def changed(seen: list[tuple[Any, ...]], now: tuple[Any, ...]) -> Wanted:
    """The dimensions and integers that differ among calls of the same form."""
    found: Wanted = {}
    for i, new in enumerate(now):
        for old in (s[i] for s in seen if len(s) == len(now)):
            if new.__class__ is tuple and old.__class__ is tuple and len(old) == len(new):
                dims = {d for d, (a, b) in enumerate(zip(old, new, strict=True)) if a != b}
                if dims:
                    found[i] = found.get(i, set()) | dims
            elif new.__class__ is int and old.__class__ is int and new != old:
                found[i] = True
    return found


def everything(flat: tuple[Any, ...]) -> Wanted:
    """All dimensions of tensors, and all integers."""
    found: Wanted = {}
    for i, leaf in enumerate(flat):
        if type(leaf) is state.tensor and leaf.ndim:
            found[i] = set(range(leaf.ndim))
        elif leaf.__class__ is int:
            found[i] = True
    return found


def marked(flat: tuple[Any, ...], wanted: Wanted) -> Wanted:
    """Change what is wanted as arguments are marked; gives what users insist on."""
    insisted: Wanted = {}
    for i, leaf in enumerate(flat):
        for d, kind in marks_of(leaf).items() if isinstance(leaf, state.tensor) else ():
            if kind == "static":
                wanted.setdefault(i, set()).discard(d)
            else:
                wanted.setdefault(i, set()).add(d)
            if kind == "must":
                insisted.setdefault(i, set()).add(d)
        if wanted.get(i) == set():
            del wanted[i]
    return insisted


def check_marks(entry: Entry | None, why: str, insisted: Wanted, flat: tuple[Any, ...]) -> None:
    """Raise where a size that must be a symbol is none."""
    for i, dims in insisted.items():
        for d in dims:
            n = flat[i]._spec.shape[d]
            if n < 2:
                raise RuntimeError(
                    f"compile: dimension {d} was marked dynamic, but its size is {n}: 0 and 1 are fixed."
                )
            leaf = None if entry is None else next((x for x in entry.sizes.leaves if x.place.where == i), None)
            if leaf is None or not is_symbolic((leaf.form.shape[d],)) or "s" not in text_of(leaf.form.shape[d]):
                told = why or "; ".join(() if entry is None else entry.sizes.symbols.fixed) or "it is compared"
                raise RuntimeError(
                    f"compile: dimension {d} was marked dynamic, but the program fixes its size to {n}: {told}. Use "
                    "maybe_mark_dynamic, or let the program not depend on it."
                )


__all__ = ["changed", "compiled", "everything", "marked", "signature"]
