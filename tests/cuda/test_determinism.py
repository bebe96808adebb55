"""Sums of equal indices come in one order where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import votive

F = votive.nn.functional


@pytest.fixture(autouse=True)
def asked() -> Iterator[None]:
    votive.use_deterministic_algorithms(True)
    yield
    votive.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"scale_grad_by_freq": True}])
def test_rows_of_a_table_are_added_in_order(dtype: str, options: dict[str, Any]) -> None:
    rng, kind = np.random.default_rng(0), getattr(votive, dtype)
    index = votive.from_numpy(rng.integers(0, 5, (7, 30)))
    g = votive.from_numpy(rng.standard_normal((7, 30, 33))).to(kind)

    def gradient(device: str) -> Any:
        w = votive.zeros(6, 33, dtype=kind, device=device).requires_grad_()
        y = F.embedding(index.to(device), w, **options)
        return votive.autograd.grad([y], [w], [g.to(device)])[0]

    ours, theirs = gradient("cuda").cpu(), gradient("cpu")
    assert votive.equal(gradient("cuda").cpu(), ours)
    rtol = {"float32": 1e-5, "float64": 1e-13, "bfloat16": 2e-2}[dtype]
    a, b = (t.to(votive.float64).numpy() for t in (ours, theirs))
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def test_sums_in_any_order_are_refused_or_told() -> None:
    x, i = votive.zeros(4, device="cuda"), votive.zeros(3, dtype=votive.int64, device="cuda")
    with pytest.raises(RuntimeError, match="any order"):
        x.index_add(0, i, votive.ones(3, device="cuda"))
    whole = votive.zeros(4, dtype=votive.int64, device="cuda")
    whole.index_add(0, i, votive.ones(3, dtype=votive.int64, device="cuda"))  # integers are exact
    votive.use_deterministic_algorithms(True, warn_only=True)
    assert votive.is_deterministic_algorithms_warn_only_enabled()
    with pytest.warns(UserWarning, match="any order"):
        x.index_add(0, i, votive.ones(3, device="cuda"))
