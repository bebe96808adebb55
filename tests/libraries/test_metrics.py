"""Metrics of torchmetrics on votive are those of torch: by batch, over batches, after a reset, in collections."""

from __future__ import annotations

import pytest

from .cases import keys
from .pair import check, wanted

PROGRAM = "metrics"
pytestmark = [wanted, pytest.mark.parity]


@pytest.mark.parametrize("name", [*keys(PROGRAM, "METRICS"), "collection", "detection"])
def test_a_metric_is_the_same(name: str) -> None:
    check(PROGRAM, name)
