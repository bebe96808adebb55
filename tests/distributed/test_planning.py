"""Forecasts: what they say of small meshes is what ranks really hold and send there; and large meshes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
import votive.distributed as dist
from tests import docstrings
from tests.distributed.pipeline_programs import decoder, of_logits
from tests.distributed.training import data, mine, optimizer_of
from votive import nn
from votive.cli import main
from votive.distributed import Plan, dry_run, planning
from votive.distributed.fsdp import fully_shard
from votive.distributed.group import OBSERVERS, Ran
from votive.distributed.optim import ZeroRedundancyOptimizer
from votive.distributed.pipelining import PipelineStage, get_schedule_class, pipeline
from votive.distributed.planning import forecast, machines, pieces
from votive.distributed.planning.pieces import kept_by, layers_of
from votive.nn.parallel import DistributedDataParallel

DOCS = docstrings.examples([forecast, machines, pieces])
BATCH, LENGTH = 4, 8


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def recorded(run: Callable[[], Any], ranks: int) -> tuple[list[Any], Counter[str], Counter[str]]:
    """What ranks give, and of rank 0 the calls and the bytes of a run, as the timeline counts them."""
    calls: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    lock = threading.Lock()

    def observe(ran: Ran) -> None:
        if ran.group.rank() == 0:
            op = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter"}.get(
                ran.call.op, ran.call.op
            )
            with lock:
                calls[op] += 1
                nbytes[op] += ran.nbytes

    ready = threading.Barrier(ranks)

    def play() -> Any:
        step = run()
        ready.wait(60)
        if dist.get_rank() == 0:
            OBSERVERS.append(observe)
        ready.wait(60)
        found = step()
        ready.wait(60)
        if dist.get_rank() == 0:
            OBSERVERS.remove(observe)
        ready.wait(60)
        return found

    return dist.simulate(play, ranks), calls, nbytes


def batch(ranks: int) -> Any:
    return data("gpt", 1, BATCH * ranks)[0]


def held(params: Any) -> int:
    return sum(p.nbytes for p in params)


def step_of(model: Any, make: Any = optimizer_of) -> Callable[[], Any]:
    optimizer = make(model.parameters())

    def step() -> Any:
        x, y = mine(batch(dist.get_world_size()))
        of_logits(model(x, use_cache=False).logits, y).backward()
        grads = sum(p.grad.nbytes for p in model.parameters())
        optimizer.step()
        states = sum(v.nbytes for row in optimizer.state.values() for v in row.values() if v is not None and v.dim())
        return held(model.parameters()), grads, states

    return step


def forecast_of(plan: Plan, optimizer: str = "momentum", count: int = BATCH) -> planning.Forecast:
    return dry_run(decoder(), plan, batch=count, sequence=LENGTH, optimizer=optimizer)


@pytest.mark.parametrize("ranks", [2, 4])
def test_copies_hold_and_send_what_is_said(ranks: int) -> None:
    found, _, nbytes = recorded(lambda: step_of(DistributedDataParallel(decoder())), ranks)
    said = forecast_of(Plan(data=ranks)).stages[0]
    assert all(one == (said.parameters, said.gradients, said.states) for one in found)
    assert {m.op: m.nbytes for m in said.sent} == {"all_reduce": nbytes["all_reduce"]}


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("shard", [2, 3])
def test_shards_hold_and_send_what_is_said(ranks: int, shard: int) -> None:
    def run() -> Any:
        model = decoder()
        for layer in layers_of(model):
            fully_shard(layer, reshard_after_forward=shard == 3)
        return step_of(fully_shard(model))

    found, calls, nbytes = recorded(run, ranks)
    said = forecast_of(Plan(data=ranks, shard=shard)).stages[0]
    assert found[0] == (said.parameters, said.gradients, said.states)  # the last ranks may have less
    assert {m.op: (m.calls, m.nbytes) for m in said.sent} == {op: (calls[op], nbytes[op]) for op in calls}


def test_states_of_an_optimizer_are_dealt_out_as_is_said() -> None:
    def run() -> Any:
        def make(params: Any) -> Any:
            return ZeroRedundancyOptimizer(params, votive.optim.SGD, lr=0.1, momentum=0.9)

        model = DistributedDataParallel(decoder())
        optimizer = make(model.parameters())

        def step() -> int:
            x, y = mine(batch(dist.get_world_size()))
            of_logits(model(x, use_cache=False).logits, y).backward()
            optimizer.step()
            return sum(v.nbytes for row in optimizer.optim.state.values() for v in row.values() if v is not None)

        return step

    found, _, nbytes = recorded(run, 3)
    said = forecast_of(Plan(data=3, shard=1)).stages[0]
    assert max(found) == said.states
    assert {m.op: m.nbytes for m in said.sent} == {op: nbytes[op] for op in ("all_reduce", "broadcast")}


@pytest.mark.parametrize(("schedule", "chunks"), [("GPipe", 1), ("1F1B", 1), ("Interleaved1F1B", 2)])
def test_pipelines_hold_and_send_what_is_said(schedule: str, chunks: int) -> None:
    sent: list[Counter[int]] = [Counter(), Counter()]

    def observe(ran: Ran) -> None:
        if ran.call.op == "send" and "int64" not in ran.call.shown:  # headers are not counted
            sent[ran.group.rank()][0] += ran.nbytes
            sent[ran.group.rank()][1] += 1

    plan = Plan(pipeline=2, microbatches=4, schedule=schedule, stages_per_rank=chunks)

    def run() -> Any:
        rank = dist.get_rank()
        pipe = pipeline(decoder(), (batch(1)[0][:1],), split_spec=2 * chunks)
        stages = [PipelineStage(pipe.get_stage_module(s), s, 2 * chunks, "cpu") for s in range(rank, 2 * chunks, 2)]
        kind: Any = get_schedule_class(schedule)
        steps = kind(stages[0] if chunks == 1 else stages, 4, of_logits)
        x, y = batch(1)
        steps.step(*((x,) if rank == 0 else ()), target=y if rank else None)
        return sum(held(s.submod.parameters()) for s in stages)

    OBSERVERS.append(observe)
    try:
        found = dist.simulate(run, 2)
    finally:
        OBSERVERS.remove(observe)
    said = forecast_of(plan)
    shared = 2 * decoder().transformer.wte.weight.nbytes  # the table's value at first, and its gradients
    for rank, stage in enumerate(said.stages):
        assert stage.parameters == found[rank]
        (told,) = stage.sent
        assert told.nbytes == sent[rank][0] - shared + (rank == 1) * shared // 2
        assert told.calls == sent[rank][1] - 2 + (rank == 1)
    assert said.bubble > 0


def test_activations_are_what_autograd_keeps() -> None:
    model = decoder()
    x = batch(1)[0]
    on_host = kept_by(model, (x,), 8, lambda t: model(t, use_cache=False))
    said = forecast_of(Plan()).stages[0].activations
    # On the CPU a sum and its norm may be one kernel, which keeps less.
    assert 0.75 * said <= on_host.stream + on_host.inner <= 1.25 * said
    half = forecast_of(Plan(microbatches=2)).stages[0].activations
    assert abs(2 * half - said) < 0.05 * said
    assert forecast_of(Plan(recompute=True)).stages[0].activations < 0.5 * said
    assert forecast_of(Plan(tensor=2)).stages[0].activations < said


def large() -> Any:
    config = votive.models.LlamaConfig(
        vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32
    )
    with votive.device("meta"):
        return votive.models.LlamaForCausalLM(config).to(votive.bfloat16)


def test_from_eight_to_four_thousand_gpus() -> None:
    model = large()
    plans = [Plan(data=8, shard=3, recompute=True), Plan(data=8, tensor=8, shard=2), Plan(data=32, tensor=8, context=2),
             Plan(data=64, tensor=8, pipeline=8, shard=2, microbatches=16)]  # fmt: skip
    found = [dry_run(model, plan, batch=16, sequence=4096) for plan in plans]
    assert [f.plan.ranks for f in found] == [8, 64, 512, 4096]
    for f in found:
        text = str(f)
        assert "cited: NVIDIA H100 data sheet" in text
        assert f.step > 0
        assert ("TOO MUCH" in text) == (not f.fits)
    whole = 6_738_415_616 * 2
    assert found[0].stages[0].parameters == pytest.approx(whole / 8, rel=1e-3)
    assert found[1].stages[0].states == pytest.approx(2 * whole / 64, rel=2e-2)
    assert found[3].stages[3].parameters < whole / 4000
    # 6 flops a parameter and token, and one pass more where it is recomputed.
    flops = 8 * (6_738_415_616 - 32000 * 4096) * 16 * 4096
    assert found[0].compute == pytest.approx(flops / (989.4e12 * 0.45), rel=0.25)
    assert dry_run(model, plans[1], batch=16, sequence=4096, machine="h200").fits >= found[1].fits


def test_experts_are_divided() -> None:
    models: Any = votive.models
    config = models.MixtralConfig(
        vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, num_local_experts=4,
    )  # fmt: skip
    with votive.device("meta"):
        model = models.MixtralForCausalLM(config)
    plain, spread = (dry_run(model, p, batch=2, sequence=8) for p in (Plan(data=4), Plan(data=4, expert=4)))
    assert spread.stages[0].parameters < 0.6 * plain.stages[0].parameters
    assert {m.op for m in spread.stages[0].sent} == {"all_reduce", "all_to_all"}


def test_models_of_other_inputs() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    found = dry_run(net, Plan(data=2, shard=3), batch=6, sample=votive.ones(1, 4), optimizer="sgd", machine="a100")
    assert found.stages[0].states == 0
    assert not next(net.parameters()).is_meta  # the model stays as it is
    with pytest.raises(ValueError, match="sample="):
        dry_run(net, Plan(), batch=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": 0}, "1 or more"), ({"shard": 4}, "0, 1, 2 or 3"), ({"data": 4, "expert": 3}, "must divide"),
        ({"pipeline": 2, "shard": 1}, "does not go with a pipeline"),
    ],
)  # fmt: skip
def test_plans_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Plan(**options)


def test_what_cannot_be_forecast() -> None:
    for options, message in (
        ({"optimizer": "fast"}, "must be one of"), ({"machine": "z9"}, "unknown machine"),
        ({"plan": Plan(microbatches=3)}, "multiple of microbatches"),
        ({"plan": Plan(context=3)}, "must divide sequence"),
    ):  # fmt: skip
        given: dict[str, Any] = {"plan": Plan(), "batch": 4, "sequence": 8, **options}
        with pytest.raises(ValueError, match=message):
            dry_run(decoder(), given.pop("plan"), **given)


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decoder().config.save_pretrained(tmp_path)
    words = ["--batch", "4", "--sequence", "8", "--data", "2", "--shard", "3", "--pipeline", "2", "--microbatches", "2"]
    assert main(["plan", str(tmp_path), *words]) == 0
    text = capsys.readouterr().out
    assert text.startswith("4 ranks, ")
    assert "reduce_scatter along data" in text
    assert main(["plan", str(tmp_path / "none"), *words]) == 2
    assert main(["plan", str(tmp_path), *words, "--dtype", "int64"]) == 2
    assert "--dtype takes a type" in capsys.readouterr().err
