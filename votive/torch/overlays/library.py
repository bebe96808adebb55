"""`torch.library`: operators of one's own, with kernels by device and gradients, called through `torch.ops`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core import dtype as dt
from ..custom_ops import REGISTRY, CustomOp, devices, find
from ..op_schema import infer_schema, signature_of, written
from ..tags import Tag

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

Fn = Callable[..., Any]


class CustomOpDef:
    """What `custom_op` gives: it can be called, and more can be registered with it."""

    def __init__(self, op: CustomOp, fn: Fn) -> None:
        self._op, self._init_fn = op, fn
        self._name, self._namespace, self._qualname = op.name, op.space, op.qualname
        self._opoverload = op.default

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Fn | None = None, /) -> Any:
        """Let another function compute on these devices."""
        return register_kernel(self._op, device_types, fn)

    def register_fake(self, fn: Fn, /) -> Fn:
        """Let a function make results without values, for inputs on "meta"."""
        self._op.fake = fn
        return fn

    def register_autograd(self, backward: Fn, /, *, setup_context: Fn | None = None) -> None:
        """State the gradient: `backward(ctx, *grads)`, and what `setup_context(ctx, inputs, output)` keeps for it."""
        self._op.set_autograd(backward, setup_context)

    def register_autocast(self, device_type: str, cast_inputs: dt.dtype) -> None:
        """Compute in a dtype while autocast is on."""
        register_autocast(self._op, device_type, cast_inputs)

    def register_vmap(self, func: Fn | None = None) -> Any:
        """State how batches are computed."""
        return register_vmap(self._op, func)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"


def _make(qualname: str, schema: str, mutates: bool) -> CustomOp:
    if "::" not in qualname:
        raise ValueError(f'Expected `name` to be of the form "namespace::name", got {qualname!r}.')
    made = REGISTRY[qualname] = CustomOp(qualname, signature_of(schema), f"{qualname}{schema}", mutates)
    return made


def custom_op(
    name: str,
    fn: Fn | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function, called as `torch.ops.namespace.name`; `mutates_args` is what it writes to."""
    given = _tags("custom_op", tags)
    mutates = bool(mutates_args if isinstance(mutates_args, str) else list(mutates_args))

    def wrap(fn: Fn) -> CustomOpDef:
        text = infer_schema(fn, mutates_args=mutates_args) if schema is None else written(schema)
        op = _make(name, text, mutates)
        for kind in devices(device_types):
            op.kernels[kind] = fn
        op.default.tags = given
        return CustomOpDef(op, fn)

    return wrap if fn is None else wrap(fn)


def triton_op(name: str, fn: Fn | None = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """An operator whose function launches Triton kernels."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """A Triton kernel that torch's tracers can see; there are none here, so it is the kernel itself."""
    return triton_kernel


def _tags(name: str, tags: Any) -> list[Tag]:
    """Tags as a list."""
    given = [] if tags is None else list(tags) if isinstance(tags, Iterable) else [tags]
    if any(not isinstance(tag, Tag) for tag in given):
        raise TypeError(f"{name}: tags are members of torch.Tag, got {tags!r}.")
    return given


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Name an operator, whose kernels `impl` gives."""
    given = _tags("define", tags)
    space = "" if lib is None or "::" in qualname else f"{lib.ns}::"
    _make(f"{space}{qualname}", written(schema), "!" in schema).default.tags = given


def impl(qualname: Any, types: str | Sequence[str], func: Fn | None = None, *, lib: Library | None = None) -> Any:
    """Register a function for an operator on devices, or under a dispatch key such as "CompositeImplicitAutograd"."""
    name = f"{lib.ns}::{qualname}" if lib is not None and "::" not in str(qualname) else qualname
    op = find(name)

    def register(fn: Fn) -> Fn:
        for key in [types] if isinstance(types, str) else types:
            _put(op, key, fn)
        return fn

    return register if func is None else register(func)


def _put(op: CustomOp, key: str, fn: Fn) -> None:
    known = {"CompositeExplicitAutograd": None, "BackendSelect": None, "default": None, "CPU": "cpu", "CUDA": "cuda"}
    if key in ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA"):
        op.composite = fn
    elif key == "Meta":
        op.fake = fn
    elif key in known:
        op.kernels[known[key]] = fn
    elif key.islower():
        op.kernels[key] = fn
    else:
        raise NotImplementedError(
            f"impl: the dispatch key {key!r} is torch's own; give types of devices, such as 'cpu'."
        )


def register_kernel(op: Any, device_types: Any, func: Fn | None = None, /, *, lib: Library | None = None) -> Any:
    """Let a function compute an operator on these devices."""
    if lib is not None and isinstance(op, str) and "::" not in op:
        op = f"{lib.ns}::{op}"
    found = find(op)

    def register(fn: Fn) -> Fn:
        found.kernels.update(dict.fromkeys(devices(device_types), fn))
        return fn

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Fn | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Let a function make an operator's results without values, for inputs on "meta"."""
    if lib is not None and isinstance(op, str) and "::" not in op:
        op = f"{lib.ns}::{op}"
    found = find(op)

    def register(fn: Fn) -> Fn:
        if found.fake is not None and not allow_override:
            raise RuntimeError(f"register_fake: {found.qualname} has a fake implementation already.")
        found.fake = fn
        return fn

    return register if func is None else register(func)


def register_autograd(op: Any, backward: Fn, /, *, setup_context: Fn | None = None, lib: Library | None = None) -> None:
    """State an operator's gradient."""
    if lib is not None and isinstance(op, str) and "::" not in op:
        op = f"{lib.ns}::{op}"
    find(op).set_autograd(backward, setup_context)


def impl_abstract(qualname: Any, func: Fn | None = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """The older name of `register_fake`."""
    return register_fake(qualname, func, lib=lib, _stacklevel=_stacklevel + 1)


def register_autocast(op: Any, device_type: str, cast_inputs: dt.dtype, /, *, lib: Library | None = None) -> None:
    """Let an operator compute in a dtype while autocast is on for a type of devices."""
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    if lib is not None and isinstance(op, str) and "::" not in op:
        op = f"{lib.ns}::{op}"
    find(op).casts[device_type] = cast_inputs


def register_vmap(op: Any, func: Fn | None = None, /, *, lib: Library | None = None) -> Any:
    """Say how a batch is computed: `func(info, in_dims, *args)` gives the results and their batch dimensions."""
    if lib is not None and isinstance(op, str) and "::" not in op:
        op = f"{lib.ns}::{op}"
    found = find(op)

    def register(fn: Fn) -> Fn:
        found.batched = fn
        return fn

    return register if func is None else register(func)


class _FakeContext:
    """What `get_ctx` gives to functions that make results without values."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """Refuse: a result without values has a size here, which numbers cannot decide."""
        raise NotImplementedError(
            f"new_dynamic_size: sizes between {min} and {max} that depend on numbers cannot be told without computing."
        )

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> _FakeContext:
    """For functions given to `register_fake`."""
    return _FakeContext()


_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check that an operator does what was registered for it: it writes only what its schema says, its results without
    values look like those with, and its gradient is one where it is differentiable.
    """
    from ..opcheck import check

    return check(find(op), args, kwargs or {}, test_utils, raise_exception, atol, rtol)


class Library:
    """A group of operators under one namespace: `define` names them, `impl` gives their kernels."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator by its schema."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        name = schema.partition("(")[0].strip()
        define(f"{self.ns}::{name}", schema[len(schema.partition("(")[0]) :], tags=tags)
        return name

    def impl(self, op_name: Any, fn: Fn, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Register a kernel."""
        if with_keyset:
            raise NotImplementedError("Library.impl: there are no key sets here; leave with_keyset out.")
        impl(op_name, dispatch_key or self.dispatch_key or "CompositeImplicitAutograd", fn, lib=self)
