"""Prints the codebooks of the IQ formats as C++ for the native kernels: `print_codebooks.py OUTPUT`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

# This tree, whatever else is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from votive.backends.common.blocks.codebooks import codebook

NAMES = ("iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1")


def table(name: str) -> str:
    """The points of a book as words of eight or four bytes, the first coordinate lowest."""
    points = codebook(name).points
    # Points of IQ1 have signs: eight times as large and moved up, they leave room for an eighth more or less.
    whole = (128 + 8 * points if name == "iq1" else points).astype(np.uint8)
    bits = 8 * whole.shape[1]
    words = [int.from_bytes(row.tobytes(), "little") for row in whole]
    rows = [", ".join(f"0x{w:x}" for w in words[i : i + 8]) for i in range(0, len(words), 8)]
    return f"const uint{bits}_t POINTS_{name.upper()}[{len(words)}] = {{\n" + ",\n".join(rows) + "};\n"


def main() -> None:
    """Write the file only when its text changed, so that nothing is built for nothing."""
    path, text = Path(sys.argv[1]), "".join(table(name) for name in NAMES)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main()
