"""Runs the programs of a text file, each in a namespace of its own, and prints what they print under their names."""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from pathlib import Path

import torch


def sections(path: str) -> dict[str, str]:
    """The programs of a file by name."""
    parts = Path(path).read_text().split("### ")[1:]
    return {name.strip(): code for name, _, code in (part.partition("\n") for part in parts)}


if __name__ == "__main__":
    for name, code in sections(sys.argv[1]).items():
        torch.manual_seed(0)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(code, name, "exec"), {"__name__": "__main__"})
        except Exception as e:
            printed.write(f"!! {type(e).__name__}: {e}\n")
        sys.stdout.write(f"### {name}\n{printed.getvalue()}")
