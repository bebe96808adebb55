"""The page says which families there are, and every class that the registry names is there."""

from __future__ import annotations

import pytest

import votive.models as models
from votive.models.auto import _family, families
from votive.models.auto_table import USES

from .family_table import BEGIN, END, FILE, table, written


def test_the_page_has_the_families_of_the_registry() -> None:
    text = FILE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert text == written(text, table()), "run python -m tests.models.family_table"


@pytest.mark.parametrize("name", families())
def test_every_class_that_is_named_is_there(name: str) -> None:
    config, classes = _family(name)
    assert config.model_type in (name, *config.same_network)
    assert set(classes) <= set(USES)
    for found in (cls for each in classes.values() for cls in each):
        assert issubclass(found, models.PreTrainedModel)
        assert getattr(models, found.__name__) is found
