"""The examples in the docstrings of `votive.text` run."""

from __future__ import annotations

import inspect

import pytest

import votive
from tests import docstrings
from votive.text import pieces, tools


def _documented() -> dict[str, str]:
    docs: dict[str, str] = {}
    for name in votive.text.__all__:
        item = getattr(votive.text, name)
        docs[name] = (item.__doc__ or "") if callable(item) else ""
        if inspect.isclass(item):
            for method, fn in inspect.getmembers(item, callable):
                if not method.startswith("_") and fn.__doc__:
                    docs[f"{name}.{method}"] = fn.__doc__
    docs |= {"schema": tools.schema.__doc__ or "", "bytes": pieces.byte_level_bytes.__doc__ or ""}
    return {name: doc for name, doc in docs.items() if ">>>" in doc}


DOCS = _documented()


@pytest.mark.parametrize("name", DOCS)
def test_the_example_of_a_docstring_runs(name: str) -> None:
    docstrings.run(name, DOCS[name], schema=tools.schema, byte_level_bytes=pieces.byte_level_bytes)


def test_every_public_function_and_class_has_an_example() -> None:
    plain = {"TemplateError", "PRE_TOKENIZERS"}  # an error and a table
    assert {n for n in votive.text.__all__ if n not in plain} <= set(DOCS)
