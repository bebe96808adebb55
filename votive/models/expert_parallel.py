"""Expert parallel mixtures: each rank of a mesh holds some experts, and positions travel to those that compute them
(Lepikhin et al. 2020, arXiv:2006.16668). Ranks have batches of their own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NoReturn, TypeVar

import votive
from votive import nn
from votive.autograd import Function
from votive.distributed.collectives import all_gather_into_tensor, all_to_all_single
from votive.distributed.device_mesh import DeviceMesh
from votive.distributed.fsdp.sharding import Sharding, marked
from votive.distributed.group import ProcessGroup

from ..tensor import Tensor
from .decoder.mixture import Mixture

M = TypeVar("M", bound=nn.Module)
_EXPERT = "_of_expert_on"


class Elsewhere(nn.Module):
    """Stands for an expert that another rank has."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: Tensor) -> NoReturn:
        raise RuntimeError(
            f"expert_parallel: this expert is on rank {self.rank} of the mesh, so its weights and the values inside of "
            "the mixture cannot be shown or edited here; look at them in a model that is whole."
        )

    def extra_repr(self) -> str:
        return f"rank={self.rank}"


class _Exchanged(Function):
    """Rows that other ranks have for this one, and their gradients on the way back. `anchor` keeps it in the graph of
    ranks that have no row, so that all come to the way back.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, group: ProcessGroup, sent: list[int], found: list[int]) -> Tensor:
        ctx.how = (group, sent, found)
        return exchanged(x, group, sent, found)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        group, sent, found = ctx.how
        return exchanged(g, group, found, sent), None, None, None, None


def exchanged(x: Tensor, group: ProcessGroup, sent: list[int], found: list[int]) -> Tensor:
    """The rows (rows, features) that each rank has for this one, in the order of the ranks.

    >>> from votive.models.expert_parallel import exchanged
    >>> def swap():
    ...     me, group = votive.distributed.get_rank(), votive.distributed.group.WORLD
    ...     return exchanged(votive.full((2, 1), float(me)), group, [1, 1], [1, 1]).flatten().tolist()
    >>> votive.distributed.simulate(swap, 2)
    [[0.0, 1.0], [0.0, 1.0]]
    """
    out = x.new_empty((sum(found), *x.shape[1:]))
    all_to_all_single(out, x.detach().contiguous(), found, sent, group)
    return out


class _Experts:
    """Which experts of a mixture a rank has, and how rows come to them and go back."""

    def __init__(self, mixture: Mixture, mesh: DeviceMesh) -> None:
        count, ranks = len(mixture.nets), mesh.size()
        if count < ranks:
            raise ValueError(f"expert_parallel: {count} experts for {ranks} ranks; use a smaller mesh.")
        self.mixture, self.group, self.ranks = mixture, mesh.get_group(), ranks
        ends = [count * r // ranks for r in range(ranks + 1)]
        self.places = [(a, b - a) for a, b in pairwise(ends)]
        begin, length = self.places[mesh.get_local_rank()]
        self.mine = range(begin, begin + length)

    def mixed(self, x: Tensor, flat: Tensor) -> Tensor:
        """`Mixture.mixed`, where experts are on several ranks."""
        m = self.mixture
        router = m.router
        weights, chosen = m.chances(router(flat))  # (N, k)
        weights = weights.to(x.dtype)
        order = chosen.flatten().argsort(stable=True)  # (N k,), the rows of one expert together
        rows = flat[order // m.top_k]
        if m.design.router == "inputs":
            rows = rows * weights.flatten()[order].unsqueeze(-1)
        counts = chosen.flatten().bincount(minlength=len(m.nets))
        every = counts.new_empty((self.ranks, len(m.nets)))
        all_gather_into_tensor(every, counts.unsqueeze(0), self.group)
        sent = [int(counts[a : a + n].sum()) for a, n in self.places]
        table = every[:, self.mine.start : self.mine.stop]  # (ranks, own experts)
        found = table.sum(1).tolist()
        anchor = router.weight
        came: Tensor = _Exchanged.apply(rows, anchor, self.group, sent, found)
        y = self.computed(came, table)
        back: Tensor = _Exchanged.apply(y, anchor, self.group, found, sent)
        back = back[order.argsort()].view(*chosen.shape, -1)  # (N, k, C)
        if m.design.router != "inputs":
            back = back * weights.unsqueeze(-1)
        return back.sum(1).view(x.shape)

    def computed(self, came: Tensor, table: Tensor) -> Tensor:
        """What this rank's experts make of rows, which lie by rank and then by expert."""
        experts = votive.arange(len(self.mine), device=table.device).repeat(self.ranks)
        owner = experts.repeat_interleave(table.flatten())  # of each row, its expert
        order = owner.argsort(stable=True)
        rows, end, parts = came[order], 0, []
        for expert, n in zip(self.mine, table.sum(0).tolist(), strict=True):
            if n:
                parts.append(self.mixture.nets[expert](rows[end : end + n]))
                end += n
        if parts:
            return votive.cat(parts)[order.argsort()]
        if not votive.is_grad_enabled():
            return came
        # Norms of gradients are added up among all ranks: each has some, if only zeros.
        return came + 0.0 * self.mixture.nets[self.mine.start](came.new_zeros((1, came.shape[1]))).sum()


def expert_parallel(model: M, mesh: DeviceMesh, *, average_gradients: bool = True) -> M:
    """Let each rank of a mesh hold some of the experts of every mixture in a model; others stay copies on all ranks.

    Ranks have batches of their own. Gradients of experts are those of all ranks' positions, divided by the number of
    ranks as DistributedDataParallel divides the others'; that leaves experts out by itself, `fully_shard` with
    `ignored_params=expert_parameters(model)`. All ranks must begin with the same weights. Of a model that is cut into
    heads and neurons, too, `tensor_parallel` comes first.

    >>> from votive.models.expert_parallel import expert_parallel
    >>> def names():
    ...     votive.manual_seed(0)
    ...     config = votive.models.MixtralConfig(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...         num_attention_heads=2, num_key_value_heads=2, num_local_experts=4)
    ...     model = votive.models.MixtralForCausalLM(config)
    ...     expert_parallel(model, votive.distributed.init_device_mesh("cpu", (2,)))
    ...     return len([n for n, _ in model.named_parameters() if "experts" in n])
    >>> votive.distributed.simulate(names, 2)
    [6, 6]
    """
    if mesh.ndim != 1:
        raise ValueError(f'expert_parallel takes a mesh of one dimension, got {mesh.ndim}; pass mesh["ep"].')
    mixtures = [m for m in model.modules() if isinstance(m, Mixture)]
    if not mixtures:
        raise ValueError(f"expert_parallel: {type(model).__name__} has no mixture of experts.")
    for mixture in mixtures:
        if "mixed" in mixture.__dict__:
            raise RuntimeError("expert_parallel: the experts of this model are spread over ranks already.")
        experts = _Experts(mixture, mesh)
        for r, (begin, length) in enumerate(experts.places):
            for i in range(begin, begin + length):
                if i not in experts.mine:
                    mixture.nets[i] = Elsewhere(r)
        mixture.__dict__["mixed"] = experts.mixed
        for i in experts.mine:
            for p in mixture.nets[i].parameters():
                _watch(p, experts.group, experts.ranks if average_gradients else 1)
    ignored = [n for n, p in model.named_parameters() if _EXPERT in p.__dict__]
    before = getattr(model, "_ddp_params_and_buffers_to_ignore", ())
    model.__dict__["_ddp_params_and_buffers_to_ignore"] = [*before, *ignored]
    return model


def expert_parameters(model: nn.Module) -> list[Tensor]:
    """The parameters of this rank's own experts, which no other rank has.

    >>> votive.models.expert_parallel.expert_parameters(votive.nn.Linear(1, 1))
    []
    """
    return [p for p in model.parameters() if _EXPERT in p.__dict__]


def _watch(p: Any, group: ProcessGroup, ranks: int) -> None:
    """Divide the gradients of an expert, and let norms count those of all ranks."""
    p.__dict__[_EXPERT] = group
    if not p.requires_grad:
        return
    if ranks > 1:
        p.register_hook(lambda g: g / ranks)
    spread = Sharding(group, tuple(p.shape))

    def mark(p: Any) -> None:
        marked(p.grad, spread)

    p.register_post_accumulate_grad_hook(mark)
