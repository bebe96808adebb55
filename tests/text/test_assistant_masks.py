"""Which tokens of a chat are the assistant's; and arguments of a chat that would be lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}"
)
SHORT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Käse 🎂!"}]
LONG = [*SHORT, {"role": "user", "content": "More"}, {"role": "assistant", "content": "No."}]


@pytest.fixture(scope="module")
def tok() -> Any:
    made = votive.text.train_bpe(
        ["Once upon a time there was a king, and no cake."] * 4,
        vocab_size=300,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        progress=False,
    )
    made.chat_template = TEMPLATE
    return made


def said(tok: Any, ids: Any, mask: Any) -> str:
    return tok.decode([i for i, m in zip(ids, mask, strict=True) if m])


def test_the_mask_is_on_what_the_assistant_says(tok: Any) -> None:
    enc = tok.apply_chat_template(LONG, return_assistant_tokens_mask=True)
    assert said(tok, enc["input_ids"], enc["assistant_masks"]) == "Käse 🎂!<|im_end|>No.<|im_end|>"
    assert enc["input_ids"] == tok.apply_chat_template(LONG)["input_ids"]
    assert enc.char_to_token(0) == 0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", [None, "np", "vt"])
def test_the_mask_of_a_batch_is_padded_as_its_ids_are(tok: Any, side: str, kind: Any) -> None:
    enc = tok.apply_chat_template(
        [SHORT, LONG],
        padding=True,
        return_tensors=kind,
        return_assistant_tokens_mask=True,
        tokenizer_kwargs={"padding_side": side},
    )
    ids, mask = (np.asarray(enc[name]) for name in ("input_ids", "assistant_masks"))
    assert ids.shape == mask.shape
    assert said(tok, ids[0].tolist(), mask[0].tolist()) == "Käse 🎂!<|im_end|>"


def test_what_is_cut_off_is_not_marked(tok: Any) -> None:
    whole = tok.apply_chat_template(SHORT, return_assistant_tokens_mask=True)
    first = whole["assistant_masks"].index(1)
    cut = {"truncation": True, "max_length": first + 2}
    enc = tok.apply_chat_template(SHORT, return_assistant_tokens_mask=True, **cut)
    assert enc["assistant_masks"] == whole["assistant_masks"][: first + 2]
    cut["max_length"] = first
    assert not any(tok.apply_chat_template(SHORT, return_assistant_tokens_mask=True, **cut)["assistant_masks"])


def test_a_block_is_found_wherever_a_template_puts_it(tok: Any) -> None:
    macro = (
        "{% macro say(m) %}[{% generation %}{{ m.content }}{% endgeneration %}]{% endmacro %}"
        "{% for m in messages %}{{ say(m) | trim }}{% endfor %}"
    )
    enc = tok.apply_chat_template(SHORT, chat_template=macro, return_assistant_tokens_mask=True)
    assert said(tok, enc["input_ids"], enc["assistant_masks"]) == "HiKäse 🎂!"
    assert tok.apply_chat_template(SHORT, chat_template=macro, tokenize=False) == "[Hi][Käse 🎂!]"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tokenize": False}, "needs tokenize=True and return_dict=True"),
        ({"return_dict": False}, "needs tokenize=True and return_dict=True"),
        ({"continue_final_message": True}, "do not go together"),
        ({"chat_template": "{{ messages }}"}, "has no {% generation %}"),
    ],
)
def test_a_mask_that_cannot_be_is_refused(tok: Any, options: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        tok.apply_chat_template(SHORT, return_assistant_tokens_mask=True, **options)


def test_options_that_would_reach_nobody_are_told(tok: Any) -> None:
    with pytest.raises(TypeError, match=r"tokenizer_kwargs=\{'padding_side'"):
        tok.apply_chat_template(SHORT, padding_side="left")
    with pytest.warns(UserWarning, match="never reads 'enable_thinking'"):
        tok.apply_chat_template(SHORT, enable_thinking=False)


@pytest.mark.parity
def test_the_mask_is_that_of_transformers(tok: Any, tmp_path: Any) -> None:
    transformers = pytest.importorskip("transformers")
    tok.save_pretrained(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    for chat in (SHORT, LONG):
        a, b = (
            t.apply_chat_template(chat, chat_template=TEMPLATE, return_dict=True, return_assistant_tokens_mask=True)
            for t in (tok, theirs)
        )
        assert a["input_ids"] == b["input_ids"]
        assert a["assistant_masks"] == b["assistant_masks"]


@pytest.mark.parametrize("side", ["left", "right"])
def test_rows_that_overflow_have_masks_of_their_own(tok: Any, side: str) -> None:
    whole = tok.apply_chat_template(LONG, return_assistant_tokens_mask=True)
    enc = tok.apply_chat_template(
        [SHORT, LONG],
        padding=True,
        truncation=True,
        max_length=9,
        return_assistant_tokens_mask=True,
        tokenizer_kwargs={"return_overflowing_tokens": True, "stride": 2, "padding_side": side},
    )
    seen: list[int] = []
    for row, mask, real in zip(enc["input_ids"], enc["assistant_masks"], enc["attention_mask"], strict=True):
        assert len(mask) == len(row) == 9
        assert not any(m for m, r in zip(mask, real, strict=True) if not r)
    for i in (i for i, sample in enumerate(enc["overflow_to_sample_mapping"]) if sample == 1):
        kept = [m for m, r in zip(enc["assistant_masks"][i], enc["attention_mask"][i], strict=True) if r]
        seen += kept[2 if seen else 0 :]
    assert seen == whole["assistant_masks"]
