"""Conversations, two readings of one text, and sessions as a page: as a page of the studio asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.studio import demo
from votive.studio.models import Loaded

from .client import Page, Refused, studio
from .demo_session import MLP, begun, ids, plain

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def chatting(tmp_path: Path) -> Iterator[Page]:
    tokenizer = votive.text.train_bpe(["the fox said yes and no"], vocab_size=300, progress=False)
    tokenizer.chat_template = TEMPLATE
    with studio(tmp_path, Loaded("chatty", demo.model(), tokenizer)) as one, Page(one) as page:
        page.ask("session.new", prompt="x", settings={"temperature": 0})
        yield page


def text(state: dict[str, Any]) -> str:
    return "".join(t["text"] for t in state["prompt"])


def test_a_conversation_is_written_in_the_model_s_template(chatting: Page) -> None:
    assert chatting.ask("chat.state") == {"template": True, "messages": []}
    state = chatting.ask("chat.say", text="hello", system="be a fox")
    assert text(state) == "<system>be a fox</system><user>hello</user><assistant>"
    chatting.ask("session.step", n=3)
    messages = chatting.ask("chat.state")["messages"]
    assert [m["role"] for m in messages] == ["system", "user", "assistant"]
    state = chatting.ask("chat.say", text="and then?", system="not taken any more")
    assert text(state).endswith("</assistant><user>and then?</user><assistant>")
    assert "not taken" not in text(state)
    assert messages[-1]["content"] in text(state)


def test_undo_goes_back_in_a_conversation_too(chatting: Page) -> None:
    chatting.ask("chat.say", text="hello")
    chatting.ask("session.step")
    first = chatting.ask("chat.state")["messages"]
    chatting.ask("chat.say", text="again")
    chatting.ask("session.undo")
    assert chatting.ask("chat.state")["messages"] == first


def test_a_model_without_a_template_says_so(page: Page) -> None:
    begun(page)
    assert page.ask("chat.state") == {"template": False, "messages": []}
    with pytest.raises(Refused, match="demo has no chat template: it continues texts"):
        page.ask("chat.say", text="hello")


def test_a_text_is_compared_with_and_without_edits(page: Page) -> None:
    begun(page)
    page.ask("edits.set", edits=[{"at": MLP, "do": "zero"}])
    tokens = ids(page)
    found = page.ask("compare.text")
    from votive import glass

    p = plain(tokens)[0].log_softmax(-1).numpy()
    q = plain(tokens, glass.Edit(MLP, "zero"))[0].log_softmax(-1).numpy()
    np.testing.assert_allclose(found["kl"], (np.exp(q) * (q - p)).sum(-1), rtol=1e-3, atol=1e-5)
    row = tokens[0].tolist()
    for i in range(1, len(row)):
        assert found["a"]["tokens"][i]["p"] == pytest.approx(float(np.exp(q[i - 1, row[i]])), rel=1e-3)
        assert found["b"]["tokens"][i]["p"] == pytest.approx(float(np.exp(p[i - 1, row[i]])), rel=1e-3)
    bits = -sum(np.log2(np.exp(p[i - 1, row[i]])) for i in range(1, len(row)))
    assert found["b"]["bits"] == pytest.approx(bits, rel=1e-3)
    assert found["agree"] == pytest.approx((p.argmax(-1) == q.argmax(-1)).mean())


def test_a_text_is_compared_between_two_models(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    demo.model(seed=5, layers=2).save_pretrained(folder / "other")
    demo.tokenizer().save_pretrained(folder / "other")
    with studio(tmp_path / "s", models=[folder]) as one, Page(one) as page:
        begun(page)
        found = page.ask("compare.text", against="model", model="other")
        assert found["same_tokens"]
        with votive.no_grad():
            logs = demo.model(seed=5, layers=2)(ids(page)).logits[0].log_softmax(-1).numpy()
        row = ids(page)[0].tolist()
        assert found["b"]["tokens"][3]["p"] == pytest.approx(float(np.exp(logs[2, row[3]])), rel=1e-3)
        assert page.ask("model.info")["layers"] == 4, "the session's own model stays"
        with pytest.raises(Refused, match="There is no model 'wolf'"):
            page.ask("compare.text", against="model", model="wolf")


def test_models_with_other_tokens_are_compared_by_bits_per_character(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    tokenizer = votive.text.train_bpe(["abc"], vocab_size=258, progress=False)
    demo.model(layers=1).save_pretrained(folder / "bytes")
    tokenizer.save_pretrained(folder / "bytes")
    with studio(tmp_path / "s", models=[folder]) as one, Page(one) as page:
        begun(page)
        found = page.ask("compare.text", against="model", model="bytes")
        assert not found["same_tokens"]
        assert "kl" not in found
        assert len(found["b"]["tokens"]) > len(found["a"]["tokens"])
        assert found["b"]["bits_per_character"] == pytest.approx(found["b"]["bits"] / found["characters"])


def test_a_session_is_given_as_one_page_that_stands_alone(page: Page) -> None:
    begun(page)
    page.ask("session.step", n=2)
    found = page.ask("share.page")
    html = bytes(found["page"]).decode()
    assert html.startswith("<!doctype html>")
    assert "default-src 'none'" in html
    assert "src=" not in html.split("<body>")[0]
    assert len(found["page"]) == found["bytes"] > 50_000
    assert page.ask("session.state")["nodes"], "the session goes on"
