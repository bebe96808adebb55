"""Writes `docs/operators.md`: every public operator with what a reader wants to know first."""

from __future__ import annotations

import inspect
from pathlib import Path

import votive
from votive.formula import to_text
from votive.ops.registry import COMPOSITES, OPS, Composite, Op
from votive.ops.schema import REQUIRED

_ROOT = Path(votive.__file__).parent.parent

HEAD = """# Operators

Written by `scripts/generate.py` from the declarations in `votive/ops`; a test keeps it in step.
`votive.explain(name)` shows more: the gradient and the kernels. *Gradient*: derived from the
formula, by a rule, through the operators it is written with, or none. *Kind*: a formula, a view,
composed of others, or structured, with kernels of its own; formulas, views and compositions run wherever
their parts do.
"""


def _public(item: Op | Composite) -> bool:
    return not item.name.startswith("_") and bool(item.namespaces or item.method or item.also)


def _path(item: Op | Composite) -> str:
    if item.namespaces:
        return ".".join(p for p in (item.namespaces[0], item.name) if p)
    return item.also[0] if item.also and not item.method else f"Tensor.{item.name}"


def _signature(item: Op | Composite) -> str:
    if isinstance(item, Op):
        parts, star = [], False
        for a in item.schema.args:
            if a.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(a.name if a.default is REQUIRED else f"{a.name}={a.default!r}")
        return ", ".join(parts)
    sig = inspect.signature(item.fn)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in sig.parameters.values()]
    text = str(sig.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return text[1:-1]


def _sentence(item: Op | Composite) -> str:
    first = item.doc.split("\n\n")[0].split("\n>>>")[0]
    return " ".join(first.split()).replace("|", "\\|")


def _formula(item: Op | Composite) -> str:
    if not isinstance(item, Op) or item.builder is None:
        return ""
    static = [a for a in item.schema.args if not a.is_runtime]
    if any(a.default is REQUIRED for a in static):
        return ""
    text = to_text(item.formula(tuple(a.default for a in static)).body)
    return f" `{text}`".replace("|", "\\|") if len(text) <= 60 else ""


def _gradient(item: Op | Composite) -> str:
    if isinstance(item, Composite):
        return "through its parts"
    if not item.differentiable:
        return "none"
    if item.builder is not None:
        return "formula" + (" + rule" if item.grad_builders else "")
    return "rule" if item.grad is not None else "missing"


def _kind(item: Op | Composite) -> str:
    return "composed" if isinstance(item, Composite) else item.kind


def _source(item: Op | Composite) -> str:
    file = Path(item.defined_at[0])
    return f"[{file.name}](../{file.relative_to(_ROOT).as_posix()})"


def page() -> str:
    """The whole page, one table per family, families in alphabetical order."""
    families: dict[str, list[Op | Composite]] = {}
    for item in [*OPS.values(), *COMPOSITES.values()]:
        if _public(item):
            families.setdefault(Path(item.defined_at[0]).stem, []).append(item)
    total = sum(len(v) for v in families.values())
    lines = [HEAD, f"{total} operators in {len(families)} families.", ""]
    for stem in sorted(families):
        lines += [f"## {stem}", "", "| operator | what it does | gradient | kind | source |"]
        lines.append("|---|---|---|---|---|")
        for item in sorted(families[stem], key=lambda i: (_path(i), i.defined_at)):
            path = _path(item)
            names = "".join(f", `{a}`" for a in item.aliases)
            mark = " (and in place)" if item.inplace else ""
            cells = (
                f"`{path}({_signature(item)})`{names}{mark}",
                _sentence(item) + _formula(item),
                _gradient(item),
                _kind(item),
                _source(item),
            )
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)
