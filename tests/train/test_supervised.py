"""Supervised fine-tuning from data to a folder: it learns, weighs by tokens, resumes, saves as PEFT does."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests.train import tuned
from votive.models import AutoModelForCausalLM
from votive.train import SFTRecipe, sft
from votive.train.conversations import encode
from votive.train.examples import Example
from votive.train.packing import Collate, Shares, rows_of
from votive.train.supervised import step
from votive.train.trainer import Trainer

CHATS = [tuned.conversation(i) for i in range(12)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tok = tuned.tokenizer()
    return tuned.folder(tmp_path_factory.mktemp("base"), tuned.decoder(tok), tok)


class StopAt:
    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, trainer: Any) -> None:
        if trainer.step == self.step:
            trainer.stop()


def test_it_learns_to_answer(base: Path, tmp_path: Path) -> None:
    made = sft(CHATS, base, tmp_path / "out", held_out=0.0, context=96, max_steps=60, lr=1e-2, progress=False)
    assert made.history["loss"][-1] < 0.2 < 3 < made.history["loss"][0]
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tok = votive.text.Tokenizer.from_pretrained(tmp_path / "out")
    for i in (0, 1):
        talk = CHATS[i]["messages"]
        ids = tok.apply_chat_template(talk[:1], add_generation_prompt=True, return_tensors="vt")
        ids = ids["input_ids"] if not isinstance(ids, votive.Tensor) else ids
        said = tok.decode(again.generate(ids, max_new_tokens=4)[0, ids.shape[1] :])
        assert said.startswith(talk[1]["content"] + "<|im_end|>")


@pytest.mark.parametrize("lora", [None, 4])
def test_a_run_that_was_stopped_ends_the_same(base: Path, tmp_path: Path, lora: int | None) -> None:
    plan: dict[str, Any] = {
        "lora": lora, "lora_dropout": 0.1 if lora else 0.0, "context": 48, "batch_size": 2, "accumulate": 2,
        "epochs": 3, "checkpoint_every": 2, "eval_every": 2, "held_out": 0.2, "lr": 1e-3,
    }  # fmt: skip
    whole = sft(CHATS, base, tmp_path / "whole", progress=False, **plan)
    sft(CHATS, base, tmp_path / "parts", progress=False, callbacks=[StopAt(3)], **plan)
    again = sft(CHATS, base, tmp_path / "parts", progress=False, resume=True, **plan)
    assert again.history["loss"] == whole.history["loss"]
    assert again.history.evals[-1] == whole.history.evals[-1]
    assert set(whole.metrics) == {"loss", "accuracy"}
    name = "adapter_model.safetensors" if lora else "model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    with pytest.raises(ValueError, match=r"lr was 0\.001, now 0\.002"):
        sft(CHATS, base, tmp_path / "parts", progress=False, resume=True, **{**plan, "lr": 2e-3})
    with pytest.raises(ValueError, match="other data"):
        sft(CHATS[1:], base, tmp_path / "parts", progress=False, resume=True, **plan)
    with pytest.raises(FileExistsError, match="resume it"):
        sft(CHATS, base, tmp_path / "parts", progress=False, **plan)


def test_an_adapter_is_what_peft_reads_and_goes_on_learning(base: Path, tmp_path: Path) -> None:
    plan: dict[str, Any] = {"held_out": 0.0, "context": 96, "max_steps": 8, "lr": 1e-2, "progress": False}
    made = sft(CHATS, base, tmp_path / "adapter", lora=4, **plan)
    settings = json.loads((tmp_path / "adapter" / "adapter_config.json").read_bytes())
    assert settings["peft_type"] == "LORA"
    assert settings["r"] == 4
    assert settings["lora_alpha"] == 8
    assert settings["task_type"] == "CAUSAL_LM"
    assert settings["base_model_name_or_path"] == str(base)
    ids = votive.tensor([[5, 6, 7, 8]])
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "adapter")
    assert float((loaded(ids).logits - made.model(ids).logits).abs().max().detach()) < 1e-5
    more = sft(CHATS, tmp_path / "adapter", tmp_path / "more", **plan)
    assert more.history["loss"][0] == pytest.approx(made.history["loss"][-1], rel=0.2)
    assert more.history["loss"][-1] < made.history["loss"][-1]
    assert (tmp_path / "more" / "adapter_model.safetensors").is_file()
    with pytest.raises(ValueError, match="goes on learning as it is"):
        sft(CHATS, tmp_path / "adapter", tmp_path / "twice", lora=2, **plan)


def test_adapters_stand_above_weights_in_blocks(tmp_path: Path) -> None:
    from votive.cli import main

    tok = tuned.tokenizer()
    folder = tuned.folder(tmp_path / "base", tuned.decoder(tok, hidden_size=64, intermediate_size=64), tok)
    assert main(["quantize", str(folder), str(tmp_path / "base.gguf"), "--type", "q8_0", "--quiet"]) == 0
    before = (tmp_path / "base.gguf").read_bytes()
    made = sft(
        CHATS, tmp_path / "base.gguf", tmp_path / "out", held_out=0.0, context=96, max_steps=8, lr=1e-2, lora=4,
        chat_template=tuned.MARKED, progress=False,
    )  # fmt: skip
    assert made.history["loss"][-1] < made.history["loss"][0] - 0.5
    assert any(getattr(p, "blocks", None) is not None for p in made.model.parameters())
    assert (tmp_path / "base.gguf").read_bytes() == before


def test_accumulated_batches_weigh_each_token_the_same(base: Path) -> None:
    tok = tuned.tokenizer()
    rows = rows_of([encode(Example("", CHATS[i]), tok) for i in (0, 1, 3)], 128, False)
    rows += rows_of([encode(Example("", {"prompt": "the", "completion": " cat"}), tok)], 128, False)
    grads = []
    for size in (4, 1):
        model = AutoModelForCausalLM.from_pretrained(base)
        batches = [Collate(0, packed=False)(rows[i : i + size]) for i in range(0, 4, size)]
        optimizer = votive.optim.SGD(model.parameters(), lr=0.0)
        trainer = Trainer(
            model, optimizer, train_data=Shares(_Resumable(batches), 4 // size), step=step, max_steps=1,
            accumulate=4 // size, progress=False,
        )  # fmt: skip
        trainer.fit()
        grads.append((trainer.loss, {n: p.grad.numpy() for n, p in model.named_parameters()}))
    assert grads[0][0] == pytest.approx(grads[1][0], rel=1e-5)
    for name, grad in grads[0][1].items():
        np.testing.assert_allclose(grad, grads[1][1][name], rtol=1e-3, atol=1e-5, err_msg=name)


class _Resumable(list[Any]):
    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        pass


@pytest.mark.parity
def test_the_loss_and_gradients_are_those_of_torch(base: Path) -> None:
    torch = pytest.importorskip("torch")
    tok = tuned.tokenizer()
    model = AutoModelForCausalLM.from_pretrained(base)
    rows = rows_of([encode(Example("", c), tok) for c in CHATS[:3]], 128, True)
    batch = {**Collate(0, packed=True)(rows), "share": votive.tensor(1.0)}
    logits = model(**{k: v for k, v in batch.items() if k not in ("labels", "share")}, use_cache=False).logits
    there = torch.from_numpy(logits.detach().numpy()).requires_grad_()
    labels = torch.from_numpy(batch["labels"].numpy())
    wanted = torch.nn.functional.cross_entropy(there[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    found = step(model, batch)
    assert float(found.detach()) == pytest.approx(wanted.item(), abs=1e-5)
    logits.retain_grad()
    votive.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten()).backward()
    wanted.backward()
    np.testing.assert_allclose(logits.grad.numpy(), there.grad.numpy(), atol=1e-6)


def test_examples_with_nothing_to_learn_are_told(base: Path, tmp_path: Path) -> None:
    data = [*CHATS[:4], {"prompt": "good bad " * 400, "completion": "sat"}]
    with pytest.warns(UserWarning, match=r"1 of 5 examples are left out \(the first: example 4\)"):
        sft(data, base, tmp_path / "out", held_out=0.0, context=96, max_steps=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="no example has anything to learn"):
            sft(data[4:], base, tmp_path / "none", held_out=0.0, context=32, max_steps=1, progress=False)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"lora_alpha": 4.0}, "lora_alpha is for adapters"),
        ({"loss_on": "user"}, "loss_on is one of assistant, all"),
        ({"truncation": "cut"}, "truncation is one of"),
        ({"context": 0}, "context must be a positive integer"),
        ({"lr": 0.0}, "lr must be above 0"),
        ({"lora": 2.5}, "lora must be a positive integer"),
        ({"rank": 4}, "there is no setting 'rank'"),
    ],
)
def test_settings_that_do_not_go_are_told(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        SFTRecipe.from_dict({"model": "base", **settings})
