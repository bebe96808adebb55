"""Hangs the operators onto the package, its namespaces and Tensor. Knows names only."""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import dispatch, window  # noqa: F401 - window declares resize_ and kin
from .core.errors import DtypeError, ShapeError, received
from .core.mode import mode
from .core.promotion import can_cast
from .ops.registry import COMPOSITES, OPS, Composite, F, Op
from .ops.shape import PROPERTIES


def composite_out(record: str, run: Callable[[], Any], values: Any, out: Any) -> Any:
    """`out=` of a composite: compute without a graph, then write."""
    composite = COMPOSITES[record]
    dispatch.refuse_grad(composite, values, out)
    saved, mode.grad = mode.grad, False
    cast, mode.autocast = mode.autocast, {}  # who names the result's dtype wants no other
    try:
        result = run()
    finally:
        mode.grad, mode.autocast = saved, cast
    return dispatch.write_out(composite, result, out)


def composite_inplace(name: str, x: Any, run: Callable[[Any], Any]) -> Any:
    """In-place form of a composite: compute from x, then write over it."""
    tracked = mode.grad and x._rg
    dispatch.check_writable(name + "_", x, tracked)
    cast, mode.autocast = mode.autocast, {}
    try:
        # Backward may need the old value of x, so the graph holds a copy instead.
        result = run(dispatch.private_copy(x) if tracked else x)
    finally:
        mode.autocast = cast
    if not can_cast(result._spec.dtype, x._spec.dtype):
        raise DtypeError(f"{name}_: result type {result._spec.dtype} can't be cast to {x._spec.dtype}.")
    if result._spec.shape != x._spec.shape:
        raise ShapeError(
            f"{name}_: the tensor's shape {x._spec.shape} doesn't match the result's {result._spec.shape}."
        )
    return F.copy_(x, result)


# How Python begins to say that an operator or function of its own does not take a value.
_PYTHONS = re.compile(
    r"unsupported operand|bad operand|'.{1,3}' not supported between|'[\w.]+' object is not|"
    r"object of type|argument of type|cannot unpack|ufunc "
)


def wrong_argument(name: str, error: AttributeError | TypeError) -> None:
    """Raise a TypeError that names the function when one of its arguments is of a wrong type: a
    tensor's attribute was asked of something else, or Python cannot compute with it.

    Asking only after the failure keeps calls with right arguments as short as they were.
    """
    if isinstance(error, TypeError):
        if _PYTHONS.match(str(error)):
            text = str(error).rstrip(".")
            raise TypeError(f"{name}: an argument has the wrong type ({text}).") from error
        return
    kind = dispatch.state.tensor
    known = hasattr(kind, error.name) or error.name in kind.__annotations__
    if known and not isinstance(error.obj, kind):
        raise TypeError(f"{name}: expected a Tensor, got {received(error.obj)}.") from None


def _blaming(c: Composite) -> Callable[..., Any]:
    """A composite that reads its arguments by itself, with the same care for what is no tensor."""
    run = getattr(c, "public", None)
    if run is None:

        @functools.wraps(c.fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return c.fn(*args, **kwargs)
            except (AttributeError, TypeError) as error:
                wrong_argument(c.name, error)
                raise

        c.public = run
    return run


def namespace(root: Any, path: str) -> Any:
    """The module `root.path`, made if it is not there."""
    here = root
    name = root.__name__
    for part in path.split("."):
        if not part:
            continue
        name = f"{name}.{part}"
        found = getattr(here, part, None)
        if not isinstance(found, types.ModuleType):
            found = sys.modules.get(name) or types.ModuleType(name)
            sys.modules[name] = found
            setattr(here, part, found)
        here = found
    return here


def bindings(functions: Any) -> Iterator[tuple[str, str, Any, Op | Composite | None]]:
    """Every public function as (namespace, name, function, declaration); methods have "Tensor", in-place forms no
    declaration.
    """
    from .codegen import safe

    for key, item in [*OPS.items(), *COMPOSITES.items()]:
        if item.name.startswith("_"):
            continue
        names = (item.name, *item.aliases)
        fn = getattr(functions, safe(key), None) or _blaming(item)  # type: ignore[arg-type]
        fn.__doc__ = item.doc
        spaces = [*item.namespaces, *(["Tensor"] if item.method else [])]
        yield from ((space, n, fn, item) for space in spaces for n in names)
        for path in item.also:
            space, _, n = path.rpartition(".")
            yield space, n, fn, item
        fn_ = getattr(functions, safe(key) + "_", None) if item.inplace else None
        if fn_ is None:
            continue
        fn_.__doc__ = f"In-place form of `{item.name}`."
        for n in names:
            yield "Tensor", n + "_", fn_, None
            if item.inplace_function:
                yield from ((space, n + "_", fn_, None) for space in item.namespaces)


def fill(space: str, scope: dict[str, Any]) -> None:
    """Put the functions of one namespace into a module's globals."""
    from . import _functions

    scope.update({n: fn for where, n, fn, _ in bindings(_functions) if where == space})


def install(root: Any, functions: Any, tensor: Any) -> None:
    """Bind every public function and method."""
    short: dict[Any, Any] = {}
    for space, name, fn, item in bindings(functions):
        if item is not None and item.returns_view and space in ("", "Tensor"):
            if fn not in short:
                short[fn] = dispatch.remembering(fn)
            fn = short[fn]
        if item is not None and item.shortcut is not None:
            fn = dispatch.shortened(fn, item.shortcut)
        if space == "Tensor":
            setattr(tensor, name, fn)
        elif space != "nn.functional":  # fills itself when it is imported
            setattr(namespace(root, space), name, fn)
    for name, read in PROPERTIES.items():
        write = _writer(read) if name in ("real", "imag") else None
        setattr(tensor, name, property(read, write))
    tensor.__getitem__ = dispatch.remembering(tensor.__getitem__, indexes=True)


def _writer(read: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    """`x.real = v` writes through the view that `x.real` is."""
    return lambda x, value: F.copy_(read(x), value)
