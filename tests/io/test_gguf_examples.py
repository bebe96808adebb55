"""The examples in the docstrings of the GGUF and llama2.c readers run as printed."""

from __future__ import annotations

import importlib
import inspect

import pytest

from tests import docstrings

MODULES = [
    "backends.common.blocks.bits",
    "io.gguf.file",
    "io.gguf.quants",
    "io.gguf.split",
    "io.gguf.types",
    "io.gguf.values",
    "io.gguf.writer",
    "io.llama2c",
    "io.rotary",
    "models.gguf_config",
    "models.gguf_families",
    "models.gguf_mixtures",
    "models.gguf_names",
    "models.gguf_types",
    "models.refitted",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run_as_printed(name: str) -> None:
    assert docstrings.run_module(importlib.import_module(f"votive.{name}"))


@pytest.mark.parametrize("name", ["io.gguf", "io.llama2c"])
def test_every_public_function_and_class_has_an_example(name: str) -> None:
    module = importlib.import_module(f"votive.{name}")
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isfunction(value) or public in ("GGUFFile", "Value", "Llama2cFile"):
            assert ">>>" in value.__doc__, public
