"""Weight normalisation by a forward pre-hook (Salimans and Kingma 2016): w = g·v / ‖v‖.

`parametrizations.weight_norm` is the newer form.
"""

from __future__ import annotations

import warnings
from typing import TypeVar

from ... import linalg
from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter, is_lazy

M = TypeVar("M", bound=Module)


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """The 2-norm over all dimensions but one; -1 means over all.

    >>> from votive.nn.utils.weight_norm import norm_except_dim
    >>> norm_except_dim(votive.tensor([[3.0, 4.0]]), 0)
    tensor([[5.]])
    """
    if dim == -1:
        return linalg.vector_norm(v)
    dim = dim % v.ndim
    others = tuple(d for d in range(v.ndim) if d != dim)
    if not others:
        return v.abs()
    return linalg.vector_norm(v, dim=others, keepdim=True)


def scaled_direction(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """g·v / ‖v‖.

    >>> from votive.nn.utils.weight_norm import scaled_direction
    >>> scaled_direction(votive.tensor([[3.0, 4.0]]), votive.tensor([[10.0]]), 0)
    tensor([[6., 8.]])
    """
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes the weight before each forward.

    >>> from votive.nn.utils.weight_norm import WeightNorm
    >>> WeightNorm("weight", 0).dim
    0
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight from its length and direction."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return scaled_direction(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Split a weight into length and direction, and register the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure "
                "to run the dummy forward before applying weight normalization"
            )
        fn = WeightNorm(name, dim)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight.data, fn.dim)))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, fn.compute_weight(module))
        module.register_forward_pre_hook(fn)
        return fn

    def remove(self, module: Module) -> None:
        """Put the product back as an ordinary parameter."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"]
        del module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Split a weight into length and direction, by a hook (deprecated form).

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     m = votive.nn.utils.weight_norm(votive.nn.Linear(2, 3))
    >>> m.weight_g.shape, m.weight_v.shape
    (votive.Size([3, 1]), votive.Size([3, 2]))
    """
    warnings.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo `weight_norm`, keeping the present weight.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     m = votive.nn.utils.weight_norm(votive.nn.Linear(2, 3))
    >>> [n for n, _ in votive.nn.utils.remove_weight_norm(m).named_parameters()]
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
