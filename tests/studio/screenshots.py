"""Pictures of every view of the studio at two widths: `python -m tests.studio.screenshots FOLDER`.

Made with the bundled model in a real browser; with `--whisper MODEL` those of what a model hears,
which need one with real weights. Knows the page by its ids.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from votive.studio.server import Studio

from .browser import NARROW, WIDE, Window, chromium

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "studio"
WIDTHS = {"wide": WIDE, "narrow": NARROW}
LAYER = "model.layers.4"
SPEECH = Path(__file__).parents[1] / "speech" / "data" / "jfk.flac"


def go(window: Window, column: str, tab: str | None = None) -> None:
    """Show a column, where columns are pages, and a tab in it."""
    if column_is_page(window):
        window.click(f'#bottom [data-column="{column}"]')
    if tab is not None:
        window.click(f"#tab-{tab}")
    window.page.evaluate("""document.querySelectorAll('.column, .pane, main')
      .forEach(e => { e.scrollTop = 0; })""")
    window.rest()


def column_is_page(window: Window) -> bool:
    return bool(window.page.locator("#bottom").is_visible())


def begin(window: Window) -> None:
    """A text with three branches, and a token that is locked."""
    window.begun()
    if window.page.locator("#recover-later").is_visible():  # of a window before
        window.click("#recover-later")
    go(window, "left")
    if window.page.locator("#auto-count").input_value() != "22":
        window.page.fill("#auto-count", "22")
    window.click("#generate")
    window.finished()
    window.page.locator('.token[data-at="9"]').click()
    window.click("#branch")
    window.rest()
    window.page.fill("#auto-count", "12")
    window.click("#generate")
    window.finished()
    window.page.locator('.token[data-at="11"]').click()
    window.rest()
    window.click(".bar-row >> nth=2")
    window.rest()
    window.page.fill("#auto-count", "16")
    window.click("#generate")
    window.finished()
    window.page.locator('.token[data-at="13"]').click()
    window.rest()


def text(window: Window) -> None:
    go(window, "left")


def picture(window: Window) -> None:
    go(window, "centre", "picture")
    window.page.locator(".flow").wait_for()
    window.rest()


def picture_head(window: Window) -> None:
    go(window, "centre", "picture")
    window.page.locator('.flow-layer[data-layer="4"] .flow-box').first.click(position={"x": 4, "y": 4})
    window.page.locator('.inside-head[data-head="2"]').click()
    window.page.locator(".arithmetic").wait_for()
    window.rest()


def next_token(window: Window) -> None:
    go(window, "left")
    window.page.locator("#panel-topk").scroll_into_view_if_needed()


def branches(window: Window) -> None:
    go(window, "left")
    window.click("#compare")
    window.page.locator(".diff-side").first.wait_for()
    window.page.locator(".diff").scroll_into_view_if_needed()
    window.rest()


def debugger(window: Window) -> None:
    go(window, "centre", "debugger")
    window.step_into(LAYER)
    window.click("#debug-start")
    window.until("document.querySelector('#debug-where').innerText.includes('event 0')")
    window.click("#debug-run")
    window.until(f"document.querySelector('#debug-where').innerText.includes('{LAYER}')")
    window.rest()


def stopped(window: Window) -> None:
    window.page.fill("#edit-value", "0.5")
    window.click("#stop-scale")
    window.rest()
    window.click("#debug-run")
    window.until("document.querySelector('#debug-where').innerText.includes('has ended')")
    window.rest()


def value(window: Window) -> None:
    go(window, "centre", "debugger")
    if window.page.locator("#debug-stop").is_enabled():
        window.click("#debug-stop")
        window.until("document.querySelector('#debug-stop').disabled")
    window.click(f'.stack-row[data-address="{LAYER}"]')
    window.rest()
    window.page.locator("#value-heat").focus()
    for _ in range(5):
        window.page.keyboard.press("ArrowDown")
    for _ in range(9):
        window.page.keyboard.press("ArrowRight")
    window.page.keyboard.press("Enter")
    if column_is_page(window):
        window.page.locator("#panel-value").evaluate("e => e.scrollIntoView()")
    window.rest()


def lens(window: Window) -> None:
    if window.page.locator(".diff button").count():
        go(window, "left")
        window.click(".diff button")
    go(window, "centre", "lens")


def lens_target(window: Window) -> None:
    go(window, "centre", "lens")
    window.page.fill("#lens-target", "king")
    window.page.keyboard.press("Enter")
    window.rest()
    window.page.select_option("#lens-shade", "rank")
    window.rest()


def lab(name: str) -> Callable[[Window], None]:
    """A view of the laboratory, on what is written."""

    def shown(window: Window) -> None:
        go(window, "centre", "laboratory")
        window.click(f"#lab-{name}")
        if name == "features":
            window.until("document.querySelectorAll('.feature-row').length > 3")
            window.page.locator(".feature-row").nth(1).click()
            window.until("document.querySelector('#feature-steer')")
            window.click("#feature-steer")
        elif name == "graph":
            window.click("#graph-run")
            window.until("document.querySelectorAll('.graph-node').length > 10")
        else:
            window.page.fill("#sweep-word", "king")
            window.click("#sweep-run")
            window.until("document.querySelector('#lab-view-sweep').dataset.sweep")
        window.rest()

    return shown


def statistics(window: Window) -> None:
    go(window, "centre", "layers")


def profile(window: Window) -> None:
    go(window, "centre", "profile")
    window.click("#profile-run")
    window.until("document.querySelector('#profile-run').textContent === 'Measure'")
    window.rest()


def wide_attention(window: Window) -> None:
    attention("matrix")(window)
    window.click("#widen")
    window.rest()


def attention(kind: str) -> Callable[[Window], None]:
    def shown(window: Window) -> None:
        go(window, "right", "attention")
        window.click(f"#attention-{kind}")
        window.rest()

    return shown


def edits(window: Window) -> None:
    go(window, "centre", "debugger")
    window.page.locator("body").press("Escape")  # what follows the whole text is shown
    row = window.page.locator(f'.stack-row[data-address="{LAYER}"]')
    if row.get_attribute("aria-expanded") == "false":
        row.locator(".fold").click()
    for address, button in ((f"{LAYER}.mlp", "#edit-zero"), ("model.layers.6", "#edit-swap")):
        window.click(f'.stack-row[data-address="{address}"]')
        window.rest()
        window.page.select_option("#edit-where", "all")
        if button == "#edit-swap":
            window.page.select_option("#swap-with", "model.layers.5")
        window.click(button)
        window.rest()
    go(window, "right", "edits")


def explain(window: Window) -> None:
    go(window, "right", "explain")
    window.page.fill("#explain-name", "silu")
    window.page.keyboard.press("Enter")
    window.until("document.querySelector('.explained h3')?.textContent.startsWith('silu')")
    window.rest()


def console(window: Window) -> None:
    go(window, "right", "console")


def saved(window: Window) -> None:
    dialog("#files-button")(window)
    window.page.fill("#save-name", "the-kings-daughter")
    window.click("#save-session")
    window.page.locator(".file").first.wait_for()


def dialog(button: str) -> Callable[[Window], None]:
    def shown(window: Window) -> None:
        window.click(button)
        window.page.wait_for_timeout(200)
        window.rest()

    return shown


def tour(window: Window) -> None:
    go(window, "left")
    window.click("#help")
    window.click("#tour-again")
    window.click("#tour-next")
    window.rest()


def recover(window: Window) -> None:
    """The offer of a session that was kept, as a page sees it that comes after a crash."""
    if window.page.locator("#tour-skip").is_visible():
        window.click("#tour-skip")
    window.page.evaluate("""async () => (await import('/static/js/page.js'))
      .model.trigger('event:hello', { workspace: sessionStorage.getItem('votive-workspace'), autosaved: [{
        name: '20000101-000000-00000000', bytes: 21_400, tokens: 84, model: '',
        modified: new Date(Date.now() - 300_000).toISOString(),
        text: 'Once upon a time there was a king who had three sons, and the youngest' }] })""")
    window.page.locator("#recover-go").wait_for()
    window.rest()


def away(window: Window) -> None:
    if window.page.locator("#recover-later").is_visible():
        window.click("#recover-later")
    if window.page.locator("#tour-skip").is_visible():
        window.click("#tour-skip")
    window.page.evaluate("""async () => (await import('/static/js/page.js'))
      .model.set('link', { status: 'refused', detail: {} })""")


def speech_loaded(window: Window) -> None:
    """A sound that was transcribed."""
    window.page.locator(".speech-name").wait_for()
    window.rest()
    window.page.set_input_files("#speech-file", str(SPEECH))
    window.until(f"document.querySelector('.speech-name').textContent === '{SPEECH.name}'")
    window.rest()
    window.click("#speech-go")
    window.until("document.querySelectorAll('.speech-word').length > 0")
    window.rest()


def speech(window: Window) -> None:
    """A word with several tokens, as the alignment heads heard it."""
    window.page.uncheck("#speech-aloud")
    window.page.locator(".speech-word").nth(4).click()
    window.rest()


def speech_head(window: Window) -> None:
    """The same word in one head, and nearer."""
    window.page.select_option("#speech-layer", "4")
    window.rest()
    window.page.select_option("#speech-head", "2")
    window.rest()
    window.page.locator("#speech-mel").focus()
    for _ in range(3):
        window.page.keyboard.press("+")
    window.page.locator("#speech-mel").blur()
    if window.page.viewport_size == NARROW:
        window.page.locator(".speech-map-panel").evaluate("e => e.scrollIntoView()")
    window.rest()


SPEECH: dict[str, Callable[[Window], None]] = {"speech": speech, "speech-head": speech_head}


# In the order in which they are made; a dialog is closed after its picture.
SCENES: dict[str, Callable[[Window], None]] = {
    "picture": picture,
    "picture-head": picture_head,
    "text": text,
    "next": next_token,
    "branches": branches,
    "debugger": debugger,
    "changed": stopped,
    "value": value,
    "lens": lens,
    "lens-target": lens_target,
    "lab-features": lab("features"),
    "lab-graph": lab("graph"),
    "lab-sweep": lab("sweep"),
    "statistics": statistics,
    "profile": profile,
    "attention-links": attention("links"),
    "attention-matrix": attention("matrix"),
    "attention-heads": attention("heads"),
    "attention-all": attention("all"),
    "attention-large": wide_attention,
    "edits": edits,
    "explain": explain,
    "console": console,
    "sessions": saved,
    "keys": dialog("#help"),
    "tour": tour,
    "recover": recover,
    "away": away,
}
DARK = ("text", "debugger", "lens", "edits", "speech")
# The same at 1280 pixels, where these stand beside each other.
ONLY_NARROW, ONLY_WIDE = ("next",), ("attention-large",)


def compressed(png: bytes) -> bytes:
    """A picture as WebP without loss."""
    from PIL import Image

    out = io.BytesIO()
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.save(out, "webp", lossless=True, quality=70, method=3)
    return out.getvalue()


def shoot(
    browser: Any,
    url: str,
    folder: Path,
    *,
    width: str,
    dark: bool,
    only: list[str],
    png: bool,
    first: Callable[[Window], None] = begin,
    scenes: dict[str, Callable[[Window], None]] = SCENES,
) -> None:
    window = Window(browser, url, size=WIDTHS[width], color_scheme="dark" if dark else "light")
    try:
        first(window)
        for name, scene in scenes.items():
            if name in (ONLY_NARROW if width == "wide" else ONLY_WIDE):
                continue
            scene(window)
            wanted = name in only if only else not dark or name in DARK
            if wanted:
                window.page.mouse.move(1, 1)
                window.quiet()
                made = window.page.screenshot()
                stem = f"{name}-{width}{'-dark' if dark else ''}"
                path = folder / f"{stem}.{'png' if png else 'webp'}"
                path.write_bytes(made if png else compressed(made))
                print(path.name, len(path.read_bytes()) // 1024, "KiB", flush=True)
            if window.page.evaluate("document.body.dataset.wide") == "right":
                window.click("#widen")
            if window.page.locator("dialog[open]").count():
                window.page.keyboard.press("Escape")
        assert window.faults == [], window.faults
    finally:
        window.close()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="*", default=[], choices=[*SCENES, *SPEECH])
    parser.add_argument("--width", nargs="*", default=[*WIDTHS], choices=[*WIDTHS])
    parser.add_argument("--theme", nargs="*", default=["light", "dark"])
    parser.add_argument("--whisper", metavar="MODEL", help="show what this model hears instead")
    parser.add_argument("--png", action="store_true", help="png instead of webp")
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    what = {"first": speech_loaded, "scenes": SPEECH} if given.whisper else {}
    with (
        tempfile.TemporaryDirectory() as sessions,
        Studio(given.whisper, folder=sessions) as studio,
        chromium() as browser,
    ):
        for theme in given.theme:
            for width in given.width:
                shoot(
                    browser,
                    studio.url,
                    given.folder,
                    width=width,
                    dark=theme == "dark",
                    only=given.only,
                    png=given.png,
                    **what,
                )


if __name__ == "__main__":
    main()
