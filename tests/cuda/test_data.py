"""`x.data` on the GPU: its own version, the same memory."""

from __future__ import annotations

import pytest

import votive
from tests.autograd.test_data import WRITES, outcome


@pytest.mark.parametrize("how", WRITES)
def test_a_write_is_noticed_as_on_the_cpu(how):
    want = outcome(votive, how)
    with votive.device("cuda"):
        assert outcome(votive, how) == want


def test_overlap_is_seen_across_versions():
    x = votive.arange(20.0, device="cuda")
    x[1:].copy_(x.data[:-1])
    assert x.tolist() == [0.0, *range(19)]
    x[1:].add_(x.data[:-1])
    assert x.tolist() == [0, 0, *(2 * i - 1 for i in range(1, 19))]


def test_streams_may_be_recorded_on_data():
    x = votive.ones(4, device="cuda")
    x.data.record_stream(votive.cuda.Stream())
    assert x.data.data_ptr() == x.data_ptr()


def test_gradients_of_another_device_are_refused():
    class Astray(votive.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.cpu()

    x = votive.ones(3, device="cuda", requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g.cpu())
    with pytest.raises(RuntimeError, match="has changed the device of value"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match=r"on cpu .* is on cuda"):
        Astray.apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="its output on cuda"):
        (x * 2).backward(votive.ones(3))
