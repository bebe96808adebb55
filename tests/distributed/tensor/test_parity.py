"""Names, order and defaults of arguments are torch's."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import votive.distributed.tensor as package

pytestmark = pytest.mark.parity
PARTS = {
    "": ("distribute_module", "distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"),
    "parallel": tuple(package.parallel.__all__),
    "experimental": ("context_parallel", "implicit_replication"),
}
METHODS = ("from_local", "full_tensor", "redistribute", "to_local")


def described(fn: Any) -> list[tuple[str, str, str]]:
    """The parameters of a function; what a package calls itself does not count."""
    found = []
    for p in inspect.signature(fn).parameters.values():
        default = "" if p.default is p.empty else repr(p.default).replace("votive.", "torch.")
        found.append((p.name, p.kind.name, default))
    return found


@pytest.mark.parametrize("part", PARTS)
def test_functions_and_styles_are_called_as_torchs(part: str) -> None:
    theirs = pytest.importorskip(f"torch.distributed.tensor.{part}".rstrip("."))
    ours = getattr(package, part) if part else package
    for name in PARTS[part]:
        if name != "ParallelStyle":
            assert described(getattr(ours, name)) == described(getattr(theirs, name)), name


def test_methods_are_called_as_torchs() -> None:
    theirs = pytest.importorskip("torch.distributed.tensor").DTensor
    for name in METHODS:
        assert described(getattr(package.DTensor, name)) == described(getattr(theirs, name)), name
