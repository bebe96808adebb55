"""Every model with an encoder and a decoder gives, with every head, what transformers gives, from the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
import votive.models as models

from .compare import BF16, agree, both, gradients_agree, torch, transformers
from .seq2seq_rows import AS_DEEP, CASES, ROWS, answers, class_of, fresh, models_of, texts

pytestmark = pytest.mark.parity
NAMES = {
    "base": "AutoModel",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "causal": "AutoModelForCausalLM",
    "classify": "AutoModelForSequenceClassification",
    "answer": "AutoModelForQuestionAnswering",
    "tokens": "AutoModelForTokenClassification",
    "encoder": "AutoModelForTextEncoding",
}
each = pytest.mark.parametrize("name,use", CASES)
every = pytest.mark.parametrize("name", ROWS)


def compare(name: str, use: str, reference: Any, model: Any, tolerance: float = 1e-4, **options: Any) -> None:
    """Both say the same of the same texts, at the positions that are no padding."""
    theirs, ours, real = texts(name, use, **options)
    with torch.no_grad(), votive.no_grad():
        expected, got = answers(reference(**theirs)), answers(model(**ours))
    assert set(got) == set(expected) != set()
    for key, value in expected.items():
        agree(got[key], value, tolerance, where=real if value.shape[:2] == real.shape else None)


@each
@pytest.mark.parametrize("left", [False, True])
def test_a_padded_batch_agrees(name: str, use: str, left: bool) -> None:
    compare(name, use, *models_of(name, use), left=left)


@pytest.mark.parametrize("name,use", [case for case in CASES if case[1] != "base"])
def test_texts_without_a_mask_agree(name: str, use: str) -> None:
    compare(name, use, *models_of(name, use), padded=False)


@pytest.mark.parametrize("name,use", [case for case in CASES if case[1] in ("seq2seq", "causal")])
def test_bfloat16_agrees_as_far_as_it_can_tell(name: str, use: str) -> None:
    compare(name, use, *fresh(name, use, dtype="bfloat16"), BF16)


@pytest.mark.parametrize("name,use", [case for case in CASES if case[1] in ("seq2seq", "causal")])
def test_hidden_states_and_attentions_agree_and_change_nothing(name: str, use: str) -> None:
    reference, model = models_of(name, use)
    theirs, ours, _ = texts(name, use, padded=False)
    wanted = {"output_hidden_states": True, "output_attentions": True}
    with torch.no_grad(), votive.no_grad():
        expected, got, plain = reference(**theirs, **wanted), model(**ours, **wanted), model(**ours)
    for key in expected:
        if key.endswith(("hidden_states", "attentions")) and expected[key]:
            assert len(got[key]) == len(expected[key]), key
            for a, b in zip(got[key], expected[key], strict=True):
                agree(a, b)
    assert votive.equal(plain.logits, got.logits)


@every
@pytest.mark.parametrize("left", [False, True])
def test_decoding_in_pieces_gives_what_a_whole_pass_gives(name: str, left: bool) -> None:
    reference, model = models_of(name, "seq2seq")
    theirs, ours, real = texts(name, "seq2seq", left=left)
    with torch.no_grad():
        expected = reference(**theirs).logits
    ids, mask = ours["decoder_input_ids"], ours["decoder_attention_mask"]
    with votive.no_grad():
        encoded = model.get_encoder()(ours["input_ids"], ours["attention_mask"])
        cache, parts = None, []
        for begin, end in ((0, 1), (1, 4), (4, 5)):
            out = model(
                attention_mask=ours["attention_mask"],
                decoder_input_ids=ids[:, begin:end],
                decoder_attention_mask=mask[:, :end],
                encoder_outputs=encoded if begin else (encoded.last_hidden_state,),
                past_key_values=cache,
                use_cache=True,
            )
            cache = out.past_key_values
            parts.append(out.logits)
    # Positions that are counted in the tokens know of padding only where it is shown to them.
    if name != "m2m":
        agree(votive.cat(parts, 1), expected, where=real)
    else:
        with torch.no_grad():
            agree(votive.cat(parts, 1), in_pieces(reference, theirs), where=real)


def in_pieces(reference: Any, given: dict[str, Any]) -> Any:
    """What transformers gives piece by piece."""
    ids, mask = given["decoder_input_ids"], given["decoder_attention_mask"]
    encoded = reference.get_encoder()(given["input_ids"], given["attention_mask"])
    cache = transformers.EncoderDecoderCache(transformers.DynamicCache(), transformers.DynamicCache())
    parts = []
    for begin, end in ((0, 1), (1, 4), (4, 5)):
        out = reference(
            attention_mask=given["attention_mask"],
            decoder_input_ids=ids[:, begin:end],
            decoder_attention_mask=mask[:, :end],
            encoder_outputs=encoded,
            past_key_values=cache,
            use_cache=True,
        )
        parts.append(out.logits)
    return torch.cat(parts, 1)


@each
def test_embeddings_can_be_given_instead_of_ids(name: str, use: str) -> None:
    if use == "classify":
        with pytest.raises(NotImplementedError, match="ends of texts"):
            models_of(name, use)[1](inputs_embeds=votive.ones(1, 3, 32))
        return
    reference, model = models_of(name, use)
    theirs, ours, real = texts(name, use)
    generator = torch.manual_seed(5)
    for key in ("input_ids", "decoder_input_ids"):
        if key in theirs:
            embeds = torch.randn(*theirs.pop(key).shape, 32, generator=generator)
            key = key.replace("input_ids", "inputs_embeds")
            theirs[key], ours[key] = embeds, both(embeds.numpy())[1]
            del ours[key.replace("inputs_embeds", "input_ids")]
    if use == "answer":  # which shifts no embeddings
        theirs["decoder_inputs_embeds"], ours["decoder_inputs_embeds"] = theirs["inputs_embeds"], ours["inputs_embeds"]
    with torch.no_grad(), votive.no_grad():
        expected, got = answers(reference(**theirs)), answers(model(**ours))
    for key, value in expected.items():
        agree(got[key], value, where=real)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "causal" in row.uses])
def test_a_decoder_alone_looks_at_what_somebody_else_has_read(name: str) -> None:
    reference, model = fresh(name, "causal", train=True)
    theirs, ours, _ = texts(name, "causal")
    states = torch.randn(3, 7, 32, generator=torch.manual_seed(6))
    seen = [[1] * 7, [1] * 5 + [0] * 2, [0] * 4 + [1] * 3]
    labels = theirs["input_ids"].masked_fill(theirs["attention_mask"] == 0, -100)
    other, mask = both(states.numpy()), both(seen)
    asked = {"encoder_hidden_states": other[0], "encoder_attention_mask": mask[0], "use_cache": False}
    expected = reference(**theirs, **asked, labels=labels)
    got = model(**ours, encoder_hidden_states=other[1], encoder_attention_mask=mask[1], labels=both(labels.numpy())[1])
    agree(got.logits, expected.logits, where=ours["attention_mask"].numpy())
    agree(got.loss, expected.loss)
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model, 3e-4)


def labels_of(name: str, use: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Labels for a head, for both."""
    generator, settings = torch.manual_seed(4), ROWS[name].settings
    words = torch.randint(5, 48, (3, 6), generator=generator)
    words[:, -1] = settings["eos_token_id"]
    words[1, 4:] = -100
    found = {
        "seq2seq": {"labels": words},
        "classify": {"labels": torch.tensor([2, 0, 1])},
        "answer": {"start_positions": torch.tensor([1, 0, 99]), "end_positions": torch.tensor([3, 8, 1])},
        "tokens": {"labels": torch.randint(0, 3, (3, 9), generator=generator)},
    }[use]
    return found, {key: both(value.numpy())[1] for key, value in found.items()}


@pytest.mark.parametrize("name,use", [case for case in CASES if case[1] not in ("base", "causal", "encoder")])
def test_losses_and_their_gradients_agree(name: str, use: str) -> None:
    reference, model = fresh(name, use, train=True)
    theirs, ours, _ = texts(name, use)
    for given in (theirs, ours):
        for key in [key for key in given if key.startswith("decoder_")]:
            del given[key]
    their_labels, our_labels = labels_of(name, use)
    expected, got = reference(**theirs, **their_labels), model(**ours, **our_labels)
    agree(got.loss, expected.loss)
    for key, value in answers(expected).items():
        agree(
            answers(got)[key], value, where=None if use in ("seq2seq", "classify") else ours["attention_mask"].numpy()
        )
    expected.loss.backward()
    got.loss.backward()
    # What all positions get in common changes no probability.
    gradients_agree(reference, model, 3e-4, 2e-3 if use == "answer" else 1e-4)


@every
@pytest.mark.parametrize("asked", [{}, {"num_beams": 3}, {"num_beams": 4, "num_return_sequences": 2}])
@pytest.mark.parametrize("left", [False, True])
def test_it_writes_what_transformers_writes(name: str, asked: dict[str, int], left: bool) -> None:
    reference, model = fresh(name, "seq2seq", **AS_DEEP)
    theirs, ours, _ = texts(name, "seq2seq", left=left)
    asked = {"max_new_tokens": 7, "do_sample": False, **asked}
    told = [given["input_ids"] for given in (theirs, ours)]
    masks = [given["attention_mask"] for given in (theirs, ours)]
    expected = reference.generate(told[0], attention_mask=masks[0], **asked)
    got = model.generate(told[1], attention_mask=masks[1], **asked)
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "causal" in row.uses])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_a_decoder_alone_goes_on_writing(name: str, cache: str) -> None:
    reference, model = models_of(name, "causal")
    theirs, ours, _ = texts(name, "causal", padded=False)
    asked = {"max_new_tokens": 6, "do_sample": False}
    expected = reference.generate(**theirs, **asked)
    assert model.generate(**ours, **asked, cache_implementation=cache).tolist() == expected.tolist()
    # Behind padding, it writes what it writes without.
    padded, real = votive.cat([ours["input_ids"][:, :3] * 0 + 7, ours["input_ids"]], 1), votive.ones(3, 12)
    real[:, :3] = 0
    got = model.generate(padded, attention_mask=real.long(), **asked, cache_implementation=cache)
    assert got[:, 3:].tolist() == expected.tolist()


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


@every
@pytest.mark.parametrize("use", ["base", "causal"])
def test_a_part_takes_its_own_from_a_whole_file(name: str, use: str, tmp_path: Path) -> None:
    if use not in ROWS[name].uses:
        pytest.skip("there is no such part")
    reference, _ = fresh(name, "seq2seq", **AS_DEEP)
    reference.save_pretrained(tmp_path)
    kind = class_of(models, name, use)
    model = kind.from_pretrained(tmp_path)
    theirs, ours, real = texts(name, use)
    part = class_of(transformers, name, use).from_pretrained(tmp_path, attn_implementation="eager").eval()
    if use == "causal":  # it does not look for the shared table
        part.model.decoder.embed_tokens.weight.data.copy_(reference.get_decoder().embed_tokens.weight)
        part.tie_weights()
    with torch.no_grad(), votive.no_grad():
        for key, value in answers(part(**theirs)).items():
            agree(answers(model(**ours))[key], value, where=real)
