"""Every public name of the vision package has a docstring with an example that runs as printed."""

from __future__ import annotations

import importlib
import inspect
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests import docstrings

pytest.importorskip("PIL")
SPACES = ("datasets", "io", "ops", "transforms", "transforms.functional", "tv_tensors", "utils")


def _public() -> dict[str, Any]:
    found = {}
    for space in SPACES:
        module = importlib.import_module(f"votive.vision.{space}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found[f"{space}.{name}"] = value
    return found


PUBLIC = _public()


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_the_example_of_a_public_name_runs_as_printed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    docstrings.run(name, PUBLIC[name].__doc__)
