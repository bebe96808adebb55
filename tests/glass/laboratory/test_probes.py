"""Probes, erasure, interchange, similarity and influence against their definitions, written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.glass import probes

from . import plain

# --- probes ---------------------------------------------------------------------------------------


def newton(x: Any, y: Any, penalty: float) -> tuple[Any, float]:
    """Logistic regression by Newton's method."""
    z = np.hstack([x, np.ones((len(x), 1))])
    keep = np.diag([penalty] * x.shape[1] + [0.0])
    w = np.zeros(z.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-z @ w))
        w -= np.linalg.solve(z.T * (p * (1 - p)) @ z + keep, z.T @ (p - y) + keep @ w)
    return w[:-1], w[-1]


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
def test_a_logistic_probe_is_that_of_newtons_method(penalty: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 6)) * [1, 10, 0.1, 1, 1, 3] + 5
    noisy = x @ rng.normal(size=6) + rng.normal(size=150) * 3
    y = (noisy > np.median(noisy)).astype(int)
    assert 10 < y.sum() < 140
    w, b = newton(x, y, penalty)
    found = probes.fit(votive.from_numpy(x), votive.from_numpy(y), penalty=penalty)
    np.testing.assert_allclose((found.weight[1] - found.weight[0]).numpy(), w, atol=1e-5)
    assert float(found.bias[1] - found.bias[0]) == pytest.approx(b, abs=1e-4)
    np.testing.assert_allclose(found.direction.numpy(), w / np.linalg.norm(w), atol=1e-5)
    assert found.score(votive.from_numpy(x), votive.from_numpy(y)) == pytest.approx(((x @ w + b > 0) == y).mean())


def test_a_probe_of_several_classes_is_where_the_gradient_vanishes() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 5)), rng.integers(0, 4, 200)
    x[:, 0] += y
    found = probes.fit(votive.from_numpy(x), votive.from_numpy(y * 10 - 7), penalty=0.5)
    scores = found.scores(votive.from_numpy(x)).numpy()
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    apart = p - np.eye(4)[y]
    np.testing.assert_allclose(apart.T @ x + 0.5 * found.weight.numpy(), 0, atol=1e-5)
    np.testing.assert_allclose(apart.sum(0), 0, atol=1e-5)
    assert set(found.predict(votive.from_numpy(x)).tolist()) <= {-7, 3, 13, 23}


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_a_ridge_is_the_closed_form(penalty: float) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)) + 3, rng.normal(size=(60, 2))
    xc, yc = x - x.mean(0), y - y.mean(0)
    w = np.linalg.solve(xc.T @ xc + penalty * np.eye(5), xc.T @ yc).T
    found = probes.fit(votive.from_numpy(x), votive.from_numpy(y), kind="ridge", penalty=penalty)
    np.testing.assert_allclose(found.weight.numpy(), w, atol=1e-8)
    np.testing.assert_allclose(found.scores(votive.from_numpy(x)).numpy(), xc @ w.T + y.mean(0), atol=1e-8)
    explained = 1 - ((yc - xc @ w.T) ** 2).sum() / (yc**2).sum()
    assert found.score(votive.from_numpy(x), votive.from_numpy(y)) == pytest.approx(explained)


def test_probes_see_a_token_where_it_is_and_are_judged_by_what_was_held_out() -> None:
    votive.manual_seed(0)
    model = plain.llama(width=32)
    ids = votive.randint(0, 11, (120, 4))
    found = probes.probe_layers(
        model, ids.split(50), ids[:, 1] > 5, at=["embed_tokens", "layers.*"], positions="all", penalty=1e-4
    )
    assert found.sites == ("model.embed_tokens", "model.layers.0", "model.layers.1", "model.layers.2")
    assert found.samples == (90, 30)
    assert found.held_out[0][1] == 1.0
    assert found.train[0][1] == 1.0
    assert found.held_out[0][0] < 0.8  # the embedding of another position knows nothing
    with votive.no_grad(), glass.capture(model, "layers.1") as seen:
        model(ids)
    y = (ids[:, 1] > 5).to(votive.int64)
    learn, test = probes.layers.split(y, 0.25, 0)
    assert not set(learn.tolist()) & set(test.tolist())
    assert len(learn) + len(test) == 120
    own = probes.fit(seen["layers.1"][learn, 2], y[learn], penalty=1e-4)
    assert own.score(seen["layers.1"][test, 2], y[test]) == found.held_out[2][2]
    assert votive.allclose(found["layers.1", "2"].weight, own.weight, atol=1e-6)
    assert found.figure().svg().startswith("<svg")
    assert found.figure("map").svg().startswith("<svg")
    assert len(found.table().rows) == 16


def test_values_are_gathered_where_a_mask_says_that_the_text_is() -> None:
    votive.manual_seed(0)
    net = votive.nn.Sequential(votive.nn.Embedding(9, 4))

    class Masked(votive.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.net(input_ids) + attention_mask.sum() * 0

    ids = votive.tensor([[1, 2, 3], [4, 5, 0]])
    batch = {"input_ids": ids, "attention_mask": votive.tensor([[1, 1, 1], [1, 1, 0]])}
    rows = net[0].weight.detach()
    last = probes.gather(Masked(), [batch], "net.0", -1).sites["net.0"]
    assert votive.equal(last[:, 0], rows[votive.tensor([3, 5])])
    mean = probes.gather(Masked(), [batch], "net.0", "mean").sites["net.0"]
    assert votive.allclose(mean[1, 0], (rows[4] + rows[5]) / 2)
    with pytest.raises(IndexError, match="outside a text of 2"):
        probes.gather(Masked(), [batch], "net.0", 2)
    with pytest.raises(ValueError, match="choose positions"):
        probes.gather(Masked(), [batch], "net.0", "all")


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: probes.fit(votive.ones(3, 2), votive.tensor([1, 1, 1])), ValueError, "only one class"),
        (lambda: probes.fit(votive.ones(3, 2), votive.ones(3)), TypeError, "labels must be a 1-d tensor of integers"),
        (lambda: probes.fit(votive.ones(3, 2), votive.tensor([0, 1])), ValueError, "as many labels"),
        (lambda: probes.fit(votive.ones(3, 2) / 0, votive.tensor([0, 1, 1])), ValueError, "not finite"),
        (lambda: probes.fit(votive.ones(3, 2), votive.ones(3), kind="svm"), ValueError, "kind must be one of"),
        (lambda: probes.cka(votive.ones(3, 2), votive.ones(4, 2)), ValueError, "of the same samples"),
        (lambda: probes.fit_eraser(votive.ones(3, 2), votive.tensor([1, 1, 1])), ValueError, "nothing to erase"),
    ],
)
def test_what_cannot_be_fitted_is_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


# --- erasure --------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_an_eraser_is_that_of_the_theorem(classes: int) -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(0, classes, 400)
    x = rng.normal(size=(400, 8)) @ rng.normal(size=(8, 8)) + 4 * rng.normal(size=(classes, 8))[z]
    one = np.eye(classes)[z]
    xc, zc = x - x.mean(0), one - one.mean(0)
    sizes, v = np.linalg.eigh(xc.T @ xc / 400)
    whiten, colour = v / np.sqrt(sizes) @ v.T, v * np.sqrt(sizes) @ v.T
    u, s, _ = np.linalg.svd(whiten @ (xc.T @ zc / 400), full_matrices=False)
    u = u[:, s > 1e-9]
    wanted = x - xc @ (colour @ u @ u.T @ whiten).T
    eraser = probes.fit_eraser(votive.from_numpy(x), votive.from_numpy(z))
    assert eraser.rank == classes - 1
    np.testing.assert_allclose(eraser(votive.from_numpy(x)).numpy(), wanted, atol=1e-8)
    # Nothing is left that goes with the labels, and a second time nothing changes.
    np.testing.assert_allclose((wanted - wanted.mean(0)).T @ zc, 0, atol=1e-8)
    parts = probes.ErasureFitter(8, classes)
    for a, b in zip(np.array_split(x, 7), np.array_split(one, 7), strict=True):
        parts.add(votive.from_numpy(a), votive.from_numpy(b))
    np.testing.assert_allclose(parts.eraser()(votive.from_numpy(x)).numpy(), wanted, atol=1e-8)


def test_erased_values_leave_linear_probes_at_chance() -> None:
    rng = np.random.default_rng(0)
    z = votive.from_numpy(rng.integers(0, 3, 3000))
    x = votive.from_numpy(
        rng.normal(size=(3000, 10)) @ rng.normal(size=(10, 10)) + 5 * rng.normal(size=(3, 10))[z.numpy()]
    )

    def held_out(x: Any) -> Any:
        return probes.probe_values(probes.Values({"x": x.unsqueeze(1)}, ("0",)), z)

    before, after = held_out(x), held_out(probes.fit_eraser(x, z)(x))
    assert before.held_out[0][0] > 0.9
    assert after.held_out[0][0] < after.chance + 0.06


def test_a_model_whose_values_are_erased_knows_no_more_than_the_commonest_class() -> None:
    votive.manual_seed(0)
    model = plain.llama(width=32).double()
    ids = votive.randint(0, 11, (400, 3))
    y = (ids[:, -1] > 5).to(votive.int64)
    sites = ["embed_tokens", "layers.0", "layers.1", "layers.2"]
    edits = probes.erase(model, [ids], y, sites)
    before = probes.gather(model, [ids], sites).sites
    with glass.patch(model, edits) as receipt:
        after = probes.gather(model, [ids], sites).sites
    assert all(site.reached for site in receipt.sites.values())
    # Nothing linear does better than the constant, whose cross entropy is least (theorem 3.1).
    share = float(y.double().mean())
    for site, found in after.items():
        assert probes.fit(before[site][:, 0], y, penalty=1e-3).score(before[site][:, 0], y) == 1.0
        probe = probes.fit(found[:, 0], y, penalty=1e-3)
        assert float(probe.weight.abs().max()) < 1e-5
        assert probe.score(found[:, 0], y) == pytest.approx(max(share, 1 - share))


def test_an_eraser_copes_with_constant_and_dependent_features() -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 100)
    x = np.stack([z + rng.normal(size=100), np.full(100, 7.0), z * 2.0], 1)
    x = np.hstack([x, x[:, :1]])
    found = probes.fit_eraser(votive.from_numpy(x), votive.from_numpy(z))(votive.from_numpy(x)).numpy()
    np.testing.assert_allclose(found[z == 1].mean(0), found[z == 0].mean(0), atol=1e-6)
    np.testing.assert_allclose(found[:, 1], 7.0, atol=1e-9)


# --- interchange ----------------------------------------------------------------------------------


def test_interchange_puts_the_sources_part_in_the_subspace() -> None:
    votive.manual_seed(0)
    model = plain.llama()
    base, source = votive.randint(0, 11, (2, 3, 5))
    with votive.no_grad():
        with glass.capture(model, "layers.1") as seen:
            model(base)
            b = seen["layers.1"]
            model(source)
            s = seen["layers.1"]
        basis = votive.linalg.qr(votive.randn(16, 4))[0]
        wanted = b.clone()
        wanted[:, 2] = b[:, 2] + (s - b)[:, 2] @ basis @ basis.t()
        for positions in ([2], [-3]):
            with glass.capture(model, "layers.1") as seen:
                probes.interchange(model, base, source, "layers.1", subspace=basis, positions=positions)
            assert votive.allclose(seen["layers.1"], wanted, atol=1e-5)
        whole = probes.interchange(model, base, source, "layers.1").logits
        assert votive.allclose(whole[:, -1], model(source).logits[:, -1], atol=1)
        assert not votive.allclose(whole[:, -1], model(base).logits[:, -1], atol=1e-3)


def test_das_finds_the_subspace_that_carries_a_variable() -> None:
    votive.manual_seed(0)
    hidden = votive.linalg.qr(votive.randn(8, 8))[0]

    class Sum(votive.nn.Module):
        """Answers with two variables that lie in a rotated basis."""

        def __init__(self) -> None:
            super().__init__()
            self.turn, self.read = votive.nn.Linear(8, 8, bias=False), votive.nn.Linear(8, 2, bias=False)
            with votive.no_grad():
                self.turn.weight.copy_(hidden)
                self.read.weight.copy_(hidden.t()[:2])

        def forward(self, x: Any) -> Any:
            return self.read(self.turn(x))

    net = Sum()
    base, source = votive.randn(2, 64, 1, 8)
    wanted = votive.cat([source[..., :1], base[..., 1:2]], -1)  # the first variable of the source
    found = probes.train_das(
        net, [(base, source, wanted)], "turn", 1, epochs=150, lr=0.1, loss=lambda out, y: (out - y).square().mean()
    )
    assert abs(float(found.basis[:, 0] @ hidden[:, 0])) > 0.999
    assert found.history[-1] < 1e-3 < found.history[0]
    assert all(p.requires_grad and p.grad is None for p in net.parameters())


# --- similarity -----------------------------------------------------------------------------------


def test_similarities_are_those_of_their_definitions() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(30, 5))
    b = a @ rng.normal(size=(5, 7)) + 0.5 * rng.normal(size=(30, 7))
    va, vb = votive.from_numpy(a), votive.from_numpy(b)
    h = np.eye(30) - 1 / 30
    k, m = h @ a @ a.T @ h, h @ b @ b.T @ h
    assert probes.cka(va, vb) == pytest.approx((k * m).sum() / np.sqrt((k * k).sum() * (m * m).sum()), abs=1e-9)

    def hsic(k: Any, m: Any) -> Any:
        n = len(k)
        k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
        one = np.ones(n)
        first = (
            np.trace(k @ m)
            + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
            - 2 / (n - 2) * (one @ k @ m @ one)
        )
        return first / (n * (n - 3))

    k, m = a @ a.T, b @ b.T
    wanted = hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))
    assert probes.cka(va, vb, debiased=True) == pytest.approx(wanted, abs=1e-9)

    def top(x: Any, share: float) -> Any:
        u, s, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
        return u[:, : int(np.searchsorted(np.cumsum(s**2) / (s**2).sum(), share - 1e-12)) + 1]

    corr = np.linalg.svd(top(a, 0.9).T @ top(b, 0.9), compute_uv=False)
    assert probes.svcca(va, vb, variance=0.9) == pytest.approx(corr.mean(), abs=1e-9)

    def ranks(v: Any) -> Any:
        return np.array([((v < x).sum() + (v <= x).sum() - 1) / 2 for x in v])

    up = np.triu_indices(30, 1)
    da, db = (1 - np.corrcoef(x)[up] for x in (a, b))
    assert probes.rsa(va, vb) == pytest.approx(np.corrcoef(ranks(da), ranks(db))[0, 1], abs=1e-9)
    ea, eb = (np.linalg.norm(x[:, None] - x[None], axis=-1)[up] for x in (a, b))
    pearson = probes.rsa(va, vb, distance="euclidean", compare="pearson")
    assert pearson == pytest.approx(np.corrcoef(ea, eb)[0, 1], abs=1e-9)


@pytest.mark.parametrize("measure", ["cka", "svcca", "rsa"])
def test_layers_are_alike_to_themselves(measure: str) -> None:
    votive.manual_seed(0)
    model = plain.llama()
    found = probes.similarity(model, model, [votive.randint(0, 11, (40, 4))], measure=measure)
    assert found.rows == found.columns == ("model.layers.0", "model.layers.1", "model.layers.2")
    values = np.array(found.values)
    np.testing.assert_allclose(np.diag(values), 1, atol=1e-6)
    np.testing.assert_allclose(values, values.T, atol=1e-9)
    assert (values <= 1 + 1e-9).all()


# --- influence ------------------------------------------------------------------------------------


def test_influence_is_the_sum_of_products_of_gradients() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    states = [rng.normal(size=3) for _ in range(2)]
    net = votive.nn.Linear(3, 1, bias=False).double()
    was = net.weight.detach().clone()

    def loss(model: Any, example: Any) -> Any:
        return (model(example[0]) - example[1]).square().sum()

    data = [(votive.from_numpy(a), votive.tensor([b], dtype=votive.float64)) for a, b in zip(x, y, strict=True)]
    checkpoints = [{"weight": votive.from_numpy(s).reshape(1, 3)} for s in states]
    found = probes.tracin(net, loss, data[:4], data[4:], checkpoints=checkpoints, rates=[0.1, 0.3])
    wanted = np.zeros((2, 4))
    for s, rate in zip(states, (0.1, 0.3), strict=True):
        g = 2 * (x @ s - y)[:, None] * x
        wanted += rate * g[4:] @ g[:4].T
    np.testing.assert_allclose(found.values.numpy(), wanted, rtol=1e-10)
    assert votive.equal(net.weight, was)
    assert net.weight.requires_grad
    assert found.helped(0, 1)[0][0] == wanted[0].argmax()
    assert found.harmed(1, 1)[0][0] == wanted[1].argmin()
    with pytest.raises(ValueError, match="2 checkpoints have 1 rates"):
        probes.tracin(net, loss, data, data, checkpoints=checkpoints, rates=[0.1])
    with pytest.raises(ValueError, match="no parameter is left"):
        probes.tracin(net, loss, data, data, parameters=lambda name: False)
