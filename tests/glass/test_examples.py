"""Every example in a docstring of the engine runs and prints what it says."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from tests import docstrings
from votive import glass

MODULES = sorted(m.name for m in pkgutil.iter_modules(glass.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_file_run_as_printed(name: str) -> None:
    docstrings.run_module(importlib.import_module(f"votive.glass.{name}"))


def test_every_public_name_has_a_docstring() -> None:
    for name in glass.__all__:
        assert (getattr(glass, name).__doc__ or "").strip(), name


# What other functions return is shown in their examples.
RETURNED = ("Breakpoint", "Console", "Event", "Frame", "NoMatch", "Node", "Parts", "Prediction", "Probe", "Receipt")
DRAWN = ("Alignment", "AttentionMap", "AttentionMaps", "Attribution", "FeatureMaps", "GradCam", "Gradients", "Mels")
READ = (
    "LayerStatistics",
    "Lens",
    "Patch",
    "PatchAttention",
    "QuantizationError",
    "Saliency",
    "SiteCheck",
    "Statistics",
    "Sweep",
)
READ += ("Weights", "WrongSite")


@pytest.mark.parametrize("name", sorted({*glass.__all__} - {*RETURNED, *DRAWN, *READ}))
def test_the_names_that_users_begin_with_have_an_example(name: str) -> None:
    assert docstrings.has_example(getattr(glass, name)), name
