"""einops, safetensors.torch, torchinfo and torchmetrics on votive: their numbers are those of torch."""

from __future__ import annotations

import pytest

from .cases import keys
from .pair import check, wanted

pytestmark = [wanted, pytest.mark.parity]


@pytest.mark.parametrize("case", keys("small_libraries", "CASES"))
def test_a_small_library_is_the_same(case: str) -> None:
    check("small_libraries", case)


@pytest.mark.parametrize("metric", keys("torchmetrics_sample", "CASES"))
def test_a_metric_is_the_same(metric: str) -> None:
    check("torchmetrics_sample", metric)
