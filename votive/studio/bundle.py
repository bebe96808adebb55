"""A view of the page with all it imports as one script, for notebooks and saved pages.

The modules are written in one way: imports of names from relative paths, and exports of functions
and classes. That is all that is understood here; anything else is an error.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .app import STATIC

_IMPORT = re.compile(r'^import\s+\{([^}]*)\}\s+from\s+"(\.[^"]+)";\s*$', re.M)
_EXPORT = re.compile(r"^export\s+(async function\*?|function\*?|class)\s+(\w+)", re.M)
_AGAIN = re.compile(r"^export\s+\{([^}]*)\};\s*$", re.M)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.M)


def bundle(*paths: str, root: Path = STATIC / "js") -> str:
    """Modules, and all they import, as a script that defines `modules`, by path.

    >>> from votive.studio.bundle import bundle
    >>> "modules['views/lens.js']" in bundle("views/lens.js")
    True
    """
    parts: dict[str, str] = {}
    for path in paths:
        _add(root, (root / path).resolve(), parts, [])
    return "const modules = {};\n" + "\n".join(parts.values())


def _add(root: Path, path: Path, parts: dict[str, str], above: list[Path]) -> None:
    name = path.relative_to(root.resolve()).as_posix()
    if name in parts:
        return
    if path in above:
        raise ValueError(f"bundle: {name} imports itself in a circle.")
    text = path.read_text(encoding="utf-8")
    for _, where in _IMPORT.findall(text):
        _add(root, (path.parent / where).resolve(), parts, [*above, path])
    exported = [n for _, n in _EXPORT.findall(text)]
    for names in _AGAIN.findall(text):
        exported += [n.strip() for n in names.split(",") if n.strip()]

    def imported(found: re.Match[str]) -> str:
        other = (path.parent / found[2]).resolve().relative_to(root.resolve()).as_posix()
        names = re.sub(r"\s+as\s+", ": ", " ".join(found[1].split()))
        return f"const {{ {names} }} = modules['{other}'];"

    body = _AGAIN.sub("", _EXPORT.sub(r"\1 \2", _IMPORT.sub(imported, text)))
    left = _LEFT.search(body)
    if left is not None:
        raise ValueError(f"bundle: {name} has a line that is not understood: {left[0][:80]!r}.")
    names = ", ".join(exported)
    parts[name] = f"modules['{name}'] = (() => {{\n{body}\nreturn {{ {names} }};\n}})();"


@cache
def styles() -> str:
    """The style of the page, and that of results."""
    names = ("theme.css", "style.css", "notebook.css")
    return "\n".join((STATIC / name).read_text(encoding="utf-8") for name in names)
