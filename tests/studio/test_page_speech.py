"""What a model speech_studio, in the studio's page, in a real browser."""

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
def tab(speech_studio: Any, browser: Any) -> Iterator[Any]:
    from .browser import Window

    made = Window(browser, speech_studio.url)
    yield made
    made.close()


@pytest.fixture
def speech(tab: Any) -> Iterator[Any]:
    """The page as it is at first: an example was opened."""
    tab.page.evaluate("sessionStorage.clear(); localStorage.clear()")
    tab.page.goto(tab.url)
    tab.faults.clear()
    named(tab, "Three notes")
    yield tab
    assert tab.faults == []


def named(tab: Any, name: str) -> None:
    reply = "document.querySelector('.speech-name')?.textContent"
    tab.until(f"{reply} === {name!r} && document.querySelector('#speech-trouble').hidden")
    tab.rest()


def opened(tab: Any, data: bytes = FILE, name: str = "talk.wav") -> None:
    tab.page.set_input_files("#speech-file", {"name": name, "mimeType": "audio/wav", "buffer": data})


def words_of(tab: Any) -> list[str]:
    return list(tab.page.locator(".speech-word").all_inner_texts())


def written_out(tab: Any) -> None:
    tab.click("#speech-go")
    tab.until("document.querySelector('#speech-go').textContent === 'Transcribe'")
    tab.rest()


def painted(tab: Any, box: str, canvas: str = "base") -> str:
    tab.rest()
    return str(tab.page.evaluate(f"document.querySelector('{box} .{canvas}').toDataURL()"))


def test_the_page_shows_a_sound_its_text_and_where_each_token_was_heard(speech: Any) -> None:
    assert not speech.page.locator("main").is_visible()
    assert not speech.page.locator("#vision").is_visible()
    tones = painted(speech, "#speech-mel")
    opened(speech)
    named(speech, "talk.wav")
    plain = painted(speech, "#speech-mel")
    assert plain != tones
    assert speech.page.locator("#speech-nothing").is_visible()
    speech.page.evaluate("""() => {
      window.seen = 0;
      new MutationObserver(() => {
        window.seen = Math.max(window.seen, document.querySelectorAll('.speech-token').length);
      }).observe(document.querySelector('#speech-text'), { childList: true });
    }""")
    speech.page.select_option("#speech-language", "en")
    written_out(speech)
    assert speech.page.evaluate("window.seen") > 1
    assert words_of(speech)
    assert f"{len(words_of(speech))} word" in speech.text("#speech-status")
    assert painted(speech, "#speech-mel") != plain  # the words stand below it
    together = painted(speech, "#speech-map")
    speech.page.locator("#speech-layer").focus()
    speech.page.select_option("#speech-layer", "1")
    mean = painted(speech, "#speech-map")
    speech.page.select_option("#speech-head", "0")
    assert len({together, mean, painted(speech, "#speech-map")}) == 3


def test_a_word_that_is_chosen_is_marked_and_played(speech: Any) -> None:
    opened(speech)
    named(speech, "talk.wav")
    written_out(speech)
    before = painted(speech, "#speech-mel", "over")
    rows = painted(speech, "#speech-map", "over")
    speech.page.evaluate("""() => {
      window.played = [];
      const old = AudioBufferSourceNode.prototype.start;
      AudioBufferSourceNode.prototype.start = function (...args) {
        window.played.push(this.buffer.duration);
        return old.apply(this, args);
      };
    }""")
    word = speech.page.locator(".speech-word").first
    word.click()
    speech.rest()
    assert word.get_attribute("aria-selected") == "true"
    assert painted(speech, "#speech-mel", "over") != before
    assert painted(speech, "#speech-map", "over") != rows
    start, end = (float(x.split()[0]) for x in str(word.get_attribute("title")).split(" to "))
    (played,) = speech.page.evaluate("window.played")
    assert played == pytest.approx(max(end - start, 0.1), abs=0.02)
    speech.until("document.querySelector('#speech-play').textContent === 'Play'")
    assert speech.page.locator(".head-field").count() == 4
    assert speech.page.locator(".head-field.ringed").count() == 2
    speech.page.locator(".head-field").nth(2).click()
    speech.rest()
    assert speech.page.locator("#speech-layer").input_value() == "1"
    assert speech.page.locator("#speech-head").input_value() == "0"
    assert speech.page.locator(".head-field").nth(2).get_attribute("aria-selected") == "true"
    # Not aloud where that is not wanted.
    speech.page.uncheck("#speech-aloud")
    word.click()
    speech.rest()
    assert len(speech.page.evaluate("window.played")) == 1


def test_words_and_windows_are_reached_by_keys(speech: Any) -> None:
    opened(speech)
    named(speech, "talk.wav")
    speech.page.locator("body").press("g")
    speech.until("document.querySelectorAll('.speech-word').length > 0")
    speech.rest()
    chosen = """[...document.querySelectorAll('.speech-word')]
      .findIndex(w => w.getAttribute('aria-selected') === 'true')"""
    count = len(words_of(speech))
    for key, at in ((".", 0), (".", min(1, count - 1)), (",", 0), ("Escape", -1)):
        speech.page.locator("body").press(key)
        speech.rest()
        assert speech.page.evaluate(chosen) == at
    speech.page.locator("#speech-mel").focus()
    for _ in range(count):
        speech.page.keyboard.press("ArrowRight")
        speech.rest()
    assert speech.page.evaluate(chosen) == count - 1
    # The last word is said in another window than the first.
    assert speech.page.locator("#speech-after").is_visible()
    last = speech.text("#speech-where")
    speech.page.locator(".speech-word").first.click()
    speech.rest()
    assert speech.text("#speech-where") != last
    speech.page.locator("#speech-map").focus()
    speech.page.keyboard.press("ArrowDown")
    speech.rest()
    assert speech.text(".speech-chosen")
    speech.page.locator("body").press("]")
    speech.rest()
    assert speech.page.locator("#speech-layer").input_value() == "0"
    speech.page.locator("body").press("[")
    speech.rest()
    assert speech.page.locator("#speech-layer").input_value() == ""
    theme = "document.documentElement.dataset.theme"
    light = painted(speech, "#speech-mel")
    speech.page.locator("body").press("t")
    assert speech.page.evaluate(theme) == "dark"
    assert painted(speech, "#speech-mel") != light
    speech.page.locator("body").press("?")
    assert "Transcribe, or stop" in speech.text("#shortcuts")
    assert "Debugger" not in speech.text("#shortcuts")
    speech.page.keyboard.press("Escape")


def test_time_is_zoomed_in_all_pictures_at_once(speech: Any) -> None:
    opened(speech)
    named(speech, "talk.wav")
    written_out(speech)
    before = painted(speech, "#speech-mel"), painted(speech, "#speech-map")
    speech.page.locator("#speech-mel").focus()
    speech.page.keyboard.press("+")
    near = painted(speech, "#speech-mel"), painted(speech, "#speech-map")
    assert near[0] != before[0]
    assert near[1] != before[1]
    speech.page.keyboard.press("0")
    assert (painted(speech, "#speech-mel"), painted(speech, "#speech-map")) == before


def test_what_goes_wrong_is_told_in_the_page(speech: Any) -> None:
    trouble = "#speech-trouble"
    opened(speech, b"no sound", "notes.txt")
    speech.page.locator(trouble).wait_for()
    speech.rest()
    assert "notes.txt is not a sound file that soundfile can read" in speech.text(trouble)
    opened(speech, b"", "empty.wav")
    speech.until(f"document.querySelector('{trouble}').innerText.includes('empty.wav is empty')")
    speech.page.select_option("#speech-example", "glide")
    named(speech, "A rising tone")
    # A file that is dropped is opened; one that is dropped elsewhere does not replace the page.
    speech.page.evaluate(
        """data => {
      const transfer = new DataTransfer();
      const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
      transfer.items.add(new File([bytes], 'dropped.wav'));
      const how = { dataTransfer: transfer, bubbles: true, cancelable: true };
      document.querySelector('header').dispatchEvent(new DragEvent('drop', how));
      document.querySelector('#speech-mel').dispatchEvent(new DragEvent('drop', how));
    }""",
        base64.b64encode(FILE).decode(),
    )
    named(speech, "dropped.wav")
    assert "cannot open dropped.wav" in speech.text("#notices")


def test_a_transcription_is_stopped_in_the_page_and_found_again(speech: Any) -> None:
    opened(speech, written(small.sound(25.0).unsqueeze(0), format="wav"), "long.wav")
    named(speech, "long.wav")
    speech.click("#speech-go")
    speech.until("document.querySelectorAll('[data-start]').length > 30")
    assert speech.text("#speech-go") == "Stop"
    speech.click("#speech-go")
    speech.until("document.querySelector('#speech-go').textContent === 'Transcribe'")
    speech.rest()
    assert "Stopped" in speech.text("#speech-status")
    assert not speech.page.locator("#activity").is_visible()
    words = words_of(speech)
    assert words
    speech.page.reload()
    named(speech, "long.wav")
    assert words_of(speech) == words


def test_a_narrow_window_holds_everything(speech_studio: Any, browser: Any) -> None:
    from .browser import NARROW, Window

    tab = Window(browser, speech_studio.url, size=NARROW)
    named(tab, "Three notes")
    opened(tab)
    named(tab, "talk.wav")
    written_out(tab)
    tab.page.locator(".speech-word").first.click()
    tab.rest()
    wide = tab.page.evaluate("""[...document.querySelectorAll('#speech *')].filter(e =>
      e.getBoundingClientRect().right > innerWidth + 1 && e.offsetParent
      && !e.closest('.said')).map(e => e.outerHTML.slice(0, 90))""")
    assert wide == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert tab.page.locator("#speech-mel").is_visible()
    tab.page.locator("#speech-map").scroll_into_view_if_needed()
    assert tab.page.locator("#speech-mel").bounding_box()["y"] >= 0  # it stays in view
    assert tab.faults == []
    tab.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_has_a_name_and_can_be_read(speech: Any, theme: str) -> None:
    from .test_page_access import NAMELESS, PALE

    speech.page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    opened(speech)
    named(speech, "talk.wav")
    written_out(speech)
    for look in (lambda: None, lambda: speech.page.locator(".speech-word").first.click()):
        look()
        speech.rest()
        assert speech.page.evaluate(NAMELESS) == []
        assert speech.page.evaluate(PALE) == []
    reply = speech.page.locator("#speech").aria_snapshot()
    for part in (
        'region "Text"',
        'listbox "Words"',
        'combobox "Layer"',
        'button "Transcribe"',
        'region "What the model hears"',
        'grid "Heads',
    ):
        assert part in reply, part


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
        assert "load a speech model" in tab.text("#notices")
        tab.click("#model-button")
        tab.page.locator("dialog[open] .file", has_text="ear").click()
        named(tab, "Three notes")
        assert not tab.page.locator("main").is_visible()
        written_out(tab)
        tab.click("#model-button")
        tab.page.locator("dialog[open] .file", has_text="demo").click()
        tab.until("!document.querySelector('#panel-prompt').closest('main').hidden")
        tab.begun()
        assert not tab.page.locator("#speech").is_visible()
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
        tab.page.locator("#speech-trouble").wait_for()
        assert "does not have talk.wav any more" in tab.text("#speech-trouble")
        assert tab.text(".speech-name") == "Three notes"
    tab.close()
