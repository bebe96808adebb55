"""Parameters computed from others each time they are read, by modules set before them.

A module with parametrizations gets a class of its own, derived from its class, with a property in
the place of the parameter; the tensors it is computed from live in `module.parametrizations`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, NoReturn, TypeVar

from ...autograd.modes import no_grad
from ...core import dtype as dt
from ...tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

M = TypeVar("M", bound=Module)


class _Cache(threading.local):
    depth: int = 0
    values: dict[tuple[int, str], Any] | None = None


_cache = _Cache()


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once.

    >>> from votive.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(
    ...     votive.nn.Linear(2, 2), "weight", votive.nn.Identity())
    >>> with parametrize.cached():
    ...     m.weight is m.weight
    True
    """
    _cache.depth += 1
    if _cache.values is None:
        _cache.values = {}
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values = None


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_same(what: str, tensor: object, shape: Sequence[int], dtype: dt.dtype) -> None:
    """Refuse a parametrization that gives something else than the tensor it stands for."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(tensor).__name__}.")
    if tensor.dtype is not dtype:
        raise ValueError(
            f"{what} may not change the dtype of the tensor, unless the `unsafe` flag is enabled.\n"
            f"unparametrized dtype: {dtype}\nparametrized dtype: {tensor.dtype}"
        )
    if tensor.shape != shape:
        raise ValueError(
            f"{what} may not change the shape of the tensor, unless the `unsafe` flag is enabled.\n"
            f"unparametrized shape: {shape}\nparametrized shape: {tensor.shape}"
        )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and what it is computed from.

    That is `original`, or `original0`, `original1`, … if `right_inverse` gives several tensors.

    >>> from votive.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(
    ...     votive.nn.Linear(2, 2), "weight", votive.nn.Identity())
    >>> m.parametrizations.weight.original.shape
    votive.Size([2, 2])
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = original
        with no_grad():
            for module in reversed(list(self)):
                # Without a right inverse it is taken to be the identity.
                with contextlib.suppress(NotImplementedError):
                    if hasattr(module, "right_inverse"):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._adopt(original, new)
        else:
            for i, part in enumerate(new):
                self._add_part(i, part, original)
        if not unsafe:
            _check_same("Registering a parametrization", self(), shape, dtype)

    def _adopt(self, original: Tensor, new: Tensor) -> None:
        """Keep the parameter itself, so that an optimizer that knows it needs no change."""
        for what in ("dtype", "device"):
            if getattr(original, what) is not getattr(new, what):
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {getattr(original, what)}\n"
                    f"right_inverse(original).{what}: {getattr(new, what)}"
                )
        original.data = new.detach()
        _register(self, "original", original)

    def _add_part(self, i: int, part: object, original: Tensor) -> None:
        if not isinstance(part, Tensor):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got element {i} of the sequence with type {type(part).__name__}."
            )
        if isinstance(original, Parameter):
            part = Parameter(part, original.requires_grad)
        _register(self, f"original{i}", part.requires_grad_(original.requires_grad))

    @no_grad()
    def right_inverse(self, value: Any) -> None:
        """Change the originals such that the parametrized tensor becomes `value`."""
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
            value = module.right_inverse(value)
        if self.is_tensor:
            if not isinstance(value, Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
            self._store("original", value)
            return
        if not isinstance(value, Sequence) or isinstance(value, Tensor):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
        if len(value) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length "
                f"{self.ntensors}. Got a sequence of length {len(value)}."
            )
        for i, part in enumerate(value):
            if not isinstance(part, Tensor):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got element {i} of type {type(part).__name__}."
                )
            self._store(f"original{i}", part)

    def _store(self, name: str, value: Tensor) -> None:
        original = getattr(self, name)
        if value.dtype is not original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `{name}` "
                f"has dtype {original.dtype}"
            )
        original.data = value.detach()

    def forward(self) -> Tensor:
        """The tensor: all parametrizations applied to the originals."""
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        first, *rest = self
        x = first(*[getattr(self, n) for n in names])
        for module in rest:
            x = module(x)
        return x


# --- the class with properties --------------------------------------------------------------------


def _refuse_pickling(self: Module) -> NoReturn:
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")


def _deepcopy(self: M, memo: dict[int, Any]) -> M:
    """Copies get a class of their own, as removing a parametrization changes the class."""
    cls = type(self)
    own = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__")}
    twin: Any = object.__new__(type(cls.__name__, cls.__bases__, own))
    memo[id(self)] = twin
    twin.__dict__.update(deepcopy(self.__dict__, memo))
    return twin


def _property(name: str) -> property:
    def read(self: Module) -> Tensor:
        compute = self.parametrizations[name]
        if _cache.values is None:
            return compute()
        key = (id(self), name)
        if key not in _cache.values:
            _cache.values[key] = compute()
        return _cache.values[key]

    def write(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def register_parametrization(module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> M:
    """Compute a parameter or buffer by a module from now on.

    The parametrization's `right_inverse`, if it has one, gives what to compute it from.

    >>> from votive.nn.utils import parametrize
    >>> class Symmetric(votive.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> m = parametrize.register_parametrization(votive.nn.Linear(3, 3), "weight", Symmetric())
    >>> votive.equal(m.weight, m.weight.T)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(getattr(module, tensor_name), parametrization)
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    # Made first: it may refuse, and then the module must be as it was.
    chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        cls = type(module)
        methods: dict[str, Any] = {"__getstate__": _refuse_pickling}
        if not hasattr(cls, "__deepcopy__"):
            methods["__deepcopy__"] = _deepcopy
        module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), methods)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = chain
    return module


def _check_further(present: Tensor, parametrization: Module) -> None:
    """A second parametrization must map tensors like the present one to such tensors."""
    shape, dtype = present.shape, present.dtype
    made = parametrization(present)
    _check_same("Registering a parametrization", made, shape, dtype)
    if hasattr(parametrization, "right_inverse"):
        with contextlib.suppress(NotImplementedError):
            back = parametrization.right_inverse(made)
            _check_same("parametrization.right_inverse", back, shape, dtype)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or one tensor of it, is parametrized.

    >>> votive.nn.utils.parametrize.is_parametrized(votive.nn.Linear(2, 2))
    False
    """
    chains = getattr(module, "parametrizations", None)
    if not isinstance(chains, ModuleDict):
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Make a tensor an ordinary one again, with its present value or with the original.

    >>> from votive.nn.utils import parametrize
    >>> m = parametrize.register_parametrization(
    ...     votive.nn.Linear(2, 2), "weight", votive.nn.Identity())
    >>> type(parametrize.remove_parametrizations(m, "weight")).__name__
    'Linear'
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    if chain.is_tensor:
        original = chain.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class a module had before it was parametrized.

    >>> votive.nn.utils.parametrize.type_before_parametrizations(votive.nn.Identity()).__name__
    'Identity'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: M, tensor_name: str | None = None) -> M:
    """Give a module the parametrizations of another, and what they compute from.

    >>> from votive.nn.utils import parametrize
    >>> a, b = votive.nn.Linear(2, 2), votive.nn.Linear(2, 2)
    >>> _ = parametrize.register_parametrization(a, "weight", votive.nn.Identity())
    >>> _ = parametrize.transfer_parametrizations_and_params(a, b)
    >>> votive.equal(a.weight, b.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for original in ["original"] if target.is_tensor else [f"original{i}" for i in range(target.ntensors)]:
            setattr(target, original, getattr(source, original))
    return to_module
