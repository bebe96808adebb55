"""Every encoder with every head gives what transformers gives, from the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
import votive.models as models

from .compare import BF16, agree, both, gradients_agree, torch, transformers
from .encoder_rows import CASES, ROWS, USES, answers, class_of, fresh, labels_of, models_of, texts

pytestmark = pytest.mark.parity
NAMES = {"base": "AutoModel"} | {use: f"AutoModel{suffix}" for use, suffix in USES.items() if use != "base"}
each = pytest.mark.parametrize("name,use", CASES)
every = pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "base" in row.uses])


def compare(name: str, use: str, reference: Any, model: Any, tolerance: float = 1e-4, **options: Any) -> None:
    """Both say the same of the same texts, at the positions that are no padding."""
    theirs, ours, real = texts(name, use, **options)
    with torch.no_grad(), votive.no_grad():
        expected, got = answers(reference(**theirs)), answers(model(**ours))
    assert set(got) == set(expected) != set()
    for key, value in expected.items():
        where = real if value.shape[:2] == real.shape and use != "choice" else None
        finite = value.masked_fill(value < -1e30, 0.0) if key.endswith("_logits") else value
        assert finite.isfinite().all()
        agree(got[key], value, tolerance, where=where)


@each
@pytest.mark.parametrize("left", [False, True])
def test_a_padded_batch_agrees(name: str, use: str, left: bool) -> None:
    compare(name, use, *models_of(name, use), left=left)


@each
def test_texts_without_a_mask_agree(name: str, use: str) -> None:
    if ROWS[name].settings.get("classifier_pooling") == "mean" and use == "choice":
        pytest.skip("transformers asks for a mask here")
    compare(name, use, *models_of(name, use), padded=False)


@every
def test_bfloat16_agrees_as_far_as_it_can_tell(name: str) -> None:
    compare(name, "base", *fresh(name, "base", dtype="bfloat16"), BF16)


@every
def test_hidden_states_and_attentions_agree_and_change_nothing(name: str) -> None:
    reference, model = models_of(name, "base")
    theirs, ours, real = texts(name, "base")
    wanted = {"output_hidden_states": True, "output_attentions": True}
    with torch.no_grad(), votive.no_grad():
        expected, got, plain = reference(**theirs, **wanted), model(**ours, **wanted), model(**ours)
    for a, b in zip(got.hidden_states, expected.hidden_states, strict=True):
        agree(a, b, where=real)
    shared = real[:, None, :, None].repeat(model.design.heads, 1).repeat(real.shape[1], 3)
    for a, b in zip(got.attentions, expected.attentions, strict=True):
        agree(a, b, where=shared)
    assert votive.equal(plain.last_hidden_state, got.last_hidden_state)


@every
def test_embeddings_can_be_given_instead_of_ids(name: str) -> None:
    reference, model = models_of(name, "base")
    theirs, ours, real = texts(name, "base")
    theirs["inputs_embeds"] = torch.randn(*real.shape, reference.get_input_embeddings().embedding_dim)
    ours["inputs_embeds"] = both(theirs["inputs_embeds"].numpy())[1]
    del theirs["input_ids"], ours["input_ids"]
    with torch.no_grad(), votive.no_grad():
        expected, got = reference(**theirs), model(**ours)
    agree(got.last_hidden_state, expected.last_hidden_state, where=real)


@every
def test_positions_can_be_told(name: str) -> None:
    reference, model = models_of(name, "base")
    if "position_ids" not in model.forward.__code__.co_varnames:
        with pytest.raises(TypeError, match="position_ids"):
            model(texts(name, "base")[1]["input_ids"], position_ids=votive.zeros(3, 9, dtype=votive.int64))
        return
    theirs, ours, _ = texts(name, "base", padded=False)
    theirs["position_ids"], ours["position_ids"] = both([[7, 3, 2, 9, 4, 8, 6, 5, 11]] * 3)
    with torch.no_grad(), votive.no_grad():
        expected, got = reference(**theirs), model(**ours)
    agree(got.last_hidden_state, expected.last_hidden_state)


@pytest.mark.parametrize("name,use", [case for case in CASES if case[1] != "base"])
def test_losses_and_their_gradients_agree(name: str, use: str) -> None:
    reference, model = fresh(name, use, train=True)
    theirs, ours, _ = texts(name, use)
    their_labels, our_labels = labels_of(name, use)
    expected, got = reference(**theirs, **their_labels), model(**ours, **our_labels)
    agree(got.loss, expected.loss)
    expected.loss.backward()
    got.loss.backward()
    # What all positions or choices get in common changes no probability.
    gradients_agree(reference, model, 3e-4, 2e-3 if use in ("answer", "choice") else 1e-4)


KINDS: dict[str, Any] = {
    "single_label_classification": [2, 0, 1],
    "regression": [[0.5, 1.0, -1.0], [2.0, 0.0, 0.25], [0.0, 0.5, 1.5]],
    "multi_label_classification": [[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name, use in CASES if use == "classify"])
def test_the_told_kind_of_problem_decides_the_loss(name: str, kind: str) -> None:
    reference, model = fresh(name, "classify", problem_type=kind)
    theirs, ours, _ = texts(name, "classify")
    their_labels, our_labels = both(KINDS[kind])
    if their_labels.is_floating_point():
        their_labels, our_labels = their_labels.float(), our_labels.float()
    with torch.no_grad(), votive.no_grad():
        agree(model(**ours, labels=our_labels).loss, reference(**theirs, labels=their_labels).loss)


@pytest.mark.parametrize("name", [name for name, use in CASES if use == "classify"])
def test_one_label_is_a_score_as_rerankers_and_rewards_have(name: str) -> None:
    reference, model = fresh(name, "classify", num_labels=1)
    compare(name, "classify", reference, model)
    theirs, ours, _ = texts(name, "classify")
    their_labels, our_labels = both([0.25, -1.0, 2.0])
    with torch.no_grad(), votive.no_grad():
        expected = reference(**theirs, labels=their_labels.float()).loss
        agree(model(**ours, labels=our_labels.float()).loss, expected)


@each
def test_folders_go_both_ways(name: str, use: str, tmp_path: Path) -> None:
    transformers.utils.logging.disable_progress_bar()
    reference, ours = models_of(name, use)
    reference.save_pretrained(tmp_path / "theirs")
    model = getattr(models, NAMES[use]).from_pretrained(tmp_path / "theirs")
    assert type(model) is type(ours)
    compare(name, use, reference, model)
    model.save_pretrained(tmp_path / "ours")
    again, told = class_of(transformers, name, use).from_pretrained(
        tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
    )
    assert not told["missing_keys"], told
    assert not told["unexpected_keys"], told
    compare(name, use, again.eval(), ours)


@pytest.mark.parametrize("name,use", [case for case in CASES if case[1] in ("masked", "pretrain")])
def test_a_bare_model_takes_its_part_of_a_file_with_a_head(name: str, use: str, tmp_path: Path) -> None:
    reference, _ = models_of(name, use)
    reference.save_pretrained(tmp_path)
    model = models.AutoModel.from_pretrained(tmp_path)
    theirs, ours, real = texts(name, use)
    with torch.no_grad(), votive.no_grad():
        expected = getattr(reference, reference.base_model_prefix)(**theirs).last_hidden_state
        agree(model(**ours).last_hidden_state, expected, where=real)
