"""Setting weights to zero by masks that stay with the module. The names are torch's.

>>> import votive.nn.utils.prune as prune
>>> layer = prune.l1_unstructured(votive.nn.Linear(4, 2), "weight", amount=0.25)
>>> int((layer.weight == 0).sum())
2
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...ops.registry import F
from ...tensor import Tensor
from ..module import Module
from .convert_parameters import parameters_to_vector
from .pruning import BasePruningMethod as BasePruningMethod
from .pruning import CustomFromMask as CustomFromMask
from .pruning import Identity as Identity
from .pruning import L1Unstructured as L1Unstructured
from .pruning import LnStructured as LnStructured
from .pruning import PruningContainer as PruningContainer
from .pruning import RandomStructured as RandomStructured
from .pruning import RandomUnstructured as RandomUnstructured
from .pruning import pruning_hooks


def identity(module: Module, name: str) -> Module:
    """Make mask and hook of a parameter without pruning it.

    >>> layer = votive.nn.utils.prune.identity(votive.nn.Linear(2, 3), "weight")
    >>> sorted(layer.state_dict())
    ['bias', 'weight_mask', 'weight_orig']
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune some numbers of a parameter, chosen at random.

    >>> layer = votive.nn.utils.prune.random_unstructured(votive.nn.Linear(2, 3), "weight", amount=1)
    >>> layer.weight_mask.sum()
    tensor(5.)
    """
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Tensor | None = None) -> Module:
    """Prune the numbers of a parameter that are nearest to zero, or have the lowest score.

    >>> layer = votive.nn.utils.prune.l1_unstructured(votive.nn.Linear(2, 3), "weight", amount=0.5)
    >>> layer.weight_mask.sum()
    tensor(3.)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune slices of a parameter along `dim`, chosen at random.

    >>> layer = votive.nn.utils.prune.random_structured(votive.nn.Linear(2, 3), "weight", amount=1, dim=0)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices of a parameter along `dim` whose norm of order `n` is smallest.

    >>> layer = votive.nn.utils.prune.ln_structured(votive.nn.Linear(2, 3), "weight", amount=0.4, n=2, dim=0)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any, pruning_method: type[BasePruningMethod], importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters, given as (module, name), as if they were one vector.

    >>> import votive.nn.utils.prune as prune
    >>> a, b = votive.nn.Linear(2, 2), votive.nn.Linear(2, 2)
    >>> prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=3)
    >>> a.weight_mask.sum() + b.weight_mask.sum()
    tensor(5.)
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = [(module, name) for module, name in parameters]
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    relevant = [scores.get(pair, getattr(*pair)) for pair in pairs]
    masks = [getattr(m, name + "_mask", F.ones_like(getattr(m, name).detach())) for m, name in pairs]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    whole = container.compute_mask(parameters_to_vector([x.detach() for x in relevant]), parameters_to_vector(masks))
    start = 0
    for module, name in pairs:
        param = getattr(module, name)
        custom_from_mask(module, name, whole[start : start + param.numel()].reshape(param.shape))
        start += param.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter by a mask.

    >>> layer = votive.nn.Linear(2, 1)
    >>> votive.nn.utils.prune.custom_from_mask(layer, "weight", votive.tensor([[0, 1]])).weight_mask
    tensor([[0., 1.]])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make pruning permanent: the parameter is an ordinary one again, with its zeros.

    >>> layer = votive.nn.utils.prune.l1_unstructured(votive.nn.Linear(2, 3), "weight", amount=2)
    >>> sorted(votive.nn.utils.prune.remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    for key, hook in pruning_hooks(module, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one inside it, is pruned.

    >>> votive.nn.utils.prune.is_pruned(votive.nn.Linear(2, 3))
    False
    """
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
