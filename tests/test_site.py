"""The documentation site: every page has its place, and the reference knows what the package holds."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS, SITE = ROOT / "docs", ROOT / "docs" / "site"


def _reference() -> Any:
    spec = importlib.util.spec_from_file_location("votive_site_reference", SITE / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_contents_once() -> None:
    listed = []
    for block in re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(), re.S):
        listed += [line for line in block.splitlines() if line and not line.startswith(":")]
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md")} - {"index", "operators"}
    assert sorted(listed) == sorted({*pages, "reference/index"})


def test_the_reference_describes_what_namespaces_hold(tmp_path: Path) -> None:
    reference = _reference()
    reference.write(tmp_path / "reference")
    for module in reference.NAMESPACES:
        text = (tmp_path / "reference" / f"{module}.rst").read_text()
        assert text.count(".. py:") > 2, module
    tensors = (tmp_path / "reference" / "votive.rst").read_text()
    assert ".. py:function:: softmax(" in tensors
    assert ".. py:class:: Tensor(" in tensors
    layers = (tmp_path / "reference" / "votive.nn.rst").read_text()
    assert re.search(r"\.\. py:class:: Linear\(in_features.*\n\n   \S", layers)
    assert ".. code-block:: pycon" in layers


def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton"):
        pytest.importorskip(name, reason="needs votive[docs]")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "dummy", "-c", str(SITE), str(DOCS), str(tmp_path)]
    done = subprocess.run(command, text=True, capture_output=True, check=False, cwd=ROOT)
    assert not done.returncode, done.stderr[-3000:]
