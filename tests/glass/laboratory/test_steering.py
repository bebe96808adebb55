"""Directions are found, added, taken out of values and of weights; conditions choose texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.glass import steering
from votive.io import FileFormatError

from . import plain


@pytest.fixture
def model() -> Any:
    votive.manual_seed(0)
    return plain.llama()


def rows(model: Any, ids: Any, at: str = "layers.1") -> Any:
    with votive.no_grad(), glass.capture(model, at) as seen:
        model(ids)
    return seen[at]


def test_a_contrast_is_the_difference_of_means_or_the_first_principal_direction(model: Any) -> None:
    one, two = votive.randint(0, 11, (2, 20, 5))
    a, b = (rows(model, ids)[:, -2:].mean(1).double().numpy() for ids in (one, two))
    mean = steering.contrast(model, one.split(7), two.split(6), "layers.1", positions=[-2, -1])
    np.testing.assert_allclose(mean.vector.numpy(), a.mean(0) - b.mean(0), atol=1e-5)
    pca = steering.contrast(model, one.split(7), two.split(6), "layers.1", positions=[-2, -1], method="pca")
    d = a - b
    _sizes, vectors = np.linalg.eigh(d.T @ d)
    top = vectors[:, -1] * np.sign(vectors[:, -1] @ d.mean(0))
    np.testing.assert_allclose(pca.vector.numpy(), top * (d @ top).mean(), atol=1e-5)
    with pytest.raises(ValueError, match="compares pairs"):
        steering.contrast(model, [one], [two[:5]], "layers.1", method="pca")


def test_edits_of_a_direction_add_it_and_take_it_out(model: Any) -> None:
    ids = votive.randint(0, 11, (2, 5))
    direction = steering.Direction("layers.1", votive.randn(16))
    x = rows(model, ids)
    with glass.patch(model, direction.add(2.0, positions=[1])) as receipt:
        found = rows(model, ids)
    assert receipt.sites["model.layers.1"].reached
    wanted = x.clone()
    wanted[:, 1] += 2 * direction.vector
    assert votive.allclose(found, wanted, atol=1e-5)
    with glass.patch(model, direction.ablate()):
        found = rows(model, ids)
    assert float((found @ direction.unit).abs().max()) < 1e-5
    assert votive.allclose(
        found, x - votive.outer((x @ direction.unit).flatten(), direction.unit).reshape(x.shape), atol=1e-5
    )


def test_weights_without_a_direction_do_what_taking_it_out_everywhere_does(model: Any) -> None:
    ids = votive.randint(0, 11, (3, 6))
    direction = steering.Direction("layers.1", votive.randn(16))
    before = {n: t.clone() for n, t in model.state_dict().items()}
    copy = steering.orthogonalised(model, direction)
    sites = ["embed_tokens", "layers.*.self_attn", "layers.*.mlp"]
    with glass.patch(model, [direction.ablate(s) for s in sites]):
        wanted = model(ids).logits
    assert votive.allclose(copy(ids).logits, wanted, atol=1e-5)
    assert not votive.allclose(copy(ids).logits, model(ids).logits, atol=1e-3)
    assert all(votive.equal(before[n], t) for n, t in model.state_dict().items())
    assert float((rows(copy, ids) @ direction.unit).abs().max()) < 1e-5


def test_a_head_that_is_the_embedding_keeps_its_weights() -> None:
    votive.manual_seed(0)
    config = votive.models.GPT2Config(vocab_size=11, n_positions=8, n_embd=16, n_layer=2, n_head=2)
    model = votive.models.GPT2LMHeadModel(config).eval()
    ids, unit = votive.randint(0, 11, (2, 5)), votive.randn(16)
    unit = unit / unit.norm()
    copy = steering.orthogonalised(model, unit, at=["wte", "wpe", "h.*.attn.c_proj", "h.*.mlp.c_proj"])
    edits = [steering.Direction(s, unit).ablate() for s in ("wte", "wpe", "h.*.attn", "h.*.mlp")]
    with glass.patch(model, edits):
        wanted = model(ids).logits
    assert votive.allclose(copy(ids).logits, wanted, atol=1e-5)
    names = [n for n, _ in steering.weights.writers(model)]
    assert names[0] == "transformer.wte"
    assert len(names) == 5


def test_the_direction_that_matters_is_found_first() -> None:
    votive.manual_seed(0)
    planted = votive.randn(16)
    planted = planted / planted.norm()

    class Says(votive.nn.Module):
        """Refuses where the stream points along a direction."""

        def __init__(self) -> None:
            super().__init__()
            self.embed = votive.nn.Embedding(11, 16)
            self.layers = votive.nn.ModuleList(votive.nn.Linear(16, 16) for _ in range(2))
            with votive.no_grad():
                self.embed.weight.mul_(0.1)
                self.embed.weight[3] += 4 * planted

        def forward(self, ids: Any) -> Any:
            x = self.embed(ids)
            for layer in self.layers:
                x = x + 0.01 * layer(x)
            return x @ planted

    net = Says()
    bad = votive.randint(4, 11, (20, 4))
    bad[:, -1] = 3
    good = votive.randint(4, 11, (20, 4))
    best, ranked = steering.find_direction(
        net, [bad], [good], at=["embed", "layers.*"], positions=[-2, -1], metric=lambda out: out[:, -1]
    )
    assert best.at == "embed"
    assert best.about["position"] == -1
    assert len(ranked) == 6
    assert abs(float(best.unit @ planted)) > 0.98
    assert [s for _, s in ranked] == sorted(s for _, s in ranked)
    random = steering.random_direction(best, seed=5)
    assert random.norm == pytest.approx(best.norm, rel=1e-5)
    assert abs(float(random.unit @ planted)) < 0.9


def test_a_learned_vector_makes_the_model_say_what_is_wanted(model: Any) -> None:
    with votive.no_grad():
        model.lm_head.weight.mul_(50)
    ids = votive.randint(0, 11, (4, 5))
    wanted = votive.full((4,), 6, dtype=votive.int64)
    found = steering.learn_vector(model, [(ids, wanted)], "layers.1", steps=60, lr=0.2, positions=[4], max_norm=30.0)
    history = found.about["history"]
    assert history[-1] < 0.2 < history[0]
    assert found.norm <= 30.001
    with glass.patch(model, found.add(positions=[4])):
        assert model(ids).logits[:, -1].argmax(-1).tolist() == [6] * 4
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


def test_only_texts_that_meet_the_condition_are_steered(model: Any) -> None:
    ids = votive.randint(0, 11, (6, 5))
    condition = steering.Direction("layers.0", votive.randn(16))
    push = steering.Direction("layers.1", 5 * votive.randn(16))
    cosines = condition.similarity(rows(model, ids, "layers.0").mean(1))
    threshold = float(cosines.median())
    plainly = model(ids).logits
    with glass.patch(model, push.add(2.0)):
        pushed = model(ids).logits
    for below in (False, True):
        met = (cosines <= threshold) if below else (cosines > threshold)
        with steering.steer_when(model, condition, push, threshold=threshold, scale=2.0, below=below) as found:
            logits = model(ids).logits
        assert found.met is not None
        assert found.met.tolist() == met.tolist()
        assert votive.allclose(logits, votive.where(met.reshape(-1, 1, 1), pushed, plainly), atol=1e-5)
    # What the prompt decided holds for what is generated behind it.
    one = ids[int(cosines.argmax())].unsqueeze(0)
    with steering.steer_when(model, condition, push, threshold=threshold) as found:
        first = model(one[:, :4], use_cache=True)
        decided = found.met
        model(one[:, 4:], past_key_values=first.past_key_values, use_cache=True)
        assert found.met is decided
    with pytest.raises(RuntimeError, match="was called before"):
        with steering.steer_when(model, push, condition, threshold=0.0):
            model(ids)


def test_a_direction_comes_back_from_its_file(tmp_path: Path) -> None:
    direction = steering.Direction("layers.1", votive.randn(5), {"method": "mean", "positive": 3})
    direction.save(tmp_path / "d.vt")
    again = steering.Direction.load(tmp_path / "d.vt")
    assert again.at == direction.at
    assert votive.equal(again.vector, direction.vector)
    assert again.about == direction.about
    votive.save({"direction": {}, "vector": votive.ones(2, 2)}, tmp_path / "bad.vt")
    with pytest.raises(FileFormatError, match="holds no direction"):
        steering.Direction.load(tmp_path / "bad.vt")


def test_what_cannot_be_taken_out_is_refused(model: Any) -> None:
    with pytest.raises(ValueError, match="gives 16 numbers, the direction has 4"):
        steering.orthogonalised(model, votive.ones(4))
    with pytest.raises(ValueError, match="not zero"):
        steering.orthogonalised(model, votive.zeros(16))
    with pytest.raises(ValueError, match="names no module"):
        steering.orthogonalised(model, votive.ones(16), at="nope")
    with pytest.raises(TypeError, match="is not a matrix"):
        steering.orthogonalised(model, votive.ones(16), at="model.norm")
