"""Spectral normalisation by a forward pre-hook (Miyato et al. 2018): w / σ, by power iteration.

`parametrizations.spectral_norm` is the newer form.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ... import linalg
from ...autograd.modes import no_grad
from ...ops.registry import F
from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter, is_lazy

M = TypeVar("M", bound=Module)


def unit(x: Tensor, eps: float) -> Tensor:
    """A vector of length one in the direction of `x`.

    >>> from votive.nn.utils.spectral_norm import unit
    >>> unit(votive.tensor([3.0, 4.0]), 1e-12)
    tensor([0.6000, 0.8000])
    """
    return x / linalg.vector_norm(x).clamp(min=eps)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight as a matrix whose rows are its outputs.

    >>> from votive.nn.utils.spectral_norm import as_matrix
    >>> as_matrix(votive.ones(2, 3, 5), 1).shape
    votive.Size([3, 10])
    """
    return weight.movedim(dim, 0).flatten(1) if dim else weight.flatten(1)


def outputs_dim(module: Module) -> int:
    """The dimension of a weight that counts outputs: 1 for transposed convolutions, else 0.

    >>> from votive.nn.utils.spectral_norm import outputs_dim
    >>> outputs_dim(votive.nn.ConvTranspose1d(1, 2, 3))
    1
    """
    from ... import nn

    kinds = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    return int(isinstance(module, kinds))


class SpectralNorm:
    """The hook that divides the weight by its largest singular value before each forward.

    >>> from votive.nn.utils.spectral_norm import SpectralNorm
    >>> SpectralNorm("weight").n_power_iterations
    1
    """

    # Version 1 saves both singular vectors; version 0 saved the left one and the divided weight.
    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim = name, dim
        self.n_power_iterations, self.eps = n_power_iterations, eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The divided weight; the singular vectors come closer to the true ones."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(unit(F.mv(matrix.t(), u), self.eps))
                    u.copy_(unit(F.mv(matrix, v), self.eps))
                # Copies: a second forward must not change what the first one's backward needs.
                u, v = u.clone(), v.clone()
        return weight / F.dot(u, F.mv(matrix, v))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Register the hook, and the singular vectors as buffers."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make "
                "sure to run the dummy forward before applying spectral normalization"
            )
        with no_grad():
            h, w = as_matrix(weight, dim).shape
            u = unit(weight.new_empty(h).normal_(0, 1), eps)
            v = unit(weight.new_empty(w).normal_(0, 1), eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        # A plain attribute, since code that initialises weights expects the name to be there.
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(fn)
        module._register_state_dict_hook(_MarkVersion(fn))
        module._register_load_state_dict_pre_hook(_UpgradeState(fn))
        return fn

    def remove(self, module: Module) -> None:
        """Put the divided weight back as an ordinary parameter."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


class _MarkVersion:
    """Writes the version of the format into the state's metadata."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state: dict[str, Any], prefix: str, local_metadata: dict[str, Any]) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        versions[f"{self.fn.name}.version"] = self.fn._version


class _UpgradeState:
    """Computes the right singular vector for states saved before it was kept."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing: list[str],
        *rest: Any,
    ) -> None:
        key = prefix + self.fn.name
        versions = local_metadata.get("spectral_norm", {})
        if versions.get(f"{self.fn.name}.version") is not None:
            return
        complete = all(key + s in state for s in ("_orig", "_u", "_v"))
        if complete and key not in state:
            return  # a present state whose metadata got lost
        absent = [key + s for s in ("_orig", "", "_u") if key + s not in state]
        if absent:
            if strict:
                missing.extend(absent)
            return
        with no_grad():
            original, u = state[f"{key}_orig"], state[f"{key}_u"]
            sigma = (original / state.pop(key)).mean()
            matrix = as_matrix(original, self.fn.dim)
            v = linalg.pinv(matrix) @ u
            state[f"{key}_v"] = v * (sigma / F.dot(u, F.mv(matrix, v)))


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight by its largest singular value, by a hook.

    >>> m = votive.nn.utils.spectral_norm(votive.nn.Linear(2, 3))
    >>> [n for n, _ in m.named_parameters()], [n for n, _ in m.named_buffers()]
    (['bias', 'weight_orig'], ['weight_u', 'weight_v'])
    """
    where = outputs_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, where, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo `spectral_norm`, keeping the present weight.

    >>> m = votive.nn.utils.spectral_norm(votive.nn.Linear(2, 3))
    >>> [n for n, _ in votive.nn.utils.remove_spectral_norm(m).named_parameters()]
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for table, kind in ((module._state_dict_hooks, _MarkVersion), (module._load_state_dict_pre_hooks, _UpgradeState)):
        for key, hook in list(table.items()):
            if isinstance(hook, kind) and hook.fn.name == name:
                del table[key]
    return module
