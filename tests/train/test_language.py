"""A language model from a text: tokens are cached, runs are resumed as they began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
from votive.train import Callback, Recipe, train_language_model
from votive.train.corpus import prepare

LINES = [
    f"{a} {b} went to the {c}.\n"
    for a in ("A", "The")
    for b in ("cat", "dog", "king")
    for c in ("wood", "sea", "hill", "town")
]
SMALL = Recipe(
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
    context=8,
    vocab_size=290,
    batch_size=4,
    max_steps=8,
    checkpoint_every=2,
    eval_every=4,
    held_out=0.1,
)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(LINES * 6))
    return path


def test_held_out_text_is_the_end_and_begins_with_a_line(text: Path, tmp_path: Path) -> None:
    corpus = prepare(text, tmp_path / "c", vocab_size=290, held_out=0.25)
    decode = lambda tokens: corpus.tokenizer.decode(tokens[:], skip_special_tokens=True)
    train, rest = decode(corpus.train), decode(corpus.held_out)
    assert train + rest == text.read_text()
    assert train.endswith(".\n")
    assert 0.2 < len(rest) / len(train + rest) < 0.25


def test_documents_are_divided_by_the_end_token(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("one two\n\n\nthree\n\n\n\n\n\nfour")
    corpus = prepare(path, tmp_path / "c", vocab_size=260, separator="\n\n\n")
    end = corpus.tokenizer.eos_token_id
    assert (corpus.train[:] == end).sum() == 3
    assert corpus.tokenizer.decode(corpus.train[:]).count("\n") == 0


def test_tokens_are_made_once(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare(text, tmp_path / "c", vocab_size=290, held_out=0.1)

    def never(*args: Any, **options: Any) -> Any:
        raise AssertionError("trained again")

    monkeypatch.setattr(votive.text, "train_bpe", never)
    again = prepare(text, tmp_path / "c", vocab_size=290, held_out=0.1)
    assert (again.train[:] == first.train[:]).all()
    with pytest.raises(AssertionError, match="trained again"):
        prepare(text, tmp_path / "c", vocab_size=291, held_out=0.1)


def test_a_model_learns_and_its_folder_holds_the_same(text: Path, tmp_path: Path) -> None:
    recipe = SMALL.replace(max_steps=60, lr=0.02)
    made = train_language_model(text, recipe, tmp_path / "m", progress=False, prompts=["The king"])
    assert made.history["loss"][-1] < 0.6 * made.history["loss"][0]
    assert made.held_out_loss is not None
    assert made.held_out_loss < 0.7 * made.history["loss"][0]
    assert made.samples[0].startswith("The king")
    again = votive.models.AutoModelForCausalLM.from_pretrained(tmp_path / "m")
    ids = votive.tensor([[1, 2, 3, 4]])
    assert votive.equal(again(ids).logits, made.model(ids).logits)


def test_a_resumed_run_is_the_same_run_bit_by_bit(text: Path, tmp_path: Path) -> None:
    class Stop(Callback):
        def on_step(self, trainer: Any) -> None:
            if trainer.step == 5:
                raise RuntimeError("power cut")

    whole = train_language_model(text, SMALL, tmp_path / "a", progress=False)
    with pytest.raises(RuntimeError, match="power cut"):
        train_language_model(text, SMALL, tmp_path / "b", progress=False, callbacks=[Stop()])
    rest = train_language_model(text, SMALL, tmp_path / "b", progress=False, resume=True)
    assert rest.history["loss"] == whole.history["loss"]
    for name, value in whole.model.state_dict().items():
        assert votive.equal(rest.model.state_dict()[name], value)


def test_a_run_cannot_be_mixed_with_another(text: Path, tmp_path: Path) -> None:
    train_language_model(text, SMALL, tmp_path / "m", progress=False)
    with pytest.raises(FileExistsError, match="resume it"):
        train_language_model(text, SMALL, tmp_path / "m", progress=False)
    other = SMALL.replace(lr=0.5)
    with pytest.raises(ValueError, match="lr was"):
        train_language_model(text, other, tmp_path / "m", progress=False, resume=True)
    text.write_text("something else entirely\n" * 50)
    with pytest.raises(ValueError, match="not what"):
        train_language_model(text, SMALL, tmp_path / "m", progress=False, resume=True)


def test_weights_may_be_saved_in_another_type(text: Path, tmp_path: Path) -> None:
    recipe = SMALL.replace(max_steps=2, save_dtype="bfloat16")
    made = train_language_model(text, recipe, tmp_path / "m", progress=False)
    assert made.model.dtype is votive.float32
    again = votive.models.AutoModelForCausalLM.from_pretrained(tmp_path / "m")
    assert again.dtype is votive.bfloat16
    with votive.io.open_weights(tmp_path / "m") as source:
        assert {source.info(n).stored for n in source.names()} == {"BF16"}
