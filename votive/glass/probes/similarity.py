"""How alike two representations of the same samples are: CKA, SVCCA, RSA. Knows rows, no model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import votive

from ...nn import Module
from ...tensor import Tensor
from ..address import Patterns
from ..heatmap import Heatmap
from ..plots import Plottable
from .layers import Positions, gather


def _rows(name: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a.dim() != 2 or b.dim() != 2 or len(a) != len(b) or len(a) < 2:
        raise ValueError(f"{name}: two sets of at least two rows, of the same samples; got {a.shape} and {b.shape}.")
    return tuple((t.detach().double() - t.detach().double().mean(0)) for t in (a, b))  # type: ignore[return-value]


def cka(a: Tensor, b: Tensor, *, debiased: bool = False) -> float:
    """Linear centered kernel alignment (Kornblith et al. 2019, equation 5); 1 for rotated and scaled copies.

    `debiased` takes the unbiased estimate of HSIC (Song et al. 2012), for few samples of many features.

    >>> x = votive.randn(20, 5)
    >>> round(votive.glass.probes.cka(x, 3 * x.flip(1)), 6)
    1.0
    """
    x, y = _rows("cka", a, b)
    if not debiased:
        cross = (x.t() @ y).square().sum()
        return float(cross / ((x.t() @ x).norm() * (y.t() @ y).norm()))
    if len(x) < 4:
        raise ValueError(f"cka: debiased needs at least four samples, got {len(x)}.")
    k, m = x @ x.t(), y @ y.t()
    return _hsic(k, m) / (_hsic(k, k) * _hsic(m, m)) ** 0.5


def _hsic(k: Tensor, m: Tensor) -> float:
    n = len(k)
    k, m = k - k.diag().diag(), m - m.diag().diag()
    sums = (k * m).sum() + k.sum() * m.sum() / ((n - 1) * (n - 2)) - 2 * (k.sum(0) @ m.sum(0)) / (n - 2)
    return float(sums / (n * (n - 3)))


def svcca(a: Tensor, b: Tensor, *, variance: float = 0.99) -> float:
    """The mean canonical correlation of the directions that hold a share of the variance (Raghu et al. 2017).

    >>> x = votive.randn(50, 4)
    >>> round(votive.glass.probes.svcca(x, x @ votive.randn(4, 4), variance=1.0), 6)
    1.0
    """
    if not 0 < variance <= 1:
        raise ValueError(f"svcca: variance is a share of at most 1, got {variance}.")
    bases = []
    for t in _rows("svcca", a, b):
        u, s, _ = votive.linalg.svd(t, full_matrices=False)
        s = s[s > 1e-10 * s.max()]
        held = s.square().cumsum(0) / s.square().sum()
        count = min(int((held < variance - 1e-12).sum()) + 1, len(s))
        bases.append(u[:, :count])
    if not all(u.shape[1] for u in bases):
        raise ValueError("svcca: a representation is the same for all samples.")
    found = votive.linalg.svdvals(bases[0].t() @ bases[1])
    return float(found.clamp(max=1.0).mean())


def rsa(a: Tensor, b: Tensor, *, distance: str = "correlation", compare: str = "spearman") -> float:
    """How alike the distances between samples are (Kriegeskorte et al. 2008).

    `distance` is "correlation", "cosine" or "euclidean"; they are compared by "spearman" or "pearson".

    >>> x = votive.randn(10, 6)
    >>> round(votive.glass.probes.rsa(x, 2 * x + 1), 6)
    1.0
    """
    if distance not in ("correlation", "cosine", "euclidean") or compare not in ("spearman", "pearson"):
        raise ValueError(f"rsa: distance {distance!r} or compare {compare!r} is unknown.")
    if a.dim() != 2 or b.dim() != 2 or len(a) != len(b) or len(a) < 3:
        raise ValueError(f"rsa: two sets of at least three rows, of the same samples; got {a.shape} and {b.shape}.")
    found = []
    for t in (a, b):
        x = t.detach().double()
        if distance == "euclidean":
            apart = (x.unsqueeze(1) - x.unsqueeze(0)).norm(dim=-1)
        else:
            x = x - x.mean(1, keepdim=True) if distance == "correlation" else x
            x = x / x.norm(dim=1, keepdim=True).clamp(min=1e-30)
            apart = 1 - x @ x.t()
        i, j = votive.triu_indices(len(x), len(x), 1)
        flat = apart[i, j]
        found.append(_ranks(flat) if compare == "spearman" else flat)
    u, v = (f - f.mean() for f in found)
    return float((u @ v) / (u.norm() * v.norm()))


def _ranks(x: Tensor) -> Tensor:
    """Ranks, of equal numbers their mean."""
    _, index, counts = x.unique(return_inverse=True, return_counts=True)
    ends = counts.cumsum(0).double()
    return (ends - (counts.double() - 1) / 2)[index]


MEASURES: dict[str, Callable[..., float]] = {"cka": cka, "svcca": svcca, "rsa": rsa}


@dataclass(frozen=True)
class Similarity(Plottable):
    """How alike the sites of two models are, in rows and columns.

    >>> votive.glass.probes.Similarity("cka", [[1.0]], ("0",), ("0",)).svg()[:4]
    '<svg'
    """

    measure: str
    values: list[list[float]]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def figure(self) -> Heatmap:
        """A map of all pairs."""
        return Heatmap(self.values, self.rows, self.columns, title=self.measure)

    def pictures(self) -> Any:
        return {"similarity": lambda: [self.figure()]}

    def to_dict(self) -> dict[str, Any]:
        """The numbers and names as plain values."""
        return dict(self.__dict__)


def similarity(
    model: Module,
    other: Module,
    batches: Iterable[Any],
    *,
    at: Patterns = "layers.*",
    measure: str = "cka",
    positions: Positions = "mean",
    **options: Any,
) -> Similarity:
    """How alike every site of a model is to every site of another (or of itself), on the same inputs.

    Of several positions each counts as a sample. Options are those of the measure: `cka`, `svcca` or `rsa`.

    >>> net = votive.nn.Sequential(votive.nn.Embedding(9, 4), votive.nn.Linear(4, 4))
    >>> found = votive.glass.probes.similarity(net, net, [votive.arange(9).reshape(9, 1)], at="*")
    >>> found.rows, round(found.values[0][0], 6)
    (('0', '1'), 1.0)
    """
    if measure not in MEASURES:
        raise ValueError(f"similarity: measure must be one of {', '.join(MEASURES)}, got {measure!r}.")
    kept = list(batches)
    one = gather(model, kept, at, positions).sites
    two = one if other is model else gather(other, kept, at, positions).sites
    flat = [{n: t.flatten(0, 1) for n, t in sites.items()} for sites in (one, two)]
    found = [[MEASURES[measure](a, b, **options) for b in flat[1].values()] for a in flat[0].values()]
    return Similarity(measure, found, tuple(one), tuple(two))
