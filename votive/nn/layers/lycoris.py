"""LoHa and LoKr: what is added to a weight as products of small factors, by PEFT's formulas and names.

Knows a layer's place; knows no model and no file.
"""

from __future__ import annotations

import math
from typing import ClassVar

import votive

from ...tensor import Tensor
from .. import init
from ..parameter import Parameter
from .adaptation import Adaptation, Place


class Lycoris(Adaptation):
    """What LoHa and LoKr share: a product with a weight that is made anew each time, and their dropouts."""

    def __init__(
        self, place: Place, r: int, alpha: float, rank_dropout: float, module_dropout: float, scaled: bool
    ) -> None:
        super().__init__()
        if r < 1:
            raise ValueError(f"{type(self).__name__}: r must be positive, got {r}.")
        if place.kind == "embedding" or place.transposed or len(place.shape) > 4:
            raise ValueError(
                f"{type(self).__name__}: takes Linear, Conv1d and Conv2d, not {type(place.base).__name__}."
            )
        self.r, self.scaling = r, alpha / r
        self.rank_dropout, self.module_dropout, self.scaled = rank_dropout, module_dropout, scaled

    def add(self, place: Place, shapes: dict[str, tuple[int, ...]], zero: str, start: bool | str) -> None:
        """Parameters of these shapes; that of the name `zero` begins as zeros, so that nothing is added."""
        for name, shape in shapes.items():
            value = Parameter(votive.empty(shape, device=place.base.weight.device, dtype=place.dtype))
            if name == zero and start is not False:
                init.zeros_(value)
            else:
                init.kaiming_uniform_(value, a=math.sqrt(5))
            self.register_parameter(name, value)

    def after(self, place: Place, x: Tensor, out: Tensor) -> Tensor:
        if self.training and self.module_dropout and float(votive.rand(1)) <= self.module_dropout:
            return out
        delta = self.delta(place)
        if self.training and self.rank_dropout:
            kept = (votive.rand(delta.shape[0], device=delta.device) > self.rank_dropout).to(delta.dtype)
            if self.scaled:
                kept = kept / kept.mean().clamp(min=1 / len(kept))
            delta = delta * kept.reshape(-1, *[1] * (delta.dim() - 1))
        return out + place.product(x.to(delta.dtype), delta).to(out.dtype)

    def into(self, place: Place, weight: Tensor) -> Tensor:
        return weight + self.delta(place).to(weight.dtype)

    def extra_repr(self) -> str:
        return f"r={self.r}"


class LoHa(Lycoris):
    """The product, number by number, of two low-rank products is added: Hyeon-Woo et al. 2021, arXiv:2108.06098.

    >>> from votive.nn.layers.adaptation import place_of
    >>> from votive.nn.layers.lycoris import LoHa
    >>> place = place_of(votive.nn.Linear(6, 4))
    >>> LoHa(place, r=2).delta(place).shape
    votive.Size([4, 6])
    """

    files: ClassVar[dict[str, str]] = {
        name: name for name in ("hada_w1_a", "hada_w1_b", "hada_w2_a", "hada_w2_b", "hada_t1", "hada_t2")
    }

    def __init__(
        self,
        place: Place,
        r: int = 8,
        alpha: float = 8.0,
        rank_dropout: float = 0.0,
        module_dropout: float = 0.0,
        effective_conv: bool = False,
        start: bool = True,
    ) -> None:
        super().__init__(place, r, alpha, rank_dropout, module_dropout, True)
        outputs, inputs, *kernel = place.shape
        shapes: dict[str, tuple[int, ...]] = {}
        if effective_conv and math.prod(kernel) > 1:
            for i in "12":
                shapes[f"hada_t{i}"] = (r, r, kernel[0], kernel[1] if len(kernel) > 1 else 1)
                shapes |= {f"hada_w{i}_a": (r, outputs), f"hada_w{i}_b": (r, inputs)}
        else:
            for i in "12":
                shapes |= {f"hada_w{i}_a": (outputs, r), f"hada_w{i}_b": (r, inputs * math.prod(kernel))}
        self.add(place, shapes, "hada_w2_b", start)

    def delta(self, place: Place) -> Tensor:
        return (self.scaling * self._one("1") * self._one("2")).reshape(place.shape)

    def _one(self, i: str) -> Tensor:
        a, b = getattr(self, f"hada_w{i}_a"), getattr(self, f"hada_w{i}_b")
        if not hasattr(self, f"hada_t{i}"):
            return a @ b
        return votive.einsum("ijkl,jr,ip->prkl", getattr(self, f"hada_t{i}"), b, a)


class LoKr(Lycoris):
    """The Kronecker product of a small and a larger factor is added: Edalati et al. 2022, arXiv:2212.10650.

    >>> from votive.nn.layers.adaptation import place_of
    >>> from votive.nn.layers.lycoris import LoKr
    >>> place = place_of(votive.nn.Linear(6, 4))
    >>> LoKr(place, r=2).delta(place).shape
    votive.Size([4, 6])
    """

    files: ClassVar[dict[str, str]] = {
        f"lokr_{name}": f"lokr_{name}" for name in ("w1", "w1_a", "w1_b", "w2", "w2_a", "w2_b", "t2")
    }

    def __init__(
        self,
        place: Place,
        r: int = 8,
        alpha: float = 8.0,
        rank_dropout: float = 0.0,
        module_dropout: float = 0.0,
        rank_dropout_scale: bool = False,
        decompose_both: bool = False,
        decompose_factor: int = -1,
        effective_conv: bool = False,
        start: bool | str = True,
    ) -> None:
        super().__init__(place, r, alpha, rank_dropout, module_dropout, rank_dropout_scale)
        outputs, inputs, *kernel = place.shape
        (m, n), (k, o) = divided(inputs, decompose_factor), divided(outputs, decompose_factor)
        shapes: dict[str, tuple[int, ...]] = {}
        if decompose_both and r < max(k, m) / 2:
            shapes |= {"lokr_w1_a": (k, r), "lokr_w1_b": (r, m)}
        else:
            shapes["lokr_w1"] = (k, m)
        if r >= max(o, n) / 2:
            shapes["lokr_w2"] = (o, n, *kernel)
        elif effective_conv and math.prod(kernel) > 1:
            shapes["lokr_t2"] = (r, r, kernel[0], kernel[1] if len(kernel) > 1 else 1)
            shapes |= {"lokr_w2_a": (r, o), "lokr_w2_b": (r, n)}
        else:
            shapes |= {"lokr_w2_a": (o, r), "lokr_w2_b": (r, n * math.prod(kernel))}
        first = "lokr_w1" if "lokr_w1" in shapes else "lokr_w1_a"
        if start == "lycoris":
            first = "lokr_w2" if "lokr_w2" in shapes else "lokr_w2_b"
        self.factors = (k, m), (o, n, *kernel)
        self.add(place, shapes, first, start)

    def delta(self, place: Place) -> Tensor:
        one = self.lokr_w1 if hasattr(self, "lokr_w1") else self.lokr_w1_a @ self.lokr_w1_b
        if hasattr(self, "lokr_w2"):
            two = self.lokr_w2
        elif hasattr(self, "lokr_t2"):
            two = votive.einsum("ijkl,ip,jr->prkl", self.lokr_t2, self.lokr_w2_a, self.lokr_w2_b)
        else:
            two = self.lokr_w2_a @ self.lokr_w2_b
        small, large = self.factors
        two = two.reshape(large)
        one = one.reshape(*small, *[1] * (len(large) - 2))
        return (self.scaling * votive.kron(one, two)).reshape(place.shape)


def divided(number: int, factor: int = -1) -> tuple[int, int]:
    """Two factors of a number, the first not above `factor` and, where it may choose, near the second.

    >>> from votive.nn.layers.lycoris import divided
    >>> divided(256), divided(128), divided(127), divided(128, 4)
    ((16, 16), (8, 16), (1, 127), (4, 32))
    """
    if factor > 0 and number % factor == 0:
        return factor, number // factor
    most = number if factor == -1 else factor
    small = max((d for d in range(1, math.isqrt(number) + 1) if number % d == 0 and d <= max(most, 1)), default=1)
    return small, number // small
