"""Encoders give what transformers gives, from the same weights."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import votive
import votive.models as models
from tests import tiny_sizes

from .compare import BF16, agree, both, gradients_agree, ids, pair, torch, transformers

pytestmark = pytest.mark.parity
SMALL = {"vocab_size": 64, **tiny_sizes.transformer(32, 48, layers=2, heads=4), "max_position_embeddings": 40}
DISTIL = {"vocab_size": 64, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4}
FAMILIES = {"Bert": SMALL, "Roberta": SMALL, "XLMRoberta": {**SMALL, "pad_token_id": 1}, "DistilBert": DISTIL}
USES = ["Model", "ForMaskedLM", "ForSequenceClassification"]
every = pytest.mark.parametrize("family", FAMILIES)
each = pytest.mark.parametrize("use", USES)


@cache
def models_of(family: str, use: str, dtype: str | None = None) -> tuple[Any, Any]:
    return fresh(family, use, dtype)


def fresh(family: str, use: str, dtype: Any = None, train: bool = False, **more: Any) -> Any:
    config = getattr(transformers, f"{family}Config")(**FAMILIES[family], num_labels=3, **more)
    theirs = (getattr(transformers, family + use), config)
    return pair(theirs, getattr(models, family + use), dtype=dtype, train=train)


def result(out: Any) -> Any:
    return out.last_hidden_state if "last_hidden_state" in out else out.logits


@every
@each
def test_a_padded_batch_agrees(family: str, use: str) -> None:
    reference, model = models_of(family, use)
    t, v = ids((3, 9))
    mask = [[1] * 9, [1] * 6 + [0] * 3, [1] * 2 + [0] * 7]
    pad = model.config.pad_token_id
    tm, vm = both(mask)
    t, v = t.masked_fill(tm == 0, pad), v.masked_fill(vm == 0, pad)
    with torch.no_grad():
        expected = reference(t, attention_mask=tm)
    with votive.no_grad():
        got = model(v, attention_mask=vm)
    where = mask if result(got).dim() == 3 else None
    agree(result(got), result(expected), where=where)
    if "pooler_output" in expected:
        agree(got.pooler_output, expected.pooler_output)


@every
@each
def test_bfloat16_agrees_as_far_as_it_can_tell(family: str, use: str) -> None:
    reference, model = models_of(family, use, "bfloat16")
    t, v = ids((2, 9))
    with torch.no_grad(), votive.no_grad():
        agree(result(model(v)), result(reference(t)), BF16)


@every
def test_hidden_states_and_attentions_agree_and_change_nothing(family: str) -> None:
    reference, model = models_of(family, "ForMaskedLM")
    t, v = ids((2, 7))
    wanted = {"output_hidden_states": True, "output_attentions": True}
    with torch.no_grad(), votive.no_grad():
        expected, got, plain = reference(t, **wanted), model(v, **wanted), model(v)
    for a, b in zip(got.hidden_states, expected.hidden_states, strict=True):
        agree(a, b)
    for a, b in zip(got.attentions, expected.attentions, strict=True):
        agree(a, b)
    assert votive.equal(plain.logits, got.logits)


@pytest.mark.parametrize("family", ["Bert", "Roberta"])
def test_kinds_of_text_and_positions_can_be_given(family: str) -> None:
    reference, model = models_of(family, "Model")
    t, v = ids((2, 6))
    (tk, vk) = both([[0, 0, 0, 1, 1, 1]] * 2) if family == "Bert" else both([[0] * 6] * 2)
    (tp, vp) = both([[5, 4, 3, 2, 1, 0]] * 2)
    with torch.no_grad(), votive.no_grad():
        expected = reference(t, token_type_ids=tk, position_ids=tp)
        agree(model(v, token_type_ids=vk, position_ids=vp).last_hidden_state, expected.last_hidden_state)


@every
def test_embeddings_can_be_given_instead_of_ids(family: str) -> None:
    reference, model = models_of(family, "Model")
    t, v = both(torch.randn(2, 5, 32, generator=torch.manual_seed(0)).numpy())
    with torch.no_grad(), votive.no_grad():
        agree(model(inputs_embeds=v).last_hidden_state, reference(inputs_embeds=t).last_hidden_state)


@every
def test_the_loss_of_filled_gaps_and_its_gradients_agree(family: str) -> None:
    reference, model = fresh(family, "ForMaskedLM", train=True)
    t, v = ids((2, 9))
    tl, vl = both(t.masked_fill(t < 30, -100).numpy())
    expected, got = reference(t, labels=tl), model(v, labels=vl)
    agree(got.loss, expected.loss)
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model, 2e-4)


KINDS = {
    "single_label_classification": [2, 0],
    "regression": [[0.5, 1.0, -1.0], [2.0, 0.0, 0.25]],
    "multi_label_classification": [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
}


@every
@pytest.mark.parametrize(
    "kind,told",
    # Not told, numbers for several classes are taken for truth values.
    [(kind, told) for kind in KINDS for told in (True, False) if told or kind != "regression"],
)
def test_losses_of_classes_agree(family: str, kind: str, told: bool) -> None:
    more = {"problem_type": kind} if told else {}
    reference, model = fresh(family, "ForSequenceClassification", train=True, **more)
    t, v = ids((2, 9))
    tl, vl = both(KINDS[kind])
    if tl.is_floating_point():
        tl, vl = tl.float(), vl.float()
    expected, got = reference(t, labels=tl), model(v, labels=vl)
    agree(got.loss, expected.loss)
    expected.loss.backward()
    got.loss.backward()
    if not told:
        gradients_agree(reference, model, 2e-4)


def test_names_of_the_first_bert_files_load() -> None:
    reference, model = models_of("Bert", "ForMaskedLM")
    weights = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): votive.tensor(
            p.numpy()
        )
        for k, p in reference.state_dict().items()
    }
    assert any("gamma" in k for k in weights)
    again = models.BertForMaskedLM(model.config)
    again.load_weights(votive.io.MemorySource(weights))
    _, v = ids((1, 5))
    assert votive.equal(again.eval()(v).logits, model(v).logits)


def test_a_file_without_a_pooler_gives_a_model_without_one() -> None:
    reference, _ = models_of("Bert", "ForMaskedLM")
    state = {k: votive.tensor(p.numpy()) for k, p in reference.state_dict().items()}
    model = models.BertModel(models.BertConfig(**SMALL))
    model.load_weights(votive.io.MemorySource(state))
    assert model.eval()(ids((1, 5))[1]).pooler_output is None


@every
def test_too_long_a_text_is_told(family: str) -> None:
    model = models_of(family, "Model")[1]
    with pytest.raises(IndexError, match="positions are asked for"):
        model(votive.full((1, model.config.max_position_embeddings + 1), 5))
