"""What each rank will hold and send under a plan, and how long a step takes; printed as a table. Knows no processes."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import size_text
from ...nn.module import Module
from ..pipelining import get_schedule_class, order_of, pipeline
from ..pipelining.actions import bubble, held_at_most, timed
from .machines import Machine, machine_named
from .pieces import ROOT, Kept, Weight, batch_for, kept_by, weights_of

# Numbers an optimizer keeps for each parameter.
STATES = {"adamw": 2, "adam": 2, "sgd": 0, "momentum": 1, "adagrad": 1, "lion": 1}


@dataclass(frozen=True)
class Plan:
    """How many ranks there are along each dimension of a mesh, and how they share the work.

    `data` ranks see other batches, `shard` says what they divide: 0 nothing, 1 optimizer states, 2 also gradients, 3
    also parameters. `tensor` ranks divide matrices, `context` ranks the sequence, `expert` ranks (of the `data` ones)
    the experts, `pipeline` ranks the layers, by a schedule over `microbatches`.

    >>> votive.distributed.Plan(data=4, tensor=2).ranks
    8
    """

    data: int = 1
    shard: int = 0
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    microbatches: int = 1
    schedule: str = "1F1B"
    stages_per_rank: int = 1
    recompute: bool = False

    def __post_init__(self) -> None:
        for name in ("data", "tensor", "pipeline", "context", "expert", "microbatches", "stages_per_rank"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"Plan: {name} must be 1 or more, got {value!r}.")
        if self.shard not in (0, 1, 2, 3):
            raise ValueError(f"Plan: shard must be 0, 1, 2 or 3, got {self.shard!r}.")
        if self.data % self.expert:
            raise ValueError(f"Plan: expert={self.expert} must divide data={self.data}.")
        if self.pipeline > 1 and self.shard == 1:
            raise ValueError("Plan: a ZeroRedundancyOptimizer does not go with a pipeline; use shard=0, 2 or 3.")

    @property
    def ranks(self) -> int:
        """How many there are in all."""
        return self.data * self.tensor * self.pipeline * self.context


@dataclass(frozen=True)
class Sent:
    """What a rank gives to calls of one kind in a step: `nbytes` as the timeline counts them."""

    op: str
    along: str
    ranks: int
    calls: int
    nbytes: int
    seconds: float
    spans_nodes: bool


@dataclass(frozen=True)
class Stage:
    """What a rank of one part of the pipeline holds, in bytes, and sends in a step."""

    index: int
    parameters: int
    gradients: int
    states: int
    activations: int
    gathered: int
    sent: tuple[Sent, ...]
    compute: float

    @property
    def total(self) -> int:
        """All bytes together."""
        return self.parameters + self.gradients + self.states + self.activations + self.gathered


@dataclass(frozen=True)
class Forecast:
    """A plan's outcome: stages of the pipeline, of which all ranks of a stage hold the same, and times in seconds."""

    plan: Plan
    machine: Machine
    stages: tuple[Stage, ...]
    bubble: float
    compute: float
    exposed: float
    tokens: int
    cache_per_token: int = 0
    assumptions: tuple[str, ...] = field(default=())

    @property
    def step(self) -> float:
        """Seconds of a step: computing, what ranks wait in the pipeline, and messages that computing does not hide."""
        return self.compute / (1 - self.bubble) + self.exposed

    @property
    def fits(self) -> bool:
        """Whether every rank has the memory."""
        return max(s.total for s in self.stages) <= self.machine.memory

    def __str__(self) -> str:
        p = self.plan
        rows = [["stage", "ranks", "parameters", "gradients", "states", "activations", "gathered", "total"]]
        for s in self.stages:
            parts = (s.parameters, s.gradients, s.states, s.activations, s.gathered, s.total)
            rows.append([str(s.index), str(p.ranks // p.pipeline), *(size_text(n) for n in parts)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
        lines.append(f"of {size_text(self.machine.memory)} on each {self.machine.name}"
                     f"{'' if self.fits else ': TOO MUCH'}")  # fmt: skip
        most = max(self.stages, key=lambda s: sum(m.seconds for m in s.sent))
        for m in most.sent:
            where = " between nodes" if m.spans_nodes else ""
            lines.append(f"stage {most.index} sends {size_text(m.nbytes)} by {m.calls} {m.op} along {m.along}, "
                         f"{m.ranks} ranks{where}: {m.seconds * 1e3:.2f} ms")  # fmt: skip
        rate = self.tokens / self.step
        lines.append(
            f"step {self.step * 1e3:.1f} ms: computing {self.compute * 1e3:.1f}, bubble {self.bubble:.0%}, "
            f"messages not hidden {self.exposed * 1e3:.1f}; {rate:,.0f} items a second"
        )
        if self.cache_per_token:
            lines.append(f"keys and values of a token while writing: {size_text(self.cache_per_token)} on each rank")
        lines += [f"assumed: {text}" for text in self.assumptions]
        return "\n".join(lines)


def dry_run(
    model: Module,
    plan: Plan,
    *,
    batch: int,
    sequence: int | None = None,
    sample: Any = None,
    optimizer: str = "adamw",
    machine: Machine | str = "h100",
) -> Forecast:
    """What each rank holds and sends under a plan, from 1 to thousands of ranks, and how long a step takes.

    `batch` is that of a data rank, in all microbatches; `sequence` the length of texts, or `sample` a batch of any
    size. The model may be on the meta device; nothing is computed. Bytes of DDP, `fully_shard`, ZeRO 1 and pipelines
    are what these send here; tensor, context and expert ranks and times are estimates, which the table says.

    >>> config = votive.models.LlamaConfig(vocab_size=100, hidden_size=64, intermediate_size=128,
    ...     num_hidden_layers=4, num_attention_heads=4)
    >>> with votive.device("meta"):
    ...     model = votive.models.LlamaForCausalLM(config)
    >>> found = votive.distributed.dry_run(model, votive.distributed.Plan(data=8, shard=3), batch=4, sequence=16)
    >>> found.fits, found.stages[0].parameters < 100_000
    (True, True)
    """
    if optimizer.lower() not in STATES:
        raise ValueError(f"dry_run: optimizer must be one of {', '.join(STATES)}, got {optimizer!r}.")
    if batch % plan.microbatches:
        raise ValueError(f"dry_run: batch={batch} must be a multiple of microbatches={plan.microbatches}.")
    if sequence is not None and sequence % plan.context:
        raise ValueError(f"dry_run: context={plan.context} must divide sequence={sequence}.")
    found = machine if isinstance(machine, Machine) else machine_named(machine)
    return _Counting(model, plan, batch, sequence, sample, optimizer.lower(), found).forecast()


class _Counting:
    def __init__(
        self, model: Any, plan: Plan, batch: int, sequence: int | None, sample: Any, optimizer: str, machine: Machine
    ) -> None:
        self.plan, self.machine, self.optimizer = plan, machine, optimizer
        self.design = getattr(model, "design", None)
        self.micro = batch // plan.microbatches
        self.length = None if sequence is None else sequence // plan.context
        self.batch, self.sequence = batch, sequence
        self.model = copy.deepcopy(model).to("meta") if any(not p.is_meta for p in model.parameters()) else model
        self.args = batch_for(self.micro, self.length, sample)
        self.width = None if self.design is None else self.design.width
        self.count = plan.pipeline * plan.stages_per_rank

    def forecast(self) -> Forecast:
        plan = self.plan
        if self.count > 1:
            pipe = pipeline(self.model, self.args, split_spec=self.count)
            parts = [pipe.get_stage_module(i) for i in range(self.count)]
        else:
            parts = [self.model]
        kept, args = [], self.args
        for part in parts:
            part.train()
            kept.append(kept_by(part, args, self.width, None if self.count > 1 else self._plain))
            if len(parts) > 1:
                args = tuple(
                    _like(shape, next(p for p in part.parameters() if p.is_floating_point()))
                    for shape in kept[-1].gives
                )
        orders = self._orders()
        slots = timed(orders, self.count)
        stages = tuple(self._stage(rank, parts, kept, orders) for rank in range(plan.pipeline))
        compute = max(s.compute for s in stages)
        waits = 0.0 if plan.pipeline == 1 else bubble(slots)
        sent = [sum(m.seconds for m in s.sent if m.along in ("tensor", "context", "expert")) for s in stages]
        hidden = [sum(m.seconds for m in s.sent if m.along == "data") for s in stages]
        # Gradients and gathered parameters travel beside two thirds of computing.
        exposed = max(a + max(0.0, b - compute * 2 / 3) for a, b in zip(sent, hidden, strict=True))
        rows = self.batch * plan.data * (self.sequence or 1)
        return Forecast(plan, self.machine, stages, waits, compute, exposed, rows, self._cache(), self._assumed())

    def _plain(self, *args: Any) -> Any:
        return self.model(*args, use_cache=False) if self.design is not None else self.model(*args)

    def _orders(self) -> list[Any]:
        plan = self.plan
        if plan.pipeline == 1:
            from ..pipelining.orders import gpipe

            return gpipe(1, 1)
        return order_of(get_schedule_class(plan.schedule), plan.pipeline, plan.microbatches, plan.stages_per_rank)

    # --- a rank -------------------------------------------------------------------------------

    def _stage(self, rank: int, parts: Sequence[Module], kept: Sequence[Kept], orders: Sequence[Any]) -> Stage:
        plan = self.plan
        mine = sorted({a.stage_index for a in orders[rank]}) if self.count > 1 else [0]
        weights = [w for s in mine for w in weights_of(parts[s], s)]
        whole = sum(self._share(w) * w.itemsize for w in weights)
        trained = [w for w in weights if w.trained]
        grads = sum(self._share(w) * w.itemsize for w in trained)
        states = STATES[self.optimizer] * sum(self._share(w) * w.itemsize for w in trained)
        gathered = 0
        if plan.shard >= 1:
            states = self._divided(trained, STATES[self.optimizer])
        if plan.shard >= 2:
            grads, held = self._divided(trained, 1), self._divided(weights, 1)
            units = self._units(weights)
            gathered = whole if plan.shard == 2 else sum(sorted(units)[-2:])
            whole = held
        held_at = 1 if plan.pipeline == 1 else held_at_most(orders[rank])
        most = max(self._activations(kept[s]) for s in mine)
        if plan.recompute:
            most = max(kept[s].given_bytes for s in mine) + most // max(1, len(self._units(weights)))
        return Stage(rank, whole, grads, states, most * held_at, gathered, self._sent(kept, mine, weights),
                     self._compute(weights))  # fmt: skip

    def _share(self, w: Weight) -> int:
        """How many numbers of a weight a rank has before data ranks divide it."""
        by = {"matrix": self.plan.tensor, "expert": self.plan.tensor * self.plan.expert}.get(w.kind, 1)
        return -(-w.numel // by)

    def _rows(self, w: Weight) -> int:
        """How many numbers of a weight the first data rank has, by rows."""
        ranks = self.plan.data // (self.plan.expert if w.kind == "expert" else 1)
        share = self._share(w)
        width = max(1, w.numel // w.shape[0]) if w.shape else 1
        rows = max(1, share // width)
        return -(-rows // ranks) * width

    def _divided(self, weights: Sequence[Weight], states: int) -> int:
        if self.plan.shard == 1:
            # Whole parameters, the largest first, to whoever has least, as ZeroRedundancyOptimizer deals them out.
            loads = [0] * self.plan.data
            for w in sorted(weights, key=lambda w: -w.numel):
                least = min(range(len(loads)), key=loads.__getitem__)
                loads[least] += self._share(w) * w.itemsize
            return states * max(loads)
        return states * sum(self._rows(w) * w.itemsize for w in weights)

    def _units(self, weights: Sequence[Weight]) -> list[int]:
        found: dict[int, int] = {}
        for w in weights:
            found[w.unit] = found.get(w.unit, 0) + self._share(w) * w.itemsize
        return list(found.values())

    def _activations(self, kept: Kept) -> int:
        return kept.stream + kept.inner // self.plan.tensor

    def _compute(self, weights: Sequence[Weight]) -> float:
        """Seconds of a rank's computing in a step."""
        plan, design = self.plan, self.design
        tokens = self.batch * (self.length or 1)
        experts = getattr(design, "experts", None)
        used = 1.0
        if experts is not None:
            used = min(1.0, experts.chosen / experts.count) * plan.expert
        table = getattr(design, "embedding", None)
        flops = 0.0
        for w in weights:
            if len(w.shape) >= 2 and not (table and w.name.split(".")[-2:-1] == [table]):
                flops += 2.0 * self._share(w) * tokens * (used if w.kind == "expert" else 1.0)
        if design is not None and self.sequence is not None:
            layers = self._layers(weights)
            # Keys of all context ranks, half of them masked.
            flops += 2.0 * tokens * self.sequence * design.heads * design.head_dim * layers / plan.tensor
        return flops * (4 if plan.recompute else 3) / (self.machine.flops * self.machine.computes)

    # --- messages -----------------------------------------------------------------------------

    def _sent(self, kept: Sequence[Kept], mine: Sequence[int], weights: Sequence[Weight]) -> tuple[Sent, ...]:
        plan, found = self.plan, []
        trained = [w for w in weights if w.trained]
        if plan.data > 1 and plan.shard <= 1:
            nbytes = sum(self._share(w) * w.itemsize for w in trained)
            found.append(self._one("all_reduce", "data", plan.data, 1, nbytes))
            if plan.shard == 1:
                found.append(self._one("broadcast", "data", plan.data, len(trained), nbytes))
        elif plan.data > 1:
            units = {w.unit for w in weights}
            padded = {u: sum(self._rows(w) * w.itemsize for w in weights if w.unit == u) * plan.data for u in units}
            # Layers are forgotten after each pass and gathered again, what is around them once for both.
            n = plan.microbatches
            once = 1 if plan.pipeline > 1 else n
            stay = [u for u in units if plan.shard == 2 or u % (2 * ROOT) == ROOT]
            times = {u: once if u in stay else 2 * n for u in units}
            found.append(self._one("all_gather", "data", plan.data, sum(times.values()),
                                   sum(padded[u] * k for u, k in times.items())))  # fmt: skip
            words = sum(plan.data * w.itemsize for w in trained)  # which parameters had a gradient
            grads = sum(self._rows(w) * w.itemsize for w in trained) * plan.data
            found.append(self._one("reduce_scatter", "data", plan.data, len(units), grads + words))
        if plan.pipeline > 1:
            n = plan.microbatches
            out = sum(kept[s].given_bytes for s in mine if s < self.count - 1) * n
            back = sum(kept[s - 1].given_bytes for s in mine if s > 0) * n
            calls = n * sum((s < self.count - 1) + (s > 0) for s in mine)
            found.append(self._one("send", "pipeline", plan.pipeline, calls, out + back))
        layers = self._layers(weights)
        stream = self._stream()
        if plan.tensor > 1 and stream:
            found.append(self._one("all_reduce", "tensor", plan.tensor, 4 * layers * plan.microbatches,
                                   4 * layers * plan.microbatches * stream))  # fmt: skip
        if plan.context > 1 and stream and self.design is not None:
            d = self.design
            pairs = 2 * stream * d.shared * d.head_dim // (d.width * plan.tensor)
            hops = plan.context - 1
            calls = 3 * hops * layers * plan.microbatches
            found.append(self._one("send", "context", plan.context, calls, calls * pairs))
        experts = getattr(self.design, "experts", None)
        if plan.expert > 1 and stream and experts is not None:
            calls = 4 * layers * plan.microbatches
            found.append(self._one("all_to_all", "expert", plan.expert, calls,
                                   calls * stream * experts.chosen))  # fmt: skip
        return tuple(found)

    def _layers(self, weights: Sequence[Weight]) -> int:
        return len({w.unit for w in weights if w.unit % (2 * ROOT) != ROOT})

    def _stream(self) -> int:
        """Bytes of the stream of a microbatch between layers."""
        if self.design is None or self.length is None:
            return 0
        itemsize = next(p.dtype.itemsize for p in self.model.parameters() if p.is_floating_point())
        return int(self.micro * self.length * self.design.width * itemsize)

    def _one(self, op: str, along: str, ranks: int, calls: int, nbytes: int) -> Sent:
        # Ranks that stand together divide matrices, then the sequence, then batches, then layers.
        plan = self.plan
        beside = plan.tensor * plan.context
        inner = {"tensor": 1, "context": plan.tensor, "expert": beside, "data": beside,
                 "pipeline": beside * plan.data}[along]  # fmt: skip
        far = inner * ranks > self.machine.per_node
        each = self.machine.transfer(op, math.ceil(nbytes / max(1, calls)), ranks, far)
        return Sent(op, along, ranks, calls, int(nbytes), each * calls, far)

    def _cache(self) -> int:
        """Bytes of keys and values of a token, on the rank of most layers."""
        d = self.design
        if d is None or not hasattr(d, "shared"):
            return 0
        layers = -(-d.layers // self.plan.pipeline)
        itemsize = next(p.dtype.itemsize for p in self.model.parameters() if p.is_floating_point())
        return int(2 * layers * -(-d.shared // self.plan.tensor) * d.head_dim * itemsize)

    def _assumed(self) -> tuple[str, ...]:
        m, plan = self.machine, self.plan
        said = [f"{m.computes:.0%} of {m.name}'s {m.flops / 1e12:,.4g} TFLOPS ({m.sources.get('flops', 'given')})",
                f"{m.carries:.0%} of links, {m.near / 1e9:,.4g} GB/s within a node "
                f"and {m.far / 1e9:,.4g} GB/s between nodes ({m.sources.get('far', 'given')})"]  # fmt: skip
        if plan.tensor > 1 or plan.context > 1 or plan.expert > 1:
            said.append("tensor ranks divide all matrices and what is not as wide as the stream; context ranks pass "
                        "keys and values round; experts get equal shares")  # fmt: skip
        return tuple(said)


def _like(shape: tuple[int, ...], p: Any) -> Any:
    from ...ops.registry import F

    return F.empty(shape, dtype=p.dtype, device="meta").requires_grad_(True)
