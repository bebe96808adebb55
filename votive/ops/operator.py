"""What an operator is: one object that declares it and is called by users, as a function and as a method.

Knows how arguments are bound, not how anything runs: the dispatcher fills in `run`, `write` and kin.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

from ..backends.base import MUTATES
from ..backends.cpu.native.loader import module as native
from ..core.errors import NeedsExamples
from ..core.mode import mode
from ..formula import Expr, Formula, var
from .declaration import Declaration, places
from .plain_operator import PlainOperator
from .schema import REQUIRED, Arg, Schema, parse
from .spellings import both_spellings, spellings

Rule = Callable[..., Any]


_Base: Any = PlainOperator if native is None else native.Operator


class Operator(Declaration, _Base):  # type: ignore[misc]
    """A public function: its name, where it appears, and the general way of a call.

    Calls with a plan, or that came down to one, pass the native class this derives from. Everything else
    (the first call with given layouts, observers, autocast, `out=`, wrong arguments) comes to `general`.
    """

    name: str
    defined_at: tuple[str, int]
    _doc: str
    # Set by the dispatcher.
    blame_for: ClassVar[Callable[[Operator, Exception], None]]
    # Whether some class of objects answers calls itself, how they are asked, and what says that none did.
    overriding: ClassVar[bool] = False
    ask: ClassVar[Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]]
    watch: ClassVar[Callable[[], None]]
    nothing: ClassVar[Any]
    # Runs calls with tensors whose class computes in its own way, or gives NotImplemented; None until there are some.
    elsewhere: ClassVar[Callable[[str, Operator, tuple[Any, ...], dict[str, Any]], Any] | None] = None

    def overridden(self, *args: Any, **kwargs: Any) -> Any:
        """A call that an argument may answer itself."""
        Operator.watch()
        return self.general(*args, **kwargs)

    def general(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def blame(self, error: Exception) -> None:
        """Raise another error when an argument of a wrong type was the cause of this one."""
        Operator.blame_for(self, error)

    @property
    def doc(self) -> str:
        """The docstring without its indentation; cleaned only when somebody reads it."""
        return inspect.cleandoc(self._doc)

    def _called(self, name: str) -> None:
        """Take a name, and look like the function of that name."""
        self.name = self.__name__ = self.__qualname__ = name
        space = self.namespaces[0] if self.namespaces else ""
        self.__module__ = f"votive.{space}" if space else "votive"

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in self.parameters()])

    def parameters(self) -> Iterator[inspect.Parameter]:
        raise NotImplementedError

    @property
    def spellings(self) -> dict[str, str]:
        raise NotImplementedError

    def _extra_parameters(self) -> Iterator[inspect.Parameter]:
        for name in (("out",) if self.out else ()) + tuple(self.spellings):
            yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)

    def respell(self, kwargs: dict[str, Any]) -> None:
        """Let `axis` and `keepdims` be what they are in torch."""
        for other, name in self.spellings.items():
            value = kwargs.pop(other, None)
            if value is not None:
                if kwargs.get(name) is not None:
                    raise TypeError(both_spellings(self.name, name, other))
                kwargs[name] = value

    @cached_property
    def inplace_form(self) -> Form:
        """The operator that writes its result over the first argument."""
        return Form(self, "in place")

    def __reduce__(self) -> Any:
        return self.name

    def __repr__(self) -> str:
        return f"<votive operator {self.name}{self.__signature__}>"


def _answers(v: Any) -> bool:
    """Whether an object that is no tensor answers calls itself."""
    return not hasattr(v, "_spec") and hasattr(type(v), "__torch_function__")


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    for v in values:
        if v.__class__ in (tuple, list):
            yield from v
        else:
            yield v


class Op(Operator):
    """An operator with kernels: schema, shape and dtype rule, gradient."""

    # Set by the dispatcher, which lies above this layer.
    run: ClassVar[Callable[[Op, tuple[Any, ...]], Any]]
    write_out: ClassVar[Callable[[Op, tuple[Any, ...], Any], Any]]
    compile: ClassVar[Callable[[Op], Callable[..., Any]]]
    key: Callable[[tuple[Any, ...]], Any]
    values: Callable[[tuple[Any, ...]], tuple[Any, ...]]

    def __init__(
        self,
        schema: str,
        *,
        kind: str,
        infer: Rule | None = None,
        canon: Rule | None = None,
        grad: dict[str, Rule] | Rule | None = None,
        doc: str = "",
        **options: Any,
    ) -> None:
        name = schema[: schema.index("(")].strip()
        super().__init__(**places(name, options))
        self._called(name)
        self._text = schema
        self.kind = kind
        self.infer = infer
        self.canon = canon
        self.grad = grad
        self._doc = doc
        if self.mutates:
            MUTATES[self.name] = lambda: frozenset(self.schema.names.index(n) for n in self.mutates)
        self.plans: dict[Any, Any] = {}
        self.defined_at = caller()
        self.builder: Callable[..., Expr] | None = None
        self.grad_builders: dict[str, Callable[..., Expr]] = {}
        self.dtype_rule: Any = "promote"
        self.allow = "bifc"
        self._formulas: dict[tuple[Any, ...], Formula] = {}

    @cached_property
    def schema(self) -> Schema:
        """Name, arguments and defaults; read from the text when first needed, to keep imports short."""
        return parse(self._text)

    @cached_property
    def positional(self) -> int:
        """How many arguments may be given by position; all of an operator that only other operators call."""
        public = not self.name.startswith("_")
        return sum(not (public and a.keyword_only) for a in self.schema.args)

    @cached_property
    def spellings(self) -> dict[str, str]:
        return spellings([(a.name, a.default is REQUIRED) for a in self.schema.args])

    def defaults(self, start: int) -> tuple[Any, ...]:
        """Default values of the arguments from position `start` on."""
        return tuple(a.default for a in self.schema.args[start:])

    def parameters(self) -> Iterator[inspect.Parameter]:
        respelt = self.spellings.values()
        for a in self.schema.args:
            kind = inspect.Parameter.KEYWORD_ONLY if a.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
            default = a.default if a.default is not REQUIRED else None if a.name in respelt else inspect.Parameter.empty
            yield inspect.Parameter(a.name, kind, default=default)
        yield from self._extra_parameters()

    def compiled(self) -> Callable[..., Any]:
        return Op.compile(self)

    def general(self, *args: Any, **kwargs: Any) -> Any:
        if Operator.overriding:
            result = Operator.ask(self, args, kwargs)
            if result is not Operator.nothing:
                return result
        out = kwargs.pop("out", None) if self.out else None
        values = self.bind(args, dict(kwargs))
        try:
            return Op.run(self, values) if out is None else Op.write_out(self, values, out)
        except TypeError:
            # Perhaps of an object that would answer the call itself, of a class that was not seen before. Tensors have
            # the method as well, and classes of them that override are known since they were made.
            if not Operator.overriding and any(_answers(v) for v in _flat(values)):
                return self.overridden(*args, **(kwargs if out is None else {**kwargs, "out": out}))
            raise

    def as_given(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments in schema order as a user may give them: defaults left out, some by name."""
        args = self.schema.args
        last = max((i + 1 for i, a in enumerate(args) if values[i] is not a.default), default=0)
        rest = zip(args[self.positional :], values[self.positional :], strict=True)
        return values[: min(last, self.positional)], {a.name: v for a, v in rest if v is not a.default}

    def general_values(self, values: tuple[Any, ...]) -> Any:
        """The general way, with arguments in schema order."""
        if Operator.overriding:
            result = Operator.ask(self, *self.as_given(values))
            if result is not Operator.nothing:
                return result
        return Op.run(self, values)

    def apply_general(self, args: tuple[Any, ...]) -> Any:
        return Op.run(self, args)

    def write(self, args: tuple[Any, ...]) -> Any:
        """Run on arguments in schema order, and write the result over the first."""
        return self.inplace_form.apply(args)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments in schema order with defaults filled in, or the TypeError that a function would raise."""
        if kwargs:
            self.respell(kwargs)
        wanted = self.schema.args
        if len(args) > self.positional:
            plural = "" if self.positional == 1 else "s"
            raise TypeError(
                f"{self.name}() takes {self.positional} positional argument{plural} but {len(args)} were given"
            )
        values = list(args)
        missing: list[Arg] = []
        for a in wanted[len(values) :]:
            value = kwargs.pop(a.name, a.default)
            if value is REQUIRED:
                missing.append(a)
            values.append(value)
        if kwargs:
            name = next(iter(kwargs))
            known = any(a.name == name for a in wanted)
            what = "multiple values for argument" if known else "an unexpected keyword argument"
            raise TypeError(f"{self.name}() got {what} {name!r}")
        if missing:
            names = " and ".join(repr(a.name) for a in missing)
            plural = "" if len(missing) == 1 else "s"
            raise TypeError(f"{self.name}() missing {len(missing)} required positional argument{plural}: {names}")
        return tuple(values)

    def forget(self) -> None:
        """Drop every plan."""
        self.plans.clear()
        if self.builder is not None:
            self._formulas.clear()  # one per value of the static arguments

    def formula(self, static: tuple[Any, ...]) -> Formula:
        """The formula for given static arguments (in schema order, runtime ones left out)."""
        key = tuple((type(s), s) for s in static)
        found = self._formulas.get(key)
        if found is None:
            assert self.builder is not None
            given = iter(static)
            operands = [var(a.name) if a.is_runtime else next(given) for a in self.schema.args]
            body = self.builder(*operands)
            names = self.schema.runtime_names
            found = Formula(self.name, names, body)
            for by, build in self.grad_builders.items():
                found.grads[by] = build(var(found.incoming), *operands, var(found.result))
            self._formulas[key] = found
        return found


class Composite(Operator):
    """A public function written with other operators."""

    # Set by the dispatcher.
    run_cast: ClassVar[Callable[..., Any]]
    run_out: ClassVar[Callable[..., Any]]
    one_by_one: ClassVar[Callable[..., Any]]
    memory: ClassVar[Callable[[], dict[Any, Any]]]

    def __init__(self, fn: Callable[..., Any], name: str, *, out: bool = False, **options: Any) -> None:
        super().__init__(**places(name, {"out": out, **options}))
        self._called(name)
        self.fn = fn
        self._doc = fn.__doc__ or ""
        inner = inspect.unwrap(fn)
        self.defined_at = (inner.__code__.co_filename, inner.__code__.co_firstlineno)

    def _tell_native(self) -> None:
        """Let the native class run the function, and remember what its calls came down to."""
        special = tuple(sys.intern(n) for n in (*self.spellings, *(("out",) if self.out else ())))
        remembers = self.returns_view or self.indexes or self.shortcut is not None
        self._compose(self.fn, special, Composite.memory() if remembers else None, self.shortcut, self.indexes)
        self._composed = True

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.fn)

    @cached_property
    def spellings(self) -> dict[str, str]:
        ps = self.signature.parameters.values()
        if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in ps) or "axis" in self.signature.parameters:
            return {}
        return spellings([(p.name, p.default is p.empty and p.kind is not p.KEYWORD_ONLY) for p in ps])

    def parameters(self) -> Iterator[inspect.Parameter]:
        last = []
        for p in self.signature.parameters.values():
            if p.kind is p.VAR_KEYWORD:
                last.append(p)
            else:
                yield p.replace(default=None) if p.default is p.empty and p.name in self.spellings.values() else p
        yield from self._extra_parameters()
        yield from last

    def compiled(self) -> Callable[..., Any]:
        fn = self.fn

        def call(*args: Any, **kwargs: Any) -> Any:
            if not Operator.overriding and any(_answers(v) for v in _flat(args)):
                return self.overridden(*args, **kwargs)
            if kwargs or self.autocast is not None or Operator.overriding or Operator.elsewhere is not None:
                return self.general(*args, **kwargs)
            try:
                return fn(*args)
            except (AttributeError, TypeError) as error:
                self.blame(error)
                raise

        return call

    def general(self, *args: Any, **kwargs: Any) -> Any:
        if native is not None and not self._composed:
            self._tell_native()
        if Operator.overriding:
            result = Operator.ask(self, args, kwargs)
            if result is not Operator.nothing:
                return result
        if kwargs:
            self.respell(kwargs)
        if Operator.elsewhere is not None:
            result = Operator.elsewhere(self.name, self, args, kwargs)
            if result is not NotImplemented:
                return result
        out = kwargs.pop("out", None) if self.out else None
        if out is not None:
            return Composite.run_out(self, args, kwargs, out)
        try:
            if self.autocast is not None and mode.autocast:
                return Composite.run_cast(self.autocast, self.fn, args, kwargs)
            return self.fn(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            self.blame(error)
            raise
        except NeedsExamples as error:
            return Composite.one_by_one(self, args, kwargs, error)

    _composed = False


class Form(Operator):
    """Another way to call an operator: in place, or as Python's `+`, whose other side may be anything."""

    # Set by the dispatcher.
    run: ClassVar[Callable[[Form, tuple[Any, ...], dict[str, Any]], Any]]
    write: ClassVar[Callable[[Op, tuple[Any, ...]], Any]]
    compile: ClassVar[Callable[[Form], Callable[..., Any]]]
    ask_form: ClassVar[Callable[[Form, tuple[Any, ...]], Any]]
    configured = False

    def __init__(self, of: Operator, kind: str) -> None:
        super().__init__(namespaces=of.namespaces, aliases=of.aliases, out=False, autocast=of.autocast)
        self.of = of
        self.kind = kind  # "in place", "operator", "reflected" or "operator in place"
        self._called(of.name + "_" if "in place" in kind else of.name)
        what = {"in place": "In-place form", "reflected": "Reflected form"}.get(kind, "Python's operator")
        self._doc = f"{what} of `{of.name}`."
        self.defined_at = of.defined_at

    @property
    def spellings(self) -> dict[str, str]:
        return {}

    def parameters(self) -> Iterator[inspect.Parameter]:
        return (p for p in self.of.parameters() if p.name not in ("out", *self.of.spellings))

    def compiled(self) -> Callable[..., Any]:
        return Form.compile(self)

    def general(self, *args: Any, **kwargs: Any) -> Any:
        if Operator.overriding:
            result = Operator.ask(self, args, kwargs) if self.kind == "in place" else Form.ask_form(self, args)
            if result is not Operator.nothing:
                return result
        return Form.run(self, args, kwargs)

    def general_values(self, values: tuple[Any, ...]) -> Any:
        """The general way of the form in place, with arguments in the operator's order."""
        assert isinstance(self.of, Op)
        args, kwargs = self.of.as_given(values)
        return self.general(*args, **kwargs)

    def apply_general(self, args: tuple[Any, ...]) -> Any:
        assert isinstance(self.of, Op)
        return Form.write(self.of, args)

    def __reduce__(self) -> Any:
        return (getattr, (self.of, "inplace_form")) if self.kind == "in place" else (Form, (self.of, self.kind))


for _kind in (Op, Composite, Form):
    # The docstring of an operator is that of the function it is; a class of its own would hide it.
    _kind.__doc__ = property(lambda self: self.doc)  # type: ignore[assignment]


def caller() -> tuple[str, int]:
    """Where an operator is declared: the first frame outside the files that declare."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") in (__name__, __package__ + ".registry"):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("?", 0)
