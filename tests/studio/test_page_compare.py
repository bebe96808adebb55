"""Comparing, conversations and shared pages, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.studio import demo
from votive.studio.models import Loaded

from .browser import Window
from .client import studio
from .test_compare_chat_share import TEMPLATE


def test_two_readings_stand_side_by_side_with_what_differs_marked(window: Window) -> None:
    window.click("#tab-compare")
    window.until("document.querySelector('#compare-words').textContent.startsWith('Both read the text alike')")
    window.click("#tab-debugger")
    window.click('.stack-row[data-address="model.layers.2"]')
    window.rest()
    window.click("#edit-skip")
    window.page.locator(".stack-row .badge").wait_for()
    window.click("#tab-compare")
    window.until("document.querySelector('#compare-words').textContent.includes('They differ most after')")
    assert window.page.locator(".side").count() == 2
    assert window.page.locator(".side-token.differs").count() > 0
    assert window.page.locator(".side h3").all_inner_texts() == ["with the edits", "without the edits"]
    window.page.locator('.side-token[data-at="2"]').first.click()
    window.until("document.querySelector('#compare-detail').textContent.includes('at 2:')")
    window.until("document.querySelector('.token.locked').dataset.at === '2'")


def test_a_session_is_saved_as_a_page_that_opens_without_a_server(window: Window, offline: Any, tmp_path: Path) -> None:
    window.click("#files-button")
    with window.page.expect_download() as told:
        window.click("#share-session")
    path = tmp_path / "session.html"
    told.value.save_as(path)
    offline.goto(path.as_uri())
    offline.locator(".notebook .token").first.wait_for()
    assert offline.locator(".notebook .token").count() == 5
    assert offline.trouble == []


def test_a_model_that_cannot_chat_says_what_to_do(window: Window) -> None:
    window.click("#as-chat")
    window.until("document.querySelector('#view-chat').innerText.includes('has no chat template')")
    assert window.page.locator("#chat-text").is_hidden()
    window.click("#as-text")
    assert window.page.locator("#prompt-text").is_visible()


@pytest.fixture
def chat(browser: Any, tmp_path: Path) -> Iterator[Window]:
    tokenizer = votive.text.train_bpe(["the fox said yes and no"], vocab_size=300, progress=False)
    tokenizer.chat_template = TEMPLATE
    with studio(tmp_path, Loaded("chatty", demo.model(), tokenizer)) as one:
        window = Window(browser, one.url).begun()
        yield window
        assert window.faults == []
        window.close()


def test_a_message_is_answered_and_the_views_look_at_the_conversation(chat: Window) -> None:
    chat.click("#as-chat")
    chat.page.fill("#auto-count", "6")
    chat.page.fill("#chat-text", "hello fox")
    chat.page.keyboard.press("Enter")
    chat.until("document.querySelectorAll('.message').length === 2")
    chat.finished()
    assert chat.text(".message.mine").endswith("hello fox")
    text = chat.page.evaluate("document.querySelector('.timeline').textContent")
    assert "<user>hello" in text.replace("·", " ")
    chat.page.fill("#chat-text", "and?")
    chat.click("#chat-send")
    chat.until("document.querySelectorAll('.message').length === 4")
    chat.finished()
