"""What a model hears, in the studio's page, in a real browser."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.speech import small

from .client import studio
from .sounds import FILE, written


@pytest.fixture(scope="module")
def tab(hears: Any, browser: Any) -> Iterator[Any]:
    from .browser import Window

    made = Window(browser, hears.url)
    yield made
    made.close()


@pytest.fixture
def hearing(tab: Any) -> Iterator[Any]:
    """The page as it is at first: an example was opened."""
    tab.page.evaluate("sessionStorage.clear(); localStorage.clear()")
    tab.page.goto(tab.url)
    tab.faults.clear()
    named(tab, "Three notes")
    yield tab
    assert tab.faults == []


def named(tab: Any, name: str) -> None:
    told = "document.querySelector('.hearing-name')?.textContent"
    tab.until(f"{told} === {name!r} && document.querySelector('#hearing-trouble').hidden")
    tab.rest()


def opened(tab: Any, data: bytes = FILE, name: str = "talk.wav") -> None:
    tab.page.set_input_files("#hearing-file", {"name": name, "mimeType": "audio/wav", "buffer": data})


def words_of(tab: Any) -> list[str]:
    return list(tab.page.locator(".hearing-word").all_inner_texts())


def written_out(tab: Any) -> None:
    tab.click("#hearing-go")
    tab.until("document.querySelector('#hearing-go').textContent === 'Transcribe'")
    tab.rest()


def painted(tab: Any, box: str, canvas: str = "base") -> str:
    tab.rest()
    return str(tab.page.evaluate(f"document.querySelector('{box} .{canvas}').toDataURL()"))


def test_the_page_shows_a_sound_its_text_and_where_each_token_was_heard(hearing: Any) -> None:
    assert not hearing.page.locator("main").is_visible()
    assert not hearing.page.locator("#sight").is_visible()
    tones = painted(hearing, "#hearing-mel")
    opened(hearing)
    named(hearing, "talk.wav")
    plain = painted(hearing, "#hearing-mel")
    assert plain != tones
    assert hearing.page.locator("#hearing-nothing").is_visible()
    hearing.page.evaluate("""() => {
      window.seen = 0;
      new MutationObserver(() => {
        window.seen = Math.max(window.seen, document.querySelectorAll('.hearing-token').length);
      }).observe(document.querySelector('#hearing-text'), { childList: true });
    }""")
    hearing.page.select_option("#hearing-language", "en")
    written_out(hearing)
    assert hearing.page.evaluate("window.seen") > 1
    assert words_of(hearing)
    assert f"{len(words_of(hearing))} word" in hearing.text("#hearing-told")
    assert painted(hearing, "#hearing-mel") != plain  # the words stand below it
    together = painted(hearing, "#hearing-map")
    hearing.page.locator("#hearing-layer").focus()
    hearing.page.select_option("#hearing-layer", "1")
    mean = painted(hearing, "#hearing-map")
    hearing.page.select_option("#hearing-head", "0")
    assert len({together, mean, painted(hearing, "#hearing-map")}) == 3


def test_a_word_that_is_chosen_is_marked_and_played(hearing: Any) -> None:
    opened(hearing)
    named(hearing, "talk.wav")
    written_out(hearing)
    before = painted(hearing, "#hearing-mel", "over")
    rows = painted(hearing, "#hearing-map", "over")
    hearing.page.evaluate("""() => {
      window.played = [];
      const old = AudioBufferSourceNode.prototype.start;
      AudioBufferSourceNode.prototype.start = function (...args) {
        window.played.push(this.buffer.duration);
        return old.apply(this, args);
      };
    }""")
    word = hearing.page.locator(".hearing-word").first
    word.click()
    hearing.rest()
    assert word.get_attribute("aria-selected") == "true"
    assert painted(hearing, "#hearing-mel", "over") != before
    assert painted(hearing, "#hearing-map", "over") != rows
    start, end = (float(x.split()[0]) for x in str(word.get_attribute("title")).split(" to "))
    (played,) = hearing.page.evaluate("window.played")
    assert played == pytest.approx(max(end - start, 0.1), abs=0.02)
    hearing.until("document.querySelector('#hearing-play').textContent === 'Play'")
    assert hearing.page.locator(".head-field").count() == 4
    assert hearing.page.locator(".head-field.ringed").count() == 2
    hearing.page.locator(".head-field").nth(2).click()
    hearing.rest()
    assert hearing.page.locator("#hearing-layer").input_value() == "1"
    assert hearing.page.locator("#hearing-head").input_value() == "0"
    assert hearing.page.locator(".head-field").nth(2).get_attribute("aria-selected") == "true"
    # Not aloud where that is not wanted.
    hearing.page.uncheck("#hearing-aloud")
    word.click()
    hearing.rest()
    assert len(hearing.page.evaluate("window.played")) == 1


def test_words_and_windows_are_reached_by_keys(hearing: Any) -> None:
    opened(hearing)
    named(hearing, "talk.wav")
    hearing.page.locator("body").press("g")
    hearing.until("document.querySelectorAll('.hearing-word').length > 0")
    hearing.rest()
    chosen = """[...document.querySelectorAll('.hearing-word')]
      .findIndex(w => w.getAttribute('aria-selected') === 'true')"""
    count = len(words_of(hearing))
    for key, at in ((".", 0), (".", min(1, count - 1)), (",", 0), ("Escape", -1)):
        hearing.page.locator("body").press(key)
        hearing.rest()
        assert hearing.page.evaluate(chosen) == at
    hearing.page.locator("#hearing-mel").focus()
    for _ in range(count):
        hearing.page.keyboard.press("ArrowRight")
        hearing.rest()
    assert hearing.page.evaluate(chosen) == count - 1
    # The last word is said in another window than the first.
    assert hearing.page.locator("#hearing-after").is_visible()
    last = hearing.text("#hearing-where")
    hearing.page.locator(".hearing-word").first.click()
    hearing.rest()
    assert hearing.text("#hearing-where") != last
    hearing.page.locator("#hearing-map").focus()
    hearing.page.keyboard.press("ArrowDown")
    hearing.rest()
    assert hearing.text(".hearing-chosen")
    hearing.page.locator("body").press("]")
    hearing.rest()
    assert hearing.page.locator("#hearing-layer").input_value() == "0"
    hearing.page.locator("body").press("[")
    hearing.rest()
    assert hearing.page.locator("#hearing-layer").input_value() == ""
    theme = "document.documentElement.dataset.theme"
    light = painted(hearing, "#hearing-mel")
    hearing.page.locator("body").press("t")
    assert hearing.page.evaluate(theme) == "dark"
    assert painted(hearing, "#hearing-mel") != light
    hearing.page.locator("body").press("?")
    assert "Transcribe, or stop" in hearing.text("#shortcuts")
    assert "Debugger" not in hearing.text("#shortcuts")
    hearing.page.keyboard.press("Escape")


def test_time_is_zoomed_in_all_pictures_at_once(hearing: Any) -> None:
    opened(hearing)
    named(hearing, "talk.wav")
    written_out(hearing)
    before = painted(hearing, "#hearing-mel"), painted(hearing, "#hearing-map")
    hearing.page.locator("#hearing-mel").focus()
    hearing.page.keyboard.press("+")
    near = painted(hearing, "#hearing-mel"), painted(hearing, "#hearing-map")
    assert near[0] != before[0]
    assert near[1] != before[1]
    hearing.page.keyboard.press("0")
    assert (painted(hearing, "#hearing-mel"), painted(hearing, "#hearing-map")) == before


def test_what_goes_wrong_is_told_in_the_page(hearing: Any) -> None:
    trouble = "#hearing-trouble"
    opened(hearing, b"no sound", "notes.txt")
    hearing.page.locator(trouble).wait_for()
    hearing.rest()
    assert "notes.txt is no sound that soundfile can read" in hearing.text(trouble)
    opened(hearing, b"", "empty.wav")
    hearing.until(f"document.querySelector('{trouble}').innerText.includes('empty.wav is empty')")
    hearing.page.select_option("#hearing-example", "glide")
    named(hearing, "A rising tone")
    # A file that is dropped is opened; one that is dropped elsewhere does not replace the page.
    hearing.page.evaluate(
        """data => {
      const transfer = new DataTransfer();
      const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
      transfer.items.add(new File([bytes], 'dropped.wav'));
      const how = { dataTransfer: transfer, bubbles: true, cancelable: true };
      document.querySelector('header').dispatchEvent(new DragEvent('drop', how));
      document.querySelector('#hearing-mel').dispatchEvent(new DragEvent('drop', how));
    }""",
        base64.b64encode(FILE).decode(),
    )
    named(hearing, "dropped.wav")
    assert "does not take dropped.wav" in hearing.text("#notices")


def test_a_transcription_is_stopped_in_the_page_and_found_again(hearing: Any) -> None:
    opened(hearing, written(small.sound(25.0).unsqueeze(0), format="wav"), "long.wav")
    named(hearing, "long.wav")
    hearing.click("#hearing-go")
    hearing.until("document.querySelectorAll('[data-start]').length > 30")
    assert hearing.text("#hearing-go") == "Stop"
    hearing.click("#hearing-go")
    hearing.until("document.querySelector('#hearing-go').textContent === 'Transcribe'")
    hearing.rest()
    assert "Stopped" in hearing.text("#hearing-told")
    assert not hearing.page.locator("#activity").is_visible()
    words = words_of(hearing)
    assert words
    hearing.page.reload()
    named(hearing, "long.wav")
    assert words_of(hearing) == words


def test_a_narrow_window_holds_everything(hears: Any, browser: Any) -> None:
    from .browser import NARROW, Window

    tab = Window(browser, hears.url, size=NARROW)
    named(tab, "Three notes")
    opened(tab)
    named(tab, "talk.wav")
    written_out(tab)
    tab.page.locator(".hearing-word").first.click()
    tab.rest()
    wide = tab.page.evaluate("""[...document.querySelectorAll('#hearing *')].filter(e =>
      e.getBoundingClientRect().right > innerWidth + 1 && e.offsetParent
      && !e.closest('.said')).map(e => e.outerHTML.slice(0, 90))""")
    assert wide == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.page.locator("#hearing-mel").is_visible()
    tab.page.locator("#hearing-map").scroll_into_view_if_needed()
    assert tab.page.locator("#hearing-mel").bounding_box()["y"] >= 0  # it stays in view
    assert tab.faults == []
    tab.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_has_a_name_and_can_be_read(hearing: Any, theme: str) -> None:
    from .test_page_access import NAMELESS, PALE

    hearing.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    opened(hearing)
    named(hearing, "talk.wav")
    written_out(hearing)
    for look in (lambda: None, lambda: hearing.page.locator(".hearing-word").first.click()):
        look()
        hearing.rest()
        assert hearing.page.evaluate(NAMELESS) == []
        assert hearing.page.evaluate(PALE) == []
    told = hearing.page.locator("#hearing").aria_snapshot()
    for part in (
        'region "Text"',
        'listbox "Words"',
        'combobox "Layer"',
        'button "Transcribe"',
        'region "What the model hears"',
        'grid "Heads',
    ):
        assert part in told, part


def test_models_that_write_and_that_hear_take_turns_in_one_page(whisper: Path, browser: Any, tmp_path: Path) -> None:
    from .browser import Window

    (tmp_path / "ear").symlink_to(whisper)
    with studio(tmp_path) as other:
        tab = Window(browser, other.url).begun()
        drop = """() => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(9)], 'song.wav'));
          document.querySelector('main').dispatchEvent(
            new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }"""
        tab.page.evaluate(drop)
        tab.until("document.querySelector('#notices').innerText.includes('song.wav')")
        assert "load a model that hears" in tab.text("#notices")
        tab.click("#model-button")
        tab.page.locator("dialog[open] .file", has_text="ear").click()
        named(tab, "Three notes")
        assert not tab.page.locator("main").is_visible()
        written_out(tab)
        tab.click("#model-button")
        tab.page.locator("dialog[open] .file", has_text="demo").click()
        tab.until("!document.querySelector('#panel-prompt').closest('main').hidden")
        tab.begun()
        assert not tab.page.locator("#hearing").is_visible()
        assert tab.faults == []
        tab.close()


def test_a_server_that_was_started_anew_says_that_it_lost_the_sound(
    whisper: Path, browser: Any, tmp_path: Path
) -> None:
    from .browser import Window

    with studio(tmp_path, model=str(whisper)) as first:
        tab = Window(browser, first.url)
        named(tab, "Three notes")
        opened(tab)
        named(tab, "talk.wav")
        port, token = first.port, first.token
    with studio(tmp_path, model=str(whisper), port=port, token=token):
        tab.page.locator("#hearing-trouble").wait_for()
        assert "does not have talk.wav any more" in tab.text("#hearing-trouble")
        assert tab.text(".hearing-name") == "Three notes"
    tab.close()
