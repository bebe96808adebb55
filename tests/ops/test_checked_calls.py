"""What is remembered of calls changes no answer."""

from __future__ import annotations

import pytest

import votive
from votive.nn import functional as F
from votive.ops.checked_calls import MOST, CheckedCalls


def test_numbers_that_are_equal_to_an_integer_are_refused_after_it_too():
    x, w = votive.ones(1, 1, 3, 3), votive.ones(1, 1, 2, 2)
    F.conv2d(x, w, stride=1)
    F.conv_transpose2d(x, w, stride=1)
    for convolve in (F.conv2d, F.conv_transpose2d):
        for stride in (True, 1.0, (1.0, 1), (True, True)):
            with pytest.raises(TypeError, match="stride"):
                convolve(x, w, stride=stride)


def test_other_geometry_shape_or_bias_is_another_call():
    x, w, bias = votive.ones(1, 1, 3, 3), votive.ones(1, 1, 2, 2), votive.ones(1)
    for _ in range(2):
        assert F.conv2d(x, w).shape == (1, 1, 2, 2)
        assert F.conv2d(x, w, padding=[1, 0]).shape == (1, 1, 4, 2)
        assert F.conv2d(x, w, padding="same").shape == (1, 1, 3, 3)
        assert F.conv2d(x[0], w).shape == (1, 2, 2)
        assert F.conv2d(x, w, bias).sum().item() == 20
        assert F.conv_transpose2d(x, w, stride=2, output_padding=(1, 0)).shape == (1, 1, 7, 6)
        with pytest.raises(RuntimeError, match="bias"):
            F.conv2d(x, w, votive.ones(2))


def test_only_so_many_calls_are_remembered():
    calls, x = CheckedCalls(), votive.ones(1)
    for n in range(MOST + 2):
        key, found = calls.find("op", (n,), x, x, None)
        assert found is None
        calls.keep(key, (n,), (n,))
        assert calls.find("op", (n,), x, x, None)[1] == (n,)
    assert len(calls.calls) <= MOST
