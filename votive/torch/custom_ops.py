"""Operators that programs define under a name of their own: implementations by device, gradients, `torch.ops`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..amp.autocast_mode import autocast, is_autocast_enabled
from ..autograd.function import Function
from ..autograd.modes import no_grad
from ..core import dtype as dt
from ..core.mode import mode
from ..tensor import Tensor

Fn = Callable[..., Any]


def _tensors(values: Iterable[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _tensors(value)
    return found


class Overload:
    """`torch.ops.ns.name.default`: one form of an operator. Calls go to the operator."""

    def __init__(self, op: CustomOp, name: str = "default") -> None:
        self._op, self._overloadname = op, name
        self.tags: list[Any] = []
        self.__name__ = f"{op.name}.{name}"

    @property
    def overloadpacket(self) -> CustomOp:
        """The operator itself."""
        return self._op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._op.space}.{self._op.name}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self._op.space}.{self.__name__}"


class CustomOp:
    """One operator: what computes it on which device, and how its gradient is computed."""

    def __init__(self, qualname: str, signature: inspect.Signature, schema: str, mutates: bool) -> None:
        self.space, _, self.name = qualname.partition("::")
        self.signature, self.schema, self.mutates = signature, schema, mutates
        self.kernels: dict[str | None, Fn] = {}  # by type of device; None is for all
        self.fake: Fn | None = None
        self.composite: Fn | None = None  # made of other operators, whose gradients it has
        self.casts: dict[str, dt.dtype] = {}  # under autocast, by type of device
        self.batched: Fn | None = None  # for vmap
        self._backward: Fn | None = None
        self._setup: Fn | None = None
        self.default = Overload(self)
        self.__name__ = self.name

    @property
    def qualname(self) -> str:
        """The name with its namespace: `ns::name`."""
        return f"{self.space}::{self.name}"

    def set_autograd(self, backward: Fn, setup_context: Fn | None) -> None:
        """State the gradient."""
        self._backward, self._setup = backward, setup_context

    def overloads(self) -> list[str]:
        """The forms there are."""
        return ["default"]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self.signature.bind(*args, **kwargs)
        given = bound.args
        bound.apply_defaults()
        if self.casts and (kind := self._cast_now(bound.args)) is not None:
            cast = tuple(a.to(kind) if isinstance(a, Tensor) and a.is_floating_point() else a for a in bound.args)
            with autocast(_tensors(bound.args)[0].device.type, enabled=False):
                return self(*cast, **bound.kwargs)
        if self.composite is not None:
            return self.composite(*bound.args, **bound.kwargs)
        if self.batched is not None and any(t._level for t in _tensors(bound.args)):
            return self._by_batches(given, bound.kwargs)
        # Keyword-only values of an operator are settings; they are given by name.
        if not mode.grad or not any(t.requires_grad for t in _tensors(bound.args)):
            return self._compute(bound.args, bound.kwargs)
        if self.mutates and self._backward is None:
            with no_grad():
                return self._compute(bound.args, bound.kwargs)
        return self._recorded(bound.args, bound.kwargs)

    def _cast_now(self, args: tuple[Any, ...]) -> dt.dtype | None:
        """The dtype that autocast asks for now, or None."""
        found = _tensors(args)
        place = found[0].device.type if found else "cpu"
        return self.casts.get(place) if is_autocast_enabled(place) else None

    def _by_batches(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call under `vmap`, as the rule that was registered says."""
        op = self
        assert self.batched is not None
        rule: Fn = self.batched

        class Batches(Function):
            @staticmethod
            def forward(*given: Any) -> Any:
                return op._compute(given, kwargs)

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                if op._setup is not None:
                    op._setup(ctx, inputs=inputs, output=output)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if op._backward is None:
                    raise RuntimeError(f"{op.qualname}: no autograd formula was registered; use register_autograd.")
                return op._backward(ctx, *grads)

            @staticmethod
            def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
                return rule(info, in_dims, *given, **kwargs)

        return Batches.apply(*args)

    def _compute(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors = _tensors((*args, *kwargs.values()))
        kind = tensors[0].device.type if tensors else "cpu"
        if kind == "meta" and self.fake is not None:
            return self.fake(*args, **kwargs)
        fn = self.kernels.get(kind) or self.kernels.get(None)
        if fn is None:
            there = ", ".join(str(k) for k in self.kernels) or "none"
            raise NotImplementedError(f"{self.qualname}: there is no kernel for {kind}; there are: {there}.")
        with no_grad():
            out = fn(*args, **kwargs)
        if not self.mutates:
            given = {id(t) for t in tensors}
            if any(id(t) in given for t in _tensors([out])):
                raise RuntimeError(
                    f"{self.qualname}: The output of this custom operator must not also be an input to it; "
                    "return a clone."
                )
        return out

    def _recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        op = self

        class Recorded(Function):
            @staticmethod
            def forward(ctx: Any, *given: Any) -> Any:
                out = op._compute(given, kwargs)
                if op._setup is not None:
                    more = {"keyword_only_inputs": kwargs} if kwargs else {}
                    op._setup(ctx, inputs=given, output=out, **more)
                return tuple(out) if isinstance(out, list) else out

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if op._backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {op.space}.{op.name}.default but no autograd formula was "
                        "registered. Please use register_autograd to add one."
                    )
                return op._backward(ctx, *grads)

        Recorded.__name__ = Recorded.__qualname__ = f"{self.space}_{self.name}"
        return Recorded.apply(*args)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.space}.{self.name}')>"

    def __str__(self) -> str:
        return f"{self.space}.{self.name}"


REGISTRY: dict[str, CustomOp] = {}


def find(op: Any) -> CustomOp:
    """The operator meant by `ns::name`, `ns::name.default`, an overload or a definition."""
    if isinstance(op, CustomOp):
        return op
    inner = getattr(op, "_op", None)
    if isinstance(inner, CustomOp):
        return inner
    found = REGISTRY.get(str(op).partition(".")[0])
    if found is None:
        raise RuntimeError(f"there is no operator {op}; define it with torch.library.custom_op or define first.")
    return found


def devices(device_types: str | Sequence[str] | None) -> list[str | None]:
    """The keys of the table of kernels for what a program says."""
    if device_types is None or device_types == "default":
        return [None]
    return [device_types] if isinstance(device_types, str) else list(device_types)


class Namespace:
    """`torch.ops.ns`: the operators of one namespace; of aten, votive's under their names."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        found = REGISTRY.get(f"{self.name}::{name}")
        if found is not None:
            return found
        if self.name == "aten" and not name.startswith("__"):
            from .aten_namespace import packet

            made = packet(name)
            if made is not None:
                return made
        raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return sorted(key.partition("::")[2] for key in REGISTRY if key.startswith(f"{self.name}::"))

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' (votive)>"


class Ops:
    """`torch.ops`: a namespace for every name, as in torch."""

    loaded_libraries: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = Namespace(name)
        return made

    def load_library(self, path: str) -> None:
        """Refuse: libraries of torch's C++ operators cannot be loaded."""
        raise OSError(
            f"Could not load this library: {path}. It holds operators compiled for torch, and votive is not torch."
        )

    def __repr__(self) -> str:
        return "<module 'torch.ops' (votive)>"


ops = Ops()
