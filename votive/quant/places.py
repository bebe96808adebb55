"""Where a module keeps weights that can be in blocks: linear layers, tables, and layers with transposed weights.

Knows classes of modules by how they use their weight; chooses no format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from ..core.similar import did_you_mean
from ..nn import Embedding, Linear, Module, Parameter
from ..nn.fused_linear import PRODUCTS
from ..nn.modules.linear import NonDynamicallyQuantizableLinear
from ..surface.block_tensor import BlockTensor, from_blocks
from ..surface.interchange import _own
from ..tensor import Tensor
from .grid import Array


@dataclass
class Place:
    """One weight, and every (module, its name) that uses it: tied weights have several."""

    weight: Tensor
    owners: list[tuple[str, Module]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The module's name that recipes go by: that of a product where there is one, since it makes the logits."""
        return (self.products or self.owners)[0][0]

    @property
    def products(self) -> list[tuple[str, Module]]:
        """The owners that multiply by the weight."""
        return [(n, m) for n, m in self.owners if not isinstance(m, Embedding)]

    @property
    def transposed(self) -> bool:
        """Whether the weight is stored as (inputs, outputs)."""
        return any(not isinstance(m, (Linear, Embedding)) for _, m in self.owners)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) as blocks lie: along what is summed over in a product."""
        a, b = self.weight.shape
        return (b, a) if self.transposed else (a, b)

    def array(self) -> Array:
        """The numbers as float32, (rows, columns)."""
        t = self.weight.dequantize() if isinstance(self.weight, BlockTensor) else self.weight.detach()
        t = t.float().cpu()
        return np.ascontiguousarray((t.t() if self.transposed else t).numpy())

    def assign(self, raw: Array, format: str) -> None:
        """Put blocks in the weight's place, in every owner."""
        wide = self.weight.compute_dtype if isinstance(self.weight, BlockTensor) else self.weight.dtype
        data = _own(raw, "cpu").to(self.weight.device)
        made = from_blocks(data, format, flipped=self.transposed, compute_dtype=wide)
        value = Parameter(made, requires_grad=False)
        for _, module in self.owners:
            module.weight = value
        self.weight = value


def _is_product(module: Module) -> bool:
    # Attention reads the weight of its last layer itself, and has no kernel for blocks.
    if isinstance(module, NonDynamicallyQuantizableLinear):
        return False
    return isinstance(module, Linear) or type(module) in PRODUCTS


def skipped(model: Module, skip: Iterable[str]) -> tuple[str, ...]:
    """Patterns of names of modules to leave as they are; one that names none is a slip."""
    patterns = (skip,) if isinstance(skip, str) else tuple(skip)
    names = [n for n, _ in model.named_modules()]
    for pattern in patterns:
        if not any(fnmatchcase(n, pattern) for n in names):
            raise ValueError(f"quantize_: skip={pattern!r} names no module.{did_you_mean(pattern, names)}")
    return patterns


def places(model: Module, skip: Iterable[str] = ()) -> list[Place]:
    """The weights of a model that can be in blocks, in the order of its modules.

    `skip` holds patterns of names of modules, such as "lm_head" or "*.router". A weight that also has another use is
    left out, and so is one of its owners' being skipped.
    """
    patterns = skipped(model, skip)
    found: dict[int, Place] = {}
    used: dict[int, int] = {}
    left: set[int] = set()
    for name, module in model.named_modules(remove_duplicate=True):
        for key, value in module._parameters.items():
            if value is None:
                continue
            used[id(value)] = used.get(id(value), 0) + 1
            if key != "weight" or value.ndim != 2 or not (_is_product(module) or isinstance(module, Embedding)):
                continue
            found.setdefault(id(value), Place(value)).owners.append((name, module))
            if any(fnmatchcase(name, p) for p in patterns) or getattr(module, "max_norm", None) is not None:
                left.add(id(value))
    return [p for k, p in found.items() if k not in left and used[k] == len(p.owners)]
