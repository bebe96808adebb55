"""votive.np is a namespace of the array-API standard 2024.12, and tensors have one, too."""

from __future__ import annotations

import pytest

import votive

pytest.importorskip("array_api_strict")
from .array_api_check import check


def test_every_check_of_the_standard_holds_for_arrays() -> None:
    table = check("np")
    assert sum(map(len, table.values())) > 15_000
    problems = [f"{what} {problem}" for rows in table.values() for what, problem in rows if problem]
    assert not problems, "\n".join(problems[:10])


def test_every_function_of_the_standard_works_on_tensors() -> None:
    # Operators and reversed slices of tensors are torch's, and `size` is a method there.
    table = check("tensor")
    problems = [
        f"{what} {problem}"
        for family, rows in table.items()
        for what, problem in rows
        if problem and family != "operators" and "step must be" not in problem and what != "A.size"
    ]
    assert not problems, "\n".join(problems[:10])


@pytest.mark.parametrize("make", [votive.np.ones, votive.ones])
def test_a_namespace_says_what_it_can(make: object) -> None:
    x = make(2)  # type: ignore[operator]
    xp = x.__array_namespace__(api_version="2024.12")
    assert xp.__array_api_version__ == "2024.12"
    info = xp.__array_namespace_info__()
    assert info.default_device() == x.device
    assert x.device in info.devices()
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert info.dtypes()["bool"] == xp.bool
    assert info.default_dtypes()["indexing"] == xp.int64
    assert set(info.capabilities()) == {"boolean indexing", "data-dependent shapes", "max dimensions"}
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999")
