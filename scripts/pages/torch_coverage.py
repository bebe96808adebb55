"""The page of torch's names: which are here, which are refused and why. Runs on the alias, in a process of its own."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
INVENTORY = ROOT / "tests" / "alias" / "inventory.txt"

# Counted apart, too: most of its pieces are refused.
WHOLE = ("torch.distributed",)

HEAD = """# The names of torch

Written by `scripts/generate.py` from the public names of torch {version} (`tests/alias/inventory.txt`) and the table in
`votive/torch/refusals.py`; do not edit. How programs run on the alias: [torch programs](torch_programs.md).

Of {total:,} documented names in {spaces} namespaces and classes {there:,} are here ({percent:.1f} %) and {refused:,}
are refused: touching one raises an error with the reason that stands below. Without `torch.distributed`, of which
groups, collectives, data parallel and sharded training are here, {outside:.1f} % are.
"""


def inventory() -> dict[str, list[str]]:
    """Public names by namespace."""
    lines = [line for line in INVENTORY.read_text().splitlines() if line and not line.startswith("#")]
    return {space: names.split() for space, _, names in (line.partition(": ") for line in lines)}


def _reach(path: str) -> Any:
    try:
        return importlib.import_module(path)
    except ImportError:
        parent, _, name = path.rpartition(".")
        if not parent:
            raise
        found = getattr(_reach(parent), name)
        # What limits say stands on their instances.
        if name in ("finfo", "iinfo"):
            torch = importlib.import_module("torch")
            return found(torch.float32 if name == "finfo" else torch.int32)
        return found


def census() -> dict[str, dict[str, list[str]]]:
    """Names by namespace and fate: there, refused or missing. Needs the alias."""
    from votive.torch.refusals import refusal

    found: dict[str, dict[str, list[str]]] = {}
    for space, names in inventory().items():
        fates: dict[str, list[str]] = {"there": [], "refused": [], "missing": []}
        try:
            here = _reach(space)
        except (ImportError, AttributeError):
            here = None
        for name in names:
            row = refusal(f"{space}.{name}")
            if here is not None and not (row is not None and row.stub) and hasattr(here, name):
                fates["there"].append(name)
            else:
                fates["missing" if row is None else "refused"].append(name)
        found[space] = fates
    return found


def _share(found: dict[str, dict[str, list[str]]]) -> float:
    """How many of some names are here, in percent."""
    return 100 * sum(len(f["there"]) for f in found.values()) / sum(len(n) for f in found.values() for n in f.values())


def write() -> str:
    """The page as text."""
    from votive.torch.refusals import REFUSALS, refusal
    from votive.torch.version import VERSION

    found = census()
    count = {fate: sum(len(f[fate]) for f in found.values()) for fate in ("there", "refused", "missing")}
    total = sum(count.values())
    head = HEAD.format(
        version=VERSION,
        total=total,
        spaces=len(found),
        there=count["there"],
        percent=100 * count["there"] / total,
        refused=count["refused"],
        outside=_share({s: f for s, f in found.items() if not s.startswith(WHOLE)}),
    )
    lines = [head, "## By namespace", ""]
    lines += ["| namespace | names | here | refused | missing |", "|---|---:|---:|---:|---:|"]
    for space, fates in found.items():
        numbers = [len(fates[fate]) for fate in ("there", "refused", "missing")]
        lines.append(f"| `{space}` | {sum(numbers)} | " + " | ".join(str(n or "") for n in numbers) + " |")
    lines += ["", "## Refused, and why", ""]
    rows: dict[int, list[str]] = defaultdict(list)
    for space, fates in found.items():
        for name in fates["refused"]:
            row = refusal(f"{space}.{name}")
            rows[next(i for i, r in enumerate(REFUSALS) if r is row)].append(f"{space}.{name}")
    for i, row in enumerate(REFUSALS):
        if rows[i]:
            lines += [f"**{row.reason}** {row.instead}".rstrip(), "", ", ".join(f"`{n}`" for n in rows[i]), ""]
    missing = [f"{space}.{name}" for space, fates in found.items() for name in fates["missing"]]
    if missing:
        lines += ["## Missing", "", ", ".join(f"`{n}`" for n in missing), ""]
    return "\n".join(lines)


def page() -> str:
    """The page, from a process in which nobody has imported the real torch."""
    command = [sys.executable, "-W", "ignore", "-m", "scripts.pages.torch_coverage"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    import votive

    warnings.simplefilter("ignore")
    votive.torch.install()
    print(write(), end="")
