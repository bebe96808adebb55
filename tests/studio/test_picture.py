"""The picture of the model as a page asks for it: what flows where, a layer's inside, a head's arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive
from votive.glass import circuits
from votive.glass.sites import AllSites
from votive.studio import demo
from votive.studio.models import Loaded

from .client import Page, Refused
from .demo_session import MLP, MODEL, begun, ids


def sites(tokens: Any) -> dict[str, Any]:
    with votive.no_grad(), AllSites(MODEL) as seen:
        MODEL(tokens, use_cache=False)
    return {n: v.float().numpy() for n, v in seen.values.items()}


def test_what_flows_is_as_long_as_the_vectors_of_the_run(page: Page) -> None:
    begun(page)
    page.ask("session.step", n=3)
    found, real = page.ask("picture.flow"), sites(ids(page))
    length = ids(page).shape[1]
    assert found["residual"].shape == (5, length)
    for i in range(4):
        for name, site in (("attention", "attn_out"), ("mlp", "mlp_out")):
            wanted = np.linalg.norm(real[f"layers.{i}.{site}"][0], axis=-1)
            np.testing.assert_allclose(found[name][i], wanted, rtol=1e-4)
        np.testing.assert_allclose(
            found["residual"][i + 1], np.linalg.norm(real[f"layers.{i}.resid_post"][0], axis=-1), rtol=1e-4
        )
        np.testing.assert_allclose(
            found["heads"][i], np.linalg.norm(real[f"layers.{i}.attn.z"][0], axis=-1).T, rtol=1e-4
        )
        np.testing.assert_allclose(found["scale1"][i], real[f"layers.{i}.ln1.scale"][0, :, 0], rtol=1e-4)
    np.testing.assert_allclose(found["residual"][0], np.linalg.norm(real["embed"][0], axis=-1), rtol=1e-4)


def test_what_layers_would_say_is_the_lens_and_ends_in_the_next_token(page: Page) -> None:
    begun(page)
    length = ids(page).shape[1]
    found = page.ask("picture.says", position=length - 1)
    grid = page.ask("lens.grid")
    assert [r["id"] for r in found["layers"]] == [row[-1] for row in grid["ids"]]
    top = page.ask("session.top", k=6)["before"]
    assert [t["id"] for t in found["top"]] == [t["id"] for t in top]
    np.testing.assert_allclose([t["p"] for t in found["top"]], [t["p"] for t in top], rtol=1e-3)


def test_a_layer_s_inside_adds_up(page: Page) -> None:
    begun(page)
    found = page.ask("picture.layer", layer=2, position=3)
    np.testing.assert_allclose(found["resid_pre"] + found["attn_out"], found["resid_mid"], atol=1e-4)
    np.testing.assert_allclose(found["resid_mid"] + found["mlp_out"], found["resid_post"], atol=1e-4)
    np.testing.assert_allclose(found["pattern"].sum(1), 1, rtol=1e-4)
    assert found["pattern"].shape == (4, 4)
    best = found["neurons"][0]
    assert abs(best["value"]) == pytest.approx(np.abs(found["mlp.post"]).max())
    assert found["mlp.post"][best["number"]] == pytest.approx(best["value"])
    assert found["addresses"]["mlp"] == "model.layers.2.mlp"


def test_a_head_s_arithmetic_leads_from_scores_to_its_result(page: Page) -> None:
    begun(page)
    length = ids(page).shape[1]
    found = page.ask("picture.head", layer=1, head=3, position=length - 1)
    real = sites(ids(page))
    np.testing.assert_allclose(found["weights"], real["layers.1.attn.pattern"][0, 3, -1], rtol=1e-4)
    assert sum(r["weight"] for r in found["rows"]) + found["rest"] == pytest.approx(1, rel=1e-4)
    scores = real["layers.1.attn.scores"][0, 3, -1]
    for row in found["rows"]:
        assert row["score"] == pytest.approx(scores[row["position"]], rel=1e-3, abs=1e-4)
        assert row["dot"] / found["root"] == pytest.approx(row["score"], rel=1e-3, abs=1e-3)
    assert found["off"] < 1e-4, "the sum of weighted values is what the head gives"
    np.testing.assert_allclose(found["z"], real["layers.1.attn.z"][0, -1, 3], atol=1e-4)
    up = found["promotes"]["up"]
    assert [u["value"] for u in up] == sorted((u["value"] for u in up), reverse=True)


def test_what_a_head_makes_likelier_is_its_direct_part_of_the_logits(page: Page) -> None:
    begun(page)
    tokens = ids(page)
    found = page.ask("picture.head", layer=2, head=0, position=tokens.shape[1] - 1)["promotes"]
    some = [demo.tokenizer().encode(found["up"][0]["text"])[0], demo.tokenizer().encode(found["down"][0]["text"])[0]]
    parts = circuits.direct_logits(MODEL, tokens, some[0], against=some[1])
    wanted = float(parts.sel(part="layers.2.head.0", sample=0, position=tokens.shape[1] - 1).values)
    assert found["up"][0]["value"] - found["down"][0]["value"] == pytest.approx(wanted, rel=1e-2)


def test_the_picture_is_of_the_model_under_edits_and_says_what_does_not_run(page: Page) -> None:
    begun(page)
    page.ask("edits.set", edits=[{"at": MLP, "do": "zero"}])
    assert not page.ask("picture.flow")["mlp"][1].any()
    page.ask("edits.set", edits=[{"at": "model.layers.2", "do": "skip"}])
    assert math.isnan(page.ask("picture.flow")["attention"][2, 0])
    with pytest.raises(Refused, match="Layer 2 did not run"):
        page.ask("picture.layer", layer=2, position=0)
    with pytest.raises(Refused, match="There is no layer 9"):
        page.ask("picture.layer", layer=9, position=0)
    with pytest.raises(Refused, match="There is no position 999"):
        page.ask("picture.head", layer=0, head=0, position=999)
    with pytest.raises(Refused, match="There is no head 7; there are 4"):
        page.ask("picture.head", layer=0, head=7, position=0)


def test_edits_in_the_middle_of_a_text_are_in_the_picture(page: Page) -> None:
    begun(page)
    page.ask("session.step", n=2)
    page.ask("edits.set", edits=[{"at": MLP, "do": "zero"}], from_start=False)
    page.ask("session.step", n=2)
    flow, tokens = page.ask("picture.flow"), ids(page)
    assert flow["mlp"][1, 0] > 0
    assert not flow["mlp"][1, -2:].any()
    assert np.isfinite(flow["residual"]).all()
    last = tokens.shape[1] - 1
    head = page.ask("picture.head", layer=2, head=1, position=last)
    assert head["off"] < 1e-4
    says = page.ask("picture.says", position=last)
    assert says["top"][0]["id"] == page.ask("session.top", k=1)["before"][0]["id"]


def test_modules_are_told_in_the_order_in_which_they_run(page: Page) -> None:
    tree = [m["address"] for m in page.ask("model.info")["tree"]]
    inside = [a.rpartition(".")[2] for a in tree if a.startswith("model.layers.0.") and a.count(".") == 3]
    assert inside == ["input_layernorm", "self_attn", "post_attention_layernorm", "mlp"]
    assert len(tree) == len(dict(MODEL.named_modules()))
    kinds = {m["address"]: m["class"] for m in page.ask("model.info")["tree"]}
    assert kinds["model.layers.0"] == "Qwen3DecoderLayer"


def test_a_model_without_named_places_has_a_picture_of_its_modules(page: Page, monkeypatch: Any) -> None:
    begun(page)
    with_places = page.ask("picture.flow")
    page.ask("session.step")
    real = Loaded.info
    monkeypatch.setattr(Loaded, "info", lambda self: {**real(self), "places": False})
    found = page.ask("picture.flow")
    assert found["heads"].shape[1] == 0
    np.testing.assert_allclose(found["residual"][:, :-1], with_places["residual"], rtol=1e-3)
    with pytest.raises(Refused, match="no named places"):
        page.ask("picture.layer", layer=0, position=0)
