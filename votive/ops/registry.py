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
from typing import Any, TypeVar, overload

from ..backends.base import MUTATES
from ..backends.cpu.native.loader import module as native
from ..core.mode import mode
from ..formula import Expr, Formula, var
from .autocast_policy import Policies, policies_of
from .schema import Schema, parse

Rule = Callable[..., Any]
Fn = TypeVar("Fn", bound=Callable[..., Any])

OPS: dict[str, Op] = {}
COMPOSITES: dict[str, Composite] = {}


class Op:
    """One operator with a kernel: schema, shape and dtype rule, gradient, and where it appears."""

    def __init__(
        self,
        schema: str,
        *,
        kind: str,
        infer: Rule | None = None,
        canon: Rule | None = None,
        grad: dict[str, Rule] | Rule | None = None,
        doc: str = "",
        namespaces: tuple[str, ...] = ("",),
        method: bool = True,
        inplace: bool = False,
        out: bool = True,
        aliases: tuple[str, ...] = (),
        also: tuple[str, ...] = (),
        differentiable: bool = True,
        n_out: int = 1,
        result: str | None = None,
        register: bool = True,
        mutates: tuple[str, ...] = (),
        across: bool = False,
        autocast: Policies | None = None,
        partial: bool = False,
    ) -> None:
        self._text = schema
        self._schema: Schema | None = None
        self.name = schema[: schema.index("(")].strip()
        self.kind = kind
        self.infer = infer
        self.canon = canon
        self.grad = grad
        self._doc = doc
        self.namespaces = namespaces
        self.method = method
        self.has_inplace = inplace
        self.out = out
        self.aliases = aliases
        self.also = also
        self.differentiable = differentiable
        self.n_out = n_out
        self.partial = partial  # its gradient rule takes None for results that nobody used
        self.result = result
        self.mutates = mutates  # arguments that the kernel writes into
        self.across = across  # its tensors may be on different devices
        if mutates:
            MUTATES[self.name] = lambda: frozenset(self.schema.names.index(n) for n in mutates)
        self.autocast = autocast
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
            if autocast is None:
                self.autocast = policies_of(self.name)

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

    @property
    def doc(self) -> str:
        """The docstring without its indentation; cleaned only when somebody reads it."""
        return inspect.cleandoc(self._doc)

    # Set by the dispatcher, which lies above this layer.
    call: Callable[..., Any]
    inplace: Any
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


class Composite:
    """A public function written with other operators."""

    def __init__(self, fn: Callable[..., Any], name: str, **options: Any) -> None:
        self.fn = fn
        self.name = name
        self._doc = fn.__doc__ or ""
        self.namespaces: tuple[str, ...] = options.pop("namespaces", ("",))
        self.method: bool = options.pop("method", True)
        self.has_inplace: bool = options.pop("inplace", False)
        self.out: bool = options.pop("out", False)
        self.aliases: tuple[str, ...] = options.pop("aliases", ())
        self.also: tuple[str, ...] = options.pop("also", ())
        self.autocast: Policies | None = options.pop("autocast", None)
        self.public: Callable[..., Any] | None = None  # what users get where that is not `fn`
        inner = inspect.unwrap(fn)
        self.defined_at = (inner.__code__.co_filename, inner.__code__.co_firstlineno)
        if options:
            raise TypeError(f"composite {name}: unknown options {sorted(options)}.")

    # Set by the dispatcher: (policies, function, args, kwargs) -> result.
    run_cast: Callable[..., Any]

    def apply_autocast(self, policies: Policies) -> None:
        """Let the function look whether autocast is on, and cast its arguments then."""
        fn = self.fn

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            if mode.autocast:
                return Composite.run_cast(policies, fn, args, kwargs)
            return fn(*args, **kwargs)

        self.autocast, self.fn = policies, run

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self._doc)


def _caller() -> tuple[str, int]:
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("?", 0)


def pointwise(
    schema: str,
    formula: Callable[..., Expr],
    *,
    doc: str,
    dtypes: Any = "promote",
    allow: str = "bifc",
    grad: dict[str, Callable[..., Expr]] | None = None,
    inplace: bool = True,
    **options: Any,
) -> Op:
    """Declare an elementwise operator by its formula.

    `dtypes`: "promote", "float" (integers become the default float), "bool" (a test) or a function
    (promoted dtype) -> (compute dtype, result dtype). `allow`: kinds accepted, of b, i, f, c.
    """
    op = Op(schema, kind="pointwise", doc=doc, inplace=inplace, **options)
    op.builder = formula
    op.grad_builders = grad or {}
    op.dtype_rule = dtypes
    op.allow = allow
    if dtypes == "bool":
        op.differentiable = False
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
        policies = c.autocast or policies_of(record)
        if policies is not None:
            c.apply_autocast(policies)
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
