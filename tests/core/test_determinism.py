"""Whether operators are asked for the same bits each time."""

from __future__ import annotations

import warnings

import pytest

import votive
from votive.core.determinism import alert


def test_an_operator_that_adds_in_any_order_is_silent_warned_of_or_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alert("op")
    try:
        votive.use_deterministic_algorithms(True)
        assert votive.are_deterministic_algorithms_enabled()
        with pytest.raises(RuntimeError, match=r"^op adds in any order"):
            alert("op")
        votive.use_deterministic_algorithms(True, warn_only=True)
        assert votive.is_deterministic_algorithms_warn_only_enabled()
        with pytest.warns(UserWarning, match=r"^op adds in any order"):
            alert("op")
    finally:
        votive.use_deterministic_algorithms(False)
    assert not votive.are_deterministic_algorithms_enabled()
