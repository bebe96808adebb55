"""Tests of the GPU run on one where there is one, or on the emulated one:
`VOTIVE_CUDA=emulated TRITON_INTERPRET=1 pytest tests/cuda`. Else they are skipped and say why.

Several processes may share a GPU and the work: with `VOTIVE_CUDA_CLAIMS=FOLDER`, an empty folder
that all of them name, a process runs what no other has begun. Tests of one operator stay together,
so that its kernels are compiled once.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from .device import REASON

_HERE = Path(__file__).parent
_CLAIMS = os.environ.get("VOTIVE_CUDA_CLAIMS", "")
_LONG = {"test_endurance", "test_compiling", "test_attention", "test_independence"}


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Skip what needs a GPU without one; begin with what takes long where work is shared."""
    ours = [item for item in items if _HERE in Path(item.path).parents]
    for item in ours:
        if REASON and not item.get_closest_marker("anywhere"):
            item.add_marker(pytest.mark.skip(reason=f"no GPU: {REASON}"))
    if _CLAIMS and len(ours) == len(items):
        items.sort(key=lambda item: (item.path.stem not in _LONG, _group(item)))


def pytest_runtest_protocol(item: Any, nextitem: Any) -> bool | None:
    """Leave out what another process has begun."""
    if not _CLAIMS or _mine(_group(item)):
        return None
    # Module fixtures end when the last test of a module does, also when that is left out.
    item.session._setupstate.teardown_exact(nextitem)
    return True


def _group(item: Any) -> str:
    """What is run by one process: all that the catalog says of an operator, or one test."""
    if item.path.stem == "test_catalog":
        return f"operator {item.callspec.params['record'].name}"
    return str(item.nodeid)


_decided: dict[str, bool] = {}


def _mine(group: str) -> bool:
    if group not in _decided:
        name = hashlib.sha256(group.encode()).hexdigest()[:24]
        try:
            os.close(os.open(Path(_CLAIMS, name), os.O_CREAT | os.O_EXCL))
            _decided[group] = True
        except FileExistsError:
            _decided[group] = False
    return _decided[group]
