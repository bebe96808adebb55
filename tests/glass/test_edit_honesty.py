"""Edits that cannot be made as given are refused, and receipts measure what was changed."""

from __future__ import annotations

import math
from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit


class Recurrent(nn.Module):
    def __init__(self, part: Any) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Any) -> Any:
        rnn = isinstance(self.part, nn.LSTM)
        return x + (self.part(x) if rnn else self.part(x, x, x))[0]


PARTS = {
    "lstm": lambda: nn.LSTM(3, 3, batch_first=True),
    "attention": lambda: nn.MultiheadAttention(3, 1, batch_first=True),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("how", ["skip", "identity"])
def test_a_skipped_call_gives_what_its_caller_takes_apart(name: str, how: str) -> None:
    net, x = Recurrent(PARTS[name]()), votive.randn(2, 4, 3)
    edit = Edit("part", "skip") if how == "skip" else Edit("part", "swap", "identity")
    with glass.patch(net, edit):
        for _ in range(2):
            assert votive.equal(net(x), 2 * x)


def test_a_skip_whose_input_does_not_fit_is_refused() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
    with pytest.raises(ValueError, match=r"skip: 0 .*\(4, 3\).*\(4, 2\).*function"):
        with glass.skip(net, "0"):
            net(votive.randn(4, 3))
    net = nn.Sequential(nn.Embedding(5, 4))
    net[0].forward = lambda x: x.float()
    with pytest.raises(ValueError, match=r"skip: 0 .*int64.*float32"), glass.skip(net, "0"):
        net(votive.ones(4, 2, dtype=votive.int64))


def test_a_skip_leaves_no_trace_of_finding_out_the_form() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5))
    votive.manual_seed(0)
    with glass.skip(net, "*"):
        net(votive.randn(4, 3))
    after = votive.randn(3)
    votive.manual_seed(0)
    votive.randn(4, 3)
    assert votive.equal(after, votive.randn(3))
    assert not net[0].running_mean.any()
    assert int(net[0].num_batches_tracked) == 0


class Named(nn.Module):
    class Part(nn.Module):
        def forward(self, x: Any, mask: Any = None) -> Any:
            return x * mask

    def __init__(self) -> None:
        super().__init__()
        self.a = Named.Part()

    def forward(self, x: Any) -> Any:
        return self.a(mask=votive.ones_like(x) * 7, x=x)


def test_the_first_input_is_the_first_of_the_signature() -> None:
    net, x = Named(), votive.randn(2, 3)
    with glass.skip(net, "a"):
        assert votive.equal(net(x), x)
    with glass.patch(net, {"a:in": lambda v: v * 0}):
        assert not net(x).any()
    with glass.capture(net, "a:in") as seen:
        net(x)
    assert seen["a:in"] is x


def test_patch_and_capture_mean_the_same_input_after_none() -> None:
    class Two(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return b * 2

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.two = Two()

        def forward(self, x: Any) -> Any:
            return self.two(None, x)

    net, x = Outer(), votive.ones(2)
    with glass.capture(net, "two:in") as seen, glass.patch(net, {"two:in": 5.0}):
        assert votive.equal(net(x), votive.full((2,), 10.0))
    assert votive.equal(seen["two:in"], votive.full((2,), 5.0))


LOSSY: list[tuple[Any, Any]] = [
    (votive.float32, 1 + 5j),
    (votive.float32, votive.tensor([1 + 5j, 0])),
    (votive.uint8, 300),
    (votive.uint8, -1),
    (votive.int64, 2.7),
    (votive.int64, math.inf),
    (votive.int64, Edit("0", "add", 0.5)),
    (votive.bool, Edit("0", "scale", -1)),
    (votive.bool, 2),
    (votive.int64, lambda v: v + 0.5),
    (votive.uint8, Edit("0", "add", votive.tensor(300))),
    (votive.int64, Edit("0", "replace", 2.7, samples=[0])),
    (votive.float16, 1e6),
]


@pytest.mark.parametrize(("dtype", "edit"), LOSSY)
def test_a_value_that_the_type_cannot_hold_is_refused(dtype: Any, edit: Any) -> None:
    net = nn.Sequential(nn.Identity())
    with pytest.raises((TypeError, ValueError), match=rf"'0'.*{dtype!s}"):
        with glass.patch(net, {"0": edit}):
            net(votive.ones(1, 2, 2, dtype=dtype))


KEPT: list[tuple[Any, Any]] = [
    (votive.float32, 0.1),
    (votive.bfloat16, votive.tensor([0.1, 3.0], dtype=votive.float64)),
    (votive.float32, math.nan),
    (votive.float16, math.inf),
    (votive.int64, 2.0),
    (votive.bool, 0),
    (votive.uint8, 255),
    (votive.complex64, 1 + 5j),
    (votive.float32, 1 + 0j),
    (votive.int64, Edit("0", "scale", 2.0)),
    (votive.int64, Edit("0", "add", 2.0**40)),
    (votive.int64, 2**62 + 1),
]


@pytest.mark.parametrize(("dtype", "edit"), KEPT)
def test_a_value_that_the_type_holds_is_taken(dtype: Any, edit: Any) -> None:
    net = nn.Sequential(nn.Identity())
    with glass.patch(net, {"0": edit}):
        found = net(votive.ones(2, dtype=dtype))
    assert found.dtype == dtype
    if isinstance(edit, int):
        assert found.tolist() == [edit, edit]


def test_sizes_of_complex_changes_and_of_changes_from_nothing() -> None:
    net = nn.Sequential(nn.Identity())
    with glass.patch(net, {"0": lambda v: v + 4j}) as receipt:
        net(votive.tensor([3 + 0j]))
    assert receipt.sites["0"].largest == 4.0
    assert receipt.sites["0"].relative == pytest.approx(4 / 3)
    with glass.patch(net, {"0": 5.0}) as receipt:
        net(votive.zeros(2))
    assert receipt.sites["0"].relative == math.inf
    with glass.patch(net, {"0": 0.0}) as receipt:
        net(votive.zeros(2))
    assert receipt.sites["0"].relative == 0.0


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: t[:1].expand(2), lambda t: t.view(2)])
def test_a_tensor_that_a_function_gives_is_not_written_into(wrap: Any) -> None:
    mine = votive.tensor([-1.0, -1.0])
    net = nn.Sequential(nn.Identity(), nn.ReLU(inplace=True))
    with glass.patch(net, {"0": lambda v: wrap(mine)}):
        assert not net(votive.ones(2)).any()
    assert mine.tolist() == [-1.0, -1.0]
