"""What a traced program reads from outside and writes there. Which calls it makes is the matter of `watch.py`.

Everything that Python reaches through an argument's attributes, a global or an enclosing function's variable is
outside. What is read there becomes a guard; tensors that are read become inputs of the graph. What is written there
ends the trace at that line: the program goes on as it is.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import types
from typing import Any, NamedTuple

from ..core.mode import mode
from ..core.words import words
from ..dispatch import state
from ..ops.operator import Operator
from ..ops.registry import COMPOSITES
from ..surface.wrapped import Wrapped
from .effects import Effects
from .guards import Guards, Place
from .places import Below
from .trace import Tracer, place_of

PACKAGE = __name__.split(".")[0]
# Parts of the package whose functions are programs over operators, like a user's; the rest depends on arguments only.
_PROGRAMS = words(
    "nn.layers nn.modules nn.attention nn.containers nn.fused_linear nn.residual models vision.models train.programs "
    "train.supervised train.preference train.policy train.reference train.embedding train.classification "
    "generation.compiled"
)
PURE_BUILTINS = {
    abs, all, any, bool, callable, chr, complex, dict, divmod, enumerate, filter, float, format, frozenset, getattr,
    hasattr, hash, id, int, isinstance, issubclass, iter, len, list, map, max, min, next, object, ord, pow, range, repr,
    reversed, round, set, slice, sorted, str, sum, super, tuple, type, zip, bytes,
}  # fmt: skip
_VALUES = (int, float, bool, complex, str, bytes, type(None), type(Ellipsis), range, slice)
# Methods of tensors that change what autograd or Python knows of them, not their numbers.
REFUSED = set(
    words(
        "backward register_hook retain_grad requires_grad_ detach_ set_ resize_ share_memory_ "
        "register_post_accumulate_grad_hook untyped_storage storage data_ptr numpy __dlpack__ storage_offset"
    )
)


class Stop(BaseException):
    """With `fullgraph`: raised where the graph would have to be split."""


class Frame(NamedTuple):
    """A function that is being run in its rewritten form."""

    fn: Any  # a function
    code: types.CodeType
    closure: dict[str, Any]

    @property
    def file(self) -> str:
        return str(self.fn.__code__.co_filename)


class Break(NamedTuple):
    """Where a trace ended, and why: the line of the outermost function that was run, or 0."""

    file: str
    line: int
    why: str
    fn: types.FunctionType | None = None


class Reads:
    """One run of a program while it is traced: what it reads and writes outside."""

    slice = slice

    def __init__(self, tracer: Tracer, guards: Guards, fullgraph: bool = False) -> None:
        self.tracer, self.guards, self.fullgraph = tracer, guards, fullgraph
        self.outer: dict[int, Any] = {}  # objects that were there before, by identity
        self.untouched: dict[int, tuple[Any, list[Place]]] = {}  # arguments that nobody has looked at, and where
        self.given: dict[int, Any] = {}  # containers of arguments: what they hold is guarded, they must not change
        self.frames: list[Frame] = []
        self.breaks: list[Break] = []
        self.tensors = tracer.outside  # tensors read from outside: identity -> (tensor, place)
        self.events: list[Any] = []  # calls that others look at, see `look.py`
        self.seen: list[tuple[Any, int]] = []  # the tensors there, and how often these were written before
        self.keeps_graph = False  # whether they hold what they see together with autograd's graph
        self.line = 0
        self.effects = Effects(self)
        self.replays = True  # whether graphs are replayed by devices that can
        tracer.where = self.where
        tracer.unknown = self.unknown  # type: ignore[method-assign]
        tracer.on_break = self.on_break

    # --- where and why ---------------------------------------------------------------------------

    def where(self) -> str:
        return f"{self.frames[-1].file}:{self.line}" if self.frames else ""

    def on_break(self) -> None:
        """The tracer has given up."""
        why = self.tracer.broken
        outermost = self.frames[0] if self.frames else None
        if outermost is None:
            self.breaks.append(Break("", 0, why))
        else:
            self.breaks.append(Break(outermost.file, self.top_line, why, outermost.fn))
        if self.fullgraph:
            where = self.where()
            raise Stop(f"compile: fullgraph=True, but {why}" + (f" ({where})." if where else "."))

    @property
    def top_line(self) -> int:
        """The line of the outermost program that is being run."""
        found = 0
        frame: types.FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code is self.frames[0].code:
                found = frame.f_lineno
            frame = frame.f_back
        return found

    def stop(self, why: str) -> None:
        self.tracer.give_up(why)

    def refuse(self, why: str, value: Any) -> Any:
        self.stop(why)
        return value

    # --- reading ---------------------------------------------------------------------------------

    def reached(self, value: Any, place: Place) -> Any:
        """A value that was read outside, and where."""
        if isinstance(value, state.tensor):
            self._hold(value, place)
        elif value.__class__ in _VALUES or isinstance(value, _VALUES):
            self.guards.equal(place, value)
        elif place.kind == "argument" and id(value) not in self.outer:
            self.guards.kind(place, value)
            self.untouched.setdefault(id(value), (value, []))[1].append(place)
        else:
            self.guards.same(place, value)
            self.outer[id(value)] = value
        return value

    def _hold(self, tensor: Any, place: Place) -> None:
        if self.tracer.broken:
            return
        if isinstance(tensor, Wrapped):
            # Its spec is its own: another tensor, or another format, is another program.
            self.guards.form(place, tensor)
            for name in tensor._traced:
                self._hold(getattr(tensor, name), Below(place, "attr", name))
        known = self.tensors.get(id(tensor))
        if known is None:
            self.tensors[id(tensor)] = tensor, place
        elif known[1] != place:
            self.guards.alike(known[1], place)
            if known[1].kind == "below" and place.kind != "below" and id(tensor) not in self.tracer.named:
                self.tensors[id(tensor)] = tensor, place  # readers know it by its module

    def unknown(self, tensor: Any) -> Any:
        """The value of a tensor that the graph does not know: read outside, or nobody knows from where."""
        known = self.tensors.get(id(tensor))
        if known is None:
            here = place_of(tensor)
            known = next((k for k in self.tensors.values() if place_of(k[0]) == here), None)  # such as x.detach()
        if known is None:
            return Tracer.unknown(self.tracer, tensor)
        tensor, place = known
        value = self.tracer.name(tensor, "input" if place.kind == "argument" else "held", str(place))
        self.guards.tensor(place, tensor, value)
        return value

    def outside(self, name: str, value: Any) -> Any:
        if self.tracer.broken or not self.frames:  # a function that has outlived its trace
            return value
        namespace = self.frames[-1].fn.__globals__
        where = namespace if name in namespace else builtins.__dict__
        if where is builtins.__dict__ and hashable(value) and value in PURE_BUILTINS:
            return value
        return self.reached(value, Place("global", where, name))

    def cell(self, name: str, value: Any) -> Any:
        if self.tracer.broken or not self.frames:
            return value
        cell = self.frames[-1].closure.get(name)
        if cell is None:
            return value
        return self.reached(value, Place("variable", cell, name))

    def is_outer(self, obj: Any) -> bool:
        """Whether an object was there before. Asked of an argument, it counts from now on which object that is."""
        if id(obj) in self.untouched:
            for place in self.untouched.pop(id(obj))[1]:
                self.guards.same(place, obj)
            self.outer[id(obj)] = obj
        return id(obj) in self.outer

    def was_there(self, obj: Any) -> bool:
        """Whether somebody else sees what becomes of an object."""
        return self.is_outer(obj) or id(obj) in self.given

    def call(self, line: int, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what the program calls."""
        raise NotImplementedError

    def attr(self, obj: Any, name: str) -> Any:
        if self.tracer.broken or isinstance(obj, state.tensor) or not self.is_outer(obj):
            if isinstance(obj, state.tensor):
                return self._of_tensor(obj, name)
            return getattr(obj, name)
        if id(obj) in self.effects.late:
            self.stop(f"it reads a {type(obj).__name__} that it has changed")
            return getattr(obj, name)
        if obj is state or obj is mode:  # versions are told apart by modes, and who observes sees no graph
            value = getattr(obj, name)
            return tuple([o for o in value if o is not self.tracer]) if name == "observers" else value
        kind = type(obj)
        own = getattr(obj, "__dict__", None)
        if isinstance(obj, types.ModuleType):
            value = getattr(obj, name)
            if own is not None and name in own:
                return self.reached(value, Place("attribute", own, name, obj))
            return value
        static = inspect.getattr_static(kind, name, None) if not isinstance(obj, type) else None
        if isinstance(static, property):
            if trusted(static.fget):
                return self.reached(getattr(obj, name), Place("attribute", obj, name, obj, by="getattr"))
            self._method(kind, name)
            return self.call(self.line, static.fget, obj)
        if own is not None and name in own and not isinstance(obj, type):
            return self.reached(own[name], Place("attribute", own, name, obj))
        for table in ("_parameters", "_buffers", "_modules"):
            held = own.get(table) if own is not None else None
            if isinstance(held, dict) and name in held:
                return self.reached(held[name], Place("attribute", held, name, obj))
        value = getattr(obj, name)
        if inspect.ismethod(value) or isinstance(value, types.FunctionType):
            self._method(kind, name)
            if own is not None:
                self.guards.absent(Place("attribute", own, name, obj))
            return value
        if inspect.isbuiltin(value) or isinstance(value, types.MethodWrapperType):
            return value
        return self.reached(value, Place("attribute", obj, name, obj, by="getattr"))

    def _method(self, kind: type, name: str) -> None:
        for c in kind.__mro__:
            if name in c.__dict__:
                self.guards.same(Place("method", vars(c), name, c), c.__dict__[name])
                return

    def _of_tensor(self, x: Any, name: str) -> Any:
        if name == "grad" and x._edge is None and self.effects.slot(x):
            return x.grad
        if name == "backward":
            return x.backward
        if name == "grad" or name == "data":
            self.stop(f"it uses .{name} of a tensor")
        elif name in REFUSED or (id(x) in self.tensors and getattr(COMPOSITES.get(name), "reshapes", False)):
            # (One that was there before keeps its new shape behind the program.)
            self.stop(f"it calls {name}() of a tensor")
        return getattr(x, name)

    def item(self, obj: Any, key: Any) -> Any:
        value = obj[key]
        if self.tracer.broken or isinstance(obj, state.tensor) or not self.is_outer(obj):
            return value
        if id(obj) in self.effects.late:
            self.stop(f"it reads a {type(obj).__name__} that it has changed")
            return value
        if obj.__class__ in (list, tuple) and isinstance(key, slice):
            return self.whole(obj)[key]
        if isinstance(obj, (list, tuple, dict)):
            return self.reached(value, Place("item", obj, key, obj))
        getitem = getattr(type(obj), "__getitem__", None)
        if isinstance(getitem, types.FunctionType):
            self._method(type(obj), "__getitem__")
            return self.call(self.line, types.MethodType(getitem, obj), key)
        self.stop(f"it looks into a {type(obj).__name__}")
        return value

    def whole(self, obj: Any) -> Any:
        """All that a container outside holds is used."""
        if self.tracer.broken or not self.is_outer(obj) or isinstance(obj, state.tensor):
            return obj
        if id(obj) in self.effects.late:
            self.stop(f"it reads a {type(obj).__name__} that it has changed")
        elif isinstance(obj, dict):
            self.guards.keys(obj)
            for k, v in obj.items():
                self.reached(v, Place("item", obj, k, obj))
        elif isinstance(obj, (list, tuple)):
            self.guards.length(obj)
            for i, v in enumerate(obj):
                self.reached(v, Place("item", obj, i, obj))
        elif isinstance(obj, (set, frozenset)):
            self.guards.content(obj)
        return obj

    def each(self, obj: Any) -> Any:
        """What a loop goes through, or an assignment takes apart."""
        if self.tracer.broken or isinstance(obj, state.tensor) or not self.is_outer(obj):
            return obj
        if isinstance(obj, (list, tuple, dict, set, frozenset)):
            return self.whole(obj)
        own = getattr(type(obj), "__iter__", None)
        if isinstance(own, types.FunctionType):
            self._method(type(obj), "__iter__")
            return self.call(self.line, types.MethodType(own, obj))
        self.stop(f"it goes through a {type(obj).__name__}")
        return obj

    def used(self, obj: Any) -> Any:
        """A value whose truth or content counts."""
        if obj.__class__ in (list, dict, set, tuple) and self.is_outer(obj):
            return self.whole(obj)
        if self.is_outer(obj) and not isinstance(obj, (types.FunctionType, type, types.ModuleType)):
            if any(
                isinstance(getattr(type(obj), n, None), types.FunctionType) for n in ("__bool__", "__len__", "__eq__")
            ):
                if not type(obj).__module__.startswith(PACKAGE + "."):
                    self.stop(f"it asks for the truth of a {type(obj).__name__}")
                elif hasattr(type(obj), "__len__"):
                    self.guards.equal(Place("length", obj, "len", obj, by="len"), len(obj))
        return obj

    def identical(self, a: Any, b: Any) -> bool:
        """Whether two objects are one, which for tensors from outside is asked again before each run."""
        if not (isinstance(a, state.tensor) or isinstance(b, state.tensor)):
            self.is_outer(a)
            self.is_outer(b)
            return a is b
        known = self.tensors.get(id(a)), self.tensors.get(id(b))
        if a is not b and known[0] is not None and known[1] is not None:
            self.guards.differ(known[0][1], known[1][1])
        return a is b

    def entered(self, manager: Any) -> Any:
        """A context manager: the package's own switch modes, others may do anything."""
        self.is_outer(manager)
        if not type(manager).__module__.startswith(PACKAGE) and not self.tracer.broken:
            if not (type(manager).__module__ == "contextlib" and type(manager).__name__ in ("nullcontext", "suppress")):
                fn = getattr(getattr(manager, "gen", None), "gi_code", None)
                if fn is None or f"{PACKAGE}" not in fn.co_filename:
                    self.stop(f"it enters a {type(manager).__name__}, which may do anything")
        return manager

    # --- writing ---------------------------------------------------------------------------------

    def changed(self, obj: Any, name: str | None = None) -> Any:
        """An object one of whose attributes or elements is about to be set."""
        if isinstance(obj, state.tensor):
            if name == "grad" and obj._edge is None and self.effects.slot(obj, read=False):
                return obj
            if name is not None:
                self.stop(f"it sets .{name} of a tensor")
        elif self.was_there(obj):
            what = f"attribute {name!r} of a {type(obj).__name__}" if name else f"an element of a {type(obj).__name__}"
            self.stop(f"it sets {what} that was there before")
        return obj

    def augmented(self, obj: Any) -> None:
        if self.was_there(obj) and not isinstance(obj, (state.tensor, *_VALUES, tuple)):
            self.stop(f"it changes a {type(obj).__name__} that was there before")

    def augmented_in(self, obj: Any, name: str) -> Any:
        if isinstance(obj, state.tensor) and name == "grad" and obj._edge is None and self.effects.slot(obj):
            return obj
        if self.is_outer(obj) or isinstance(obj, state.tensor):
            self.stop(f"it changes attribute {name!r} of a {type(obj).__name__} that was there before")
        return obj


def hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@functools.lru_cache(maxsize=4096)
def _moduletrusted(module: str) -> bool:
    head, _, rest = module.partition(".")
    return head == PACKAGE and not any(rest == p or rest.startswith(p + ".") for p in _PROGRAMS)


def trusted(fn: Any) -> bool:
    """Whether a function is one of the package that depends on its arguments and the modes only."""
    if isinstance(fn, Operator):
        return True
    module = getattr(fn, "__module__", None) or ""
    if module in ("functools", "operator", "math", "typing", "collections.abc", "abc", "enum"):
        return True
    return _moduletrusted(module)
