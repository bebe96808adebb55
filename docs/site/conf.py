"""The documentation as a site: `pip install votive[docs]`, then `python -m sphinx -W -c docs/site docs build/site`.

Pages are the Markdown files of docs/ as they are. Pages of the reference are written here before each build, from what
the package holds, into docs/reference/.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import reference

import votive

project, author = "votive", "votive contributors"
version = release = votive.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["site", "studio_assets"]
suppress_warnings = ["myst.header", "misc.highlighting_failure", "ref.python"]

autodoc_typehints = "none"  # signatures have them already
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"votive {release}"
html_copy_source = False
html_static_path: list[str] = []
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./((?:\.\./)*[^)\s]*)\)")
_DOCS = Path(__file__).parents[1]


def _outside(app: Any, docname: str, source: list[str]) -> None:
    """Links to files that are no pages become the names of these files."""

    def named(found: re.Match[str]) -> str:
        text, path = found.group(1), found.group(2).split("#")[0]
        if (_DOCS / Path(docname).parent / ".." / path).resolve().is_relative_to(_DOCS):
            return found.group(0)
        path = path.replace("../", "")
        return text if path in text else f"{text} (`{path}`)"

    source[0] = _OUTSIDE.sub(named, source[0])


def setup(app: Any) -> None:
    """Write the reference, and listen to pages as they are read."""
    reference.write(_DOCS / "reference")
    app.connect("source-read", _outside)
