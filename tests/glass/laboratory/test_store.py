"""Stores hold what the model has, go on after a kill, and trainers go on bit by bit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests.attacks import forge
from votive.data import TokenFile
from votive.glass import capture
from votive.glass.features import SAE, ActivationStore, Rows, SAETrainer, SAETraining, collect

from . import plain


def model_and_ids(windows: int = 23) -> tuple[Any, Any]:
    votive.manual_seed(0)
    return plain.llama(), votive.randint(0, 11, (windows, 6))


def test_a_store_holds_what_the_model_has_at_its_sites(tmp_path: Path) -> None:
    model, ids = model_and_ids()
    sites = ["layers.1", "layers.1.mlp:in"]
    store = collect(model, ids, sites, tmp_path, batch_size=4, shard_rows=50, skip=1, dtype=votive.float32)
    assert store.counts == [60, 55]
    assert len(store) == 23 * 5
    with votive.no_grad(), capture(model, sites) as seen:
        model(ids)
    rows = [votive.cat(t) for t in zip(*(store.shard(i) for i in range(2)), strict=True)]
    for found, site in zip(rows, sites, strict=True):
        assert votive.allclose(found, seen[site][:, 1:].flatten(0, 1), atol=1e-5)
    assert store.place(7) == (1, 3)
    half = collect(model, ids, sites, tmp_path / "half", batch_size=4, shard_rows=50, skip=1)
    assert half.shard(0)[0].dtype is votive.bfloat16
    assert votive.equal(half.shard(0)[0], rows[0][:60].to(votive.bfloat16))


def test_texts_may_be_several_files_of_tokens(tmp_path: Path) -> None:
    model, ids = model_and_ids()
    flat = ids.flatten().numpy()
    files = [TokenFile.write(tmp_path / "a", flat[:50]), TokenFile.write(tmp_path / "b", flat[48:])]
    store = collect(model, files, "layers.0", tmp_path / "s", context=6, dtype=votive.float32)
    # Of the first file 2 tokens are left over.
    with votive.no_grad(), capture(model, "layers.0") as seen:
        model(ids)
    assert len(store) == 23 * 6
    assert votive.allclose(store.shard(0)[0], seen["layers.0"].flatten(0, 1), atol=1e-5)


@pytest.mark.parametrize("buffer", [1, 2, 9])
def test_every_row_comes_once_an_epoch_in_another_order(tmp_path: Path, buffer: int) -> None:
    model, ids = model_and_ids()
    made = collect(model, ids, "layers.0", tmp_path, batch_size=4, shard_rows=24, dtype=votive.float32)
    store = ActivationStore(made.folder, buffer=buffer)
    whole = np.sort(votive.cat([store.shard(i)[0] for i in range(len(store.counts))]).numpy(), 0)
    epochs = [votive.cat([x for (x,) in store.epoch(7, epoch=e)]).numpy() for e in range(2)]
    for found in epochs:
        np.testing.assert_array_equal(np.sort(found, 0), whole)
    assert not np.array_equal(*epochs)
    plain_order = votive.cat([x for (x,) in store.epoch(7, shuffle=False)])
    assert votive.equal(plain_order[:24], store.shard(0)[0])


def test_batches_begun_in_the_middle_are_those_that_would_have_come(tmp_path: Path) -> None:
    model, ids = model_and_ids()
    collect(model, ids, "layers.0", tmp_path, batch_size=4, shard_rows=24, dtype=votive.float32)
    store = ActivationStore(tmp_path, buffer=2)

    def some(start: int, count: int) -> list[Any]:
        found = store.batches(10, seed=3, start=start)
        return [next(found)[0] for _ in range(count)]

    through = some(0, 60)
    for start in (1, 4, 5, 17, 41):
        for a, b in zip(through[start:], some(start, 60 - start), strict=True):
            assert votive.equal(a, b)


def test_a_store_that_was_not_finished_goes_on_and_is_the_same(tmp_path: Path) -> None:
    model, ids = model_and_ids()
    one = collect(model, ids, "layers.0", tmp_path / "a", batch_size=4, shard_rows=24)
    two = collect(model, ids, "layers.0", tmp_path / "b", batch_size=4, shard_rows=24)
    before = (two.folder / "shard-000000.safetensors").stat().st_mtime_ns
    for name in ("shard-000002.safetensors", "shard-000004.safetensors"):
        (two.folder / name).unlink()
    (two.folder / ".shard-000002.safetensors.123.tmp").write_bytes(b"half")
    with pytest.raises(FileNotFoundError, match="2 of 6 shards"):
        ActivationStore(two.folder)
    collect(model, ids, "layers.0", two.folder, batch_size=4, shard_rows=24)
    assert (two.folder / "shard-000000.safetensors").stat().st_mtime_ns == before
    names = sorted(p.name for p in one.folder.iterdir())
    assert sorted(p.name for p in two.folder.iterdir()) == names
    assert all((one.folder / n).read_bytes() == (two.folder / n).read_bytes() for n in names)
    for change in ({"skip": 1}, {"dtype": votive.float32}):
        with pytest.raises(ValueError, match="made from something else"):
            collect(model, ids, "layers.0", one.folder, batch_size=4, shard_rows=24, **change)  # type: ignore[arg-type]
    with votive.no_grad():
        model.model.norm.weight.add_(1.0)
    with pytest.raises(ValueError, match=r"something else \(model differ\)"):
        collect(model, ids, "layers.0", one.folder, batch_size=4, shard_rows=24)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    model, ids = model_and_ids()
    with votive.no_grad():
        model.model.embed_tokens.weight.mul_(1e6)
    with pytest.raises(OverflowError, match=r"does not fit into votive\.float16"):
        collect(model, ids, "embed_tokens", tmp_path, dtype=votive.float16)
    with pytest.raises(ValueError, match=r"must be \(samples, positions, features\)"):
        collect(votive.nn.Sequential(votive.nn.Embedding(11, 4), votive.nn.Flatten()), ids, "1", tmp_path)
    with pytest.raises(TypeError, match="must be integers"):
        collect(model, votive.ones(3, 4), "layers.0", tmp_path)
    with pytest.raises(ValueError, match="no window of 128"):
        collect(model, ids.flatten()[:5], "layers.0", tmp_path)


def run(data: Any, steps: int | None, folder: Path | None, kind: str) -> SAETrainer:
    votive.manual_seed(7)
    k = 3 if "topk" in kind else None
    sae = SAE(16, 40, kind, k=k)
    plan = SAETraining(
        30, batch_size=16, lr=3e-3, sparsity=0.05, warmup=5, decay=10, dead_after=64, resample_every=8, log_every=3
    )
    trainer = SAETrainer(sae, data, plan, folder=folder)
    trainer.fit(steps)
    return trainer


@pytest.mark.parametrize("kind", ["topk", "batchtopk", "jumprelu", "gated", "relu"])
def test_a_run_that_was_stopped_goes_on_bit_by_bit(tmp_path: Path, kind: str) -> None:
    votive.manual_seed(0)
    data = Rows(votive.randn(100, 16))
    whole = run(data, None, None, kind)
    run(data, 11, tmp_path, kind).save()
    votive.manual_seed(99)
    again = run(data, None, tmp_path, kind)
    assert again.step == 30
    assert again.history == whole.history
    for (name, a), b in zip(whole.sae.state_dict().items(), again.sae.state_dict().values(), strict=True):
        assert votive.equal(a, b), name
    assert votive.equal(whole.since, again.since)


def test_a_killed_run_on_a_store_goes_on_bit_by_bit(tmp_path: Path) -> None:
    model, ids = model_and_ids()
    store = collect(model, ids, "layers.1", tmp_path / "store", batch_size=4, shard_rows=24)
    program = f"""
        import os, signal, votive
        from votive.glass.features import *
        votive.manual_seed(7)
        plan = SAETraining(40, batch_size=16, dead_after=64, checkpoint_every=7)
        trainer = SAETrainer(SAE(16, 40, "topk", k=3), ActivationStore({str(store.folder)!r}), plan,
                             folder={str(tmp_path / "run")!r})
        trainer.fit(25)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr

    def finish(folder: Path | None) -> SAETrainer:
        votive.manual_seed(7)
        plan = SAETraining(40, batch_size=16, dead_after=64, checkpoint_every=7)
        trainer = SAETrainer(SAE(16, 40, "topk", k=3), ActivationStore(store.folder), plan, folder=folder)
        if folder is not None:
            assert trainer.step == 21
        trainer.fit()
        return trainer

    a, b = finish(None), finish(tmp_path / "run")
    assert all(
        votive.equal(x, y) for x, y in zip(a.sae.state_dict().values(), b.sae.state_dict().values(), strict=True)
    )


def test_another_plan_does_not_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    data = votive.randn(50, 16)
    SAETrainer(SAE(16, 40, "relu"), data, SAETraining(3), folder=tmp_path).fit()
    with pytest.raises(ValueError, match="another lr"):
        SAETrainer(SAE(16, 40, "relu"), data, SAETraining(3, lr=0.5), folder=tmp_path)
    with pytest.raises(ValueError, match="another d_sae, kind"):
        SAETrainer(SAE(16, 41, "gated"), data, SAETraining(3), folder=tmp_path)


def test_features_that_died_live_again(tmp_path: Path) -> None:
    votive.manual_seed(0)
    rows, _ = plain.superposed(24, 12, 4000, 0.1, 0)

    def dead(**options: Any) -> float:
        votive.manual_seed(1)
        sae = SAE(12, 64, "topk", k=2)
        with votive.no_grad():
            sae.b_enc[::2] = -50.0  # these never fire by themselves
        plan = SAETraining(120, batch_size=128, lr=3e-3, dead_after=1000, normalize=False, **options)
        return SAETrainer(sae, votive.from_numpy(rows), plan).fit()[-1]["dead"]

    never = dead(auxiliary=0.0)
    assert never >= 0.5
    assert dead(auxiliary=0.0, resample_every=30) < never - 0.2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 9}, "no manifest of version 1"),
        ({"windows": 10**15}, "windows is"),
        ({"windows": 10**13, "shard_windows": 1}, "make no sense"),
        ({"context": -4}, "context is -4"),
        ({"context": True}, "context is True"),
        ({"sites": "layers.0"}, "sites are no list"),
        ({"widths": [16, 3]}, "not one size per site"),
        ({"widths": [10**9]}, "should hold 24 rows of 1000000000"),
        ({"dtype": "float64"}, "dtype is"),
        ({"skip": 6}, "make no sense"),
    ],
)
def test_a_hostile_manifest_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    model, ids = model_and_ids(4)
    collect(model, ids, "layers.0", tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert said in forge.refusal(tmp_path, lambda p: ActivationStore(p).shard(0))


def test_a_damaged_shard_is_refused(tmp_path: Path) -> None:
    model, ids = model_and_ids(4)
    store = collect(model, ids, "layers.0", tmp_path)
    path = tmp_path / "shard-000000.safetensors"
    good = path.read_bytes()
    path.write_bytes(good[:-5])
    forge.refusal(tmp_path, lambda p: ActivationStore(p).shard(0))
    path.write_bytes(forge.safetensors({"0": forge.entry("F32", (24, 16), (0, 1536))}, bytes(1536)))
    assert "damaged or is of another store" in forge.refusal(tmp_path, lambda p: store.shard(0))
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    assert "no JSON" in forge.refusal(tmp_path, ActivationStore)
