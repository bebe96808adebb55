"""What all methods share: the best weights, mixed precision, compiled steps, killed runs, folders of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import votive
from tests.train import tuned
from votive.models import AutoModelForCausalLM
from votive.train import EarlyStopping, Recipe, SFTRecipe, classify, dpo, grpo, sft
from votive.train.evaluation import evaluate
from votive.train.packing import rows_of
from votive.train.supervised import encoded, loader, measure

ROOT = Path(votive.__file__).parent.parent
CHATS = [tuned.conversation(i) for i in range(8)]
PAIRS = [{"prompt": f"the {word}", "chosen": " yes", "rejected": " no no"} for word in ("cat", "dog", "king", "mat")]
PLAN: dict[str, Any] = {"context": 96, "batch_size": 2, "held_out": 0.0, "progress": False, "lr": 1e-3}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tok = tuned.tokenizer()
    return tuned.folder(tmp_path_factory.mktemp("base"), tuned.decoder(tok), tok)


def measured(folder: Path, data: list[Any]) -> dict[str, float]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    tok = votive.text.Tokenizer.from_pretrained(folder)
    recipe = SFTRecipe(model="x", context=96)
    found = encoded(votive.train.examples.read_examples(data), tok, recipe)
    return evaluate(model, loader(rows_of(found, 96, True), recipe, 0), measure, votive.device("cpu"))


@pytest.mark.parametrize("lora", [None, 2])
def test_the_weights_that_measured_best_are_written(base: Path, tmp_path: Path, lora: int | None) -> None:
    # The answers measured are other than those learned, so that at last it only gets worse.
    others = [{"prompt": "the cat", "completion": " good"}, {"prompt": "the dog", "completion": " bad"}]
    plan = {**PLAN, "lr": 0.2 if lora else 2e-2, "lora": lora, "eval_data": others, "eval_every": 2, "max_steps": 12}
    made = sft(CHATS, base, tmp_path / "out", best="loss", **plan)
    losses = {row["step"]: row["loss"] for row in made.history.evals}
    assert min(losses.values()) < losses[12]
    assert made.metrics["loss"] == min(losses.values()) == made.held_out_loss
    assert measured(tmp_path / "out", others)["loss"] == pytest.approx(made.metrics["loss"], rel=1e-5)
    again = sft(CHATS, base, tmp_path / "out", best="loss", resume=True, **plan)
    assert again.metrics == made.metrics
    last = sft(CHATS, base, tmp_path / "last", **plan)
    assert last.metrics["loss"] == losses[12]


def test_what_cannot_be_best_is_told(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to measure on"):
        sft(CHATS, base, tmp_path / "out", best="loss", max_steps=1, **PLAN)
    with pytest.raises(ValueError, match="best is one of reward, got 'loss'"):
        grpo([{"prompt": "the"}], base, tmp_path / "two", reward=len, best="loss")
    trainer = votive.train.Trainer(
        votive.nn.Linear(1, 1), votive.optim.SGD(votive.nn.Linear(1, 1).parameters()), train_data=[1], max_steps=1,
        step=lambda model, batch: model(batch),
    )  # fmt: skip
    with pytest.raises(FileNotFoundError, match="there is no best checkpoint"):
        trainer.load_best()


def test_training_ends_early_when_it_gets_no_better(base: Path, tmp_path: Path) -> None:
    stop = EarlyStopping("loss", patience=1, min_delta=100.0)
    plan = {**PLAN, "eval_every": 2, "max_steps": 20, "eval_data": CHATS[:2], "callbacks": [stop]}
    made = sft(CHATS, base, tmp_path / "out", **plan)
    assert len(made.history) == 4


def test_the_reference_computes_in_the_precision_that_is_trained(base: Path, tmp_path: Path) -> None:
    plan = {**PLAN, "max_steps": 1, "amp": "bfloat16"}
    made = dpo(PAIRS, base, tmp_path / "dpo", **plan)
    assert made.history["loss"][0] == pytest.approx(0.693147, abs=1e-5)
    made = grpo(
        [{"prompt": "the"}], base, tmp_path / "grpo", reward=lambda completions: [len(c) for c in completions],
        num_generations=4, max_new_tokens=6, num_iterations=2, **{**plan, "batch_size": 1},
    )  # fmt: skip
    assert made.history["kl"][0] == 0.0
    assert made.history["clipped"][0] == 0.0


def test_ways_to_compute_a_step_give_the_same_losses(base: Path, tmp_path: Path) -> None:
    plan = {**PLAN, "max_steps": 3, "accumulate": 2}
    wanted = sft(CHATS, base, tmp_path / "plain", **plan).history["loss"]
    for i, more in enumerate(
        [{"compile": True}, {"gradient_checkpointing": True}, {"packing": False, "batch_size": 8}]
    ):
        if "packing" in more:
            # All examples in each step, packed or not: the same mean over the same tokens.
            plan = {**plan, "batch_size": 8, "accumulate": 1}
            wanted = sft(CHATS, base, tmp_path / "packed", **plan).history["loss"]
        found = sft(CHATS, base, tmp_path / str(i), **{**plan, **more}).history["loss"]
        assert found == pytest.approx(wanted, abs=2e-4), more
    half = sft(CHATS, base, tmp_path / "half", **{**plan, "amp": "float16"}).history
    assert half["loss"][0] == pytest.approx(wanted[0], rel=1e-2)


@pytest.mark.parametrize("lora", [None, 2])
def test_a_step_on_packed_rows_is_one_graph(base: Path, tmp_path: Path, lora: int | None) -> None:
    seen: list[Any] = []
    plan = {**PLAN, "max_steps": 2, "lora": lora}
    wanted = sft(CHATS, base, tmp_path / "plain", **plan).history["loss"]
    found = sft(CHATS, base, tmp_path / "graph", compile=True, callbacks=[seen.append], **plan).history["loss"]
    assert found == pytest.approx(wanted, abs=1e-5)
    program = seen[-1]._step.program
    assert not program.breaks
    assert len(program.entries) == 1


def test_small_gradients_of_float16_are_scaled() -> None:
    assert isinstance(Recipe(amp="float16").scaler("cpu"), votive.amp.GradScaler)
    assert Recipe(amp="bfloat16").scaler("cpu") is None
    assert Recipe().scaler("cpu") is None


def test_a_model_is_not_written_over_itself(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="write the new one elsewhere"):
        sft(CHATS, base, base, max_steps=1, **PLAN)
    with pytest.raises(ValueError, match="needs tokenizer="):
        classify([], votive.nn.Linear(1, 1), tmp_path / "out")


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from tests.train import tuned
from votive.train import sft
def die(trainer):
    if trainer.step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
sft([tuned.conversation(i) for i in range(8)], {base!r}, {out!r}, callbacks=[die], **{plan!r})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_run_ends_as_if_it_had_not_been(base: Path, tmp_path: Path) -> None:
    plan = {
        **PLAN, "lora": 2, "lora_dropout": 0.1, "accumulate": 2, "batch_size": 1, "context": 64, "max_steps": 8,
        "checkpoint_every": 3,
    }  # fmt: skip
    whole = sft(CHATS, base, tmp_path / "whole", **plan)
    code = KILLED.format(root=str(ROOT), base=str(base), out=str(tmp_path / "parts"), plan=plan)
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == -signal.SIGKILL, run.stderr
    again = sft(CHATS, base, tmp_path / "parts", resume=True, **plan)
    assert again.history["loss"] == whole.history["loss"]
    written = [tmp_path / part / "adapter_model.safetensors" for part in ("whole", "parts")]
    assert written[0].read_bytes() == written[1].read_bytes()
