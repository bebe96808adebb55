"""Gradients at addresses: at an input that reader's own, at a result that of all its readers."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn

from .decoders import ALL, decoder


class ResidualStream(nn.Module):
    """A stream with several readers, all of them linear."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Linear(3, 4)
        self.norm = nn.Identity()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        x = self.start(x)
        x = x + self.one(self.norm(x))
        return self.head(x + self.two(x))


def stream() -> tuple[ResidualStream, Any]:
    votive.manual_seed(0)
    return ResidualStream(), votive.randn(2, 5, 3)


def test_the_gradient_at_an_input_is_that_of_its_reader() -> None:
    net, x = stream()
    found = glass.gradient_times_activation(
        net, x, at=["start", "norm:in", "norm", "one:in", "two:in", "head:in"], metric=lambda y: y.sum((1, 2))
    )
    head = net.head.weight.sum(0)
    two = head @ net.two.weight
    one = (head + two) @ net.one.weight
    expected = {"head:in": head, "two:in": two, "one:in": one, "norm:in": one, "norm": one, "start": head + two + one}
    for name, row in expected.items():
        assert votive.allclose(found.grads[name], row.expand(2, 5, 4), atol=1e-5), name


def reader_by_difference(model: Any, ids: Any, at: str, metric: Any) -> tuple[Any, Any]:
    """The change of a metric when only what `at` reads is moved, by a patch; and the move."""
    with votive.no_grad(), glass.capture(model, at) as seen:
        model(ids)
    x = seen[at]
    # Some norms and routers compute in float32: a smaller move would drown in their rounding.
    move = 1e-3 * votive.randn(x.shape, generator=votive.Generator().manual_seed(3)).double()
    out = []
    for sign in (1, -1):
        with votive.no_grad(), glass.patch(model, {at: x + sign * move}):
            out.append(metric(model(ids)))
    return (out[0] - out[1]) / 2, move


@pytest.mark.parametrize("name", ALL)
def test_the_gradient_at_a_norms_input_is_what_patching_that_input_does(name: str) -> None:
    model, ids = decoder(name)
    model = model.double()
    norms = [
        n
        for n, m in model.named_modules()
        if "norm" in type(m).__name__.lower() and any(p.ndim == 1 for p in m.parameters())
    ]
    seen = {str(n.address) for n in glass.tree(model, ids).walk()}
    at = next(f"^{n}:in" for n in norms if n in seen)

    def metric(out: Any) -> Any:
        scores = out if isinstance(out, votive.Tensor) else out.logits
        return scores[:, -1, 3].sum()

    found = glass.gradient_times_activation(model, ids, at=at, metric=metric)
    (slope,) = found.grads.values()
    change, move = reader_by_difference(model, ids, at, metric)
    assert float((slope * move).sum()) == pytest.approx(float(change), rel=1e-2, abs=1e-6)


def test_attribution_patching_is_exact_where_the_readers_are_linear() -> None:
    net, x = stream()
    corrupt = votive.randn(2, 5, 3)
    found = glass.sweep(
        net, x, corrupt, metric=lambda y: y.sum((1, 2)), estimate=True, sites=["norm:in", "one:in", "two:in", "start"]
    )
    assert votive.allclose(found.estimate, found.values, atol=1e-4)


def test_a_module_that_writes_into_its_input_does_not_change_what_is_kept() -> None:
    votive.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))
    x = votive.randn(6, 3)
    found = glass.gradient_times_activation(net, x, at=["0", "1:in", "1"], metric=lambda y: y.sum())
    before = net[0](x)
    slope = net[2].weight.expand(6, 4)
    for name in ("0", "1:in"):
        assert votive.equal(found.values[name], before)
        assert votive.allclose(found.grads[name], slope * (before > 0))
    assert votive.equal(found.values["1"], before.relu())
    assert votive.allclose(found.grads["1"], slope)


def test_an_operator_is_refused() -> None:
    net, x = stream()
    with pytest.raises(ValueError, match="taken at modules, but '/linear' is an operator"):
        glass.gradient_times_activation(net, x, at="/linear", metric=lambda y: y.sum())
