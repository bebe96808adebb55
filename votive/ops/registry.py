"""What an operator is, and the table of all of them. Knows how operators are declared, not how
they run.

Three ways to declare one:
  pointwise("gelu(Tensor input)", lambda x: ..., doc=...)     a formula; the rest is derived
  structured("cumsum(Tensor input, int dim)", infer=..., grad=..., doc=...)     has its own kernel
  @composite                                                  Python over other operators
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, Union, overload

from ..backends.base import MUTATES
from ..backends.cpu.native.loader import module as native
from ..core.layout import Shape, Spec
from ..core.mode import mode
from ..formula import Expr, Formula, apply, var
from .autocast_policy import Policies
from .schema import Schema, parse

Rule = Callable[..., Any]
Fn = TypeVar("Fn", bound=Callable[..., Any])

OPS: dict[str, Op] = {}
COMPOSITES: dict[str, Composite] = {}


class Context(Protocol):
    """What a gradient rule is given: the recorded call, with its arguments and results as attributes.

    `c.input` and `c.dim` are arguments by their names in the schema, `c.out` is the result, or `c.out0`, `c.out1`.
    """

    def __getattr__(self, name: str) -> Any: ...

    def spec(self, name: str) -> Spec:
        """Shape and dtype of an argument, whether or not its value was kept."""

    def shape(self, name: str) -> Shape:
        """The shape of an argument."""

    def needs(self, name: str) -> bool:
        """Whether this argument's gradient is wanted."""


# What a call with plain arguments comes down to: an operator and its arguments, where the operator may be None for
# "the tensor itself"; None when the function has to run. Calls are known by the spec of a tensor, so no answer may
# depend on its values.
Resolved = Union["tuple[Op | None, tuple[Any, ...]]", None]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Options:
    """Everything that a declaration may say of an operator beside its schema and rules: the keyword options of
    `pointwise`, `structured`, `view` and `composite`. No other table speaks of operators by name.
    """

    # Where it appears. Given as `hidden=True`, and for names that begin with an underscore: nowhere.
    namespaces: tuple[str, ...] = ("",)  # as a function: "" is votive itself, "linalg", "nn.functional"
    method: bool = True  # as a method of Tensor
    aliases: tuple[str, ...] = ()  # other names, in the same places
    also: tuple[str, ...] = ()  # other places, as paths: "special.expit"
    operator: str = ""  # Python's operator: "add" makes `+`, where it has them also reflected and in place

    # Its in-place form, and `out=`.
    inplace: bool = False  # has one, named with an underscore
    inplace_function: bool = False  # that is a function too, not only a method
    out: bool = True
    out_exact_dtype: bool = False  # `out` must have just the dtype of the result
    out_no_overlap: bool = False  # `out` must not share memory with an input: it is read at places given by data

    # Its results.
    n_out: int = 1
    result: str | None = None  # the named tuple that holds them
    returns_view: bool = False  # the result is, or may be, a view: which plan its arguments led to is remembered

    # How it is called.
    autocast: Policies | None = None
    mutates: tuple[str, ...] = ()  # arguments that the kernel writes into
    across: bool = False  # its tensors may be on different devices
    rounds_numbers: bool = False  # a number beside a half tensor is rounded first, as in torch, not taken in float32
    shortcut: Callable[..., Resolved] | None = None  # a composite: what it comes down to

    typical: tuple[tuple[Any, ...], ...] = ()  # static arguments that are common in programs, for kernels made ahead

    # How elements of its arguments get into its results, for those who follow values.
    elementwise: bool = False  # each element counts for one element, as in every formula
    moves: tuple[int, ...] = ()  # elements are only moved: those of the arguments at these positions
    skips_elements: bool = False  # some elements of an argument may count for nothing
    rowwise: bool = False  # computes row by row, along the dimension that is its second argument
    overwrites: bool = False  # of its first argument only shape and dtype count
    gate: bool = False  # an activation whose units are off where its first argument is not positive

    # Its gradient.
    differentiable: bool = True
    partial: bool = False  # its gradient rule takes None for results that nobody used


class Declaration(Options):
    """What operators and composites have in common: a name, where they are declared, and the options."""

    name: str
    defined_at: tuple[str, int]  # file and line
    _doc: str

    @property
    def doc(self) -> str:
        """The docstring without its indentation; cleaned only when somebody reads it."""
        return inspect.cleandoc(self._doc)


def _places(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a declaration, in which what is hidden appears nowhere."""
    if options.pop("hidden", name.startswith("_")):
        options.update(namespaces=(), method=False, inplace=False, out=False)
    return options


class Op(Declaration):
    """One operator with a kernel: schema, shape and dtype rule, and gradient."""

    def __init__(
        self,
        schema: str,
        *,
        kind: str,
        infer: Rule | None = None,
        canon: Rule | None = None,
        grad: dict[str, Rule] | Rule | None = None,
        doc: str = "",
        register: bool = True,
        **options: Any,
    ) -> None:
        self.name = schema[: schema.index("(")].strip()
        super().__init__(**_places(self.name, options))
        self._text = schema
        self._schema: Schema | None = None
        self.kind = kind
        self.infer = infer
        self.canon = canon
        self.grad = grad
        self._doc = doc
        if self.mutates:
            MUTATES[self.name] = lambda: frozenset(self.schema.names.index(n) for n in self.mutates)
        self.plans: dict[Any, Any] = {}
        self.fast_plans: list[dict[Any, Any]] = []
        self.defined_at = _caller()
        self.builder: Callable[..., Expr] | None = None
        self.grad_builders: dict[str, Callable[..., Expr]] = {}
        self.dtype_rule: Any = "promote"
        self.allow = "bifc"
        self._formulas: dict[tuple[Any, ...], Formula] = {}
        if register:
            if self.name in OPS:
                raise ValueError(f"operator {self.name!r} is declared twice.")
            OPS[self.name] = self

    @property
    def schema(self) -> Schema:
        """Name, arguments and defaults; read from the text when first needed, to keep imports
        short.
        """
        if self._schema is None:
            self._schema = parse(self._text)
        return self._schema

    def defaults(self, start: int) -> tuple[Any, ...]:
        """Default values of the arguments from position `start` on."""
        return tuple(a.default for a in self.schema.args[start:])

    # Set by the dispatcher, which lies above this layer.
    call: Callable[..., Any]
    write: Callable[..., Any]  # the in-place form
    access: Any = None  # how the native module reads the arguments, once they were seen

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Op.call(self, self.bind(args, kwargs))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments in schema order with defaults filled in."""
        if not kwargs and len(args) == len(self.schema.args):
            return args
        from .schema import REQUIRED

        values = list(args)
        if len(values) > len(self.schema.args):
            raise TypeError(f"{self.name}: takes {len(self.schema.args)} arguments, got {len(values)}.")
        for a in self.schema.args[len(values) :]:
            value = kwargs.pop(a.name, a.default)
            if value is REQUIRED:
                raise TypeError(f"{self.name}: missing argument {a.name!r}.")
            values.append(value)
        if kwargs:
            raise TypeError(f"{self.name}: unexpected argument {next(iter(kwargs))!r}.")
        return tuple(values)

    def forget(self) -> None:
        """Drop every plan."""
        self.plans.clear()
        for plans in self.fast_plans:
            plans.clear()
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

    def __repr__(self) -> str:
        return f"<op {self.schema}>"


def formula_op(formula: Formula) -> Op:
    """An unregistered operator that evaluates a formula; derived gradients and `fuse` use it."""
    args = ", ".join(f"Operand {p}" for p in formula.params)
    op = Op(f"{formula.name}({args})", kind="pointwise", register=False)
    op._formulas[()] = formula
    return op


class Composite(Declaration):
    """A public function written with other operators."""

    def __init__(self, fn: Callable[..., Any], name: str, *, out: bool = False, **options: Any) -> None:
        super().__init__(**_places(name, {"out": out, **options}))
        self.name = name
        self._doc = fn.__doc__ or ""
        self.public: Callable[..., Any] | None = None  # what users get where that is not `fn`
        inner = inspect.unwrap(fn)
        self.defined_at = (inner.__code__.co_filename, inner.__code__.co_firstlineno)
        self.fn = fn if self.autocast is None else self._casting(fn, self.autocast)

    # Set by the dispatcher: (policies, function, args, kwargs) -> result.
    run_cast: Callable[..., Any]

    @staticmethod
    def _casting(fn: Callable[..., Any], policies: Policies) -> Callable[..., Any]:
        """The function with a look whether autocast is on, which casts its arguments then."""

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            if mode.autocast:
                return Composite.run_cast(policies, fn, args, kwargs)
            return fn(*args, **kwargs)

        return run


def _caller() -> tuple[str, int]:
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("?", 0)


def pointwise(
    schema: str,
    formula: Callable[..., Expr] | None = None,
    *,
    doc: str,
    dtypes: Any = "promote",
    allow: str = "bifc",
    grad: dict[str, Callable[..., Expr]] | None = None,
    inplace: bool = True,
    **options: Any,
) -> Op:
    """Declare an elementwise operator by its formula; without one it is the primitive of its name.

    `dtypes`: "promote", "float" (integers become the default float), "bool" (a test) or a function
    (promoted dtype) -> (compute dtype, result dtype). `allow`: kinds accepted, of b, i, f, c.
    """
    if dtypes == "bool":
        options["differentiable"] = False
    op = Op(schema, kind="pointwise", doc=doc, inplace=inplace, **options)
    op.builder = formula or functools.partial(apply, op.name)
    op.grad_builders = grad or {}
    op.dtype_rule = dtypes
    op.allow = allow
    return op


def structured(schema: str, *, infer: Rule, doc: str = "", **options: Any) -> Op:
    """Declare an operator with a kernel of its own.

    `infer` gets the arguments in schema order with tensors replaced by Specs and returns the Spec
    of the result, a tuple of Specs, or None when the shape depends on the data.
    """
    return Op(schema, kind="structured", infer=infer, doc=doc, **options)


def view(schema: str, *, infer: Rule, doc: str = "", **options: Any) -> Op:
    """Declare an operator whose result shares memory: `infer` returns (Spec, offset change)."""
    options.setdefault("out", False)
    options.setdefault("returns_view", True)
    return Op(schema, kind="view", infer=infer, doc=doc, **options)


@overload
def composite(fn: Fn, *, name: str | None = None, key: str | None = None, **options: Any) -> Fn: ...


@overload
def composite(
    fn: None = None, *, name: str | None = None, key: str | None = None, **options: Any
) -> Callable[[Fn], Fn]: ...


def composite(
    fn: Callable[..., Any] | None = None, *, name: str | None = None, key: str | None = None, **options: Any
) -> Any:
    """Declare a public function written with other operators.

    `key` names the record when one public name has two forms, as `split` and `Tensor.split`.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        c = Composite(fn, name or fn.__name__, **options)
        space = c.namespaces[0] if c.namespaces else ""
        record = key or (f"{space}.{c.name}" if space else c.name)
        if record in COMPOSITES or record in OPS:
            raise ValueError(f"operator {record!r} is declared twice.")
        COMPOSITES[record] = c
        return c.fn

    return register if fn is None else register(fn)


class _Surface:
    """Every operator as an attribute, for gradients and composites: `F.where(c, a, b)`."""

    def __getattr__(self, name: str) -> Any:
        c = COMPOSITES.get(name)
        if c is None and name not in OPS:
            raise AttributeError(f"no operator named {name!r}")
        if c is not None:
            found: Any = c.fn
        else:
            found = OPS[name] if native is None else native.Bound(OPS[name])
        setattr(self, name, found)
        return found


F: Any = _Surface()
