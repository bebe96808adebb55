"""A compiled trainer trains as one that is not, and is resumed as exactly."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import nn
from votive.data import DataLoader, TensorDataset
from votive.train import Trainer


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv1d(1, 4, 3, padding=1, bias=False), nn.BatchNorm1d(4)
        self.drop, self.out = nn.Dropout(0.2), nn.Linear(32, 3)

    def forward(self, x):
        h = self.norm(self.conv(x))
        h = votive.sin(h) * votive.exp(-h * h * 0.3) + h * 1.1 + 0.1  # rounded otherwise in one formula
        return self.out(self.drop(h).flatten(1))


def own_step(model, batch):
    x, y = batch
    loss = nn.functional.cross_entropy(model(x), y)
    return loss, {"size": (model.out.weight**2).mean().detach()}


def printing_step(model, batch):
    x, y = batch
    loss = nn.functional.cross_entropy(model(x), y)
    return loss, {"size": float((model.out.weight**2).mean())}


def trainer(steps: int, **options: Any) -> Trainer:
    votive.manual_seed(0)
    data = TensorDataset(votive.randn(22, 1, 8), votive.arange(22) % 3)
    model = Net()
    made = {"adamw": lambda p: votive.optim.AdamW(p, lr=1e-2), "sgd": lambda p: votive.optim.SGD(p, 1e-2, 0.9)}
    optimizer = made[options.pop("optimizer", "adamw")](model.parameters())
    if "step" not in options:
        options["loss_fn"] = nn.CrossEntropyLoss()
    loader = DataLoader(data, 4, shuffle=True)
    evaluation = DataLoader(data, 8)
    return Trainer(
        model, optimizer, train_data=loader, eval_data=evaluation, max_steps=steps, progress=False, **options
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"step": own_step},
        {"clip_grad_norm": 0.5},
        {"accumulate": 2, "clip_grad_norm": 0.5},
        {"amp": votive.bfloat16},
        {"step": printing_step},
    ],
    ids=["loss_fn", "step", "clip", "accumulate", "amp", "pieces"],
)
def test_losses_and_weights_are_those_without_compiling(options) -> None:
    plain = trainer(20, compile=False, **options)
    a = plain.fit()
    compiled = trainer(20, compile=True, **options)
    b = compiled.fit()
    bound = {"rel": 2e-2, "abs": 2e-2} if "amp" in options else {"rel": 1e-4, "abs": 1e-5}
    assert b["loss"] == pytest.approx(a["loss"], **bound)
    assert [e["loss"] for e in b.evals] == pytest.approx([e["loss"] for e in a.evals], **bound)
    if "step" in options:
        assert b["size"] == pytest.approx(a["size"], **bound)
    if "amp" not in options:
        wanted = plain.model.state_dict()
        for name, t in compiled.model.state_dict().items():
            assert votive.allclose(t, wanted[name], rtol=1e-3, atol=1e-4), name


def test_it_really_runs_a_graph() -> None:
    made = trainer(12, compile=True)
    made.fit()
    versions = votive.compiler.explain(made._step.program).versions
    assert len(versions) == 2  # the last batch is smaller
    assert sum(v.runs for v in versions) == 12
    assert all("_adam_step" in v.forward for v in versions)


@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd", "clip_grad_norm": 0.5}, {"accumulate": 2}], ids=str)
def test_a_compiled_run_that_is_resumed_is_the_same_bit_by_bit(tmp_path, options) -> None:
    whole = trainer(12, compile=True, **options).fit()
    votive.compiler.reset()
    trainer(5, compile=True, folder=tmp_path, checkpoint_every=5, **options).fit()
    votive.compiler.reset()
    resumed = trainer(12, compile=True, folder=tmp_path, **options).fit()
    assert resumed["loss"] == whole["loss"]
    assert [e["loss"] for e in resumed.evals][-1] == [e["loss"] for e in whole.evals][-1]


def test_by_default_the_cpu_runs_as_it_is() -> None:
    made = trainer(2)
    made.fit()
    assert not isinstance(made._objective._program, votive.compiler.api.Compiled)
    assert not hasattr(made._step, "program")


@pytest.mark.parametrize("kind", ["qwen3", "gpt2"])
def test_a_recipe_makes_the_same_model_compiled(tmp_path, kind) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The king had three sons. The youngest went into the wood.\n" * 40)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "context": 16, "vocab_size": 300}
    sizes |= {"held_out": 0.2}
    made = {}
    for compile in (False, True):
        recipe = votive.train.Recipe(model_type=kind, **sizes, max_steps=8, compile=compile)
        made[compile] = votive.train.train_language_model(text, recipe, tmp_path / str(compile), progress=False)
    losses = [made[c].history["loss"] for c in (False, True)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert made[True].held_out_loss == pytest.approx(made[False].held_out_loss, rel=1e-4)
