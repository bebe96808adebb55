"""Decoders with a head for classes of texts: transformers' numbers and folders, ends of texts, names of classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.models import AutoModelForCausalLM, AutoModelForSequenceClassification, LlamaConfig, auto, auto_table
from votive.models.decoder.classify import last_tokens, name_classes

SMALL: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
}  # fmt: skip
# One for each way in which decoders are put together.
COMPARED = [
    "llama", "gpt2", "ctrl", "opt", "bloom", "gpt neox", "gpt", "biogpt", "falcon", "mpt", "gemma3", "qwen3 moe",
    "deepseek v3 moe", "gpt oss",
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("row", COMPARED)
def test_classes_are_those_of_transformers_from_either_side(row: str, tmp_path: Path) -> None:
    from .compare import torch, transformers
    from .decoders import ROWS

    torch.manual_seed(0)
    config = getattr(transformers, ROWS[row].config)(**{**ROWS[row].settings, "pad_token_id": 0, "num_labels": 3})
    theirs = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    ours = AutoModelForSequenceClassification.from_pretrained(tmp_path / "theirs")
    assert type(ours).__name__ == type(theirs).__name__
    ids = torch.randint(3, 50, (3, 9))
    ids[1, 6:] = ids[2, 3:] = 0
    labels = torch.tensor([0, 2, 1])
    with torch.no_grad():
        expected = theirs(ids, attention_mask=(ids != 0).long(), labels=labels)
    given, wanted = votive.tensor(ids.numpy()), votive.tensor(labels.numpy())
    found = ours(given, attention_mask=(given != 0).long(), labels=wanted)
    np.testing.assert_allclose(found.logits.detach().numpy(), expected.logits.numpy(), atol=1e-5)
    assert found.loss.item() == pytest.approx(expected.loss.item(), abs=1e-5)
    ours.save_pretrained(tmp_path / "ours")
    again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        np.testing.assert_array_equal(again(ids, attention_mask=(ids != 0).long()).logits, expected.logits)


def llama(**more: Any) -> Any:
    votive.manual_seed(0)
    return votive.models.LlamaForSequenceClassification(
        LlamaConfig.from_dict({**SMALL, "initializer_range": 0.2, **more})
    ).eval()


def test_a_text_ends_where_padding_of_either_side_begins() -> None:
    states = votive.zeros(3, 4, 2)
    ids = votive.tensor([[5, 6, 0, 0], [0, 0, 7, 8], [9, 9, 9, 9]])
    mask = votive.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0]])
    assert last_tokens(ids, None, states, 0).tolist() == [1, 3, 3]
    assert last_tokens(ids, mask, states, 0).tolist() == [1, 3, 2]
    assert last_tokens(ids, mask, states, None).tolist() == [1, 3, 2]
    assert last_tokens(None, mask, states, 0).tolist() == [1, 3, 2]
    assert last_tokens(None, None, states, 0).tolist() == [3, 3, 3]
    with pytest.raises(ValueError, match=r"no padding token is defined; set config\.pad_token_id"):
        last_tokens(ids, None, states, None)


def test_padding_changes_nothing() -> None:
    model = llama(pad_token_id=0, num_labels=3)
    alone = model(votive.tensor([[5, 6]])).logits
    for row, mask in (([5, 6, 0, 0], [1, 1, 0, 0]), ([0, 0, 5, 6], [0, 0, 1, 1])):
        places = {"position_ids": votive.tensor([[0, 0, 0, 1]])} if row[0] == 0 else {}
        ids = votive.tensor([row])
        found = model(ids, attention_mask=votive.tensor([mask]), **places).logits
        assert float((found - alone).abs().max().detach()) < 1e-5


def test_classes_are_named_counted_and_kept(tmp_path: Path) -> None:
    model = llama(pad_token_id=0, id2label={"0": "bad", "1": "good", "2": "fine"})
    assert model.score.weight.shape == (3, 16)
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_bytes())["id2label"]["2"] == "fine"
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert again.config.id2label == {0: "bad", 1: "good", 2: "fine"}
    assert again.config.label2id["fine"] == 2
    with pytest.warns(UserWarning, match=r"score\.weight"):
        other = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=5, ignore_mismatched_sizes=True)
    assert other.config.id2label[4] == "LABEL_4"
    assert other.score.weight.shape[0] == 5
    assert name_classes(LlamaConfig(**SMALL)) == 2


def test_losses_go_with_the_number_of_classes_and_the_kind_of_labels() -> None:
    ids = votive.tensor([[5, 6], [7, 8]])
    one = llama(pad_token_id=0, num_labels=1)
    logits = one(ids).logits
    wanted = votive.tensor([0.5, -1.0])
    assert one(ids, labels=wanted).loss.item() == pytest.approx(((logits[:, 0] - wanted) ** 2).mean().item(), rel=1e-5)
    several = llama(pad_token_id=0, num_labels=3)
    marks = votive.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    p = several(ids).logits.sigmoid()
    expected = -(marks * p.log() + (1 - marks) * (1 - p).log()).mean()
    assert several(ids, labels=marks).loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_text_generator_gets_a_new_head_and_keeps_its_weights(tmp_path: Path) -> None:
    votive.manual_seed(0)
    causal = votive.models.LlamaForCausalLM(LlamaConfig(**SMALL, pad_token_id=0))
    causal.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match=r"score\.weight"):
        model = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=4)
    assert model.model.embed_tokens.weight.equal(causal.model.embed_tokens.weight)
    model.save_pretrained(tmp_path / "classes")
    with pytest.raises(ValueError, match=r"lm_head\.weight"):
        AutoModelForCausalLM.from_pretrained(tmp_path / "classes")


def test_every_decoder_of_the_table_has_the_head() -> None:
    for family in auto_table._CLASSIFIERS.split():
        found = auto._family(family)[1]["classify"][0]
        assert found.model_class is auto._family(family)[1]["base"][0]
        assert found.__name__.endswith("ForSequenceClassification")
        assert getattr(votive.models, found.__name__) is found
