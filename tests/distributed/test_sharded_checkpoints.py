"""Folders that some ranks write and others read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributed as dist
from tests import docstrings
from tests.distributed.sharded_programs import sharded, whole
from tests.distributed.training import data, gpt, mine, mlp, squares
from votive import nn
from votive.distributed import checkpoint
from votive.distributed.checkpoint import StateDictOptions
from votive.distributed.fsdp import fully_shard
from votive.distributed.optim import ZeroRedundancyOptimizer
from votive.io import safetensors
from votive.nn.parallel import DistributedDataParallel

DOCS = docstrings.examples([checkpoint, *docstrings.modules_of(checkpoint)])
BATCHES = data("mlp", 8, 12)


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def adam(model: nn.Module) -> votive.optim.Optimizer:
    named = list(model.named_parameters())
    return votive.optim.AdamW(
        [
            {"params": [p for n, p in named if n.endswith("weight")], "weight_decay": 0.1},
            {"params": [p for n, p in named if n.endswith("bias")], "lr": 0.02},
        ],
        lr=0.01,
    )


def train(model: nn.Module, optimizer: Any, batches: Any, part: Callable[[Any], Any]) -> None:
    for batch in batches:
        optimizer.zero_grad()
        squares(model, part(batch)).backward()
        optimizer.step()


def state_of(model: nn.Module, optimizer: Any, **more: Any) -> dict[str, Any]:
    weights, steps = checkpoint.get_state_dict(model, optimizer)
    return {"model": weights, "optim": steps, **more}


def began(folder: Path, ranks: int = 2) -> None:
    """A checkpoint of 4 steps."""

    def run() -> None:
        model = sharded(mlp())
        optimizer = adam(model)
        train(model, optimizer, BATCHES[:4], mine)
        checkpoint.save(state_of(model, optimizer, step=4, why=("x", None)), checkpoint_id=folder)

    dist.simulate(run, ranks)


def went_on(folder: Path, wrap: Callable[[nn.Module], nn.Module], part: Callable[[Any], Any]) -> dict[str, Any]:
    model = wrap(mlp())
    with votive.no_grad():
        for p in model.parameters():
            p.zero_()
    optimizer = adam(model)
    for group in optimizer.param_groups:
        group["lr"] = 5.0
    state = state_of(model, optimizer, step=0, why=())
    checkpoint.load(state, checkpoint_id=folder)
    checkpoint.set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"]
    )  # fmt: skip
    assert (state["step"], state["why"]) == (4, ("x", None))
    train(model, optimizer, BATCHES[4:], part)
    return {n.removeprefix("module."): t.detach() for n, t in whole(model).items()}


def test_training_goes_on_with_any_number_of_ranks_and_in_any_way(tmp_path: Path) -> None:
    plain = mlp()
    optimizer = adam(plain)
    train(plain, optimizer, BATCHES, lambda b: b)
    folder = tmp_path / "state"
    began(folder, 3)
    began(folder)  # over the one that is there
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state"]
    assert len(list(folder.glob("*.safetensors"))) == 2
    found = [dist.simulate(went_on, n, folder, sharded, mine)[0] for n in (1, 2, 3, 4)]
    found.append(dist.simulate(went_on, 2, folder, DistributedDataParallel, mine)[1])
    found.append(went_on(folder, lambda m: m, lambda b: b))
    for one in found:
        for name, p in plain.named_parameters():
            np.testing.assert_allclose(one[name], p.detach(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_what_is_read_is_what_was_written_bit_by_bit(tmp_path: Path) -> None:
    kinds = (votive.float32, votive.bfloat16, votive.float64, votive.int64, votive.uint8)

    def write() -> None:
        layer: Any = nn.Module()
        layer.rows = nn.Parameter(votive.linspace(0, 1, 35).view(7, 5))
        layer.narrow = nn.Parameter(votive.linspace(0, 1, 6).to(votive.bfloat16))
        layer.one = nn.Parameter(votive.ones(1, 3))
        fully_shard(layer)
        others = {str(k): (votive.arange(4) % 2).to(k) for k in kinds}
        checkpoint.save({"layer": layer.state_dict(), "others": others}, checkpoint_id=tmp_path / "a")

    dist.simulate(write, 3)

    def read() -> Any:
        layer: Any = nn.Module()
        layer.rows = nn.Parameter(votive.zeros(7, 5))
        layer.narrow = nn.Parameter(votive.zeros(6, dtype=votive.bfloat16))
        layer.one = nn.Parameter(votive.zeros(1, 3))
        fully_shard(layer)
        others = {str(k): votive.zeros(4, dtype=k) for k in kinds}
        checkpoint.load({"layer": layer.state_dict(), "others": others}, checkpoint_id=tmp_path / "a")
        return [p.full_tensor() for p in layer.parameters()], others

    for ranks in (1, 2, 4):
        weights, others = dist.simulate(read, ranks)[-1]
        np.testing.assert_array_equal(weights[0], votive.linspace(0, 1, 35).view(7, 5))
        assert (weights[1] == votive.linspace(0, 1, 6).to(votive.bfloat16)).all()
        np.testing.assert_array_equal(weights[2], np.ones((1, 3)))
        assert all((t == (votive.arange(4) % 2).to(t.dtype)).all() for t in others.values())


def test_tied_weights_and_whole_states(tmp_path: Path) -> None:
    wanted = gpt().state_dict()

    def run() -> Any:
        model = sharded(gpt())
        checkpoint.save({"model": model.state_dict()}, checkpoint_id=tmp_path / "gpt")
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        full = checkpoint.get_model_state_dict(model, options=options)
        assert bool(full) == (dist.get_rank() == 0)
        other = sharded(gpt())
        optimizers = [votive.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, other)]
        with votive.no_grad():
            for p in other.parameters():
                p.zero_()
            steps = checkpoint.get_optimizer_state_dict(model, optimizers[0], options=options)
            if steps:
                steps["state"]["transformer.wpe.weight"]["momentum_buffer"].fill_(3.0)
                steps["param_groups"][0]["lr"] = 0.5
        from_0 = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        checkpoint.set_state_dict(
            other, optimizers[1], model_state_dict=full, optim_state_dict=steps, options=from_0
        )  # fmt: skip
        assert optimizers[1].param_groups[0]["lr"] == 0.5
        moved = optimizers[1].state[other.transformer.wpe.weight]["momentum_buffer"]
        assert moved.shape == other.transformer.wpe.weight.shape
        assert (moved == 3.0).all()
        return checkpoint.get_model_state_dict(other, options=StateDictOptions(full_state_dict=True))

    for found in dist.simulate(run, 3):
        assert list(found) == list(wanted)
        for name, t in wanted.items():
            np.testing.assert_array_equal(found[name], t)
    alone = gpt()
    with votive.no_grad():
        for p in alone.parameters():
            p.zero_()
    checkpoint.load({"model": alone.state_dict()}, checkpoint_id=tmp_path / "gpt")
    for name, t in alone.state_dict().items():
        np.testing.assert_array_equal(t, wanted[name])


def test_an_error_on_one_rank_is_told_on_all_and_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "state"
    began(folder)
    before = (folder / "index.json").read_text()
    write = safetensors.save_file

    def full(tensors: Any, path: Any, *rest: Any) -> None:
        if "part-00001" in str(path):
            raise OSError(28, "No space left on device")
        write(tensors, path, *rest)

    monkeypatch.setattr(safetensors, "save_file", full)
    said: list[str] = []

    def run() -> None:
        model = sharded(mlp())
        try:
            checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder)
        except (OSError, dist.DistError) as e:
            said.append(str(e))

    dist.simulate(run, 3)
    assert len(said) == 3
    assert sum("rank 1 has failed with OSError: [Errno 28] No space left" in text for text in said) == 2
    assert (folder / "index.json").read_text() == before
    # Killed between two renames: the old folder counts.
    folder.rename(tmp_path / "state.old")
    went_on(folder, lambda m: m, lambda b: b)


def test_what_does_not_fit_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    state = {"w": votive.ones(2, 3), "step": 5}
    checkpoint.save(state, checkpoint_id=folder)
    cases: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"w": votive.zeros(2, 3), "v": votive.zeros(1)}, KeyError, "v is not in the checkpoint"),
        ({"w": votive.zeros(2, 3), "steps": 1}, KeyError, "steps is not in the checkpoint; did you mean step"),
        ({"w": votive.zeros(3, 2)}, ValueError, r"w has the shape \(2, 3\) there and \(3, 2\) here"),
        ({"w": votive.zeros(2, 3, dtype=votive.float64)}, ValueError, "float32 there and float64 here"),
    )
    for wrong, kind, text in cases:
        with pytest.raises(kind, match=text):
            checkpoint.load(wrong, checkpoint_id=folder)
        assert not wrong["w"].any()
    with pytest.raises(FileNotFoundError, match=r"no index\.json"):
        checkpoint.load(state, checkpoint_id=tmp_path / "b")
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**index, "format": "x"}))
    with pytest.raises(ValueError, match="format 'x'"):
        checkpoint.load(state, checkpoint_id=folder)
    with pytest.raises(TypeError, match="fn is a function"):
        checkpoint.save({"fn": lambda: 0}, checkpoint_id=folder)
    with pytest.raises(ValueError, match="two values of the state"):
        checkpoint.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=folder)

    def unlike() -> None:
        with pytest.raises(ValueError, match=r"w is float32 \(3,\) on rank 1"):
            checkpoint.save({"w": votive.zeros(2 + dist.get_rank())}, checkpoint_id=folder)
        model = DistributedDataParallel(mlp())
        with pytest.raises(NotImplementedError, match="consolidate_state_dict"):
            checkpoint.get_optimizer_state_dict(
                model, ZeroRedundancyOptimizer(model.parameters(), votive.optim.SGD, lr=0.1)
            )
        with pytest.raises(ValueError, match="not of the model"):
            checkpoint.get_optimizer_state_dict(model, adam(mlp()))

    dist.simulate(unlike, 2)
