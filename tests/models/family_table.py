"""The table of families in docs/models.md, as the registry has them.

`python -m tests.models.family_table` writes it anew.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from votive.models.auto_table import FAMILIES, SAME, USES
from votive.models.gguf_families import FAMILIES as GGUF

FILE = Path(__file__).parents[2] / "docs" / "models.md"
BEGIN, END = "<!-- families: python -m tests.models.family_table -->", "<!-- end of families -->"


def table() -> str:
    """A row for the families of each file that have the same heads."""
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for name, (file, _, *uses) in FAMILIES.items():
        heads = sorted(
            {USES[use.partition("=")[0]].removeprefix("AutoModel").removeprefix("For") for use in uses} - {""}
        )
        rows[file, tuple(heads)].append(name)
    lines = ["| `model_type` | file | `AutoModelFor…` |", "|---|---|---|"]
    for (file, heads), names in sorted(rows.items(), key=lambda row: row[1]):
        cells = (", ".join(f"`{name}`" for name in names), f"`{file}.py`", ", ".join(heads) or "none")
        lines.append(f"| {' | '.join(cells)} |")
    same = ", ".join(f"`{name}` is read as `{other}`" for name, other in sorted(SAME.items()))
    count = f"{len(FAMILIES)} families in {len({file for file, *_ in FAMILIES.values()})} files; {same}."
    stored = sorted({family.model_type for family in GGUF})
    gguf = f"GGUF files hold {len(stored)} of them: {', '.join(f'`{name}`' for name in stored)}."
    return "\n".join([count, "", *lines, "", gguf])


def written(text: str, made: str) -> str:
    """The page with this table in it."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{FILE} has no place for the table of families: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text(), table()))
