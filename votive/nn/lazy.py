"""Modules whose parameters get their shapes from the first call. Knows no layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .parameter import is_lazy

if TYPE_CHECKING:
    from .module import Module as _Module
else:
    # A lazy class lists its module class second.
    _Module = object


class LazyModuleMixin(_Module):
    """Makes a module wait for its first input before it has parameters.

    A lazy class lists it first, registers uninitialised parameters and defines
    `initialize_parameters(*args)`; `cls_to_become` names the class it turns into.

    >>> class LazyScale(votive.nn.LazyModuleMixin, votive.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = votive.nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.factor.materialize(x.shape[-1:])
    ...         votive.nn.init.ones_(self.factor)
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> m = LazyScale()
    >>> m.has_uninitialized_params()
    True
    >>> m(votive.ones(2, 3)).shape, m.factor.shape
    (votive.Size([2, 3]), votive.Size([3]))
    """

    # The class the module turns into once its parameters exist.
    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(LazyModuleMixin._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes, from the arguments of the first call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer still waits."""
        tables = (*self._parameters.values(), *self._buffers.values())
        return any(is_lazy(value) for value in tables)

    @staticmethod
    def _infer_parameters(module: LazyModuleMixin, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """The pre-hook of the first call: initialise, then become an ordinary module."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {module._get_name()} has not been fully initialized: "
                "initialize_parameters left a parameter or buffer without a shape."
            )
        module._initialize_hook.remove()
        del module._initialize_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
