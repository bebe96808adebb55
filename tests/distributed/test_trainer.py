"""Trainers on several ranks: one history, the same steps as one process, and resumed exactly by whoever is left."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests import docstrings
from tests.distributed.processes import mpiexec, needs_mpi
from tests.distributed.trainer_programs import die_at, net, samples, trainer
from votive import nn
from votive.distributed.checkpoint import files
from votive.distributed.group import OBSERVERS, Ran
from votive.nn.parallel import DistributedDataParallel
from votive.train import CheckpointError, Trainer, ranks, shares

DOCS = docstrings.examples([ranks, shares])
WAYS = ("data", "sharded")


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def losses_of(count: int, folder: Any, way: str, **options: Any) -> list[float]:
    """The losses of a run, which all ranks know alike."""
    found = dist.simulate(lambda: list(trainer(folder, way, **options).fit()["loss"]), count)
    assert all(one == found[0] for one in found)
    return found[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_steps_are_those_of_one_process(way: str, count: int) -> None:
    def run() -> Any:
        one = trainer(None, way, batch=12 // count, dropout=0.0, max_steps=8)
        history = one.fit()
        return list(history["loss"]), [row["loss"] for row in history.evals], history["grad_norm"]

    losses, measured, norms = dist.simulate(run, count)[0]
    model = net()
    optimizer = votive.optim.AdamW(model.parameters(), lr=0.05)
    schedule = votive.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    wanted, wanted_norms, sampler = [], [], shares.Shares(samples(), 1, 0, seed=3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        order = list(sampler)
        for at in range(0, 48, 12):
            x, y = (votive.stack(column) for column in zip(*(samples()[i] for i in order[at : at + 12]), strict=True))
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            wanted_norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
            optimizer.step()
            schedule.step()
            wanted.append(loss.item())
            if len(wanted) in (5, 8):
                x, y = samples(7).tensors
                with votive.no_grad():
                    here = nn.functional.mse_loss(model(x), y).item()
                np.testing.assert_allclose(measured[len(wanted) // 8], here, rtol=1e-5)
    np.testing.assert_allclose(losses, wanted, rtol=2e-5)
    np.testing.assert_allclose(norms, wanted_norms, rtol=2e-5)


@cache
def uninterrupted(way: str) -> list[float]:
    """The losses of a run that nothing happens to."""
    with tempfile.TemporaryDirectory() as folder:
        return losses_of(2, folder, way)


class Killed(BaseException):
    """As if the process had ended here."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("point", [
    "step 2 rank 0", "step 3 rank 1", "step 7 rank 1", "step 12 rank 0", "step 13 rank 1",
    "write 1 rank 1", "write 2 rank 0", "write 4 rank 1",
])  # fmt: skip
def test_whoever_is_killed_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, point: str
) -> None:
    wanted = uninterrupted(way)

    def die() -> None:
        raise Killed

    monkeypatch.setattr(files.Writing, "write", files.Writing.write)  # what the run patches is undone
    monkeypatch.setattr(files.Writing, "abandon", lambda self: None)
    with pytest.raises(Killed):
        dist.simulate(lambda: trainer(tmp_path / "b", way, callbacks=die_at(point, die)).fit(), 2)
    monkeypatch.undo()
    assert losses_of(2, tmp_path / "b", way) == wanted  # bit for bit
    assert sorted(p.name for p in (tmp_path / "b").glob("step-*")) == ["step-00000012", "step-00000014"]


@needs_mpi
def test_processes_that_are_killed_are_resumed_exactly(tmp_path: Path) -> None:
    def run(folder: str, point: str) -> Any:
        return mpiexec(2, "-m", "tests.distributed.trainer_programs", str(tmp_path / folder), "sharded", point)

    def losses(done: Any) -> Any:
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.partition("LOSSES ")[2].partition("\n")[0])

    wanted = losses(run("a", "none"))
    assert len(wanted) == 14
    for point in ("step 8 rank 1", "write 2 rank 0"):  # one after the other
        assert run("b", point).returncode != 0
    assert losses(run("b", "none")) == wanted


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 4), (4, 1)])
def test_training_goes_on_with_fewer_or_more_ranks(tmp_path: Path, before: int, after: int) -> None:
    # Twelve samples a step, whoever takes them.
    options: dict[str, Any] = {"dropout": 0.0, "max_steps": 10}
    wanted = losses_of(1, tmp_path / "whole", "data", batch=12, **options)
    first = losses_of(before, tmp_path / "b", "sharded", batch=12 // before, **{**options, "max_steps": 6})
    rest = losses_of(after, tmp_path / "b", "data" if after == 1 else "sharded", batch=12 // after, **options)
    assert rest[:6] == first
    np.testing.assert_allclose(rest, wanted, rtol=1e-4)


def test_a_full_disk_says_which_checkpoint_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = files.Writing.write

    def full(self: Any) -> None:
        if "step-00000006" in str(self.target) and self.rank == 1:
            raise OSError(28, "No space left on device")
        write(self)

    monkeypatch.setattr(files.Writing, "write", full)

    def run() -> None:
        with pytest.raises(CheckpointError, match=r"The last one is .*step-00000003"):
            trainer(tmp_path, "data").fit()

    dist.simulate(run, 2)


def test_the_best_is_kept_and_found(tmp_path: Path) -> None:
    def run() -> Any:
        one = trainer(tmp_path, "sharded", best="loss", max_steps=10)
        history = one.fit()
        best = min(history.evals, key=lambda row: row["loss"])
        assert one.load_best() == best["step"]
        return one.evaluate()["loss"], best["loss"]

    found = dist.simulate(run, 2)
    assert found[0] == found[1]
    measured, best = found[0]
    np.testing.assert_allclose(measured, best, rtol=1e-6)


def test_only_the_first_rank_shows_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    class Shown:
        def start(self, total: Any, done: int) -> None:
            seen.append(dist.get_rank())

        def update(self, report: Any) -> None:
            pass

        note = stop = lambda self, *args: None

    dist.simulate(lambda: trainer(tmp_path, "data", progress=Shown(), log_every=1).fit(), 2)
    assert seen == [0]
    assert {p.name for p in tmp_path.iterdir()} == {"curve.svg", "history.json", "step-00000012", "step-00000014"}


def test_all_stop_when_one_does(tmp_path: Path) -> None:
    def run() -> int:
        def stop(one: Any) -> None:
            if dist.get_rank() == 1 and one.step == 4:
                one.stop()

        one = trainer(None, "data", callbacks=[stop])
        one.fit()
        return one.step

    assert dist.simulate(run, 2) == [4, 4]


def test_models_and_data_that_are_spread_already_are_taken_as_they_are() -> None:
    def run() -> Any:
        model = DistributedDataParallel(net())
        own = [(votive.ones(2, 6) * (dist.get_rank() + 1), votive.ones(2, 3))] * 3
        one = Trainer(model, votive.optim.SGD(model.parameters(), lr=0.1), nn.functional.mse_loss, own, max_steps=3,
                      progress=False)  # fmt: skip
        assert one.model is model
        return list(one.fit()["loss"])

    first, second = dist.simulate(run, 2)
    assert first == second


def test_a_mesh_of_two_dimensions_replicates_shards() -> None:
    def run(way: str) -> Any:
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
        one = trainer(None, way, batch=3, dropout=0.0, mesh=mesh, max_steps=4)
        return list(one.fit()["loss"])

    plain = dist.simulate(lambda: list(trainer(None, "data", batch=3, dropout=0.0, max_steps=4).fit()["loss"]), 4)[0]
    np.testing.assert_allclose(dist.simulate(run, 4, "sharded")[0], plain, rtol=1e-5)
    with pytest.raises(ValueError, match="2 dimensions does not fit"):
        dist.simulate(run, 4, "data")


def test_a_script_runs_on_its_own_too(tmp_path: Path) -> None:
    try:
        one = trainer(tmp_path, "sharded", max_steps=3)
        one.fit()
        assert dist.get_world_size() == 1
    finally:
        dist.destroy_process_group()
    with pytest.raises(FileExistsError, match="of several ranks"):
        trainer(tmp_path, None).fit()


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    def run() -> None:
        with pytest.raises(ValueError, match="'data' or 'sharded'"):
            trainer(None, "fast")
        with pytest.raises(TypeError, match="'data', 'sharded' or None"):
            trainer(None, 3)  # type: ignore[arg-type]
        with pytest.raises(NotImplementedError, match="not compiled"):
            trainer(None, "data", compile=True)
        weighted = votive.data.WeightedRandomSampler([1.0] * 48, 48)
        model = net()
        optimizer = votive.optim.SGD(model.parameters(), lr=0.1)
        with pytest.raises(ValueError, match="a sampler of its own"):
            Trainer(model, optimizer, nn.functional.mse_loss, votive.data.DataLoader(samples(), 4, sampler=weighted),
                    max_steps=1, distributed="data")  # fmt: skip
        with pytest.raises(NotImplementedError, match="use save"):
            trainer(None, "data").state_dict()

    dist.simulate(run, 2)
    (tmp_path / "step-00000001.safetensors").write_bytes(b"")
    with pytest.raises(FileExistsError, match="of one process"):
        dist.simulate(lambda: trainer(tmp_path, "data"), 2)


@pytest.mark.parametrize("way", WAYS)
def test_a_language_model_is_trained_and_written_once(tmp_path: Path, way: str) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 200)
    recipe = {"vocab_size": 270, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "context": 8,
              "max_steps": 4, "batch_size": 4, "held_out": 0.1}  # fmt: skip

    def run(resume: bool = False) -> Any:
        made = votive.train.train_language_model(
            tmp_path / "text.txt", recipe, tmp_path / "model", distributed=way, progress=False, resume=resume,
            prompts=["the"],
        )  # fmt: skip
        return list(made.history["loss"]), made.held_out_loss, len(made.samples)

    first, second = dist.simulate(run, 2)
    assert first[0] == second[0]
    assert first[1] is not None
    assert second[1:] == (None, 0)
    assert first[2] == 1
    assert votive.models.AutoModelForCausalLM.from_pretrained(tmp_path / "model").num_parameters() > 1000
    with pytest.raises(FileExistsError, match="another run"):
        dist.simulate(run, 2)
    assert dist.simulate(run, 2, True)[0][0] == first[0]


@pytest.mark.parametrize("way", WAYS)
def test_batches_that_add_up_are_sent_once(way: str) -> None:
    calls: list[str] = []

    def observe(ran: Ran) -> None:
        if ran.group.rank() == 0 and ran.nbytes > 100:
            calls.append(ran.call.op)

    whole = losses_of(2, None, way, batch=6, dropout=0.0, max_steps=4)
    OBSERVERS.append(observe)
    try:
        parts = losses_of(2, None, way, batch=3, dropout=0.0, max_steps=4, accumulate=2, eval_data=None)
    finally:
        OBSERVERS.remove(observe)
    np.testing.assert_allclose(parts, whole, rtol=1e-5)
    sent = {"data": "all_reduce", "sharded": "reduce_scatter_tensor"}[way]
    assert calls.count(sent) == 4 * {"data": 1, "sharded": 3}[way]  # one message for each layer
