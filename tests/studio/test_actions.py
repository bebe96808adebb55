"""Each action answers what the glass engine says, and its Python line does the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import glass, studio

from .client import Page, Refused
from .demo_session import MLP, MODEL, PROMPT, TOKENIZER, begun, ids, plain


def test_the_model_is_described(page: Page) -> None:
    info = page.ask("model.info")
    assert (info["name"], info["family"], info["layers"], info["heads"]) == ("demo", "qwen3", 4, 4)
    assert info["parts"]["layers"][1] == "model.layers.1"
    assert info["parts"]["head"] == "lm_head"
    assert {"address": MLP, "class": "GatedMLP"} in info["tree"]
    assert info["parameters"] == MODEL.num_parameters()
    assert page.ask("model.list")["models"][0]["current"]


def test_before_a_session_there_is_an_empty_state_and_clear_errors(page: Page) -> None:
    assert page.ask("session.state")["nodes"] == []
    assert page.ask("edits.list") == {"edits": [], "receipts": []}
    with pytest.raises(Refused, match="Missing: There is no session"):
        page.ask("session.step")
    with pytest.raises(Refused, match="Missing: Nothing is being debugged"):
        page.ask("debug.step")


def test_a_session_steps_as_the_glass_session_does(page: Page) -> None:
    mine = glass.Session(MODEL, TOKENIZER, PROMPT, seed=3, do_sample=True, temperature=0.8)
    state = begun(page, settings={"temperature": 0.8})
    assert [t["text"] for t in state["prompt"]] == [TOKENIZER.decode([t]) for t in mine.tokens]
    logs = plain(votive.tensor([mine.tokens])).log_softmax(-1)[0]
    wanted = logs[votive.arange(len(mine.tokens) - 1), votive.tensor(mine.tokens[1:])].exp()
    got = [t["p"] for t in state["prompt"]][1:]
    np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-4)
    state = page.ask("session.step", n=3)
    mine.step(3)
    assert state["text"] == mine.text
    assert state["nodes"][-1]["p"] == pytest.approx(np.exp(mine.node.logprob))
    assert state["nodes"][-1]["entropy"] == pytest.approx(mine.entropy)
    assert (state["undo"], state["redo"]) == (3, 0)
    page.ask("session.auto", max_new_tokens=4)
    mine.step(4)
    reply = [d["node"]["token"] for name, d in page.events if name == "token"]
    assert reply == mine.tokens[-4:]
    assert page.ask("session.undo", n=2)["text"] == mine.undo(2).text
    assert page.ask("session.redo")["text"] == mine.redo().text
    assert page.ask("session.choose", token=5)["text"] == mine.choose(5).text
    assert page.ask("session.choose", text=" the bear")["text"] == mine.choose(" the bear").text
    assert page.ask("session.choose", node=1, token=9)["current"] == page.ask("session.state")["current"]
    mine.jump(1)
    mine.choose(9)
    mine.jump(2)
    assert page.ask("session.jump", node=2)["text"] == mine.text
    page.ask("session.branch")
    mine.branch()
    assert page.ask("session.step", n=2)["text"] == mine.step(2).text
    page.ask("session.settings", temperature=0.3, top_k=4, seed=11)
    mine.set_sampler(temperature=0.3, top_k=4)
    mine.set_seed(11)
    assert page.ask("session.step", n=3)["text"] == mine.step(3).text
    top = page.ask("session.top", k=5)
    assert [c["id"] for c in top["before"]] == [i for i, _ in mine.top(5)]
    wanted = [(i, p) for i, p in mine.top(5, processed=True) if p]
    assert [(c["id"], pytest.approx(c["p"])) for c in top["after"]] == wanted
    a, b = mine.roots[0].children[0].id, mine.node.id
    assert page.ask("session.diff", a=a, b=b)["kl_ab"] == pytest.approx(mine.diff(a, b).kl_ab)
    assert page.ask("session.prompt", text="The king")["text"] == "The king"


def test_temperature_zero_takes_the_best_token(page: Page) -> None:
    state = begun(page, settings={"temperature": 0})
    assert state["settings"]["do_sample"] is False
    best = page.ask("session.top", k=1)["before"][0]["id"]
    assert page.ask("session.step")["nodes"][-1]["token"] == best
    page.ask("session.settings", temperature=1.5)
    assert page.ask("session.state")["settings"]["do_sample"] is True


def test_settings_that_a_state_tells_begin_an_equal_session(page: Page) -> None:
    begun(page, settings={"temperature": 0.7, "top_p": 0.9, "min_p": 0.05})
    first = page.ask("session.step", n=4)
    settings = {k: v for k, v in first["settings"].items() if v is not None}
    begun(page, settings=settings)
    assert page.ask("session.step", n=4)["text"] == first["text"]


def test_every_console_line_runs_and_leads_to_the_same_session(page: Page) -> None:
    begun(page, settings={"temperature": 0.9})
    page.ask("session.step", n=2)
    page.ask("edits.set", edits=[{"at": MLP, "do": "scale", "value": 3}])
    page.ask("session.step")
    page.ask("edits.swap", at="model.layers.2", **{"with": "model.layers.0"})
    page.ask("session.auto", max_new_tokens=2)
    page.ask("session.undo")
    page.ask("edits.swap", at="model.layers.3", **{"with": "identity"})
    page.ask("session.branch")
    page.ask("session.settings", seed=5, top_k=30)
    page.ask("session.step", n=2)
    for ask in ("lens.grid", "layers.statistics", "attention.heads", "quantization.error"):
        page.ask(ask)
    page.ask("value.window", address=MLP)
    page.ask("value.statistics", address=MLP)
    page.ask("attention.layer", layer=0, heads=[1])
    page.ask("explain.op", name="silu")
    page.ask("debug.start")
    page.ask("debug.run", until=MLP)
    page.ask("debug.over")
    page.ask("debug.replace", value=2.0, index=[0, 1])
    page.ask("debug.stop")
    state, lines = page.ask("session.state"), page.ask("console.log")["lines"]
    scope: dict[str, Any] = {
        "votive": votive,
        "glass": glass,
        "studio": studio,
        "model": MODEL,
        "print": lambda *a: None,
        "tokenizer": TOKENIZER,
    }
    with votive.no_grad():
        for line in lines:
            exec(line.replace("votive.explain", "votive.explanation"), scope)
    assert scope["session"].text == state["text"]
    assert [n.id for n in scope["session"].nodes] == [n["id"] for n in state["nodes"]]


def test_the_lens_says_what_the_layers_would(page: Page) -> None:
    begun(page)
    page.ask("session.step", n=2)
    found = page.ask("lens.grid", target=7)
    with votive.no_grad():
        wanted = glass.logit_lens(MODEL, ids(page), target=7, top_k=3)
    assert found["names"] == wanted.names
    assert found["ids"] == wanted.ids[:, 0, :, 0].tolist()
    assert found["rank"] == wanted.rank[:, 0].tolist()
    np.testing.assert_allclose(found["p"], wanted.probabilities[:, 0, :, 0].numpy(), rtol=1e-4)
    np.testing.assert_allclose(found["entropy"], wanted.entropy[:, 0].numpy(), rtol=1e-4)
    assert found["texts"][2][3] == TOKENIZER.decode([found["ids"][2][3]])
    cell = page.ask("lens.cell", layer=2, position=3, k=3)
    assert [c["id"] for c in cell["top"]] == wanted.ids[2, 0, 3].tolist()
    with pytest.raises(Refused, match="IndexError"):
        page.ask("lens.cell", layer=99, position=0)
    with pytest.raises(Refused, match="no token"):
        page.ask("lens.grid", target=100_000)


def test_attention_is_sent_as_bytes_and_exactly_for_one_row(page: Page) -> None:
    begun(page)
    maps = glass.attention_maps(MODEL, ids(page))
    wanted = maps[1].weights()[0].numpy()
    heads = page.ask("attention.layer", layer=1, heads=[0, 3])
    assert heads["weights"].dtype == np.uint8
    np.testing.assert_allclose(heads["weights"] / 255, wanted[[0, 3]], atol=0.51 / 255)
    mean = page.ask("attention.layer", layer=1, mean=True)
    np.testing.assert_allclose(mean["weights"][0] / 255, wanted.mean(0), atol=0.51 / 255)
    row = page.ask("attention.row", layer=1, head=2, query=4)
    np.testing.assert_allclose(row["weights"], wanted[2, 4], rtol=1e-5, atol=1e-8)
    scores = page.ask("attention.heads")
    np.testing.assert_allclose(scores["entropy"], maps.entropy().numpy(), rtol=1e-4)
    np.testing.assert_allclose(scores["previous"], maps.score("previous").numpy(), rtol=1e-4)
    for wrong in ({"layer": 9}, {"layer": 0, "heads": [9]}):
        with pytest.raises(Refused, match="there is no"):
            page.ask("attention.layer", **wrong)


def test_values_are_sent_exactly_in_windows_and_as_bytes_in_overviews(page: Page) -> None:
    begun(page)
    with glass.capture(MODEL, MLP) as seen:
        plain(ids(page))
    wanted = seen[MLP][0].detach().numpy()
    found = page.ask("value.window", address=MLP, rows=[1, 4], cols=[10, 30])
    np.testing.assert_allclose(found["values"], wanted[1:4, 10:30], rtol=1e-5)
    assert (found["total"], found["rows"], found["exact"]) == ([*wanted.shape], [1, 4], True)
    coarse = page.ask("value.window", address=MLP, reduce="mean")
    assert coarse["values"].dtype == np.uint8
    step = (coarse["max"] - coarse["min"]) / 255
    back = coarse["values"] * step + coarse["min"]
    np.testing.assert_allclose(back, wanted, atol=0.51 * step)
    reply = page.ask("value.statistics", address=MLP)
    assert reply["mean"] == pytest.approx(wanted.mean(), rel=1e-3)
    assert sum(reply["histogram"]) == wanted.size
    assert page.ask("value.window", address=f"{MLP}:in")["shape"] == [1, len(wanted), 64]
    with pytest.raises(Refused, match="NoMatch"):
        page.ask("value.window", address="layers.77")
    with pytest.raises(Refused, match="name one"):
        page.ask("value.window", address="layers.*")


def test_layers_are_measured_by_part(page: Page) -> None:
    begun(page)
    rows = page.ask("layers.statistics")["rows"]
    assert [(r["layer"], r["part"]) for r in rows][:3] == [(0, "attention"), (0, "mlp"), (0, "residual")]
    with glass.capture(MODEL, MLP) as seen:
        plain(ids(page))
    row = next(r for r in rows if r["address"] == MLP)
    assert row["norm"] == pytest.approx(float(seen[MLP].norm(dim=-1).mean()), rel=1e-4)


def test_the_debugger_stops_steps_changes_and_goes_back(page: Page) -> None:
    begun(page, settings={"temperature": 0})
    tokens = ids(page)
    page.ask("debug.break", at=MLP)
    where = page.ask("debug.start")
    assert (where["address"], where["phase"], where["active"]) == ("", "enter", True)
    where = page.ask("debug.run")
    assert (where["address"], where["phase"]) == (MLP, "enter")
    assert where["breakpoints"] == [{"at": MLP, "hits": 1}]
    assert where["stack"][-2:] == ["model.layers.1", MLP]
    with glass.capture(MODEL, f"{MLP}:in") as seen:
        plain(tokens)
    value = page.ask("debug.value")
    np.testing.assert_allclose(value["values"], seen[f"{MLP}:in"][0].numpy(), rtol=1e-5)
    assert page.ask("debug.step")["stack"][-1].startswith(f"{MLP}.")
    page.ask("debug.out")
    where = page.ask("debug.replace", value=2.5, index=[3, 7])
    assert (where["address"], where["phase"], where["changes"]) == (MLP, "leave", 1)
    assert page.ask("debug.value")["values"][3, 7] == 2.5
    index = where["index"]
    end = page.ask("debug.run")
    assert end["ended"]
    edit = glass.Edit(MLP, "replace", 2.5, positions=[3], features=[7])
    wanted = plain(tokens, edit)[0, -1].softmax(-1).topk(10)
    np.testing.assert_allclose([c["p"] for c in end["top"]], wanted[0].numpy(), rtol=1e-3)
    assert end["top"] != end["before"]
    # The session's own work is not disturbed by a run that waits.
    page.ask("debug.jump", index=index)
    assert page.ask("session.step")["nodes"][-1]["token"] == int(plain(tokens)[0, -1].argmax())
    where = page.ask("debug.back", n=2)
    assert where["index"] == index - 2
    page.ask("debug.run", until="model.layers.3")
    page.ask("debug.skip")
    end = page.ask("debug.run")
    with votive.no_grad(), glass.patch(MODEL, [glass.Edit("model.layers.3", "swap", "identity")]):
        skipped = MODEL(tokens).logits[0, -1].softmax(-1).max()
    assert end["top"][0]["p"] == pytest.approx(float(skipped), rel=1e-3)
    page.ask("debug.break", at=MLP, on=False)
    assert page.ask("debug.stop") == {"active": False, "ended": True, "breakpoints": []}


def test_the_debugger_sees_the_edits_of_the_session(page: Page) -> None:
    begun(page)
    page.ask("edits.set", edits=[{"at": MLP, "do": "zero"}])
    page.ask("debug.start")
    page.ask("debug.run", until=MLP)
    page.ask("debug.over")
    assert not np.any(page.ask("debug.value")["values"])
    end = page.ask("debug.run")
    assert end["top"][0]["id"] == page.ask("session.top", k=1)["before"][0]["id"]
    for wrong in ({}, {"value": 1, "zero": True}, {"value": 1, "index": [0, 999]}):
        page.ask("debug.jump", index=20)
        with pytest.raises(Refused):
            page.ask("debug.replace", **wrong)
    with pytest.raises(Refused, match="NoMatch"):
        page.ask("debug.break", at="layers.77")


def test_a_profile_counts_every_call(page: Page) -> None:
    begun(page)
    found = page.ask("profile.run", repeat=1)
    rows = {r["address"]: r for r in found["rows"]}
    assert rows[MLP]["calls"] == 1
    assert 0 < rows[MLP]["seconds"] <= found["seconds"]
    assert rows[MLP]["bytes"] > 0
    more = page.ask("profile.run", repeat=1, ops=True)["rows"]
    assert any("/attention#0" in r["address"] for r in more)


def test_operators_are_explained_by_name_and_address(page: Page) -> None:
    found = page.ask("explain.op", name="model.layers.0.mlp/silu#0")
    titles = [p["title"] for p in found["parts"]]
    assert titles[0] == "Schema"
    assert any(t.startswith("Gradient") for t in titles)
    assert any("C++" in t for t in titles)
    assert page.ask("explain.op", name="attention")["parts"][0]["code"].startswith("_attention")
    with pytest.raises(Refused, match="no operator"):
        page.ask("explain.op", name="frobnicate")
    assert "gelu" in page.ask("explain.names")["names"]


def test_a_session_is_saved_opened_and_told_as_a_program(page: Page) -> None:
    begun(page, settings={"temperature": 0.8})
    page.ask("session.step", n=2)
    page.ask("session.branch", node=1)
    page.ask("session.settings", seed=77)
    page.ask("edits.set", edits=[{"at": MLP, "do": "scale", "value": 0.5}])
    state = page.ask("session.step", n=2)
    page.ask("session.save", name="tale-1")
    assert page.ask("session.files")["files"][0]["name"] == "tale-1"  # the newest
    scope: dict[str, Any] = {}
    text = page.ask("session.script")["text"]
    exec(compile(text.replace("print(session.text)", ""), "script", "exec"), scope)
    assert scope["session"].text == state["text"]
    begun(page)
    again = page.ask("session.open", name="tale-1")
    assert {k: again[k] for k in ("nodes", "text", "current", "seed")} == {
        k: state[k] for k in ("nodes", "text", "current", "seed")
    }
    assert page.ask("session.step")["text"].startswith(state["text"])
    with pytest.raises(Refused, match="FileNotFoundError"):
        page.ask("session.open", name="tale-2")


def test_an_empty_prompt_begins_where_a_text_ended_and_a_long_one_is_refused(page: Page) -> None:
    assert page.ask("session.new", prompt="")["prompt"][0]["text"] == "<|endoftext|>"
    with pytest.raises(Refused, match="2,048"):
        page.ask("session.new", prompt="fox " * 3000)
    assert page.ask("session.state")["text"] == "<|endoftext|>"
