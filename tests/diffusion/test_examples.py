"""Every public function and class of the package's diffusion has an example, and it runs."""

from __future__ import annotations

import pytest

import votive.models.diffusion as diffusion
from votive.models.diffusion import schedulers

from ..docstrings import examples, explained, modules_of, run

MODULES = [*modules_of(diffusion), *modules_of(schedulers), schedulers]
DOCS = examples(MODULES)


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_example_runs(name: str) -> None:
    run(name, DOCS[name])


@pytest.mark.parametrize("name", sorted(n for n in diffusion.__all__ if n != "Settings"))
def test_a_public_name_has_an_example(name: str) -> None:
    assert explained(getattr(diffusion, name))


def test_a_public_name_is_what_it_says() -> None:
    for name in diffusion.__all__:
        assert getattr(diffusion, name).__name__ == name
    assert set(diffusion.__all__) <= set(dir(diffusion))
    with pytest.raises(AttributeError, match="has no attribute 'DDIMSchedular'"):
        _ = diffusion.DDIMSchedular
