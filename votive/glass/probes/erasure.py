"""LEACE: the smallest change of values after which no linear probe finds a concept. Knows rows and edits.

Belrose et al. 2023, arXiv:2306.03819, theorem 4.3: `x - W^+ P W (x - mean)`, where W whitens x and P projects on the
column space of W Cov(x, z).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import votive

from ...nn import Module
from ...tensor import Tensor
from ..edits import Edit
from .layers import Positions, gather


@dataclass(frozen=True)
class Eraser:
    """A map of rows that takes a concept out: `x - (x - mean) @ right.t() @ left.t()`.

    >>> x = votive.tensor([[1.0, 5.0], [1.0, -5.0], [-1.0, 5.0], [-1.0, -5.0]])
    >>> eraser = votive.glass.probes.fit_eraser(x, votive.tensor([1, 1, 0, 0]))
    >>> (eraser(x).round(decimals=6) + 0.0).tolist()
    [[0.0, 5.0], [0.0, -5.0], [0.0, 5.0], [0.0, -5.0]]
    """

    left: Tensor
    right: Tensor
    mean: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        """Values without the concept, (..., features), in their own type."""
        if x.shape[-1] != len(self.mean):
            raise ValueError(f"Eraser: it is for {len(self.mean)} features, got {tuple(x.shape)}.")
        wide = x.to(votive.promote_types(x.dtype, votive.float32))
        left, right, mean = (t.to(device=x.device, dtype=wide.dtype) for t in (self.left, self.right, self.mean))
        return (wide - (wide - mean) @ right.t() @ left.t()).to(x.dtype)

    @property
    def rank(self) -> int:
        """How many dimensions are taken away."""
        return int(self.left.shape[1])

    def edit(self, at: str, **options: Any) -> Edit:
        """The edit that erases at an address; options are an edit's, such as `positions`."""
        return Edit(at, "call", self, **options)


class ErasureFitter:
    """Sums that an eraser follows from, of rows that come in parts.

    >>> fitter = votive.glass.probes.ErasureFitter(2, 1)
    >>> fitter.add(votive.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0]]), votive.tensor([0, 1, 1])).eraser().rank
    1
    """

    def __init__(self, features: int, concepts: int) -> None:
        self.count = 0
        self.mean = votive.zeros(features, dtype=votive.float64)
        self.mean_z = votive.zeros(concepts, dtype=votive.float64)
        self.xx = votive.zeros(features, features, dtype=votive.float64)
        self.xz = votive.zeros(features, concepts, dtype=votive.float64)

    def add(self, x: Tensor, z: Tensor) -> ErasureFitter:
        """Take more rows into account: values (rows, features) and concepts (rows,) or (rows, concepts)."""
        x = x.detach().cpu().double().reshape(-1, len(self.mean))
        z = z.detach().cpu().double().reshape(len(x), -1)
        if z.shape[1] != len(self.mean_z):
            raise ValueError(f"ErasureFitter: {len(self.mean_z)} concepts, got {z.shape[1]}.")
        if not len(x):
            return self
        # Deviations from old and new means: sums of squares alone would lose digits.
        total = self.count + len(x)
        before = x - self.mean
        self.mean = self.mean + before.sum(0) / total
        before_z = z - self.mean_z
        self.mean_z = self.mean_z + before_z.sum(0) / total
        here, here_z = x - x.mean(0), z - z.mean(0)
        weight = self.count * len(x) / total
        step, step_z = before.mean(0), before_z.mean(0)
        self.xx = self.xx + here.t() @ here + weight * votive.outer(step, step)
        self.xz = self.xz + here.t() @ here_z + weight * votive.outer(step, step_z)
        self.count = total
        return self

    def eraser(self, *, tolerance: float = 1e-9) -> Eraser:
        """The eraser; directions whose variance is below `tolerance` of the largest count as constant."""
        if self.count < 2:
            raise ValueError("ErasureFitter: an eraser needs at least two rows.")
        sizes, vectors = votive.linalg.eigh(self.xx / self.count)
        keep = sizes > sizes.max() * tolerance
        sizes, vectors = sizes[keep], vectors[:, keep]
        whiten = vectors * sizes.rsqrt() @ vectors.t()
        colour = vectors * sizes.sqrt() @ vectors.t()
        u, s, _ = votive.linalg.svd(whiten @ (self.xz / self.count), full_matrices=False)
        u = u[:, s > tolerance * max(float(s.max()), 1e-30)]
        return Eraser(colour @ u, (u.t() @ whiten), self.mean)


def fit_eraser(x: Tensor, z: Tensor) -> Eraser:
    """The eraser of a concept: of labels (rows,), each class by itself, or of numbers (rows, concepts).

    >>> eraser = votive.glass.probes.fit_eraser(votive.randn(50, 4), votive.arange(50) % 3)
    >>> eraser.rank
    2
    """
    if len(x) != len(z):
        raise ValueError(f"fit_eraser: {len(x)} rows have {len(z)} labels.")
    if not z.is_floating_point() and z.dim() == 1:
        classes, labels = z.to(votive.int64).unique(return_inverse=True)
        if len(classes) < 2:
            raise ValueError("fit_eraser: there is only one class, so nothing to erase.")
        z = votive.nn.functional.one_hot(labels, len(classes))
    z = z.double().reshape(len(x), -1)
    return ErasureFitter(x.shape[-1], z.shape[1]).add(x, z).eraser()


def erase(
    model: Module, batches: Iterable[Any], labels: Any, at: str | list[str], *, positions: Positions = -1
) -> list[Edit]:
    """Edits that take a concept out of a model's values at sites, each fitted while those before it are made.

    Sites are worked on in the order in which the model calls them when given in that order: what a later one still
    knows of the concept is what is left. The edits hold at all positions; `positions` is where they are fitted.

    >>> _ = votive.manual_seed(0)
    >>> net = votive.nn.Sequential(votive.nn.Embedding(9, 4), votive.nn.Identity())
    >>> ids = votive.randint(0, 9, (50, 2))
    >>> edits = votive.glass.probes.erase(net, [ids], ids[:, -1] > 4, "0")
    >>> edits[0].at, edits[0].do
    ('0', 'call')
    """
    from ..patch import patch

    y, kept = votive.as_tensor(labels), list(batches)
    edits: list[Edit] = []
    for site in [at] if isinstance(at, str) else at:
        if edits:
            with patch(model, edits, measure=False):
                found = gather(model, kept, site, positions)
        else:
            found = gather(model, kept, site, positions)
        for address, value in found.sites.items():
            each = y.repeat_interleave(value.shape[1], 0)
            name = address if len(found.sites) > 1 else site
            edits.append(fit_eraser(value.flatten(0, 1), each).edit(name))
    return edits
