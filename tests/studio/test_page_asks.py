"""What the page asks the server for beside the session itself: tokens, previews, a tree again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from votive.studio import demo
from votive.studio.models import Loaded

from .client import Page, Refused, studio

PROMPT = "Once upon a time there was a fox"


def test_a_text_is_told_in_tokens_for_a_target(page: Page) -> None:
    page.ask("session.new", prompt=PROMPT)
    found = page.ask("session.tokenise", text=" fox")
    assert found["ids"] == demo.tokenizer()(" fox", add_special_tokens=False).input_ids
    assert "".join(found["texts"]) == " fox"
    grid = page.ask("lens.grid", target=found["ids"][0])
    assert len(grid["rank"]) == 5
    with pytest.raises(Refused, match="1 to 1,000 elements"):
        page.ask("session.tokenise", text="")


def test_settings_are_previewed_without_a_move(page: Page) -> None:
    before = page.ask("session.new", prompt=PROMPT, settings={"temperature": 1.0})
    seen = page.ask("session.top", k=5, settings={"temperature": 0.2})
    assert page.ask("session.state")["undo"] == before["undo"] == 0
    after = page.ask("session.settings", temperature=0.2)
    assert after["undo"] == 1
    assert page.ask("session.top", k=5)["after"] == seen["after"]
    assert seen["sampled"] is True
    assert page.ask("session.top", settings={"temperature": 0})["sampled"] is False
    with pytest.raises(Refused, match="must be from 0 to 1"):
        page.ask("session.top", settings={"top_p": 3})


def test_the_server_says_what_it_is_doing(page: Page) -> None:
    page.ask("session.new", prompt=PROMPT)
    page.events.clear()
    id = page.send("lens.grid")
    reply = page.event("busy")
    page.wait(id)
    assert reply == {"job": "lens.grid", "id": id, "text": "running the logit lens"}


def test_who_waits_for_another_tab_is_told_so(the_studio: Any, page: Page) -> None:
    page.ask("session.new", prompt=PROMPT)
    with Page(the_studio) as other:
        other.ask("session.new", prompt=PROMPT)
        other.events.clear()
        long = other.send("session.step", {"n": 300})
        other.event("busy")
        page.events.clear()
        id = page.send("attention.heads")
        texts = [page.event("busy")["text"]]
        while "attention" not in texts[-1]:
            texts.append(page.event("busy")["text"])
        page.wait(id)
        other.wait(long)
    assert "another tab" in texts[0]


def test_a_tree_is_written_again_with_all_its_branches(page: Page) -> None:
    page.ask("session.new", prompt=PROMPT, seed=4)
    page.ask("session.step", n=3)
    page.ask("session.choose", node=1, token=7)
    page.ask("session.prompt", text="The king")
    was = page.ask("session.step", n=2)
    numbers = {n["id"]: i for i, n in enumerate(was["nodes"])}
    nodes = [
        {"text": n["text"]} if n["parent"] is None else {"parent": numbers[n["parent"]], "token": n["token"]}
        for n in was["nodes"]
    ]
    now = page.ask(
        "session.rebuild", nodes=nodes, current=numbers[was["current"]], seed=4, settings={"temperature": 0.5}
    )
    assert [(n["parent"], n["token"], n["text"]) for n in now["nodes"]] == [
        (n["parent"], n["token"], n["text"]) for n in was["nodes"]
    ]
    assert (now["text"], now["seed"]) == (was["text"], 4)
    assert now["settings"]["temperature"] == 0.5
    assert now["numbers"][numbers[was["current"]]] == now["current"]


@pytest.mark.parametrize("bad", [{"token": 3}, {"parent": 5, "token": 3}, {"parent": 0}, {}])
def test_a_tree_that_is_none_is_refused_and_the_session_stays(page: Page, bad: Any) -> None:
    page.ask("session.new", prompt=PROMPT)
    with pytest.raises(Refused, match=r"node 1"):
        page.ask("session.rebuild", nodes=[{"text": "The"}, bad], current=0)
    with pytest.raises(Refused, match="there is no token 9999"):
        page.ask("session.rebuild", nodes=[{"text": "The"}, {"parent": 0, "token": 9999}], current=0)
    assert page.ask("session.state")["text"] == PROMPT


def test_a_lens_that_grows_with_the_text_is_that_of_the_whole_text(page: Page) -> None:
    begun = page.ask("session.new", prompt=PROMPT, seed=1)
    page.ask("lens.grid", target=7)
    page.ask("session.step", n=3)
    grown = page.ask("lens.grid", target=7)
    page.ask("session.new", prompt=PROMPT, seed=1)
    page.ask("session.step", n=3)
    whole = page.ask("lens.grid", target=7)
    count = len(begun["prompt"]) + 3
    assert len(grown["tokens"]) == count
    assert grown["texts"] == whole["texts"]
    assert grown["rank"] == whole["rank"]
    for name in ("p", "entropy", "kl", "target_p"):
        assert grown[name].shape == (5, count)
        np.testing.assert_allclose(grown[name], whole[name], rtol=1e-4, atol=1e-5)
    page.ask("edits.set", edits=[{"at": "model.layers.1", "do": "scale", "value": 0.5}])
    edited = page.ask("session.step")
    again = page.ask("lens.grid", target=7)
    assert len(again["tokens"]) == count + 1
    page.ask("edits.set", edits=[])
    page.ask("session.jump", node=edited["current"])
    assert page.ask("lens.grid", target=7)["texts"] == again["texts"]


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A studio on a model that reads 16 tokens."""
    model = demo.model()
    model.config = dataclasses.replace(model.config, max_position_embeddings=16)
    given = Loaded("short", model, demo.tokenizer())
    with studio(tmp_path_factory.mktemp("short"), given) as one:
        yield one


def test_writing_ends_where_the_context_of_the_model_does(short: Any) -> None:
    with Page(short) as page:
        begun = page.ask("session.new", prompt="Once upon a time")
        reply = page.ask("session.auto", max_new_tokens=2)
        assert (reply["made"], reply["ended"]) == (2, "count")
        reply = page.ask("session.auto", max_new_tokens=500)
        assert reply["ended"] == "context"
        assert len(begun["prompt"]) + len(reply["nodes"]) - 1 == 16
        for do, args in (
            ("session.step", {}),
            ("session.auto", {}),
            ("session.choose", {"token": 1}),
            ("session.choose", {"text": " fox"}),
        ):
            with pytest.raises(Refused, match=r"context length is 16\. Undo"):
                page.ask(do, **args)
        page.ask("session.undo")
        assert page.ask("session.step")["text"] == reply["text"]
