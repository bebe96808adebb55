"""Pipelines on ranks that are threads and on processes: their steps are those of one process."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests import docstrings
from tests.distributed.pipeline_programs import MESHES, PROGRAMS, decoder, of_logits
from tests.distributed.processes import mpiexec, needs_mpi
from tests.distributed.training import data
from votive import nn
from votive.distributed import checkpoint, pipelining
from votive.distributed.pipelining import (
    PipelineStage,
    Replicate,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleZBVZeroBubble,
    TensorChunkSpec,
    get_schedule_class,
    merge_chunks,
    pipeline,
    split_args_kwargs_into_chunks,
)
from votive.distributed.pipelining.halves import input_half
from votive.distributed.pipelining.links import Link

DOCS = docstrings.examples([pipelining, *docstrings.modules_of(pipelining)])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_that_are_threads(name: str) -> None:
    dist.simulate(PROGRAMS[name], 2, timeout=timedelta(seconds=60))


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n.endswith(("_1_chain", "Vee_2_chain", "ZeroBubble_2_chain"))])
def test_four_ranks(name: str) -> None:
    dist.simulate(PROGRAMS[name], 4, timeout=timedelta(seconds=60))


@pytest.mark.parametrize("name", MESHES)
def test_pipelines_whose_stages_are_averaged_or_spread(name: str) -> None:
    dist.simulate(MESHES[name], 4, timeout=timedelta(seconds=60))


@needs_mpi
def test_ranks_that_are_processes() -> None:
    done = mpiexec(2, "-m", "tests.distributed.pipeline_programs")
    assert done.returncode == 0, done.stdout + done.stderr
    for r in range(2):
        assert f"PASSED {r} {len(PROGRAMS)}" in done.stdout


# --- a backward pass in halves ----------------------------------------------------------------


class _Times(votive.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum((0, 1))


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 4)
        self.conv, self.attention = nn.Conv1d(1, 2, 3, padding=1), nn.MultiheadAttention(4, 2, batch_first=True)
        self.w, self.unused = nn.Parameter(votive.full((4,), 1.5)), nn.Linear(1, 1)

    def forward(self, x: Any) -> Any:
        y = _Times.apply(x + self.b(nn.functional.gelu(self.norm(self.a(x)))), self.w)
        z = self.conv(y.view(-1, 1, 4)).sum(1).view(y.shape)
        z, _ = self.attention(z, z, z)
        return z + self.w, (self.w * 2).sum(), y.detach()


def test_halves_give_the_bits_of_the_whole() -> None:
    votive.manual_seed(0)
    net, g = _Net(), votive.randn(3, 2, 4)
    x = votive.randn(3, 2, 4, requires_grad=True)
    first, second, _ = net(x)
    votive.autograd.backward([first, second], [g, votive.tensor(3.0)])
    wanted = {n: p.grad for n, p in net.named_parameters()}
    net.zero_grad()
    again = x.detach().clone().requires_grad_()
    seen: list[Any] = []
    results = list(net(again))
    results[0].register_hook(lambda grad: seen.append(1))
    (found,), rest = input_half(results, [g, votive.tensor(3.0), None], [again])
    assert found is not None
    np.testing.assert_array_equal(found, x.grad)
    assert all(p.grad is None for p in net.parameters())
    rest.run()
    assert seen == [1]
    for name, p in net.named_parameters():
        if wanted[name] is None:
            assert p.grad is None
        else:
            # What comes to w on three ways is added up in another order.
            np.testing.assert_allclose(p.grad, wanted[name], rtol=0 if name != "w" else 1e-6, err_msg=name)


def test_without_inputs_everything_is_left_for_later() -> None:
    layer = nn.Linear(2, 2)
    y = layer(votive.ones(1, 2))
    found, rest = input_half([y], [votive.ones(1, 2)], [])
    assert found == []
    assert layer.weight.grad is None
    rest.run()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


# --- steps ------------------------------------------------------------------------------------


def test_batches_may_change_and_gradients_add_up() -> None:
    def run() -> Any:
        rank = dist.get_rank()
        layer = nn.Linear(3, 3, bias=False)
        nn.init.eye_(layer.weight)
        steps = Schedule1F1B(PipelineStage(layer, rank, 2, "cpu"), 2, nn.functional.mse_loss, scale_grads=False)
        for size in (4, 5, 7):
            x = votive.ones(size, 3)
            steps.step(*((x,) if rank == 0 else ()), target=votive.zeros(size, 3) if rank else None)
        assert layer.weight.grad is not None
        return layer.weight.grad[0, 0].item()

    # Each of six microbatches gives 2/3, as the mean is over three columns.
    np.testing.assert_allclose(dist.simulate(run, 2), [4.0, 4.0], rtol=1e-6)


def test_eval_gives_results_and_records_nothing() -> None:
    def run() -> Any:
        rank = dist.get_rank()
        layer = nn.Linear(2, 2, bias=False)
        nn.init.eye_(layer.weight)
        steps = ScheduleGPipe(PipelineStage(layer, rank, 2, "cpu"), 2, nn.functional.mse_loss)
        losses: list[Any] = []
        found = steps.eval(*((votive.ones(3, 2),) if rank == 0 else ()), target=votive.zeros(3, 2), losses=losses)
        assert layer.weight.grad is None
        return None if found is None else (found.tolist(), found.requires_grad, len(losses))

    assert dist.simulate(run, 2) == [None, ([[1.0, 1.0]] * 3, False, 2)]


def test_stages_may_take_several_tensors_and_named_arguments() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(votive.ones(1))

        def forward(self, x: Any, ids: Any, *, scale: Any) -> Any:
            return x * self.w * scale, ids

    def run() -> Any:
        rank, net = dist.get_rank(), Two()

        def loss_of(found: Any, target: Any) -> Any:
            return (found[0] * found[1]).sum() - target.sum()

        steps = ScheduleGPipe(
            PipelineStage(net, rank, 2, "cpu"), 2, loss_of, kwargs_chunk_spec={"scale": Replicate()}, scale_grads=False
        )
        args = (votive.arange(4.0), votive.tensor([1, 2, 3, 4])) if rank == 0 else ()
        found = steps.step(*args, target=votive.zeros(4), scale=votive.tensor([2.0]))
        assert net.w.grad is not None
        return net.w.grad.item(), None if found is None else found[0].tolist()

    assert dist.simulate(run, 2) == [(80.0, None), (80.0, [0.0, 4.0, 8.0, 12.0])]


def _built(kind: Any, rank_stages: Any, microbatches: int = 4) -> Any:
    def run() -> Any:
        rank = dist.get_rank()
        count, mine = rank_stages(rank)
        stages = [PipelineStage(nn.Linear(1, 1), s, count, "cpu") for s in mine]
        return kind(
            stages[0] if kind in (ScheduleGPipe, Schedule1F1B) else stages, microbatches, nn.functional.mse_loss
        )

    return dist.simulate(run, 2)


def test_a_schedule_is_shown_as_a_table() -> None:
    steps = _built(Schedule1F1B, lambda rank: (2, [rank]), 2)[0]
    assert str(steps).splitlines()[1] == "rank 1    . 1F0 1B0   = 1F1 1B1   =   .   ."
    assert steps.held == [2, 1]
    assert 0.2 < steps.bubble < 0.4


def test_more_stages_or_halves_leave_less_of_a_bubble() -> None:
    plain = _built(Schedule1F1B, lambda rank: (2, [rank]))[0].bubble
    more = _built(ScheduleInterleaved1F1B, lambda rank: (4, [rank, rank + 2]))[0].bubble
    vee = _built(ScheduleZBVZeroBubble, lambda rank: (4, [rank, 3 - rank]))[0].bubble
    assert vee < more < plain


@pytest.mark.parametrize(
    ("kind", "stages", "microbatches", "message"),
    [
        (Schedule1F1B, lambda rank: (2, [rank]), 1, "greater than or equal"),
        (ScheduleGPipe, lambda rank: (4, [rank]), 4, "one stage on each rank"),
        (ScheduleInterleaved1F1B, lambda rank: (4, [rank, rank + 1]), 4, "has the stages"),
        (ScheduleInterleaved1F1B, lambda rank: (4, [rank, rank + 2]), 5, "multiple of the number of rounds"),
        (ScheduleInterleaved1F1B, lambda rank: (3, [rank]), 4, "evenly"),
        (ScheduleZBVZeroBubble, lambda rank: (2, [rank]), 4, "exactly 2 stages"),
        (ScheduleGPipe, lambda rank: (2, [rank]), 0, "1 or more"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(kind: Any, stages: Any, microbatches: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _built(kind, stages, microbatches)


def test_more_messages_than_mpi_can_tell_apart_are_refused() -> None:
    def run() -> None:
        Link(dist.group.WORLD, [0, 1], 15_000, "cpu")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="fewer microbatches"):
            Link(dist.group.WORLD, [0, 1], 16_000, "cpu")  # type: ignore[arg-type]

    dist.simulate(run, 2)


def _one_step(given: Any) -> None:
    def run() -> None:
        rank = dist.get_rank()
        steps = ScheduleGPipe(PipelineStage(nn.Linear(2, 2), rank, 2, "cpu"), 2, nn.functional.mse_loss)
        given(steps, rank)

    dist.simulate(run, 2)


def test_wrong_steps_say_what_is_wrong() -> None:
    x = votive.ones(4, 2)
    with pytest.raises(ValueError, match="the last stage gives target"):
        _one_step(lambda steps, rank: steps.step(*((x,) if rank == 0 else ())))
    with pytest.raises(ValueError, match="only the rank of the first stage"):
        _one_step(lambda steps, rank: steps.step(x, target=x))
    with pytest.raises(ValueError, match="the first stage gives the batch"):
        _one_step(lambda steps, rank: steps.step(target=x))
    with pytest.raises(TypeError, match="losses must be a list"):
        _one_step(lambda steps, rank: steps.step(*((x,) if rank == 0 else ()), target=x, losses=()))
    with pytest.raises(ValueError, match="too few for 2 microbatches"):
        _one_step(lambda steps, rank: steps.step(*((x[:1],) if rank == 0 else ()), target=x))

    def without_gradients(steps: Any, rank: int) -> None:
        with votive.no_grad():
            steps.step(*((x,) if rank == 0 else ()), target=x)

    with pytest.raises(RuntimeError, match="Please call eval"):
        _one_step(without_gradients)


def test_sizes_that_a_stage_was_promised_are_checked() -> None:
    def run() -> None:
        rank = dist.get_rank()
        stage = PipelineStage(nn.Linear(2, 2), rank, 2, "cpu", input_args=votive.ones(2, 2))
        steps = ScheduleGPipe(stage, 2, nn.functional.mse_loss)
        steps.step(*((votive.ones(6, 2),) if rank == 0 else ()), target=votive.ones(6, 2))

    with pytest.raises(ValueError, match="input_args says"):
        dist.simulate(run, 2)


def test_what_stages_cannot_be_is_refused() -> None:
    def run() -> None:
        with pytest.raises(TypeError, match="must be a Module"):
            PipelineStage(3, 0, 2, "cpu")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="out of range"):
            PipelineStage(nn.ReLU(), 2, 2, "cpu")
        with pytest.raises(ValueError, match="cannot be larger"):
            PipelineStage(nn.ReLU(), 0, 1, "cpu")
        with pytest.raises(NotImplementedError, match="dw_builder"):
            PipelineStage(nn.ReLU(), 0, 2, "cpu", dw_builder=lambda: None)

    dist.simulate(run, 2)


# --- batches and parts ------------------------------------------------------------------------


def test_batches_are_cut_and_put_together_along_other_dimensions() -> None:
    x = votive.arange(12).view(2, 6)
    args, _ = split_args_kwargs_into_chunks(
        (x, {"k": [x, 1]}), None, 3, (TensorChunkSpec(1), {"k": TensorChunkSpec(1)})
    )
    assert [a[0].shape for a in args] == [(2, 2)] * 3
    assert args[2][1]["k"][0].tolist() == [[4, 5], [10, 11]]
    assert args[0][1]["k"][1] == 1
    assert votive.equal(merge_chunks([a[0] for a in args], TensorChunkSpec(1)), x)
    assert merge_chunks([(votive.tensor(1.0),), (votive.tensor(2.0),)])[0].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="Replicate"):
        split_args_kwargs_into_chunks((votive.tensor(1.0),), None, 2)
    with pytest.raises(TypeError, match="a TensorChunkSpec or Replicate"):
        split_args_kwargs_into_chunks((x,), None, 2, (1,))
    with pytest.raises(ValueError, match="2 specs for 1"):
        split_args_kwargs_into_chunks((x,), None, 2, (None, None))


def test_models_are_cut_where_they_are_told() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    x = votive.ones(1, 2)
    cut = pipelining.SplitPoint
    pipe = pipeline(net, (x,), split_spec={"0": cut.END, "2": cut.BEGINNING})
    assert [list(pipe.get_stage_module(s).state_dict()) for s in range(3)] == [
        ["0.weight", "0.bias"], [], ["2.weight", "2.bias"],
    ]  # fmt: skip
    assert pipeline(net, (x,), split_policy=lambda _: {"1": cut.BEGINNING}).num_stages == 2
    with pytest.warns(UserWarning, match="one part"):
        assert pipeline(net, (x,)).num_stages == 1
    for spec, message in (({"7": cut.END}, "none of the places"), ({"2": cut.END}, "nothing is left"), (4, "4 parts")):
        with pytest.raises(ValueError, match=message):
            pipeline(net, (x,), split_spec=spec)
    with pytest.raises(TypeError, match=r"nn\.Sequential or a decoder"):
        pipeline(nn.Linear(1, 1), (x,), split_spec=1)
    with pytest.raises(ValueError, match="Unknown schedule"):
        get_schedule_class("fast")


# --- norms and checkpoints --------------------------------------------------------------------


def _decoder_stages(schedule: Any, mine: Any, group: Any = None) -> tuple[Any, list[Any]]:
    ranks = dist.get_world_size(group)
    homes = mine(dist.get_rank(group), ranks)
    count = ranks * len(homes)
    pipe = pipeline(decoder(), (data("gpt", 1, 2)[0][0],), split_spec=count)
    stages = [pipe.build_stage(s, "cpu", group) for s in homes]
    return schedule(stages[0] if len(homes) == 1 else stages, 4, of_logits), stages


def _step(schedule: Any, stages: list[Any]) -> None:
    x, y = data("gpt", 1, 8)[0]
    first, last = any(s.is_first for s in stages), any(s.is_last for s in stages)
    schedule.step(*((x,) if first else ()), target=y if last else None)


SINGLE = (Schedule1F1B, lambda rank, ranks: [rank])
VEE = (ScheduleZBVZeroBubble, lambda rank, ranks: [rank, 2 * ranks - 1 - rank])


@pytest.mark.parametrize("kind", [SINGLE, VEE])
@pytest.mark.parametrize("order", [2.0, 1.0, float("inf")])
def test_the_norm_is_that_of_the_whole_model(kind: Any, order: float) -> None:
    x, y = data("gpt", 1, 8)[0]
    whole = decoder()
    of_logits(whole(x).logits, y).backward()
    wanted = nn.utils.clip_grad_norm_(whole.parameters(), 0.1, order).item()
    grads = {n: p.grad for n, p in whole.named_parameters()}

    def run() -> float:
        schedule, stages = _decoder_stages(*kind)
        _step(schedule, stages)
        found = pipelining.clip_grad_norm_(stages, 0.1, order).item()
        for s in stages:
            for name, p in s.plain.named_parameters():
                if name in grads:
                    np.testing.assert_allclose(p.grad, grads[name], rtol=1e-4, atol=1e-7, err_msg=name)
        return found

    np.testing.assert_allclose(dist.simulate(run, 2), [wanted] * 2, rtol=1e-5)


def test_states_of_stages_are_loaded_by_any_number_of_ranks(tmp_path: Any) -> None:
    options = checkpoint.StateDictOptions(flatten_optimizer_state_dict=True)

    def states(stages: list[Any], optimizer: Any) -> Any:
        """Of the stages together: their names are those of the whole model."""
        weights = {n: v for s in stages for n, v in s.plain.state_dict().items()}
        steps = [checkpoint.get_optimizer_state_dict(s.submod, one, options=options)
                 for s, one in zip(stages, optimizer, strict=True)]  # fmt: skip
        return {"model": weights, "optim": {k: v for row in steps for k, v in row.items()}}

    def made(kind: Any, lr: float) -> Any:
        schedule, stages = _decoder_stages(*kind)
        return schedule, stages, [votive.optim.SGD(s.submod.parameters(), lr=lr, momentum=0.9) for s in stages]

    def save() -> None:
        schedule, stages, optimizers = made(SINGLE, 0.05)
        _step(schedule, stages)
        for one in optimizers:
            one.step()
        checkpoint.save(states(stages, optimizers), checkpoint_id=tmp_path / "a")

    def load() -> Any:
        schedule, stages, optimizers = made(SINGLE, 0.5)
        state = states(stages, optimizers)
        checkpoint.load(state, checkpoint_id=tmp_path / "a")
        for s, one in zip(stages, optimizers, strict=True):
            s.plain.load_state_dict(state["model"])
            mine = {k: v for k, v in state["optim"].items() if k in states([s], [one])["optim"]}
            checkpoint.set_optimizer_state_dict(s.submod, one, mine, options=options)
        _step(schedule, stages)
        for one in optimizers:
            one.step()
        return {n: v.clone() for s in stages for n, v in s.plain.state_dict().items()}

    dist.simulate(save, 2)
    whole = decoder()
    optimizer = votive.optim.SGD(whole.parameters(), lr=0.5, momentum=0.9)
    steps = checkpoint.get_optimizer_state_dict(whole, optimizer, options=options)
    state = {"model": whole.state_dict(), "optim": steps}
    checkpoint.load(state, checkpoint_id=tmp_path / "a", no_dist=True)
    whole.load_state_dict(state["model"])
    checkpoint.set_optimizer_state_dict(whole, optimizer, state["optim"], options=options)
    assert optimizer.param_groups[0]["lr"] == 0.05
    x, y = data("gpt", 1, 8)[0]
    of_logits(whole(x).logits, y).backward()
    optimizer.step()
    wanted = whole.state_dict()
    for found in dist.simulate(load, 4):  # twice as many stages
        for name, value in found.items():
            np.testing.assert_allclose(value, wanted[name], rtol=1e-5, atol=1e-6, err_msg=name)
