"""The methods that `nn.utils.prune` applies: what they prune, and how they are put together.

A pruned parameter `weight` becomes the parameter `weight_orig` and the buffer `weight_mask`; before each call of the
module, a hook sets `weight` to their product. Pruning it again combines the masks.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ...ops.registry import F
from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter


def pruning_hooks(module: Module, name: str) -> list[tuple[int, BasePruningMethod]]:
    """The hooks that prune a parameter of a module."""
    return [
        (key, hook)
        for key, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]


class BasePruningMethod(ABC):
    """What is pruned, and how: `compute_mask(t, default_mask)` gives a mask of ones and zeros.

    `PRUNING_TYPE` says what a method sees of a tensor that is pruned already: "unstructured" only what is left,
    "structured" only the channels that are, "global" everything.

    >>> class Small(votive.nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t.abs() > 1)
    >>> Small().prune(votive.tensor([0.5, 2.0, -3.0]))
    tensor([ 0.,  2., -3.])
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of a tensor, given the one it has so far."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter with its mask, as the module uses it."""
        if getattr(self, "_tensor_name", None) is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = getattr(module, self._tensor_name + "_mask"), getattr(module, self._tensor_name + "_orig")
        made: Tensor = mask.to(original.dtype) * original
        return made

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of a module, on top of what prunes it already; returns the hook that does."""
        found = pruning_hooks(module, name)
        if len(found) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}")
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if importance_scores is None:
            scores = original
        else:
            if importance_scores.shape != original.shape:
                raise AssertionError(
                    "importance_scores should have the same shape as parameter "
                    f"{name} of {module}, got {importance_scores.shape} vs {original.shape}"
                )
            scores = importance_scores
        if found:
            key, before = found[0]
            del module._forward_pre_hooks[key]
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores, getattr(module, name + "_mask"))
            setattr(module, name + "_mask", mask)
            method = container
        else:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            try:
                mask = method.compute_mask(scores, F.ones_like(original.detach()))
            except Exception:
                # Leave the module as it was: what does not fit is said by the error.
                del module._parameters[name + "_orig"]
                module.register_parameter(name, original)
                raise
            module.register_buffer(name + "_mask", mask.detach())
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor without a module, pruned."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, F.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned parameter an ordinary one, zeros and all; the caller removes the hook."""
        name = self._tensor_name
        if getattr(self, "_tensor_name", None) is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Parameter = module._parameters.pop(name + "_orig")
        original.data = weight.detach()
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Methods that prune one parameter one after the other.

    >>> import votive.nn.utils.prune as prune
    >>> layer = votive.nn.Linear(4, 2)
    >>> _ = prune.random_unstructured(layer, "weight", 2), prune.l1_unstructured(layer, "weight", 2)
    >>> hook = next(iter(layer._forward_pre_hooks.values()))
    >>> [type(method).__name__ for method in hook], layer.weight_mask.sum()
    (['RandomUnstructured', 'L1Unstructured'], tensor(4.))
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1 and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        elif args:
            items = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
            for method in items:
                self._tensor_name = method._tensor_name
                self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """One more method for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far with what the newest method takes away."""
        method, mask = self._pruning_methods[-1], default_mask.clone()
        if method.PRUNING_TYPE == "unstructured":
            part: Any = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` defined."
                )
            dim = method.dim % t.dim()
            kept = default_mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            part = (slice(None),) * dim + (kept,)
        elif method.PRUNING_TYPE == "global":
            part = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[part] = method.compute_mask(t.detach()[part], default_mask[part]).to(mask.dtype)
        return mask


# --- how many ---


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount: Any, size: int) -> int:
    """How many of `size` an amount means: a number, or a share of them."""
    if isinstance(amount, numbers.Integral):
        if int(amount) > size:
            raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return int(amount)
    return round(float(amount) * size)


def _check_dim(t: Tensor, dim: int) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. "
            f"Found tensor of shape {t.shape} with {t.dim()} dims"
        )
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _channels(mask: Tensor, dim: int, dropped: Tensor) -> Tensor:
    """A mask that hides whole slices along a dimension."""
    index: list[Any] = [slice(None)] * mask.dim()
    index[dim] = dropped
    out = mask.clone()
    out[tuple(index)] = 0
    return out


# --- methods ---


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask and the hook.

    >>> layer = votive.nn.utils.prune.identity(votive.nn.Linear(2, 2), "bias")
    >>> layer.bias_mask
    tensor([1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Unstructured(BasePruningMethod):
    """Prunes single numbers: `amount` of them, or that share."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = _count(self.amount, t.numel())
        mask = default_mask.clone()
        return mask.flatten().index_fill(0, self._chosen(t, count), 0).reshape(mask.shape) if count else mask

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        """Which elements are pruned, as flat positions."""
        raise NotImplementedError


class RandomUnstructured(_Unstructured):
    """Prunes some numbers, chosen at random: `amount` of them, or that share.

    >>> votive.nn.utils.prune.RandomUnstructured(3).prune(votive.ones(8)).sum()
    tensor(5.)
    """

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return F.rand(t.numel(), device=t.device).topk(count).indices


class L1Unstructured(_Unstructured):
    """Prunes the numbers nearest to zero: `amount` of them, or that share.

    >>> votive.nn.utils.prune.L1Unstructured(0.5).prune(votive.tensor([1.0, -3.0, 2.0, -0.5]))
    tensor([ 0., -3.,  2., -0.])
    """

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return t.detach().abs().flatten().topk(count, largest=False).indices


class RandomStructured(BasePruningMethod):
    """Prunes whole slices along `dim`, chosen at random.

    >>> votive.nn.utils.prune.RandomStructured(1, dim=0).prune(votive.ones(3, 2)).sum()
    tensor(4.)
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_dim(t, self.dim)
        count = _count(self.amount, t.shape[self.dim])
        if not count:
            return default_mask
        return _channels(default_mask, self.dim, F.rand(t.shape[self.dim], device=t.device).topk(count).indices)


class LnStructured(BasePruningMethod):
    """Prunes the slices along `dim` that have the smallest norm of order `n`.

    >>> x = votive.tensor([[1.0, 1.0], [3.0, 0.0], [0.5, 0.5]])
    >>> votive.nn.utils.prune.LnStructured(1, n=2, dim=0).prune(x)
    tensor([[1., 1.],
            [3., 0.],
            [0., 0.]])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_dim(t, self.dim)
        count = _count(self.amount, t.shape[self.dim])
        if not count:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = F.norm(t.detach(), p=self.n, dim=others)
        return _channels(default_mask, self.dim, norms.topk(count, largest=False).indices)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given.

    >>> keep = votive.tensor([1, 0])
    >>> votive.nn.utils.prune.custom_from_mask(votive.nn.Linear(2, 2), "bias", keep).bias_mask
    tensor([1., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)
