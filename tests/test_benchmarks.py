"""The cases of the benchmarks run and agree with torch's results; nothing is timed here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from benchmarks.cpu import SUITES, cases
from benchmarks.pairing import Row, mean_ratio, table


def first(result: Any) -> Any:
    while isinstance(result, (tuple, list)):
        result = result[0]
    return result


def numbers(result: Any) -> np.ndarray[Any, Any]:
    result = first(result)
    if hasattr(result, "detach"):
        result = result.detach().double() if result.is_floating_point() else result.detach()
        result = result.numpy()
    return np.asarray(0.0 if result is None else result, dtype=np.float64)


RANDOM = ("rand", "dropout")


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_runs(suite: str) -> None:
    names = []
    for case in cases(suite, "tiny"):
        case.setup(votive)()
        names.append(case.name)
    assert len(set(names)) == len(names)


@pytest.mark.parity
@pytest.mark.parametrize("suite", SUITES)
def test_both_frameworks_compute_the_same(suite: str) -> None:
    torch = pytest.importorskip("torch")
    for case in cases(suite, "tiny"):
        if case.name.startswith(RANDOM) or "training step" in case.name or "MLP" in case.name:
            continue
        ours, theirs = numbers(case.setup(votive)()), numbers(case.setup(torch)())
        tolerance = 3e-2 if "bf16" in case.name or "bfloat16" in case.name else 2e-4
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=f"{suite} {case.name}")


@pytest.mark.parametrize("scale", ["full", "quick"])
@pytest.mark.parametrize("suite", ["a", "c", "d"])
def test_larger_scales_name_their_cases_once(suite: str, scale: str) -> None:
    names = [case.name for case in cases(suite, scale)]
    assert len(set(names)) == len(names)


def test_figures_are_summed_up_by_their_geometric_mean() -> None:
    rows = [Row("a", 1, 2, 0.5, 0.4, 0.6), Row("b", 8, 1, 8.0, 7, 9), Row("c", 0, 0, 0, 0, 0)]
    rows[2].error = "RuntimeError: no"
    assert mean_ratio(rows) == pytest.approx(2.0)
    assert "RuntimeError: no" in table(rows)
