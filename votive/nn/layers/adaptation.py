"""What one adapter does to one layer: LoRA, DoRA and IA³, by PEFT's formulas and names.

Knows a layer's place (its kind and sizes); knows no model, no file and no other adapter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import votive

from ...core import dtype as dt
from ...surface.block_tensor import BlockTensor
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..fused_linear import PRODUCTS
from ..module import Module
from ..parameter import Parameter
from .convolution import Conv1d, Conv2d, Conv3d
from .dropout import Dropout
from .embedding import Embedding
from .linear import Linear

_CONVOLUTIONS = {Conv1d: F.conv1d, Conv2d: F.conv2d, Conv3d: F.conv3d}


@dataclass(frozen=True)
class Place:
    """What of a layer an adaptation has to know; weights are seen as (outputs, inputs, *kernel).

    >>> from votive.nn.layers.adaptation import place_of
    >>> place_of(votive.nn.Embedding(5, 3)).shape
    (3, 5)
    """

    base: Module
    kind: str  # linear, embedding or conv
    transposed: bool  # whether the layer itself keeps (inputs, outputs)

    @property
    def weight(self) -> Tensor:
        """The layer's own weight as numbers."""
        found: Tensor = self.base.weight
        if isinstance(found, BlockTensor):
            found = found.dequantize()
        return found.t() if self.transposed else found

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weight."""
        shape = tuple(self.base.weight.shape)
        return shape[::-1] if self.transposed else shape

    @property
    def dtype(self) -> dt.dtype:
        """The type that the layer computes in."""
        weight = self.base.weight
        return weight.compute_dtype if isinstance(weight, BlockTensor) else weight.dtype

    def product(self, x: Tensor, weight: Tensor) -> Tensor:
        """What the layer would give with another weight and without a bias."""
        if self.kind == "linear":
            return F.linear(x, weight)
        if self.kind == "embedding":
            return F.embedding(x, weight.t(), padding_idx=self.base.padding_idx)
        b: Any = self.base
        convolve = next(f for cls, f in _CONVOLUTIONS.items() if isinstance(b, cls))
        return convolve(x, weight, None, b.stride, b.padding, b.dilation, b.groups)

    def along(self, values: Tensor) -> Tensor:
        """One value for each output feature, in the shape that the layer's results are multiplied by."""
        if self.kind != "conv":
            return values.flatten()
        return values.reshape(1, -1, *[1] * (len(self.shape) - 2))


def place_of(base: Module) -> Place | None:
    """The place that a layer is for adaptations, or None where it cannot have one.

    >>> from votive.nn.layers.adaptation import place_of
    >>> place_of(votive.nn.Linear(2, 3)).kind, place_of(votive.nn.ReLU())
    ('linear', None)
    """
    if isinstance(base, Linear):
        return Place(base, "linear", False)
    if isinstance(base, Embedding):
        return Place(base, "embedding", True) if base.max_norm is None else None
    if isinstance(base, tuple(_CONVOLUTIONS)):
        plain = base.groups == 1 and base.padding_mode == "zeros"
        return Place(base, "conv", False) if plain else None
    # Others whose call is a product keep (inputs, outputs), as GPT-2's do.
    return Place(base, "linear", True) if type(base) in PRODUCTS else None


class Adaptation(Module):
    """One adapter's part in one layer.

    `files` names each parameter as PEFT's files do.
    """

    files: ClassVar[dict[str, str]] = {}

    def before(self, x: Tensor) -> Tensor:
        """What the layer reads."""
        return x

    def after(self, place: Place, x: Tensor, out: Tensor) -> Tensor:
        """What becomes of the layer's result; `x` is what it read."""
        raise NotImplementedError

    def into(self, place: Place, weight: Tensor) -> Tensor:
        """A weight (outputs, inputs, *kernel) that does the same alone; `place` still has its own."""
        raise NotImplementedError

    def into_bias(self, bias: Tensor) -> Tensor:
        """The bias beside that weight."""
        return bias

    def delta(self, place: Place) -> Tensor:
        """What is added to the weight (outputs, inputs, *kernel)."""
        raise NotImplementedError


class Lora(Adaptation):
    """`base(x) + alpha / r * dropout(x) A^T B^T`, and with `dora` the sum's rows of learned length.

    Hu et al. 2021, arXiv:2106.09685; Liu et al. 2024, arXiv:2402.09353, whose norms are constants to the gradient.

    >>> from votive.nn.layers.adaptation import Lora, place_of
    >>> layer = Lora(place_of(votive.nn.Linear(6, 4)), r=2, alpha=4.0)
    >>> [name for name, _ in layer.named_parameters()]
    ['lora_A', 'lora_B']
    """

    files: ClassVar[dict[str, str]] = {
        "lora_A": "lora_A.weight",
        "lora_B": "lora_B.weight",
        "lora_B_bias": "lora_B.bias",
        "lora_embedding_A": "lora_embedding_A",
        "lora_embedding_B": "lora_embedding_B",
        "lora_magnitude_vector": "lora_magnitude_vector",
    }

    def __init__(
        self,
        place: Place,
        r: int = 8,
        alpha: float = 8.0,
        dropout: float = 0.0,
        rslora: bool = False,
        dora: bool = False,
        bias: bool = False,
        start: bool | str = True,
    ) -> None:
        super().__init__()
        if r < 1:
            raise ValueError(f"LoRA: r must be positive, got {r}.")
        self.r, self.alpha, self.dora = r, alpha, dora
        self.scaling = alpha / (math.sqrt(r) if rslora else r)
        self.dropout = Dropout(dropout)
        self.table = place.kind == "embedding"
        outputs, inputs, *kernel = place.shape
        ones = [1] * len(kernel)
        made = {"device": place.base.weight.device, "dtype": place.dtype}
        A = Parameter(votive.empty((r, inputs, *kernel), **made))
        B = Parameter(votive.empty((outputs, r, *ones), **made))
        if self.table:
            if bias:
                raise ValueError("LoRA: lora_bias is not for embeddings.")
            self.lora_embedding_A, self.lora_embedding_B = A, B
        else:
            self.lora_A, self.lora_B = A, B
        self.lora_B_bias = Parameter(votive.zeros(outputs, **made)) if bias else None
        self._begin(A, B, start)
        if dora:
            length = self._lengths(place, place.weight.detach())
            self.lora_magnitude_vector = Parameter(length.reshape(1, -1, *ones) if kernel else length)

    def _begin(self, A: Parameter, B: Parameter, start: bool | str) -> None:
        """Start values; False makes both random, so that the layer does not begin as its base."""
        if self.table:
            (init.normal_ if start is False else init.zeros_)(A)
            init.normal_(B)
            return
        if start == "gaussian":
            init.normal_(A, std=1 / self.r)
        else:
            init.kaiming_uniform_(A, a=math.sqrt(5))
        if start is False:
            init.kaiming_uniform_(B, a=math.sqrt(5))
        else:
            init.zeros_(B)

    @property
    def sides(self) -> tuple[Parameter, Parameter]:
        """A (r, inputs, *kernel) and B (outputs, r, 1, ...)."""
        return (self.lora_embedding_A, self.lora_embedding_B) if self.table else (self.lora_A, self.lora_B)

    def delta(self, place: Place) -> Tensor:
        A, B = self.sides
        return self.scaling * (B.flatten(1) @ A.flatten(1)).reshape(place.shape)

    def _lengths(self, place: Place, weight: Tensor) -> Tensor:
        """The length of each row of a weight with what is added to it, as a constant."""
        with votive.no_grad():
            both = weight + self.delta(place).to(weight.dtype)
            return votive.linalg.vector_norm(both.flatten(1), dim=1)

    def _share(self, place: Place) -> Tensor:
        return self.lora_magnitude_vector.flatten() / self._lengths(place, place.weight)

    def after(self, place: Place, x: Tensor, out: Tensor) -> Tensor:
        A, B = self.sides
        read = x if self.table else self.dropout(x.to(A.dtype) if x.dtype != A.dtype else x)
        low = place.product(read, A)
        if place.kind == "conv":
            convolve = next(f for cls, f in _CONVOLUTIONS.items() if isinstance(place.base, cls))
            more = convolve(low, B, self.lora_B_bias)
        else:
            more = F.linear(low, B, self.lora_B_bias)
        if not self.dora:
            return out + (more * self.scaling).to(out.dtype)
        own = out
        bias = getattr(place.base, "bias", None)
        if self.training and self.dropout.p and not self.table:
            own = place.product(read, place.weight)
        elif bias is not None:
            own = out - place.along(bias)
        share = place.along(self._share(place))
        return out + ((share - 1) * own + share * more * self.scaling).to(out.dtype)

    def into(self, place: Place, weight: Tensor) -> Tensor:
        both = weight + self.delta(place).to(weight.dtype)
        if not self.dora:
            return both
        return both * self._share(place).reshape(-1, *[1] * (weight.dim() - 1))

    def into_bias(self, bias: Tensor) -> Tensor:
        return bias if self.lora_B_bias is None else bias + self.lora_B_bias * self.scaling

    def extra_repr(self) -> str:
        return f"r={self.r}, alpha={self.alpha}" + (", dora" if self.dora else "")


class Ia3(Adaptation):
    """Each output of a layer times a learned number, or each input of a `feedforward` one: Liu et al. 2022.

    arXiv:2205.05638.

    >>> from votive.nn.layers.adaptation import Ia3, place_of
    >>> Ia3(place_of(votive.nn.Linear(6, 4)), feedforward=True).ia3_l.shape
    votive.Size([1, 6])
    """

    files: ClassVar[dict[str, str]] = {"ia3_l": "ia3_l"}

    def __init__(self, place: Place, feedforward: bool = False, start: bool = True) -> None:
        super().__init__()
        outputs, inputs, *kernel = place.shape
        self.feedforward = feedforward
        self.conv = place.kind == "conv"
        shape: tuple[int, ...] = (1, inputs) if feedforward else (outputs, 1)
        if self.conv:
            shape = (1, inputs if feedforward else outputs, *[1] * len(kernel))
        made = {"device": place.base.weight.device, "dtype": place.dtype}
        values = votive.ones(shape, **made) if start else votive.randn(shape, **made)
        self.ia3_l = Parameter(values)

    def before(self, x: Tensor) -> Tensor:
        if not self.feedforward:
            return x
        return (x * (self.ia3_l if self.conv else self.ia3_l.flatten())).to(x.dtype)

    def after(self, place: Place, x: Tensor, out: Tensor) -> Tensor:
        return out if self.feedforward else (out * place.along(self.ia3_l)).to(out.dtype)

    def into(self, place: Place, weight: Tensor) -> Tensor:
        at = 1 if self.feedforward else 0
        shape = [-1 if d == at else 1 for d in range(weight.dim())]
        return (weight * self.ia3_l.flatten().reshape(shape)).to(weight.dtype)

    def into_bias(self, bias: Tensor) -> Tensor:
        return bias if self.feedforward else bias * self.ia3_l.flatten()

    def extra_repr(self) -> str:
        return "feedforward" if self.feedforward else ""
