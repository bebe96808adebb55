"""The examples in the docstrings of `votive.ao` and of what it stands on run as printed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import votive
from tests import docstrings

MODULES = [
    "votive.ao",
    *(m.name for m in pkgutil.walk_packages(votive.ao.__path__, "votive.ao.")),
    *(f"votive.quant.{name}" for name in ("range", "int8")),
    "votive.surface.quantized_tensor",
    "votive.core.affine",
]


def examples(module: ModuleType) -> dict[str, str]:
    """The docstrings with examples, of a module and of what it defines."""
    found = {module.__name__: module}
    for name, value in vars(module).items():
        if getattr(value, "__module__", None) == module.__name__:
            found[name] = value
            if inspect.isclass(value):
                found |= {f"{name}.{k}": getattr(v, "__func__", v) for k, v in vars(value).items()}
    texts = {k: inspect.cleandoc(v.__doc__) for k, v in found.items() if isinstance(v.__doc__, str)}
    return {k: text for k, text in texts.items() if ">>>" in text}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run_as_printed(name: str) -> None:
    for at, text in examples(importlib.import_module(name)).items():
        docstrings.run(at, text)
