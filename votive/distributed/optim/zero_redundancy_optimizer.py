"""An optimizer of which every rank holds the states of its own share of the parameters, ZeRO's first stage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ...nn.parallel.agreeing import broadcast_all, check_same_everywhere
from ...optim import LBFGS, Optimizer
from ...tensor import Tensor
from ..group import ProcessGroup
from ..objects import gather_object
from ..world import group_of

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """Let each rank step a share of the parameters and send the others what became of them.

    Gradients must be the same on all ranks, as DistributedDataParallel leaves them. The optimizer's states take their
    memory divided by the number of ranks; the steps are those of one process.

    >>> def train():
    ...     model = votive.nn.parallel.DistributedDataParallel(votive.nn.Linear(2, 1))
    ...     optimizer = votive.distributed.optim.ZeroRedundancyOptimizer(
    ...         model.parameters(), optimizer_class=votive.optim.Adam, lr=0.1)
    ...     model(votive.ones(1, 2)).sum().backward()
    ...     optimizer.step()
    ...     return len(optimizer.optim.state)
    >>> votive.distributed.simulate(train, 2)
    [1, 1]
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if isinstance(params, Tensor):
            raise TypeError(f"`params` argument should be an iterable of Tensors, but got {params.type()}")
        given = list(params)
        if not given:
            raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
        if not all(isinstance(p, (Tensor, dict, tuple)) for p in given):
            raise TypeError("`params` argument should be an iterable of Tensors or dicts")
        if parameters_as_bucket_view:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: parameters_as_bucket_view is not supported; updated parameters are sent many "
                "at once without it."
            )
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp is not supported; call step() behind backward()."
            )
        if issubclass(optimizer_class, LBFGS):
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: LBFGS looks at all parameters at once, so they cannot be stepped in shares."
            )
        self.process_group = group_of(process_group)
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        self.optim: Optimizer | None = None
        self._optimizer_class, self._options = optimizer_class, defaults
        self._sizes = [0] * self.world_size
        self._owners: list[dict[int, int]] = []  # of each group: the rank of each parameter, by its place
        self._consolidated: dict[int, Any] | None = None
        super().__init__(given, {})
        every = [(str(i), p) for i, p in enumerate(p for g in self.param_groups for p in g["params"])]
        check_same_everywhere(every, self.process_group, "ZeroRedundancyOptimizer")
        self.optim = optimizer_class([self._share(i) for i in range(len(self.param_groups))], **defaults)
        self.defaults, self.state = self.optim.defaults, self.optim.state
        self._take_options()

    # --- shares -------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize more parameters from now on, shared out as the others were."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        owners: dict[int, int] = {}
        # The largest first, each to who has least: shares differ by one parameter at most.
        for i in sorted(range(len(group["params"])), key=lambda i: -group["params"][i].numel()):
            rank = self._sizes.index(min(self._sizes))
            owners[i] = rank
            self._sizes[rank] += group["params"][i].numel()
        self._owners.append(owners)
        self._consolidated = None
        if self.optim is not None:
            self.optim.add_param_group(self._share(len(self.param_groups) - 1))
            self._take_options()

    def _places(self, at: int, rank: int) -> list[int]:
        """Where a rank's parameters stand in a group."""
        return [i for i in range(len(self.param_groups[at]["params"])) if self._owners[at][i] == rank]

    def _share(self, at: int) -> dict[str, Any]:
        """A group with the parameters of this rank alone."""
        group, places = self.param_groups[at], self._places(at, self.rank)
        share = dict(group)
        for name in ("params", "param_names"):
            if name in group:
                share[name] = [group[name][i] for i in places]
        return share

    def _copy_options(self, source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
        for a, b in zip(source, target, strict=True):
            b.update({k: v for k, v in a.items() if k not in ("params", "param_names")})

    def _take_options(self) -> None:
        assert self.optim is not None
        self._copy_options(self.optim.param_groups, self.param_groups)

    # --- stepping -----------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update the parameters of this rank, and take from the other ranks what they have updated."""
        assert self.optim is not None
        self._consolidated = None
        # Schedules change the options of the groups with all parameters.
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure, **kwargs)
        self._take_options()
        for rank in range(self.world_size):
            theirs = [g["params"][i] for at, g in enumerate(self.param_groups) for i in self._places(at, rank)]
            broadcast_all(theirs, self.process_group, rank)
        return loss

    # --- checkpoints --------------------------------------------------------------------------

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks to the rank `to`, where `state_dict` then gives them. All ranks call it."""
        assert self.optim is not None
        mine = [self.optim.state.get(p) for at in range(len(self.param_groups)) for p in self._share(at)["params"]]
        to_rank = self.process_group.global_rank(to)
        found: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(_on_cpu(mine), found, to_rank, self.process_group)
        self._consolidated = None
        if found is None:
            return
        self._consolidated = {}
        start = 0
        at_rank = [iter(states) for states in found]
        for at, group in enumerate(self.param_groups):
            for rank in range(self.world_size):
                for i in self._places(at, rank):
                    state = next(at_rank[rank])
                    if state is not None:
                        self._consolidated[start + i] = state
            start += len(group["params"])
        self._consolidated = dict(sorted(self._consolidated.items()))

    def state_dict(self) -> dict[str, Any]:
        """The states of all ranks, as one process would have them; after `consolidate_state_dict`, on its rank."""
        if self._consolidated is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        every = [p for g in self.param_groups for p in g["params"]]
        mine, self.state = self.state, defaultdict(dict, {every[i]: s for i, s in self._consolidated.items()})
        try:
            return super().state_dict()
        finally:
            self.state = mine

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what one process, or any number of ranks, has saved: this rank's share of it."""
        assert self.optim is not None
        for hook in self._hooks["load_pre"].values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        groups = state_dict["param_groups"]
        sizes = [len(g["params"]) for g in self.param_groups]
        if [len(g["params"]) for g in groups] != sizes:
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        states: dict[int, Any] = {}
        shares: list[dict[str, Any]] = []
        count = 0
        for at, group in enumerate(groups):
            places = self._places(at, self.rank)
            share = {k: v for k, v in group.items() if k not in ("params", "param_names")}
            share["params"] = list(range(count, count + len(places)))
            if "param_names" in group:
                share["param_names"] = [group["param_names"][i] for i in places]
            for local, i in zip(share["params"], places, strict=True):
                if group["params"][i] in state_dict["state"]:
                    states[local] = state_dict["state"][group["params"][i]]
            shares.append(share)
            count += len(places)
        self.optim.load_state_dict({"state": states, "param_groups": shares})
        self.state = self.optim.state
        self._consolidated = None
        self._take_options()
        for hook in self._hooks["load_post"].values():
            hook(self)


def _on_cpu(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach().cpu()
    if isinstance(x, dict):
        return {k: _on_cpu(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_on_cpu(v) for v in x)
    return x
