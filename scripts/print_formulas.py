"""Prints formulas of operators as C++ for the native kernels: `print_formulas.py OUTPUT`."""

from __future__ import annotations

import sys
from pathlib import Path

# This tree, whatever else is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from votive.backends.cpu.native.printing import source
from votive.ops.registry import OPS


def main() -> None:
    """Write the file only when its text changed, so that nothing is built for nothing."""
    path, text = Path(sys.argv[1]), source(OPS.values())
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main()
