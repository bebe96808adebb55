"""The tutorials of the laboratory about features, probes and steering run as they stand."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[3] / "docs" / "laboratory"
NAMES = ("train_a_sparse_autoencoder", "find_name_and_steer_a_feature", "probe_every_layer", "erase_a_concept")


@pytest.mark.parametrize("name", NAMES)
def test_the_python_blocks_of_a_tutorial_run_in_order(name: str) -> None:
    scope: dict[str, object] = {}
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", (PAGES / f"{name}.md").read_text(), re.S)):
        file = f"<{name}, block {i}>"
        linecache.cache[file] = len(block), None, block.splitlines(keepends=True), file
        exec(compile(block, file, "exec"), scope)


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_tutorial_lead_somewhere(name: str) -> None:
    prose = re.sub(r"```.*?```", "", (PAGES / f"{name}.md").read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose):
        assert "://" in target or (PAGES / target).exists(), target
