"""What ranks do with pipelines, on threads and on processes.

`python -m tests.distributed.pipeline_programs` runs the programs for two ranks one after the other on MPI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import votive
import votive.distributed as dist
from tests.distributed.training import data, filled, optimizer_of, run_on_mpi
from votive import Tensor, nn
from votive.distributed.fsdp import fully_shard
from votive.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    pipeline,
)
from votive.models.gpt2 import GPT2Config, GPT2LMHeadModel
from votive.nn.parallel import DistributedDataParallel

STEPS, SIZE, MICROBATCHES = 2, 8, 4
Batches = list[tuple[Tensor, Tensor]]

# Each schedule with the stages of a rank.
SCHEDULES: list[tuple[Any, int]] = [
    (ScheduleGPipe, 1), (Schedule1F1B, 1), (ScheduleInterleaved1F1B, 2), (ScheduleLoopedBFS, 2),
    (ScheduleInterleavedZeroBubble, 1), (ScheduleInterleavedZeroBubble, 2), (ScheduleZBVZeroBubble, 2),
]  # fmt: skip


def chain() -> Any:
    parts = [part for _ in range(8) for part in (nn.Linear(6, 6), nn.Tanh())]
    return filled(nn.Sequential(*parts), 1)


def decoder() -> Any:
    config = GPT2Config(
        vocab_size=17, n_positions=8, n_embd=8, n_layer=8, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    return filled(GPT2LMHeadModel(config), 3)


def of_logits(logits: Tensor, y: Tensor) -> Tensor:
    loss: Tensor = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
    return loss


def numbers(steps: int) -> Batches:
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((steps, 2, SIZE, 6)).astype("f4")
    return [(votive.tensor(x), votive.tensor(y)) for x, y in drawn]


KINDS: dict[str, tuple[Callable[[], Any], Callable[..., Tensor], Callable[[int], Batches]]] = {
    "chain": (chain, nn.functional.mse_loss, numbers),
    "decoder": (decoder, of_logits, lambda steps: data("gpt", steps, SIZE)),
}


def alone(kind: str, shares: int = 1) -> tuple[list[float], dict[str, Tensor]]:
    """One process, microbatch after microbatch; with `shares`, of each share of the batch one."""
    build, loss_of, batches = KINDS[kind]
    model = build()
    optimizer, losses = optimizer_of(model.parameters()), []
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        for a, b in zip(votive.tensor_split(x, shares), votive.tensor_split(y, shares), strict=True):
            parts = zip(votive.tensor_split(a, MICROBATCHES), votive.tensor_split(b, MICROBATCHES), strict=True)
            for one, wanted in parts:
                result = model(one)
                loss = loss_of(getattr(result, "logits", result), wanted)
                (loss / MICROBATCHES / shares).backward()
                losses.append(loss.item())
        optimizer.step()
    return losses, model.state_dict()


def in_stages(
    schedule: Any,
    chunks: int,
    kind: str,
    group: Any = None,
    wrap: Callable[[Any], Any] = lambda part: part,
    share: Callable[[Tensor], Tensor] = lambda x: x,
) -> tuple[list[float], dict[str, Tensor]]:
    """The same as a pipeline: the losses, on the rank of the last stage, and the state of this rank."""
    build, loss_of, batches = KINDS[kind]
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    count = ranks * chunks
    pipe = pipeline(build(), (batches(1)[0][0][:2],), split_spec=count)
    mine = [rank + ranks * c for c in range(chunks)]
    if schedule is ScheduleZBVZeroBubble:
        mine = [rank, 2 * ranks - 1 - rank]
    stages = [PipelineStage(wrap(pipe.get_stage_module(s)), s, count, "cpu", group=group) for s in mine]
    takes_one = schedule in (ScheduleGPipe, Schedule1F1B)
    steps = schedule(stages[0] if takes_one else stages, MICROBATCHES, loss_of)
    params = {id(p): p for s in stages for p in s.submod.parameters()}
    optimizer, losses = optimizer_of(list(params.values())), []
    for x, y in batches(STEPS):
        optimizer.zero_grad()
        found: list[Tensor] = []
        first = (share(x),) if 0 in mine else ()
        result = steps.step(*first, target=share(y) if count - 1 in mine else None, losses=found)
        assert (result is not None) == (count - 1 in mine)
        losses += [loss.item() for loss in found]
        optimizer.step()
    return losses, {k: v for s in stages for k, v in s.plain.state_dict().items()}


def _is_one_process(schedule: Any, chunks: int, kind: str) -> None:
    wanted, state = alone(kind)
    losses, mine = in_stages(schedule, chunks, kind)
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, losses)
    assert [loss for one in every for loss in one] == wanted  # bit for bit
    assert mine
    for name, value in mine.items():
        # A shared table adds what its two uses give, in another order than one process.
        np.testing.assert_allclose(value, state[name], atol=2e-7 if kind == "decoder" else 0, rtol=0, err_msg=name)


def _on_a_mesh(wrap: Callable[[Any, Any], Any], schedule: Any, chunks: int) -> None:
    mesh = dist.init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("dp", "pp"))
    at = mesh["dp"].get_local_rank()
    losses, mine = in_stages(
        schedule, chunks, "decoder", mesh.get_group("pp"), lambda part: wrap(part, mesh["dp"]),
        lambda x: votive.tensor_split(x, 2)[at],
    )  # fmt: skip
    wanted, state = alone("decoder", shares=2)
    if losses:
        shares = [wanted[i + at * MICROBATCHES + m] for i in range(0, len(wanted), 2 * MICROBATCHES)
                  for m in range(MICROBATCHES)]  # fmt: skip
        np.testing.assert_allclose(losses, shares, rtol=1e-6)
    for name, value in mine.items():
        whole = dist.fsdp.sharding.sharding_of(value)
        found = value if whole is None else whole.gather(value)
        np.testing.assert_allclose(found, state[name], atol=2e-6, err_msg=name)


def averaged(part: Any, mesh: Any) -> Any:
    return DistributedDataParallel(part, device_mesh=mesh)


def spread(part: Any, mesh: Any) -> Any:
    for child in part.modules():
        if type(child).__name__ == "DecoderLayer":
            fully_shard(child, mesh=mesh)
    return fully_shard(part, mesh=mesh)


PROGRAMS: dict[str, Callable[[], None]] = {
    f"{schedule.__name__}_{chunks}_{kind}": lambda s=schedule, c=chunks, k=kind: _is_one_process(s, c, k)  # type: ignore[misc]
    for schedule, chunks in SCHEDULES
    for kind in KINDS
}
MESHES: dict[str, Callable[[], None]] = {
    f"{wrap.__name__}_{schedule.__name__}": lambda w=wrap, s=schedule, c=chunks: _on_a_mesh(w, s, c)  # type: ignore[misc]
    for wrap in (averaged, spread)
    for schedule, chunks in SCHEDULES
    if (schedule, chunks) != (ScheduleInterleavedZeroBubble, 2)
}

if __name__ == "__main__":
    run_on_mpi(PROGRAMS)
