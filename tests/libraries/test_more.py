"""Further libraries on votive: what they train, fit and explain is what it is with torch."""

from __future__ import annotations

import pytest

from .cases import keys
from .pair import check, wanted

pytestmark = [wanted, pytest.mark.parity]


@pytest.mark.parametrize("library", keys("more_libraries", "CASES"))
def test_a_further_library_is_the_same(library: str) -> None:
    check("more_libraries", library)
