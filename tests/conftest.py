"""What every test may rely on: operators that another test declared are gone again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ops.forgetting import forget
from votive.ops.registry import COMPOSITES, OPS


@pytest.fixture(autouse=True)
def no_operator_outlives_its_test() -> Iterator[None]:
    """Tests that look at all operators, such as those of generated files, see only votive's own."""
    ops, composites = set(OPS), set(COMPOSITES)
    yield
    for name in set(OPS) - ops:
        forget(name)
    for name in set(COMPOSITES) - composites:
        del COMPOSITES[name]
