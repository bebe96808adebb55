"""Runs one program with votive and with torch and compares what they said."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import votive


class Said:
    """What a program told: values as text, errors by the builtin type they derive from."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.lines: list[str] = []

    def __call__(self, *values: Any) -> None:
        self.lines.append(" | ".join(plain(v) for v in values))

    def attempt(self, what: str, fn: Callable[[], Any], text: bool = False) -> None:
        """Note the error that `fn` raises, with its message if `text`, or its result."""
        try:
            result = fn()
        except Exception as e:
            kind = next(c for c in type(e).__mro__ if c.__module__ == "builtins")
            self(f"{what}: {kind.__name__}" + (f": {e}" if text else ""))
        else:
            self(what, result)


def plain(value: Any) -> str:
    """Text in which both libraries bear one name."""
    text = value if isinstance(value, str) else repr(value)
    text = re.sub(r"\btorch\b", "votive", text)
    text = re.sub(r"tests\.nn\.\w+|votive\.nn\.[\w.]+\.(?=\w+['>])", "", text)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def run(program: Callable[[Any, Said], None], lib: Any) -> list[str]:
    """What `program` says when it is run with a library."""
    said = Said(lib)
    lib.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program(lib, said)
    assert said.lines, f"{program.__name__} says nothing"
    return said.lines


def differences(program: Callable[[Any, Said], None], torch: Any) -> list[str]:
    """Lines on which the libraries differ."""
    ours, theirs = run(program, votive), run(program, torch)
    pairs = [f"votive: {a}\ntorch:  {b}" for a, b in zip(ours, theirs) if a != b]
    if len(ours) != len(theirs):
        pairs.append(f"votive says {len(ours)} things, torch {len(theirs)}")
    return pairs
