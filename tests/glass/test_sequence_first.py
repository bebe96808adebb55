"""Modules that take positions first: an edit has their positions and samples, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import Edit

LENGTH, SAMPLES, WIDTH = 5, 3, 8


class Attends(nn.Module):
    def __init__(self, first: bool) -> None:
        super().__init__()
        self.look = nn.MultiheadAttention(WIDTH, 2, batch_first=first)

    def forward(self, x: Any) -> Any:
        return self.look(x, x, x)


class Holds(nn.Module):
    """Something that stands beside a module whose values may lie either way."""

    def __init__(self, a: nn.Module) -> None:
        super().__init__()
        self.a, self.end = a, nn.Identity()

    def forward(self, x: Any) -> Any:
        y = self.a(x)
        return self.end(y[0] if isinstance(y, tuple) else y)


def made(name: str, first: bool = False) -> Any:
    votive.manual_seed(0)
    if name == "attention":
        return Attends(first).eval()
    if name == "encoder":
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, batch_first=first)
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    return getattr(nn, name)(WIDTH, WIDTH, batch_first=first).eval()


def text(first: bool = False) -> Any:
    x = votive.randn(LENGTH, SAMPLES, WIDTH, generator=votive.Generator().manual_seed(1))
    return x.transpose(0, 1) if first else x


SITES = [
    ("RNN", "a"),
    ("GRU", "a"),
    ("LSTM", "a"),
    ("attention", "a.look"),
    ("encoder", "a"),
    ("encoder", "a.layers.1"),
    ("encoder", "a.layers.1.linear2"),
    ("encoder", "a.layers.1.norm2"),
    ("encoder", "a.layers.1/add#1"),
    ("encoder", "a.layers.1.linear2/linear"),
    ("attention", "a.look/linear#3"),
]


@pytest.mark.parametrize(("name", "at"), SITES)
def test_positions_come_first_where_a_module_says_so(name: str, at: str) -> None:
    model, x = Holds(made(name)), text()
    with votive.no_grad():
        plain = model(x)
        for edit, rows in [
            (Edit(at, "add", 9.0, positions=[2]), (2,)),
            (Edit(at, "add", 9.0, samples=[2]), (slice(None), 2)),
            (Edit(at, "add", 9.0, samples=[1], positions=[4]), (4, 1)),
        ]:
            with glass.patch(model, edit):
                there = model(x) != plain
            expected = votive.zeros_like(there)
            expected[rows] = True
            # A norm behind it may leave single numbers as they are.
            assert votive.equal(there.any(-1), expected.any(-1))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM", "attention"])
def test_means_and_resampling_are_about_samples(name: str) -> None:
    model, x = Holds(made(name)), text()
    at = "a.look" if name == "attention" else "a"
    with votive.no_grad():
        y = model(x)
        with glass.ablate(model, at, "mean"):
            assert votive.allclose(model(x), y.mean(1, keepdim=True).expand(y.shape), atol=1e-6)
        with glass.ablate(model, at, "resample"):
            rolled = model(x)
        assert any(votive.allclose(rolled, y.roll(i, 1), atol=1e-6) for i in (1, 2))
        (found,) = glass.means(model, at, [x])
        assert votive.allclose(found.value, y.mean(1, keepdim=True), atol=1e-6)


@pytest.mark.parametrize(("name", "at"), SITES[:-1])
def test_the_same_edit_means_the_same_with_samples_first(name: str, at: str) -> None:
    edit = Edit(at, "add", 9.0, positions=[1])
    found = []
    for first in (False, True):
        model = Holds(made(name, first))
        with votive.no_grad(), glass.patch(model, edit):
            y = model(text(first))
        found.append(y.transpose(0, 1) if first else y)
    assert votive.allclose(*found, atol=1e-5)


def test_heads_are_where_attention_has_them() -> None:
    model, x = made("encoder"), text()
    with votive.no_grad():
        plain = model(x)
        with glass.patch(model, Edit("layers.1.self_attn/attention", "add", 9.0, positions=[2])):
            there = (model(x) != plain).any(-1)
    assert there[2].all()
    assert int(there.sum()) == SAMPLES


def test_states_have_samples_and_no_positions() -> None:
    for first in (False, True):
        model, x = made("LSTM", first), text(first)
        with votive.no_grad():
            _, (h, _) = model(x)
            with glass.patch(model, Edit("^:out.1.0", "zero", samples=[1]), measure=False):
                _, (got, _) = model(x)
            expected = h.clone()
            expected[:, 1] = 0.0
            assert votive.equal(got, expected)
            with pytest.raises(ValueError, match=r"\(1, 3, 8\) is known to be that of positions"):
                with glass.patch(model, Edit("^:out.1.0", "zero", positions=[0])):
                    model(x)


def test_a_single_text_has_positions() -> None:
    for first in (False, True):
        model, x = made("GRU", first), text()[:, 0]
        with votive.no_grad():
            expected = model(x)[0]
            expected[3] = 0.0
            with glass.patch(model, Edit("^", "zero", positions=[3])):
                assert votive.equal(model(x)[0], expected)


UNKNOWN = [
    ("LSTM", "end"),
    ("LSTM", "^"),
    ("LSTM", "a/stack#0"),
    ("attention", "a.look/transpose#0"),
    ("encoder", "end"),
]


@pytest.mark.parametrize(("name", "at"), UNKNOWN)
@pytest.mark.parametrize("given", [{"positions": [0]}, {"samples": [0]}, {}])
def test_what_lies_either_way_is_refused(name: str, at: str, given: dict[str, Any]) -> None:
    model = Holds(made(name))
    edit = Edit(at, "zero", **given) if given else Edit(at, "mean")
    with pytest.raises(ValueError, match=r"no dimension of \(\d, \d, \d\) is known to be that of"):
        with votive.no_grad(), glass.patch(model, edit):
            model(text())


def test_operators_inside_are_not_taken_for_samples_first() -> None:
    """They turn what they are given, which sizes that are equal would not show."""
    model = made("attention", True)
    x = votive.randn(4, 4, WIDTH)
    with votive.no_grad():
        plain = model(x)[0]
        with glass.patch(model, Edit("look/linear#3", "add", 9.0, positions=[2])):
            there = (model(x)[0] != plain).any(-1)
    assert there[:, 2].all()
    assert int(there.sum()) == 4


def test_packed_texts_are_refused() -> None:
    model = made("LSTM")
    packed = nn.utils.rnn.pack_padded_sequence(text(), votive.tensor([5, 4, 2]))
    with pytest.raises(ValueError, match="known to be that of positions"):
        with votive.no_grad(), glass.patch(model, Edit("^", "zero", positions=[0])):
            model(packed)
