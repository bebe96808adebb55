"""The table of NumPy's names in the documentation is true."""

from __future__ import annotations

import numpy
import pytest

from votive.np.refusals import REASONS

from .census import PAGE, page, rows


def test_every_name_of_numpy_is_there_or_refused_with_a_reason() -> None:
    table = list(rows())
    assert not [name for name, _, note in table if note == "NOT EXPLAINED"]
    assert sum(state == "there" for _, state, _ in table) > 0.9 * len(table)


@pytest.mark.skipif(not numpy.__version__.startswith("2.4"), reason="the page lists the names of NumPy 2.4")
def test_the_page_of_names_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run python -m tests.np.census"


def test_no_reason_is_given_for_what_is_there() -> None:
    import votive

    assert not [name for name in REASONS if hasattr(votive.np, name)]
