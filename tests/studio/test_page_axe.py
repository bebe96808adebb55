"""The studio's page as axe-core judges it: names, roles, order and contrast, light and dark, wide and narrow.

axe-core is an npm package that is fetched into a temporary folder, and not shipped; AXE names a file that is there
already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from .browser import NARROW, WIDE, Window

TABS = ("picture", "debugger", "lens", "layers", "compare", "laboratory", "profile", "edits", "explain", "console")
RUN = """async () => {
  const found = await axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] });
  return found.violations.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 110)).join(' | ')}`);
}"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    given = os.environ.get("AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("axe-core is fetched by npm, which is not installed; AXE may name its axe.min.js")
    folder = tmp_path_factory.mktemp("axe")
    try:
        done = subprocess.run(
            [npm, "pack", "axe-core@4", "--silent"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("axe-core could not be fetched: the registry does not answer")
    packed = list(folder.glob("axe-core-*.tgz"))
    if done.returncode or not packed:
        pytest.skip(f"axe-core could not be fetched: {done.stderr.strip()[:120] or 'no network'}")
    with tarfile.open(packed[0]) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


@pytest.mark.parametrize(
    ("size", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light")], ids=["wide", "dark", "narrow"]
)
def test_axe_finds_nothing(browser: Any, the_studio: Any, axe: str, size: dict[str, int], scheme: str) -> None:
    window = Window(browser, the_studio.url, size=size, color_scheme=scheme, bypass_csp=True).begun()
    try:
        window.page.add_script_tag(content=axe)
        found: dict[str, Any] = {}
        for tab in TABS:
            window.page.evaluate(f"""() => {{ const t = document.querySelector('#tab-{tab}');
              document.body.dataset.column = t.closest('.column').id; t.click(); }}""")
            window.rest()
            trouble = window.page.evaluate(RUN)
            if trouble:
                found[tab] = trouble
        window.page.evaluate("document.querySelector('#model-button').click()")
        window.rest()
        if trouble := window.page.evaluate(RUN):
            found["models"] = trouble
        assert found == {}
    finally:
        window.close()
