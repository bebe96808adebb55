"""A disk that takes no more destroys nothing, and the error says what is where."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive as vt
from tests import tiny_sizes
from votive.serialization.atomic import replacing
from votive.train import CheckpointError, Trainer

resource = pytest.importorskip("resource", reason="limits of a process are Unix's")


@contextlib.contextmanager
def no_file_beyond(nbytes: int) -> Iterator[None]:
    """The system takes so many bytes of a file and then refuses, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def large() -> dict[str, Any]:
    return {"w": vt.zeros(300_000), "b": vt.ones(100_000)}


def _bytes(path: Path) -> None:
    vt.vision.io.write_file(path, vt.zeros(1_000_000, dtype=vt.uint8))


SAVES: dict[str, Callable[[Path], Any]] = {
    "a.vt": lambda p: vt.save(large(), p),
    "a.safetensors": lambda p: vt.io.safetensors.save_file(large(), p),
    "a.npy": lambda p: vt.io.npy.save(p, large()["w"]),
    "a.npz": lambda p: vt.io.npy.savez(p, **large()),
    "a.gguf": lambda p: vt.io.gguf.write(p, large(), {}),
    "a.tokens": lambda p: vt.data.TokenFile.write(p, np.zeros(500_000, np.uint16)),
    "a.bin": _bytes,
}


@pytest.mark.parametrize("name", SAVES)
@pytest.mark.parametrize("before", [b"what was there", None])
def test_a_save_that_fails_leaves_what_was_there(name: str, before: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if before is not None:
        path.write_bytes(before)
    stopped = pytest.raises(OSError, match=r"writing stopped after .*B, and")
    with stopped as e, no_file_beyond(200_000):
        SAVES[name](path)
    assert e.value.filename == str(path)
    assert e.value.errno in (errno.EFBIG, errno.ENOSPC)
    if before is None:
        assert not list(tmp_path.iterdir())
        assert "nothing of it is left" in str(e.value)
    else:
        assert [p.name for p in tmp_path.iterdir()] == [name]
        assert path.read_bytes() == before
        assert "the file that was there is unchanged" in str(e.value)
    SAVES[name](path)  # with room it works


def test_the_last_bytes_may_be_the_ones_that_do_not_fit(tmp_path: Path) -> None:
    """Small files stay in a buffer until the end, which is when the disk refuses."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="unchanged"), no_file_beyond(100), replacing(path) as f:
        f.write(bytes(200))
    assert path.read_bytes() == b"old"


def test_of_several_shards_none_is_replaced_when_one_does_not_fit(tmp_path: Path) -> None:
    save = vt.io.safetensors.save_sharded
    first = {f"w{i}": vt.full((1000,), float(i)) for i in range(4)}
    save(first, tmp_path, max_shard_size=4100)
    whole = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    # The first shards fit, the last does not, and only when its buffer is emptied.
    second = {**{f"w{i}": vt.zeros(1000) for i in range(3)}, "w3": vt.zeros(1020)}
    with pytest.raises(OSError, match="writing stopped"), no_file_beyond(4150):
        save(second, tmp_path, max_shard_size=4100)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == whole


def test_a_model_that_cannot_be_saved_leaves_the_one_in_the_folder(tmp_path: Path) -> None:
    def model(width: int) -> Any:
        config = vt.models.LlamaConfig(**tiny_sizes.transformer(width, width, layers=1, heads=2, vocab=64, kv_heads=2))
        return vt.models.LlamaForCausalLM(config)

    model(16).save_pretrained(tmp_path)
    whole = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(OSError, match="unchanged"), no_file_beyond(100_000):
        model(128).save_pretrained(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == whole


def test_a_folder_that_is_missing_is_named_without_the_temporary_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as e:
        vt.save({}, tmp_path / "nowhere" / "a.vt")
    assert e.value.filename == str(tmp_path / "nowhere" / "a.vt")


def trainer(folder: Path | None, width: int = 2000) -> Trainer:
    vt.manual_seed(0)
    model = vt.nn.Sequential(vt.nn.Linear(1, width), vt.nn.Tanh(), vt.nn.Linear(width, 1))
    x = vt.linspace(0, 1, 16).unsqueeze(1)
    data = vt.data.DataLoader(vt.data.TensorDataset(x, 3 * x + 1), 4, shuffle=True)
    return Trainer(
        model,
        vt.optim.Adam(model.parameters(), lr=0.01),
        vt.nn.functional.mse_loss,
        data,
        epochs=3,
        progress=False,
        folder=folder,
        checkpoint_every=2,
        seed=0,
    )


def test_training_on_a_full_disk_says_which_checkpoint_is_the_last(tmp_path: Path) -> None:
    t = trainer(tmp_path)
    t.max_steps = 4
    t.fit()
    good = t.checkpoints.path(4)
    kept = good.read_bytes()
    t.max_steps = None
    with pytest.raises(CheckpointError) as e, no_file_beyond(20_000):
        t.fit()
    text = str(e.value)
    assert str(t.checkpoints.path(6)) in text
    assert f"The last one is {good}" in text
    assert "writing stopped after" in text
    assert isinstance(e.value, OSError)
    assert good.read_bytes() == kept
    assert not list(tmp_path.glob(".*"))
    assert t.checkpoints.latest()["step"] == 4


def test_after_making_room_training_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    losses = trainer(None).fit()["loss"]
    t = trainer(tmp_path / "same process")
    with pytest.raises(CheckpointError, match="There is none before it"), no_file_beyond(20_000):
        t.fit()
    assert t.fit()["loss"] == losses
    with pytest.raises(CheckpointError), no_file_beyond(20_000):
        trainer(tmp_path / "new process").fit()
    assert trainer(tmp_path / "new process").fit()["loss"] == losses


def test_the_best_checkpoint_survives_too(tmp_path: Path) -> None:
    t = trainer(tmp_path)
    t.checkpoints.write_best({"step": 1})
    with pytest.raises(CheckpointError, match=r"best\.safetensors"), no_file_beyond(1000):
        t.checkpoints.write_best(t.state_dict())
    assert vt.load(t.checkpoints.best_path) == {"step": 1}


def test_a_history_that_cannot_be_written_leaves_the_checkpoint(tmp_path: Path) -> None:
    t = trainer(tmp_path)
    t.max_steps = 2
    t.fit()
    before = (tmp_path / "history.json").read_bytes()
    with pytest.raises(OSError, match=r"history\.json"), no_file_beyond(10):
        t.history.save(tmp_path / "history.json")
    assert (tmp_path / "history.json").read_bytes() == before
