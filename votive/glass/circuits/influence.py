"""Influence along the edges of an attribution graph: on what outputs depend, what to keep, how much is explained.

Ameisen et al. 2025, "Circuit tracing", appendix on pruning: a node's edges count by their share of all that comes in;
influence is the sum over all paths of the products of shares. Knows matrices, no model.
"""

from __future__ import annotations

from dataclasses import dataclass

import votive

from ...core.dtype import bool_
from ...tensor import Tensor


@dataclass(frozen=True)
class Table:
    """Edges (targets, sources) of a graph without cycles.

    Sources are units, then errors, then tokens; targets are units, in the same order, then outputs. `chances` are how
    much each output counts.
    """

    edges: Tensor
    units: int
    errors: int
    chances: Tensor

    def shares(self) -> Tensor:
        """Each edge's share of what comes into its target."""
        size = self.edges.abs()
        total = size.sum(1, keepdim=True)
        return size / votive.where(total > 0, total, votive.ones_like(total))

    def influence(self) -> Tensor:
        """The influence of each source on the outputs."""
        return self._spread(self.shares(), self.chances)

    def flows(self) -> Tensor:
        """How much of the influence on the outputs goes through each edge."""
        shares = self.shares()
        through = self._spread(shares, self.chances)[: self.units]
        return shares * votive.cat([through, self.chances.to(shares.dtype)]).unsqueeze(1)

    def _spread(self, shares: Tensor, chances: Tensor) -> Tensor:
        n = self.units
        step = chances.to(shares.dtype) @ shares[n:]
        total = step
        # Units are in the order of layers, and read earlier ones only: no path is longer than there are units.
        for _ in range(n + 1):
            if not bool(step[:n].any()):
                break
            step = step[:n] @ shares[:n]
            total = total + step
        return total

    def scores(self) -> tuple[float, float]:
        """The replacement and the completeness score.

        How much of the influence begins at tokens rather than errors; and how much of what comes into targets, by
        their influence, comes from other than errors.
        """
        shares = self.shares()
        spread, first, last = self._spread(shares, self.chances), self.units, self.units + self.errors
        tokens, errors = float(spread[last:].sum()), float(spread[first:last].sum())
        counts = votive.cat([spread[: self.units], self.chances.to(spread.dtype)])
        known = 1 - shares[:, first:last].sum(1)
        # What reads nothing at all explains nothing, and misses nothing.
        counts = votive.where(shares.sum(1) > 0, counts, votive.zeros_like(counts))
        whole = float(counts.sum())
        return tokens / max(tokens + errors, 1e-30), float((known * counts).sum()) / max(whole, 1e-30)

    def pruned(self, node_share: float, edge_share: float) -> tuple[Tensor, Tensor]:
        """Which sources and which edges to keep: the fewest that make up these shares of all influence.

        Tokens stay in any case; units and errors go if nothing reads them, and units if they read nothing.
        """
        n, m = self.units, self.units + self.errors
        spread = self.influence()
        keep = _most(spread, node_share)
        keep[m:] = True
        alive = votive.cat([keep[:n], votive.ones(len(self.chances), dtype=bool_, device=keep.device)])
        edges = self.edges * alive.unsqueeze(1) * keep
        flows = Table(edges, n, self.errors, self.chances).flows()
        marked = _most(flows.flatten(), edge_share).view(edges.shape) & (edges != 0)
        while True:
            used, fed = marked.any(0), marked.any(1)
            stays = keep & used
            stays[:n] &= fed[:n]
            stays[m:] = True
            if bool((stays == keep).all()):
                return keep, marked
            keep = stays
            marked = marked & keep
            marked[:n] &= keep[:n].unsqueeze(1)


def weighed(chances: Tensor) -> Tensor:
    """How much each output counts, by its chance; alike where all are too small to be told.

    >>> from votive.glass.circuits.influence import weighed
    >>> weighed(votive.tensor([0.5, 0.1])), weighed(votive.zeros(2))
    (tensor([0.5000, 0.1000]), tensor([1., 1.]))
    """
    return chances if bool((chances > 0).any()) else votive.ones_like(chances)


def _most(scores: Tensor, share: float) -> Tensor:
    """The largest scores that make up a share of the sum, and those that equal the last of them."""
    order = scores.sort(descending=True)[0]
    total = float(order.sum())
    if not total > 0:
        return votive.zeros_like(scores, dtype=bool_)
    # One below the end at most: rounding may keep the sum of all from reaching a share of 1.
    reached = int((order.double().cumsum(0) / total < share - 1e-9).sum())
    least = order[min(reached, len(order) - 1)]
    return (scores >= least) & (scores > 0)
