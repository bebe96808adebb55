"""Mixtures of experts: a router sends each position to a few of many nets and adds their results, weighted.

An expert computes its own positions only. Knows no layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.points import inside, point, wanted, where

from ...tensor import Tensor
from .design import Design, Experts
from .nets import NETS, ClampedMLP, GatedMLP
from .products import Around, place


class Router(nn.Linear):
    """Scores of experts, with a correction that only chooses: DeepSeek-AI 2024, arXiv:2408.15664."""

    def __init__(self, d: Design, e: Experts) -> None:
        super().__init__(d.width, e.count, bias=e.gate_bias)
        if e.correction and e.correction_in is None:
            self.register_buffer(e.correction, votive.zeros(e.count, dtype=votive.float32))
        self.wide, self.correction = e.wide, e.correction if e.correction_in is None else ""

    def forward(self, input: Tensor) -> Tensor:
        if not self.wide:
            return super().forward(input)
        return F.linear(input.float(), self.weight.float(), None if self.bias is None else self.bias.float())

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = getattr(self, self.correction) if self.correction else None
        super()._apply(fn, recurse)
        if before is not None:
            # Rounded to few bits, corrections would choose other experts.
            after = getattr(self, self.correction)
            if after.dtype != before.dtype:
                setattr(self, self.correction, before.to(after.device))
        return self


class Mixture(nn.Module):
    """A router and its experts."""

    def __init__(self, d: Design) -> None:
        super().__init__()
        e = d.experts
        assert e is not None, "the design has experts"
        self.design, self.top_k, self.normed, self.jitter = e, e.chosen, e.normed, e.jitter
        place(self, e.gate, Router(d, e))
        experts = nn.ModuleList(self.expert(d, e) for _ in range(e.count))
        setattr(self, e.path, experts)
        if e.correction and e.correction_in is not None:
            holder = nn.Module() if e.correction_in else self
            shape = (1, e.count) if e.correction_row else (e.count,)
            holder.register_buffer(e.correction, votive.zeros(shape, dtype=votive.float32))
            if e.correction_in:
                setattr(self, e.correction_in, holder)
        if e.shared:
            common = NETS[e.shared_kind](d, e.shared, e.shared_names)
            if e.shared_beside:
                self.__dict__["_common"] = common  # a child of the layer, which only this calls
            else:
                setattr(self, e.shared_path, common)
            if e.shared_gate:
                setattr(self, e.shared_gate, nn.Linear(d.width, 1, bias=False))

    def expert(self, d: Design, e: Experts) -> nn.Module:
        """One of the nets."""
        if e.clamp is not None:
            return ClampedMLP(d, e.inner, e.names, e.bias, *e.clamp)
        return GatedMLP(d, e.inner, e.names, e.bias)

    @property
    def router(self) -> Router:
        """What scores experts."""
        found = self._modules[self.design.gate.partition(".")[0]]  # whose name may be this one
        found = found.inner if isinstance(found, Around) else found
        assert isinstance(found, Router), "made so"
        return found

    @property
    def common(self) -> nn.Module:
        """The net that computes all positions."""
        found = self.__dict__.get("_common")
        return getattr(self, self.design.shared_path) if found is None else found

    @property
    def correction(self) -> Tensor:
        """What is added to scores where experts are chosen."""
        e = self.design
        holder = self.router if e.correction_in is None else self
        if e.correction_in:
            holder = getattr(self, e.correction_in)
        return getattr(holder, e.correction).flatten()

    @property
    def nets(self) -> nn.ModuleList:
        """The experts."""
        found = getattr(self, self.design.path)
        assert isinstance(found, nn.ModuleList), "made so"
        return found

    def forward(self, x: Tensor) -> Tensor:
        read = x
        if self.training and self.jitter:
            read = x * votive.empty_like(x).uniform_(1 - self.jitter, 1 + self.jitter)
        flat = read.reshape(-1, x.shape[-1])  # (N, C)
        at = where()
        if at is None:
            return self.with_shared(read, self.mixed(read, flat))
        with inside(None):  # an expert is no layer's whole net
            if wanted(f"{at}.mlp.router_logits", f"{at}.mlp.expert_weights"):
                return self.with_shared(read, self.opened(at, read, flat))
            return self.with_shared(read, self.mixed(read, flat))

    def with_shared(self, x: Tensor, y: Tensor) -> Tensor:
        """What is computed for all positions added to what the chosen experts give."""
        e = self.design
        if not e.shared:
            return y
        common = self.common(x)
        return y + (votive.sigmoid(getattr(self, e.shared_gate)(x)) * common if e.shared_gate else common)

    def chances(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Of scores (positions, experts): the weights of the chosen experts, and which they are."""
        e, scores = self.design, logits.float()
        if e.router == "chosen":
            best, chosen = scores.topk(e.chosen, -1)
            return F.softmax(best, -1), chosen
        if e.router == "inputs":
            best, chosen = scores.topk(e.chosen, -1)
            return votive.sigmoid(best), chosen
        if e.router == "sparsemixer":
            return sparsemixer(scores, e.near, self.training)
        scores = votive.sigmoid(scores) if e.router == "sigmoid" else F.softmax(scores, -1)
        for_choice = scores
        if e.correction:
            for_choice = for_choice + self.correction
        if e.groups is not None:
            for_choice = self.in_groups(for_choice, *e.groups)
        if for_choice is scores:
            weights, chosen = scores.topk(e.chosen, -1)
        else:
            chosen = for_choice.topk(e.chosen, -1)[1]
            weights = scores.gather(-1, chosen)
        if e.normed:
            total = weights.sum(-1, keepdim=True).clamp(min=e.floor)
            weights = weights / (total + e.sum_eps if e.router == "sigmoid" else total)
        return weights if e.scaled == 1.0 else weights * e.scaled, chosen

    def in_groups(self, scores: Tensor, count: int, kept: int) -> Tensor:
        """Scores that nobody chooses outside the groups whose best experts are best."""
        groups = scores.unflatten(-1, (count, -1))  # (N, groups, experts)
        value = groups.topk(2, -1)[0].sum(-1) if self.design.correction else groups.amax(-1)
        open_ = votive.zeros_like(value).scatter(-1, value.topk(kept, -1)[1], 1.0)
        return scores.masked_fill(open_.repeat_interleave(groups.shape[-1], -1) == 0, -votive.inf)

    def opened(self, at: str, x: Tensor, flat: Tensor) -> Tensor:
        """`mixed`, with the router's scores and the weight of each expert shown.

        Experts run for the rows that the router or somebody's edit gives a weight: so one whose weight is made 0 has
        a gradient there, and what is zero is known to be computed from it.
        """
        logits = point(f"{at}.mlp.router_logits", self.router(flat).view(*x.shape[:2], -1))  # (B, T, E)
        best, chosen = self.chances(logits.flatten(0, 1))
        best, chosen = best.view(*x.shape[:2], -1), chosen.view(*x.shape[:2], -1)
        weights = votive.zeros_like(logits, dtype=best.dtype).scatter(-1, chosen, best)
        asked = weights.detach().flatten(0, 1) != 0
        weights = point(f"{at}.mlp.expert_weights", weights).flatten(0, 1).to(x.dtype)  # (N, E)
        asked = asked | (weights.detach() != 0)
        y = votive.zeros_like(flat)
        for i, expert in enumerate(self.nets):
            rows = asked[:, i].nonzero().squeeze(-1)
            if rows.numel():
                w = weights[rows, i].unsqueeze(-1)
                own = expert(flat[rows] * w) if self.design.router == "inputs" else expert(flat[rows]) * w
                y = y.index_add(0, rows, own)
        return y.view(x.shape)

    def mixed(self, x: Tensor, flat: Tensor) -> Tensor:
        """The results of each row's chosen experts, added by their weights."""
        weights, chosen = self.chances(self.router(flat))  # (N, k)
        experts, weights = self.nets, weights.to(x.dtype)
        # Sorted by expert, the rows that one computes lie together.
        order = chosen.flatten().argsort(stable=True)  # (N k,)
        counts = chosen.flatten().bincount(minlength=len(experts)).tolist()
        rows, end, parts = order // self.top_k, 0, []
        for expert, count in enumerate(counts):
            if count:
                mine, end = rows[end : end + count], end + count
                read = flat[mine]
                if self.design.router == "inputs":
                    read = read * weights.flatten()[order[end - count : end]].unsqueeze(-1)
                parts.append(experts[expert](read))
        if not parts:
            return votive.zeros_like(x)
        y = votive.cat(parts)[order.argsort()].view(*chosen.shape, -1)  # (N, k, C)
        if self.design.router != "inputs":
            y = y * weights.unsqueeze(-1)
        return y.sum(1).view(x.shape)


def sparsemixer(scores: Tensor, near: float, training: bool = False) -> tuple[Tensor, Tensor]:
    """Two experts, each weighed among those that are nearly as good: Liu et al. 2024, arXiv:2409.12136.

    While training they are drawn by chance; those that are not the best often weigh a third, which no gradient sees.

    >>> from votive.models.decoder.mixture import sparsemixer
    >>> sparsemixer(votive.tensor([[0.0, 1.0, 9.0]]), 0.01)[1]
    tensor([[2, 1]])
    """
    weights, chosen = [], []
    left = scores
    for _ in range(2):
        best, at = left.max(-1, keepdim=True)
        size = scores.abs().maximum(best)
        open_ = left.masked_fill((best - scores) / size > 2 * near, -votive.inf)
        if training:
            noise = votive.empty_like(scores).exponential_().log()
            best, at = at, (open_ - noise).max(-1, keepdim=True)[1]
        share = F.softmax(open_, -1)
        weight = share.gather(-1, at)
        if training:
            whole = (at == best) | (votive.rand_like(weight) > 0.75)
            weight = weight - (weight * votive.where(whole, 0.0, 2 / 3)).detach()
        weights.append(weight)
        chosen.append(at)
        left = scores.scatter(-1, at, -votive.inf)
    return votive.cat(weights, -1), votive.cat(chosen, -1)
