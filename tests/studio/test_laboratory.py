"""The laboratory as a page asks for it, on the bundled model: numbers against the engine, and Python that runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.glass import features
from votive.models.checkpoint import bundled

from .client import Page, Refused, studio

pytestmark = pytest.mark.skipif("tales" not in bundled(), reason="the bundled model is not part of this installation")
PROMPT = "He walked all day and all"
NIGHT = 1293  # the time of day: see docs/laboratory/find_name_and_steer_a_feature.md


@pytest.fixture(scope="module")
def model() -> Any:
    return votive.models.AutoModelForCausalLM.from_pretrained("tales").eval()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return votive.text.Tokenizer.from_pretrained("tales")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with studio(tmp_path_factory.mktemp("sessions"), model="tales") as one, Page(one) as page:
        page.ask("session.new", prompt=PROMPT, settings={"temperature": 0})
        yield page


def runs(found: dict[str, Any], model: Any, tokenizer: Any, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the Python that a view offers, as one would in a program; gives what it prints."""
    session = glass.Session(model, tokenizer, PROMPT)
    session.tokens_of = lambda node: tokenizer.encode(PROMPT)  # whatever number the node has in the studio
    exec(compile(found["python"], "<copied>", "exec"), {"votive": votive, "glass": glass, "model": model,
         "tokenizer": tokenizer, "session": session})  # fmt: skip
    said = capsys.readouterr().out
    assert said.strip()
    return said


def test_features_that_fire_are_those_of_the_spliced_coder(lab: Page, model: Any, tokenizer: Any, capsys: Any) -> None:
    found = lab.ask("laboratory.features", position=3)
    sae, ids = features.load("tales"), votive.tensor([tokenizer.encode(PROMPT)])
    with (
        votive.no_grad(),
        features.splice(model, "layers.4", sae) as place,
        glass.capture(model, place.features) as seen,
    ):
        model(ids)
    wanted = seen[place.features][0, 3].float()
    assert [r["feature"] for r in found["rows"][:5]] == wanted.topk(5)[1].tolist()
    assert found["rows"][0]["value"] == pytest.approx(float(wanted.max()), rel=0.02)
    assert NIGHT in [r["feature"] for r in found["rows"]]
    assert found["values"].shape == (len(found["rows"]), 6)
    assert str(found["rows"][0]["feature"]) in runs(found, model, tokenizer, capsys)
    with pytest.raises(Refused, match="There is no position 99"):
        lab.ask("laboratory.features", position=99)


def test_a_feature_has_examples_effects_and_neighbours(lab: Page, model: Any, tokenizer: Any, capsys: Any) -> None:
    found = lab.ask("laboratory.feature", feature=NIGHT)
    fired = {t.strip() for e in found["examples"] for t, v in zip(e["tokens"], e["values"]) if v > 0}
    assert fired & {"day", "night", "evening", "morning", "dawn"}
    assert " dawn" in [p["text"] for p in found["promoted"]]
    assert len(found["similar"]) >= 3
    assert f"feature {NIGHT}" in runs(found, model, tokenizer, capsys)
    with pytest.raises(Refused, match="There is no feature 99999"):
        lab.ask("laboratory.feature", feature=99999)


def test_steering_is_an_edit_that_does_what_the_spliced_feature_does(
    lab: Page, model: Any, tokenizer: Any, capsys: Any
) -> None:
    ids = votive.tensor([tokenizer.encode(PROMPT)])
    found = lab.ask("laboratory.steer", strengths={str(NIGHT): 12})
    assert len(found["edits"]) == 1
    sae = features.load("tales")
    with (
        votive.no_grad(),
        features.splice(model, "layers.4", sae) as place,
        glass.patch(model, {place.features: features.steer({NIGHT: 12.0})}),
    ):
        wanted = model(ids).logits[0, -1].float().softmax(-1)
    top = lab.ask("session.top", k=3)["before"]
    assert top[0]["id"] == int(wanted.argmax())
    assert top[0]["p"] == pytest.approx(float(wanted.max()), rel=0.05)
    assert runs(found, model, tokenizer, capsys)
    again = lab.ask("laboratory.steer", strengths={str(NIGHT): -3.5})
    assert len(again["edits"]) == 1, "the newer one stands in place of the older"
    lab.ask("session.undo")
    assert lab.ask("session.top", k=1)["before"][0]["p"] == pytest.approx(top[0]["p"])
    assert lab.ask("laboratory.steer", strengths={})["edits"] == []
    for wrong, says in (
        ({"99999": 1}, "There is no feature"),
        ({"x": 1}, "Strengths are numbers"),
        ({"1": 1e9}, "between"),
    ):
        with pytest.raises(Refused, match=says):
            lab.ask("laboratory.steer", strengths=wrong)


def test_an_attribution_graph_leads_from_tokens_to_the_next_token(
    lab: Page, model: Any, tokenizer: Any, capsys: Any
) -> None:
    found = lab.ask("laboratory.graph")
    kinds = {n["kind"] for n in found["nodes"]}
    assert {"token", "logit", "neuron"} <= kinds
    assert len(found["nodes"]) < 300
    for source, target, _ in found["edges"]:
        a, b = found["nodes"][source], found["nodes"][target]
        assert a["layer"] < b["layer"] or b["kind"] == "logit"
        assert a["position"] <= b["position"]
    whole = glass.circuits.attribution_graph(
        model, votive.tensor([tokenizer.encode(PROMPT)]), coders=[features.load("tales", "transcoder")], max_nodes=900
    )
    best = max((n for n in found["nodes"] if n["kind"] not in ("logit", "token")), key=lambda n: n["influence"])
    node, _ = next((n, w) for n, w in whole.top(5) if n.kind != "token")
    assert (best["kind"], best["layer"], best["position"], best["number"]) == (
        node.kind,
        node.layer,
        node.position,
        node.number,
    )
    assert found["replacement"] == pytest.approx(whole.replacement, rel=1e-3)
    assert "logit" in runs(found, model, tokenizer, capsys)


@pytest.mark.parametrize("site", ["stream", "attention", "mlp", "heads"])
def test_a_sweep_tells_where_a_token_matters(lab: Page, model: Any, tokenizer: Any, capsys: Any, site: str) -> None:
    found = lab.ask("laboratory.sweep", position=3, word="king", site=site)
    values = found["values"]
    if site == "stream":
        assert values.shape == (8, 6)
        assert values[-1, -1] == pytest.approx(1, abs=0.05), "the last place holds the whole answer"
        assert abs(values[-1, :3]).max() < 0.05
        assert values[0, 3] == pytest.approx(1, abs=0.2), "behind layer 0 all of it is still at the token"
    elif site == "heads":
        assert values.shape == (8, 8)
    else:
        assert values.shape == (8, 6)
    assert found["word"] == " king"
    assert found["clean"] > found["corrupt"]
    assert runs(found, model, tokenizer, capsys)


def test_a_sweep_refuses_what_it_cannot_do(lab: Page) -> None:
    for args, says in (
        ({"position": 3, "word": "day"}, "what stands there already"),
        ({"position": 77, "word": "king"}, "There is no position 77"),
        ({"position": 3, "word": "a whole sentence of words"}, "more than one token"),
    ):
        with pytest.raises(Refused, match=says):
            lab.ask("laboratory.sweep", **args)


def test_probes_tell_two_kinds_of_texts_apart(lab: Page, model: Any, tokenizer: Any, capsys: Any) -> None:
    starts = ["Then the old", "There was once a", "In the forest lived a poor", "So the little"]
    girls, boys = ["queen", "princess", "witch", "mother"], ["king", "prince", "giant", "father"]
    first = [f"{s} {w} said" for s in starts for w in girls]
    second = [f"{s} {w} said" for s in starts for w in boys]
    found = lab.ask("laboratory.probe", first=first, second=second)
    assert len(found["sites"]) == len(found["held_out"]) == 9
    assert found["chance"] == pytest.approx(0.5)
    assert found["best"]["score"] > 0.7
    assert found["held_out"][0] < 0.8, "the last token's embedding knows nothing of the word before"
    assert runs(found, model, tokenizer, capsys)


def test_a_model_without_coders_says_what_to_do(page: Page) -> None:
    page.ask("session.new", prompt="Once upon a time")
    with pytest.raises(Refused, match=r"There is no sparse autoencoder for demo\. Train one"):
        page.ask("laboratory.features")
    found = page.ask("laboratory.graph")
    assert {"token", "logit"} <= {n["kind"] for n in found["nodes"]}, "neurons need no coder"
    np.testing.assert_array_less([n["position"] for n in found["nodes"]], len(found["tokens"]))
