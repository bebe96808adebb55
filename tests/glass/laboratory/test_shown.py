"""What the laboratory gives shows itself: as text, in notebooks, and as pages of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
from votive.glass import features, probes, steering

from . import plain

VIEW = features.FeatureView(
    3, [], 0.25, 2.0, [1, 2, 0, 4], 0.5, 10, [(" a", 1.0)], [(" <b>", -1.0)], [(4, 0.5)], [(5, 0.25)]
)
SHOWN: dict[str, Any] = {
    "feature": VIEW,
    "dashboard": features.Dashboard({3: VIEW}),
    "quality": features.Quality(10, 4.0, 0.9, 0.1, 0.0, 1.0, 1.2, 3.0),
    "direction": steering.Direction("layers.1", votive.arange(30.0)),
    "probes": probes.ProbeResults(("0", "1"), ("0", "-1"), [[0.9, 1.0], [1.0, 1.0]], [[0.5, 0.5], [0.7, 1.0]], 0.5),
    "similarity": probes.Similarity("cka", [[1.0, 0.5]], ("0",), ("0", "1")),
    "influence": probes.Influence(votive.randn(2, 3)),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_result_shows_itself(name: str, tmp_path: Path) -> None:
    thing = SHOWN[name]
    shown = thing._repr_mimebundle_()
    assert shown["text/html"]
    assert "<b>" not in shown["text/html"].replace("<b>feature", "").replace("<b>test", "")
    thing.save_html(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text()[:200].lower()
    for picture in thing.pictures():
        thing.save_svg(tmp_path / "picture.svg", picture)
        assert (tmp_path / "picture.svg").read_text().startswith("<svg")


def test_training_says_how_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    sae = features.SAE(4, 8, "topk", k=2)
    features.SAETrainer(sae, votive.randn(64, 4), features.SAETraining(6, log_every=3), progress=True).fit()
    out = capsys.readouterr().out
    assert "step 3/6  loss" in out
    assert "step 6/6  loss" in out


def test_transcoders_and_crosscoders_learn_from_stores_of_several_sites(tmp_path: Path) -> None:
    votive.manual_seed(0)
    model, ids = plain.llama(), votive.randint(0, 11, (60, 6))
    with votive.no_grad():
        for layer in model.model.layers:  # so that the MLP gives more than rounding
            layer.mlp.down_proj.weight.mul_(100)
    store = features.collect(model, ids, ["layers.1.mlp:in", "layers.1.mlp"], tmp_path / "a", dtype=votive.float32)
    plan = features.SAETraining(150, batch_size=64, lr=5e-3, dead_after=2000)
    sae = features.SAE(16, 64, "topk", k=8, d_out=16, skip=True, site="layers.1.mlp:in", writes="layers.1.mlp")
    features.SAETrainer(sae, store, plan).fit()
    found = features.measure(sae, store, model=model, batches=[ids])
    assert found.explained_variance > 0.8
    assert found.loss_with is not None

    store = features.collect(model, ids, ["layers.0", "layers.1", "layers.2"], tmp_path / "b", dtype=votive.float32)
    sae = features.SAE(16, 64, "batchtopk", k=8, layers=3)
    features.SAETrainer(sae, store, plan).fit()
    found = features.measure(sae, store)
    assert found.explained_variance > 0.8
    assert 4 < found.l0 < 14
    assert sae.directions().shape == (64, 3, 16)
    with pytest.raises(ValueError, match="crosscoder of 2 layers got 3"):
        features.SAETrainer(features.SAE(16, 64, "relu", layers=2), store, plan)
