"""Guards: what a trace relied on, looked at before each run of its graph. A guard that fails says what changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from ..backends import quantized
from ..core import determinism
from ..core import device as devices
from ..core import dtype as dt
from ..core.layout import Spec
from ..core.mode import mode
from .graph import Value

_MISSING = object()


@dataclass(eq=False, slots=True)
class Place:
    """Where a value is found: an entry of a table, an element, a variable, an attribute, an argument."""

    kind: str
    where: Any
    key: Any
    owner: Any = None
    by: str = "item"  # or "getattr", "len", "call"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> Any:
        where = self.where if self.kind == "argument" else id(self.where)
        key = self.key if self.key.__class__ in (str, int, tuple) else id(self.key)
        return where, key.__class__, key, self.by, self.kind == "variable"

    def get(self, flat: tuple[Any, ...]) -> Any:
        """What is there now."""
        if self.kind == "argument":
            return flat[self.where]
        if self.kind == "variable":
            return self.where.cell_contents
        if self.by == "getattr":
            return getattr(self.where, self.key)
        if self.by == "len":
            return len(self.where)
        if self.by == "call":
            return self.where()
        return self.where[self.key]

    def code(self, name: Callable[[Any], str]) -> str:
        """Python text that gives it; `name` binds an object."""
        if self.kind == "argument":
            return f"flat[{self.where}]"
        if self.kind == "variable":
            return f"{name(self.where)}.cell_contents"
        if self.by == "getattr":
            return f"{name(self.where)}.{self.key}"
        if self.by == "len":
            return f"len({name(self.where)})"
        if self.by == "call":
            return f"{name(self.where)}()"
        return f"{name(self.where)}[{name(self.key)}]"

    def __str__(self) -> str:
        if self.kind == "argument":
            return str(self.key)
        if self.kind in ("global", "variable"):
            return f"{self.kind} {self.key}"
        owner = self.owner if isinstance(self.owner, type) else type(self.owner)
        if self.kind == "item":
            return f"{owner.__name__}[{self.key!r}]"
        if self.by == "len":
            return f"len({owner.__name__})"
        return f"{getattr(self.owner, '__name__', owner.__name__)}.{self.key}"


def modes() -> tuple[Any, ...]:
    """The switches that change what operators do."""
    return (
        mode.grad,
        mode.inference,
        tuple(mode.autocast.items()),
        dt.get_default_dtype(),
        devices.get_default_device(),
        determinism.are_deterministic_algorithms_enabled(),
        _quantized["activations"],
        _quantized["engine"],
    )


_MODE_NAMES = ("grad mode", "inference mode", "autocast", "the default dtype", "the default device", "determinism") + (
    "backends.quantized.activations",
    "backends.quantized.engine",
)
_quantized: dict[str, str] = quantized._values  # type: ignore[attr-defined]


class Guards:
    """Conditions, in the order they were met; `compile` makes one function of them."""

    def __init__(self) -> None:
        self.modes = modes()
        self.checks: dict[Any, tuple[str, Place, Any]] = {}
        self.tensors: dict[Value, tuple[Place, Any]] = {}  # while tracing
        self.wanted: dict[Value, tuple[Place, Any, bool]] = {}
        self.functions: dict[int, FunctionType] = {}
        self.pairs: list[tuple[Place, Place]] = []
        self.different: list[tuple[Place, Place]] = []
        self.sizes: Any = None  # of arguments, that may change; see `sizes.py`

    def _add(self, what: str, place: Place, value: Any) -> None:
        self.checks.setdefault((what, place.id), (what, place, value))

    def same(self, place: Place, value: Any) -> None:
        """The very object is still there."""
        self._add("same", place, value)

    def kind(self, place: Place, value: Any) -> None:
        """An object of the same class is there."""
        self._add("kind", place, type(value))

    def form(self, place: Place, tensor: Any) -> None:
        """A tensor of the same kind is there; nobody reads its numbers."""
        self._add("form", place, (type(tensor), tensor._spec, bool(tensor._rg)))

    def equal(self, place: Place, value: Any) -> None:
        """An equal value of the same type is there."""
        self._add("equal", place, value)

    def absent(self, place: Place) -> None:
        """Nothing is there."""
        self._add("absent", place, None)

    def empty(self, place: Place) -> None:
        """A table has no entries."""
        self._add("empty", place, None)

    def keys(self, table: dict[Any, Any]) -> None:
        """A table has the same keys in the same order."""
        self._add("keys", Place("table", table, "keys", table), list(table))

    def length(self, sequence: Any) -> None:
        """A sequence is as long as it was."""
        self._add("equal", Place("length", sequence, "len", sequence, by="len"), len(sequence))

    def content(self, found: Any) -> None:
        """A set holds what it held."""
        self._add("content", Place("table", found, "content", found), frozenset(found))

    def code(self, fn: FunctionType) -> None:
        """A function is as it was written."""
        self.functions[id(fn)] = fn
        self._add("code", Place("function", fn, "__code__", fn), (fn.__code__, fn.__defaults__, fn.__kwdefaults__))

    def tensor(self, place: Place, tensor: Any, value: Value) -> None:
        """A tensor of the same kind is there; it becomes the input `value`."""
        known = self.tensors.get(value)
        if known is None:
            self.tensors[value] = place, tensor
            self.wanted[value] = place, type(tensor), bool(tensor._rg)
        elif known[0] != place:
            self.alike(known[0], place)

    def alike(self, one: Place, other: Place) -> None:
        """Two places hold the same tensor."""
        self.pairs.append((one, other))

    def differ(self, one: Place, other: Place) -> None:
        """Two places hold different tensors."""
        self.different.append((one, other))

    # --- checking --------------------------------------------------------------------------------

    def compile(self, inputs: list[Value], by_memory: bool) -> Callable[[tuple[Any, ...]], tuple[Any, ...] | None]:
        """A function of the flat arguments that gives the inputs of the graph, or None if something changed.

        `by_memory`: the graph writes into inputs, so tensors that shared no memory must still share none.
        """
        scope: dict[str, Any] = {"M": _MISSING, "modes": modes, "len": len}
        known: dict[int, str] = {}

        def name(obj: Any) -> str:
            if obj.__class__ in (int, str):
                return repr(obj)
            found = known.get(id(obj))
            if found is None:
                found = known[id(obj)] = f"c{len(known)}"
                scope[found] = obj
            return found

        lines = ["def check(flat):", " try:"]
        for what, place, value in self.checks.values():
            lines += [f"  {line}" for line in _check(what, place, value, name)]
        names = []
        for i, v in enumerate(inputs):
            place, cls, rg = self.wanted[v]
            t = f"t{i}"
            names.append(t)
            kind = name(cls)
            lines.append(f"  {t} = {place.code(name)}")
            lines.append(
                f"  if {t}.__class__ is not {kind} or {_other_spec(t, v.spec, name)}{t}._rg is not {rg}: return None"
            )
        lines += [f"  if {a.code(name)} is not {b.code(name)}: return None" for a, b in self.pairs]
        lines += [f"  if {a.code(name)} is {b.code(name)}: return None" for a, b in self.different]
        if by_memory and len(names) > 1:
            scope["distinct"] = _distinct
            lines.append(f"  if not distinct(({', '.join(names)},), {name(self._sharing(inputs))}): return None")
        if self.sizes is not None:
            scope["sizes_of"] = self.sizes.of
            leaves = [x.place.code(name) + ("._spec" if isinstance(x.form, Spec) else "") for x in self.sizes.leaves]
            lines += [f"  sizes = sizes_of({', '.join(leaves)})", "  if sizes is None: return None"]
        lines += [" except (KeyError, AttributeError, IndexError, ValueError, TypeError):", "  return None"]
        more = "*sizes, " if self.sizes is not None else ""
        lines.append(f" return ({''.join(n + ', ' for n in names)}{more})")
        exec("\n".join(lines), scope)
        self.tensors = {}  # or the first arguments would live as long as the program
        check: Callable[[tuple[Any, ...]], tuple[Any, ...] | None] = scope["check"]
        return check

    def _sharing(self, inputs: list[Value]) -> tuple[int, ...]:
        return _pattern([self.tensors[v][1] for v in inputs])

    def gone(self) -> bool:
        """Whether it can never hold again: hooks that it relied on were removed."""
        return any(
            p.kind == "hooks" and p.by == "call" and value and p.get(()) != value
            for _, p, value in self.checks.values()
        )

    def why(self, flat: tuple[Any, ...]) -> str:
        """What changed, in one line."""
        now: Any
        for before, after, text in zip(self.modes, modes(), _MODE_NAMES, strict=True):
            if before != after:
                return f"{text} was {before}, is {after}"
        for what, place, value in self.checks.values():
            if not _holds(what, place, value, flat):
                return _difference(what, place, value, flat)
        for v, (place, kind, rg) in self.wanted.items():
            try:
                now = place.get(flat)
            except (KeyError, AttributeError, IndexError, ValueError, TypeError):
                return f"{place} is gone"
            if now.__class__ is not kind:
                return f"{place} was a {kind.__name__}, is a {type(now).__name__}"
            if now._spec is not v.spec and not symbolic(v.spec):
                return f"{place} was {v.spec}, is {now._spec}"
            if now._rg is not rg:
                return f"requires_grad of {place} was {rg}, is {now._rg}"
        for a, b in self.pairs:
            if a.get(flat) is not b.get(flat):
                return f"{a} and {b} were the same tensor"
        for a, b in self.different:
            if a.get(flat) is b.get(flat):
                return f"{a} and {b} were different tensors"
        told = "" if self.sizes is None else self.sizes.why(flat)
        return told or "tensors share memory in another way"


def symbolic(spec: Spec) -> bool:
    """Whether a spec has sizes that may change; these are looked at together."""
    return any(n.__class__ is not int for n in (*spec.shape, *spec.strides))


def _other_spec(t: str, spec: Spec, name: Callable[[Any], str]) -> str:
    return "" if symbolic(spec) else f"{t}._spec is not {name(spec)} or "


def _pattern(tensors: Any) -> tuple[int, ...]:
    """Which tensors share a storage, as numbers."""
    seen: dict[int, int] = {}
    return tuple([seen.setdefault(id(t._storage.root), len(seen)) for t in tensors])


def _distinct(tensors: Any, pattern: tuple[int, ...]) -> bool:
    return _pattern(tensors) == pattern


def _check(what: str, place: Place, value: Any, name: Callable[[Any], str]) -> list[str]:
    here = place.code(name) if what in ("same", "equal", "kind", "form") else name(place.where)
    if what == "form":
        kind, spec, rg = value
        test = f"x.__class__ is not {name(kind)} or {_other_spec('x', spec, name)}x._rg is not {rg}"
        return [f"x = {here}", f"if {test}: return None"]
    if what == "kind":
        return [f"if {here}.__class__ is not {name(value)}: return None"]
    if what == "same":
        return [f"if {here} is not {name(value)}: return None"]
    if what == "equal":
        if value is None or value is True or value is False:
            return [f"if {here} is not {value}: return None"]
        c = name(value) if value.__class__ not in (int, str) else repr(value)
        kind = name(value.__class__)
        unequal = f"x != {c}" if value == value else "x == x"  # NaN
        return [f"x = {here}", f"if x.__class__ is not {kind} or {unequal}: return None"]
    if what == "absent":
        return [f"if {name(place.key)} in {here}: return None"]
    if what == "empty":
        return [f"if {here}: return None"]
    if what == "keys":
        return [f"if list({here}) != {name(value)}: return None"]
    if what == "content":
        return [f"if {here} != {name(value)}: return None"]
    code, defaults, keywords = value
    return [
        f"if {here}.__code__ is not {name(code)} or {here}.__defaults__ is not {name(defaults)} or "
        f"{here}.__kwdefaults__ is not {name(keywords)}: return None"
    ]


def _holds(what: str, place: Place, value: Any, flat: tuple[Any, ...]) -> bool:
    scope: dict[str, Any] = {}

    def name(obj: Any) -> str:
        if obj.__class__ in (int, str):
            return repr(obj)
        scope[f"c{len(scope)}"] = obj
        return f"c{len(scope) - 1}"

    lines = ["def check(flat):", *(f" {line}" for line in _check(what, place, value, name)), " return True"]
    exec("\n".join(lines), scope)
    try:
        return bool(scope["check"](flat))
    except (KeyError, AttributeError, IndexError, ValueError, TypeError):
        return False


def _difference(what: str, place: Place, value: Any, flat: tuple[Any, ...]) -> str:
    if what == "absent":
        return f"{place} is new"
    if what == "empty":
        return f"{place} is no longer empty"
    if what == "keys":
        return f"a table has other keys: {list(place.where)[:8]}, had {value[:8]}"
    if what == "content":
        return "a set holds something else"
    if what == "code":
        return f"function {place.where.__qualname__} was changed"
    try:
        now = place.get(flat)
    except (KeyError, AttributeError, IndexError, ValueError, TypeError):
        return f"{place} is gone"
    if what == "form":
        return f"{place} was {value[1]}, is {getattr(now, '_spec', type(now).__name__)}"
    if what == "kind":
        return f"{place} was a {value.__name__}, is a {type(now).__name__}"
    if what == "same":
        return f"{place} is another object: {_short(now)}, was {_short(value)}"
    return f"{place} was {_short(value)}, is {_short(now)}"


def _short(value: Any) -> str:
    text = repr(value) if not hasattr(value, "__dict__") else f"a {type(value).__name__}"
    return text if len(text) < 60 else text[:57] + "..."
