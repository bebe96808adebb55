"""Sparse coders compute what the papers' formulas say, and their losses and gradients are torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.glass.features import SAE, SAEConfig, SAETrainer, SAETraining, losses, measure

from . import plain

KINDS = [("relu", None), ("topk", 5), ("batchtopk", 5), ("jumprelu", None), ("gated", None)]
FORMS: list[dict[str, Any]] = [{}, {"center": False}, {"d_out": 7}, {"d_out": 7, "skip": True}, {"layers": 3}]


def made(kind: str, k: int | None, seed: int = 0, **form: Any) -> SAE:
    votive.manual_seed(seed)
    sae = SAE(SAEConfig(12, 40, kind, k=k, **form))
    with votive.no_grad():
        for name, p in sae.named_parameters():
            p.add_(votive.randn(p.shape) * (0.5 if name == "log_threshold" else 0.2))
        sae.scale_in.fill_(1.7)
        sae.scale_out.fill_(1.7 if sae.config.center else 0.6)
        if kind == "batchtopk":
            sae.threshold.fill_(0.4)
    return sae


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(("kind", "k"), KINDS)
def test_features_and_what_they_say_are_those_of_the_formulas(kind: str, k: int | None, form: dict[str, Any]) -> None:
    sae = made(kind, k, **form)
    x = votive.randn(50, 3, 12) if "layers" in form else votive.randn(50, 12)
    flat = x.flatten(1).double().numpy()
    f = plain.encode(sae, flat)
    assert (f > 0).any()
    np.testing.assert_allclose(sae.encode(x).detach().numpy(), f, atol=1e-5)
    np.testing.assert_allclose(sae(x).detach().flatten(1).numpy(), plain.decode(sae, f, flat), atol=1e-5)


@pytest.mark.parametrize(("kind", "k"), KINDS)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_folded_scales_change_nothing(kind: str, k: int | None, form: dict[str, Any]) -> None:
    sae = made(kind, k, **form)
    x = votive.randn(20, 3, 12) if "layers" in form else votive.randn(20, 12)
    features, before = sae.encode(x), sae(x)
    sae.fold()
    assert float(sae.scale_in) == 1
    assert votive.allclose(sae.encode(x), features, atol=1e-5)
    assert votive.allclose(sae(x), before, atol=1e-5)


@pytest.mark.parity
@pytest.mark.parametrize("prefixes", [(), (10, 25, 40)], ids=["whole", "matryoshka"])
@pytest.mark.parametrize(("kind", "k"), KINDS)
@pytest.mark.parametrize("skip", [False, True])
def test_losses_and_gradients_are_those_of_torch(
    kind: str, k: int | None, prefixes: tuple[int, ...], skip: bool
) -> None:
    torch = pytest.importorskip("torch")
    form: dict[str, Any] = {"d_out": 7, "skip": True} if skip else {}
    sae = made(kind, k, prefixes=prefixes, bandwidth=0.3, **form)
    x, y = votive.randn(30, 12), votive.randn(30, 7)
    dead = votive.arange(40) % 4 == 0
    found = losses(sae, x, y if skip else None, sparsity=0.3, auxiliary=0.5, dead=dead, k_aux=4)
    found.total.backward()

    w = {n: torch.tensor(t.detach().numpy(), dtype=torch.float64) for n, t in sae.state_dict().items()}
    for n, _ in sae.named_parameters():
        w[n].requires_grad_()
    tx = torch.tensor(x.numpy(), dtype=torch.float64)
    rows = tx * w["scale_in"]
    wanted = (torch.tensor(y.numpy(), dtype=torch.float64) if skip else tx) * w["scale_out"]
    centred = rows if skip else rows - w["b_dec"]
    pre = centred @ w["W_enc"] + w["b_gate" if kind == "gated" else "b_enc"]
    jump = 0.0
    if kind == "relu":
        f = pre.relu()
    elif kind == "topk":
        best = pre.topk(k, -1)
        f = torch.zeros_like(pre).scatter(-1, best.indices, best.values.relu())
    elif kind == "batchtopk":
        best = pre.flatten().topk(k * len(pre))
        f = torch.zeros_like(pre).flatten().scatter(-1, best.indices, best.values.relu()).reshape(pre.shape)
    elif kind == "gated":
        f = (pre > 0) * (centred @ (w["W_enc"] * w["r_mag"].exp()) + w["b_mag"]).relu()
    else:
        # What has the wanted gradient: the step's density is 1 / bandwidth inside of the rectangle.
        threshold = w["log_threshold"].exp()
        held = threshold.detach()
        inside = ((pre.detach() - held).abs() < 0.15).double() / 0.3
        step = (pre.detach() > held).double() - inside * (threshold - held)
        f = pre * (pre.detach() > held) - held * inside * (threshold - held)
        jump = step.sum(-1).mean()
    base = w["b_dec"] + (rows @ w["W_skip"].T if skip else 0)
    errors = [((wanted - base - f[:, :n] @ w["W_dec"][:n]) ** 2).sum(-1).mean() for n in prefixes or (40,)]
    total = sum(errors) / len(errors)
    norms = w["W_dec"].norm(dim=-1)
    if kind == "relu":
        total = total + 0.3 * (f * norms).sum(-1).mean()
    if kind == "jumprelu":
        total = total + 0.3 * jump
    if kind == "gated":
        total = total + 0.3 * (pre.relu() * norms).sum(-1).mean()
        total = total + ((pre.relu() @ w["W_dec"].detach() + base.detach() - wanted) ** 2).sum(-1).mean()
    residual = (wanted - base - f @ w["W_dec"]).detach()
    mask = torch.tensor(dead.numpy())
    best = pre.masked_fill(~mask, -torch.inf).topk(4, -1)
    extra = torch.zeros_like(pre).scatter(-1, best.indices, best.values.relu()) @ w["W_dec"]
    total = total + 0.5 * ((extra - residual) ** 2).sum(-1).mean()
    total.backward()
    assert float(found.total) == pytest.approx(float(total.detach()), rel=1e-5)
    for n, p in sae.named_parameters():
        theirs = w[n].grad if w[n].grad is not None else torch.zeros_like(w[n])
        mine = votive.zeros_like(p) if p.grad is None else p.grad
        np.testing.assert_allclose(
            mine.numpy(), theirs.numpy(), atol=2e-5 * max(1.0, float(theirs.abs().max())), err_msg=n
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "tanh"}, "kind must be one of"),
        ({"kind": "topk"}, "needs k"),
        ({"kind": "relu", "k": 3}, "no use for k"),
        ({"kind": "topk", "k": 41}, "k must be in 1..40"),
        ({"kind": "relu", "skip": True}, "skip= is for transcoders"),
        ({"kind": "relu", "layers": 2, "d_out": 3}, "leave d_out away"),
        ({"kind": "relu", "prefixes": (8, 20)}, "end with 40"),
        ({"kind": "relu", "d_out": 3, "center": True}, "center= must be False"),
        ({"kind": "relu", "d_out": 0}, "d_out must be a positive integer"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SAEConfig(12, 40, **options)


def test_a_coder_refuses_what_it_cannot_read() -> None:
    with pytest.raises(ValueError, match=r"reads \(\.\.\., 12\), got \(2, 11\)"):
        SAE(12, 40, "relu").encode(votive.zeros(2, 11))
    with pytest.raises(ValueError, match="needs what it read"):
        SAE(12, 40, "relu", d_out=3, skip=True).decode(votive.zeros(1, 40))
    assert SAE(12, 40, "topk", k=2).encode(votive.zeros(0, 12)).shape == (0, 40)


@pytest.mark.parametrize(("kind", "k", "sparsity"), [("topk", 3, 0.0), ("relu", None, 0.6)])
def test_a_coder_finds_the_features_that_were_planted(kind: str, k: int | None, sparsity: float) -> None:
    rows, planted = plain.superposed(features=32, numbers=16, rows=20_000, share=0.05, seed=3)
    votive.manual_seed(1)
    sae = SAE(16, 48, kind, k=k)
    plan = SAETraining(
        600,
        batch_size=512,
        lr=4e-3,
        decay=200,
        sparsity=sparsity,
        sparsity_warmup=100,
        dead_after=5_000,
        normalize=False,
    )
    SAETrainer(sae, votive.from_numpy(rows), plan).fit()
    found = sae.directions()
    found = (found / found.norm(dim=-1, keepdim=True)).numpy()
    cosines = (planted @ found.T).max(1)
    assert cosines.mean() >= 0.95, cosines


def test_measures_are_those_of_their_definitions() -> None:
    sae = made("topk", 5)
    x = votive.randn(333, 12) * 3 + 100
    found = measure(sae, x, batch_size=100)
    rows = x.double().numpy()
    f = plain.encode(sae, rows)
    wrong = rows - plain.decode(sae, f, rows)
    assert found.rows == 333
    assert found.l0 == pytest.approx((f != 0).sum(1).mean())
    assert found.dead == pytest.approx((~(f != 0).any(0)).mean())
    spread = ((rows - rows.mean(0)) ** 2).sum()
    assert found.explained_variance == pytest.approx(1 - (wrong**2).sum() / spread, rel=1e-4)


def test_the_loss_recovered_is_one_of_what_says_all_and_zero_of_zeros() -> None:
    model = plain.llama()
    ids = votive.randint(0, 11, (4, 9))
    perfect = SAE(16, 32, "relu", center=False, site="layers.1")
    nothing = SAE(16, 32, "relu", center=False, site="layers.1")
    with votive.no_grad():
        eye = votive.eye(16)
        perfect.W_enc.copy_(votive.cat([eye, -eye], 1))
        perfect.W_dec.copy_(votive.cat([eye, -eye], 0))
        nothing.W_dec.zero_()
    rows = votive.randn(20, 16)
    assert measure(perfect, rows, model=model, batches=[ids]).recovered == pytest.approx(1.0, abs=1e-4)
    assert measure(nothing, rows, model=model, batches=[ids]).recovered == pytest.approx(0.0, abs=1e-6)
