"""Low-rank adaptation: a frozen Linear plus a small trained product; and putting it into a model.

Hu et al. 2021, arXiv:2106.09685.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Self

import votive

from ...surface.block_tensor import BlockTensor
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..factory import FactoryKwargs
from ..module import Module
from ..parameter import Parameter
from .dropout import Dropout
from .linear import Linear


class LoRALinear(Module):
    """`base(x) + alpha / r * dropout(x) A^T B^T`; only A (r, in) and B (out, r) are trained.

    The base's weight may be in blocks of few bits, which stay as they are (QLoRA: Dettmers et al. 2023,
    arXiv:2305.14314); `weight` and `to_linear` then give numbers.

    B begins as zeros, so that the layer begins as its base. `rslora` divides alpha by the root of r
    (Kalajdzievski 2023, arXiv:2312.03732). While merged, the base alone does the work.

    >>> base = votive.nn.Linear(6, 4)
    >>> layer = votive.nn.LoRALinear(base, r=2, alpha=4)
    >>> x = votive.ones(3, 6)
    >>> votive.equal(layer(x), base(x))
    True
    >>> [name for name, p in layer.named_parameters() if p.requires_grad]
    ['lora_A', 'lora_B']
    """

    def __init__(
        self, base: Linear, r: int = 8, alpha: float = 16.0, dropout: float = 0.0, rslora: bool = False
    ) -> None:
        super().__init__()
        if not isinstance(base, Linear):
            raise TypeError(f"LoRALinear: wraps a Linear, got {type(base).__name__}.")
        if r < 1:
            raise ValueError(f"LoRALinear: r must be positive, got {r}.")
        self.r = r
        self.alpha = alpha
        self.scaling = alpha / (math.sqrt(r) if rslora else r)
        self.base = base.requires_grad_(False)
        weight = base.weight
        dtype = weight.compute_dtype if isinstance(weight, BlockTensor) else weight.dtype
        made = FactoryKwargs(device=weight.device, dtype=dtype)
        self.lora_A = Parameter(votive.empty((r, base.in_features), **made))
        self.lora_B = Parameter(votive.empty((base.out_features, r), **made))
        self.dropout = Dropout(dropout)
        self._before: Tensor | None = None  # the base's weight while merged
        self.reset_parameters()
        self.register_state_dict_pre_hook(_refuse_merged)

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        init.zeros_(self.lora_B)

    @property
    def in_features(self) -> int:
        return self.base.in_features

    @property
    def out_features(self) -> int:
        return self.base.out_features

    @property
    def merged(self) -> bool:
        """Whether the base holds the sum."""
        return self._before is not None

    def delta(self) -> Tensor:
        """What the adaptation adds to the weight: `alpha / r * B A`."""
        return self.scaling * (self.lora_B @ self.lora_A)

    @property
    def weight(self) -> Tensor:
        """The weight of the whole: that of a Linear that does the same."""
        weight: Tensor = self.base.weight
        if isinstance(weight, BlockTensor):
            weight = weight.dequantize()
        return weight if self.merged else weight + self.delta()

    @property
    def bias(self) -> Parameter | None:
        return self.base.bias

    def forward(self, input: Tensor) -> Tensor:
        out = self.base(input)
        if self.merged:
            return out
        low = F.linear(self.dropout(input), self.lora_A)
        return out + F.linear(low, self.lora_B) * self.scaling

    def merge(self) -> Self:
        """Add the adaptation into the base; the old weight is kept, so that unmerging is exact."""
        if isinstance(self.base.weight, BlockTensor):
            raise RuntimeError(
                f"merge: the base is in {self.base.weight.dtype.name} blocks, which cannot hold the sum; "
                "merge_lora(model) makes layers of numbers, which votive.quantize_ can put in blocks again."
            )
        if not self.merged:
            with votive.no_grad():
                before = self.base.weight.clone()
                self.base.weight.add_(self.delta())
            self._before = before
        return self

    def unmerge(self) -> Self:
        """Give the base its own weight back."""
        if self._before is not None:
            with votive.no_grad():
                self.base.weight.copy_(self._before)
            self._before = None
        return self

    def to_linear(self) -> Linear:
        """A new Linear that does the same.

        >>> votive.nn.LoRALinear(votive.nn.Linear(6, 4)).to_linear()
        Linear(in_features=6, out_features=4, bias=True)
        """
        weight = self.weight.detach()
        made = FactoryKwargs(device=weight.device, dtype=weight.dtype)
        linear = Linear(self.in_features, self.out_features, self.bias is not None, **made)
        with votive.no_grad():
            linear.weight.copy_(weight)
            if linear.bias is not None and self.bias is not None:
                linear.bias.copy_(self.bias)
        return linear.train(self.training)

    def extra_repr(self) -> str:
        return f"r={self.r}, alpha={self.alpha}" + (", merged=True" if self.merged else "")


def _refuse_merged(layer: LoRALinear, prefix: str, keep_vars: bool) -> None:
    if layer.merged:
        raise RuntimeError(
            f"state_dict: {prefix.rstrip('.') or 'the layer'} is merged, and loading its weights "
            "would add the adaptation twice; unmerge() first, or use merge_lora(model)."
        )


def _replace(model: Module, made: dict[int, Module]) -> None:
    """Put other modules in the place of some, wherever these stand."""
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):
            if child is not None and id(child) in made and parent is not made[id(child)]:
                parent._modules[name] = made[id(child)]


def apply_lora(
    model: Module,
    patterns: str | Iterable[str],
    r: int = 8,
    alpha: float = 16.0,
    dropout: float = 0.0,
    rslora: bool = False,
) -> list[str]:
    """Freeze a model and wrap the Linears whose path, or its end, matches; gives their paths.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 4), votive.nn.ReLU(), votive.nn.Linear(4, 2))
    >>> votive.nn.apply_lora(net, "2", r=1)
    ['2']
    >>> [name for name, p in net.named_parameters() if p.requires_grad]
    ['2.lora_A', '2.lora_B']
    """
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    linears = {
        name: m for name, m in model.named_modules() if isinstance(m, Linear) and name and not name.endswith(".base")
    }
    chosen = [name for name in linears if any(fnmatchcase(name, p) or fnmatchcase(name, f"*.{p}") for p in patterns)]
    if not chosen:
        raise ValueError(f"apply_lora: {patterns} match none of the Linear layers {', '.join(linears) or '(none)'}.")
    model.requires_grad_(False)
    wrapped = {id(linears[n]): LoRALinear(linears[n], r, alpha, dropout, rslora) for n in chosen}
    _replace(model, dict(wrapped))
    for layer in wrapped.values():
        layer.train(model.training)
    return chosen


def merge_lora(model: Module) -> list[str]:
    """Replace each LoRALinear by one Linear that does the same; gives their paths.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> _ = votive.nn.apply_lora(net, "*")
    >>> votive.nn.merge_lora(net), net[0]
    (['0'], Linear(in_features=4, out_features=2, bias=True))
    """
    layers = {n: m for n, m in model.named_modules() if isinstance(m, LoRALinear)}
    _replace(model, {id(m): m.to_linear() for m in layers.values()})
    return list(layers)


def lora_state_dict(model: Module) -> dict[str, Tensor]:
    """The adaptations alone: what is worth saving; load it with `strict=False`.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> _ = votive.nn.apply_lora(net, "0")
    >>> list(votive.nn.lora_state_dict(net))
    ['0.lora_A', '0.lora_B']
    """
    ends = ("lora_A", "lora_B")
    return {k: v for k, v in model.state_dict().items() if k.rsplit(".", 1)[-1] in ends}
