"""What training makes small: errors, sparsity, and what revives dead features. Knows coders, no data."""

from __future__ import annotations

from dataclasses import dataclass

import votive

from ...tensor import Tensor
from .activations import Jump
from .coder import SAE


@dataclass
class Losses:
    """The parts of one batch's loss, each a number with its graph, and the features that fired."""

    total: Tensor
    error: Tensor
    sparsity: Tensor
    auxiliary: Tensor
    features: Tensor
    residual: Tensor


def losses(
    sae: SAE,
    x: Tensor,
    target: Tensor | None = None,
    *,
    sparsity: float = 1.0,
    auxiliary: float = 0.0,
    dead: Tensor | None = None,
    k_aux: int | None = None,
) -> Losses:
    """Squared error, sparsity and auxiliary loss of a batch of rows.

    Errors are summed over numbers and averaged over rows; with `prefixes` they are the mean over all of them. The
    sparsity is the L1 norm weighted by the decoder's rows (relu, gated) or the number that fire (jumprelu); a top-k
    needs none. `dead` marks features which, by the auxiliary loss of Gao et al. 2024, learn what the others miss.

    >>> sae = votive.glass.features.SAE(2, 4, "relu")
    >>> found = votive.glass.features.losses(sae, votive.zeros(3, 2), sparsity=0.1)
    >>> float(found.total), found.features.shape
    (0.0, votive.Size([3, 4]))
    """
    c = sae.config
    if c.d_out is not None and target is None:
        raise ValueError("losses: a transcoder needs target=, what it shall give.")
    rows = sae.rows(x)
    wanted = sae.targets(x if target is None else target)
    pre = sae.pre(rows)
    features = sae.fire(pre, training=True)
    base = sae.b_dec + rows @ sae.W_skip.t() if c.skip else sae.b_dec
    error, given = _error(sae, features, wanted, base)
    zero = error.new_zeros(())
    thin = zero
    if c.kind in ("relu", "gated"):
        weights = sae.W_dec.norm(dim=-1)
        thin = ((pre.relu() if c.kind == "gated" else features) * weights).sum(-1).mean()
    elif c.kind == "jumprelu":
        thin = Jump.apply(pre, sae.log_threshold.exp(), c.bandwidth).sum(-1).mean()
    extra = zero
    if c.kind == "gated":
        # The gate alone must explain the value; what it is judged by does not learn from it.
        alone = pre.relu() @ sae.W_dec.detach() + base.detach()
        extra = (alone - wanted).square().sum(-1).mean()
    residual = (wanted - given).detach()
    if auxiliary and dead is not None and bool(dead.any()):
        extra = extra + auxiliary * _revive(sae, pre, residual, dead, k_aux)
    total = error + extra
    if c.kind not in ("topk", "batchtopk"):
        total = total + sparsity * thin
    return Losses(total, error, thin, extra, features.detach(), residual)


def _error(sae: SAE, features: Tensor, wanted: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
    """The error, over all prefixes, and what all features give."""
    prefixes = sae.config.prefixes or (sae.config.d_sae,)
    given, found, start = base, [], 0
    for end in prefixes:
        given = given + features[..., start:end] @ sae.W_dec[start:end]
        found.append((wanted - given).square().sum(-1).mean())
        start = end
    return votive.stack(found).mean(), given


def _revive(sae: SAE, pre: Tensor, residual: Tensor, dead: Tensor, k_aux: int | None) -> Tensor:
    """How badly the dead features that come nearest to firing explain what the others leave."""
    count = int(dead.sum())
    half = max(1, sae.config.gives // 2) if k_aux is None else k_aux
    k = min(half, count)
    nearest, index = pre.masked_fill(~dead, -votive.inf).topk(k, -1, sorted=False)
    features = votive.zeros_like(pre).scatter(-1, index, nearest.relu())
    # Of few dead features little can be expected.
    return min(count / half, 1.0) * (features @ sae.W_dec - residual).square().sum(-1).mean()
