"""Texts of a given form, through every search, cache and stream."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import votive
from votive.generation import GrammarLogitsProcessor, PrefixCache, generate, stream

from .tiny import model

pytest.importorskip("llguidance", reason="forms are matched by llguidance")

SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["cat", "dog"]}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOK = votive.text.train_bpe(
    ["one two 1 2 3 cat dog yes no {} [] name age"] * 2,
    vocab_size=290,
    special_tokens=["<end>", "<pad>"],
    progress=False,
)
TOK.eos_token, TOK.pad_token = "<end>", "<pad>"
PROMPTS = [TOK.encode("one two"), TOK.encode("yes 1")]
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "without a cache": {"use_cache": False},
    "drawn": {"do_sample": True, "seed": 3, "temperature": 3.0, "top_k": 0},
    "several": {"do_sample": True, "seed": 3, "num_return_sequences": 3},
    "beams": {"num_beams": 3},
    "drawn beams": {"num_beams": 2, "do_sample": True, "seed": 1},
    "groups": {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0},
    "contrastive": {"penalty_alpha": 0.5, "top_k": 4},
    "lookup": {"prompt_lookup_num_tokens": 3},
}


def net(**changes: Any) -> Any:
    """A model with some tokens more than the tokenizer has."""
    return model("grouped", vocab_size=300, **changes)


def texts(ids: Any) -> list[str]:
    """What was written, without its end."""
    start = max(map(len, PROMPTS))
    return [TOK.decode(row[start:], skip_special_tokens=True) for row in ids.tolist()]


@pytest.mark.parametrize("way", WAYS)
def test_every_search_keeps_to_the_form(way: str) -> None:
    ask: dict[str, Any] = {"tokenizer": TOK, "max_new_tokens": 24, "pad_token_id": TOK.pad_token_id, **WAYS[way]}
    found = texts(generate(net(), PROMPTS, regex="[a-c]{2,5}-[0-9]{3}", **ask))
    assert all(re.fullmatch("[a-c]{2,5}-[0-9]{3}", text) for text in found)
    found = texts(generate(net(), PROMPTS, choices=["yes", "nö", 'a "b"\n'], **ask))
    assert set(found) <= {"yes", "nö", 'a "b"\n'}
    if "beams" not in way and "groups" not in way:
        assert generate(net(), PROMPTS, regex="(.|\n)*", **ask).shape[0] == len(found)


def test_a_draft_model_writes_in_the_form_and_changes_nothing() -> None:
    ask: dict[str, Any] = {"tokenizer": TOK, "max_new_tokens": 30, "pad_token_id": TOK.pad_token_id}
    ask["grammar"] = 'start: WORD (" " WORD)+\nWORD: /[a-z]{1,4}/'
    plain = generate(net(), PROMPTS, **ask)
    out = generate(net(), PROMPTS, **ask, assistant_model=net(), return_dict_in_generate=True)
    assert out.sequences.tolist() == plain.tolist()
    assert out.acceptance.rate == 1.0
    assert generate(net(), PROMPTS, **ask, assistant_model=net(seed=4)).tolist() == plain.tolist()


def test_json_is_what_its_schema_says() -> None:
    for schema in (SCHEMA, json.dumps(SCHEMA)):
        ids = generate(
            net(),
            PROMPTS,
            json_schema=schema,
            tokenizer=TOK,
            max_new_tokens=200,
            do_sample=True,
            seed=2,
            sequence_bias={(TOK.encode(c)[0],): -50.0 for c in " \n\r\t"},
            pad_token_id=TOK.pad_token_id,
        )
        for text in texts(ids):
            value = json.loads(text)
            assert set(value) == {"name", "age"}
            assert value["name"] in ("cat", "dog")
            assert 0 <= value["age"] <= 99


def test_a_grammar_may_be_llama_cpps() -> None:
    grammar = 'root ::= "yes " num\nnum ::= [0-9] [0-9]'
    found = texts(generate(net(), PROMPTS, grammar=grammar, tokenizer=TOK, max_new_tokens=20, pad_token_id=1))
    assert all(re.fullmatch("yes [0-9]{2}", text) for text in found)


def test_streams_and_kept_prefixes_keep_to_the_form() -> None:
    kept, ask = PrefixCache(), {"choices": ["cat", "dog"], "max_new_tokens": 12}
    for prompt in ("one two", "one two yes"):
        events = list(stream(net(), TOK, prompt, past_key_values=kept, **ask))
        assert "".join(e.text for e in events) in ("cat", "dog")
        assert events[-1].finish_reason == "eos"


def test_a_processor_follows_rows_that_change_places() -> None:
    processor = GrammarLogitsProcessor(TOK, choices=["cat", "dog"], eos_token_id=TOK.eos_token_id)
    scores = votive.zeros(2, len(TOK))

    def best(rows: list[str]) -> list[set[str]]:
        found = processor(votive.tensor([TOK.encode(r) for r in rows]), scores).isfinite()
        return [{TOK.decode([i]) for i, on in enumerate(row) if on} for row in found.tolist()]

    one = best(["c", "d"])
    assert all("a" in words or "at" in words for words in one[:1])
    assert best(["d", "c"]) == one[::-1]
    assert best(["d", "x"]) == [one[1], set()]
    assert best(["c", "d"]) == one


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regex": "("}, "(?s)regex cannot be used: .*unclosed group"),
        ({"json_schema": "{"}, "not a JSON schema"),
        ({"json_schema": {"type": "nonsense"}}, "Invalid type: nonsense"),
        ({"grammar": "start: nothere"}, "unknown name"),
        ({"choices": []}, "a list of texts, none empty"),
        ({"regex": "a", "choices": ["b"]}, "give one of them"),
    ],
)
def test_forms_that_are_none_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(net(), PROMPTS[:1], tokenizer=TOK, max_new_tokens=3, **settings)


def test_a_form_needs_a_token_that_ends_texts() -> None:
    other = votive.text.train_bpe(["a"], vocab_size=260, special_tokens=[], progress=False)
    with pytest.raises(ValueError, match="regex needs an eos_token_id"):
        generate(net(), [[5]], tokenizer=other, regex="a")
