"""Text that comes token by token is the text of all tokens, and never half a character."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders

from votive.text import StopMatcher, StreamingDetokenizer, Tokenizer
from votive.text.stages import CleanUp, clean_up_text

from .vocabularies import KINDS, byte_level, sentencepiece_bpe, wordpiece

TEXT = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("the and .,'? \n🎉👩‍👧é")))
# Numbers are taken modulo each vocabulary's size, so that every id of each kind comes up.
IDS = st.lists(st.integers(0, 10**6), max_size=40)


def streamed(tok: Tokenizer, ids: list[int], **options: bool) -> list[str]:
    stream = StreamingDetokenizer(tok, **options)
    return [*(stream.add(i) for i in ids), stream.finish()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("skip", [True, False])
@settings(max_examples=150, deadline=None)
@given(text=TEXT)
def test_the_streamed_text_of_a_string_is_its_decoded_text(kind: str, skip: bool, text: str) -> None:
    tok = KINDS[kind]()
    ids = tok.encode(text)
    want = tok.decode(ids, skip_special_tokens=skip)
    assert "".join(streamed(tok, ids, skip_special_tokens=skip)) == want


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("cleanup", [None, True, False])
@settings(max_examples=150, deadline=None)
@given(numbers=IDS)
def test_the_streamed_text_of_any_ids_is_their_decoded_text(
    kind: str, skip: bool, cleanup: bool | None, numbers: list[int]
) -> None:
    tok = KINDS[kind]()
    ids = [i % (len(tok) + 2) for i in numbers]  # two ids that no token has
    options = {"skip_special_tokens": skip, "clean_up_tokenization_spaces": cleanup}
    assert "".join(streamed(tok, ids, **options)) == tok.decode(ids, **options)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=30))
def test_invalid_bytes_become_replacement_characters_as_in_decode(data: bytes) -> None:
    tok = byte_level()
    by_byte = {tok.token_bytes(i): i for i in range(len(tok)) if len(tok.token_bytes(i)) == 1}
    ids = [by_byte[bytes([b])] for b in data]
    parts = streamed(tok, ids)
    assert "".join(parts) == tok.decode(ids) == data.decode(errors="replace")


def test_a_character_over_several_tokens_comes_whole() -> None:
    tok = byte_level()
    parts = streamed(tok, tok.encode("a𝄞b"))
    assert [p for p in parts if p] == ["a", "𝄞", "b"]


def test_a_run_of_byte_tokens_waits_until_it_is_over() -> None:
    tok = sentencepiece_bpe()
    ids = tok.encode("a𝄞b", add_special_tokens=False)
    assert [p for p in streamed(tok, ids) if p] == ["a", "𝄞b"]


def test_only_the_first_token_loses_its_space() -> None:
    tok = sentencepiece_bpe()
    assert streamed(tok, tok.encode("the the")) == ["", "the", " the", ""]


def test_pieces_of_a_word_are_joined() -> None:
    tok = wordpiece()
    ids = tok.encode("doing the", add_special_tokens=False)
    assert "".join(streamed(tok, ids, clean_up_tokenization_spaces=False)) == "doing the"
    assert streamed(tok, ids, clean_up_tokenization_spaces=False) == ["do", "ing", " the", ""]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.text(" .?!,'ntmsvreax", max_size=5), max_size=20))
def test_clean_up_does_not_depend_on_how_the_text_is_cut(parts: list[str]) -> None:
    stage = CleanUp()
    out = [o for p in parts for o in stage.push(p)] + stage.end()
    assert "".join(out) == clean_up_text("".join(parts))


@pytest.mark.parametrize("filler", ["    ", "nnnn", "....", ". . ", "n t ", "xyz "])
def test_clean_up_holds_back_little(filler: str) -> None:
    stage = CleanUp()
    for _ in range(50):
        stage.push(filler)
        assert len(stage.held) < 12


def test_a_decoder_without_a_streaming_form_speaks_at_the_end() -> None:
    tok = sentencepiece_bpe()
    ids = tok.encode("the and the", add_special_tokens=False)
    backend = type(tok.backend).from_str(tok.backend.to_str())
    backend.decoder = decoders.Sequence([decoders.Fuse(), decoders.Replace("▁the", " a"), decoders.Replace("▁", " ")])
    odd = Tokenizer(backend)
    parts = streamed(odd, ids)
    assert parts[-1] == odd.decode(ids) == " a and a"
    assert not any(parts[:-1])


def held(value: object) -> int:
    """Characters, bytes and entries that an object keeps, through its attributes."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        return len(value) + sum(map(held, value))
    if isinstance(value, dict):
        return len(value) + sum(map(held, value.values()))
    return held(vars(value)) if hasattr(value, "__dict__") and not callable(value) else 0


def test_what_is_kept_does_not_grow_with_the_text() -> None:
    tok = byte_level()
    stream = StreamingDetokenizer(tok)
    ids = tok.encode("the quick brown fox é ")
    kept = []
    for _ in range(500):
        for i in ids:
            stream.add(i)
        kept.append(held(stream))
    # A token's time would grow with it.
    assert 0 < kept[-1] == kept[0], kept[::100]


def test_after_finish_only_reset_begins_anew() -> None:
    tok = byte_level()
    stream = StreamingDetokenizer(tok)
    stream.finish()
    with pytest.raises(RuntimeError, match="reset"):
        stream.add(5)
    stream.reset()
    assert stream.add(tok.encode("x")[0]) == "x"


STOPS = st.lists(st.text("ab<", min_size=1, max_size=4), min_size=1, max_size=3)


@settings(max_examples=500, deadline=None)
@given(stops=STOPS, parts=st.lists(st.text("ab<c", max_size=5), max_size=10))
def test_a_stop_string_cuts_the_text_where_it_first_is_complete(stops: list[str], parts: list[str]) -> None:
    text = "".join(parts)
    ends = [text.find(s) + len(s) for s in stops if s in text]
    matcher, shown, hit = StopMatcher(stops), "", None
    for part in parts:
        safe, hit = matcher.add(part)
        shown += safe
        if hit is not None:
            break
        assert not any(s in shown for s in stops)
    if not ends:
        assert hit is None
        assert shown + matcher.finish() == text
        return
    end = min(ends)
    assert hit == max((s for s in stops if text[:end].endswith(s)), key=len)
    assert shown == text[: end - len(hit)]
    assert (text[end:]).startswith(matcher.rest)


def test_what_could_begin_a_stop_string_is_held_back() -> None:
    matcher = StopMatcher(["\nUser:"])
    assert matcher.add("Hello\nUs") == ("Hello", None)
    assert matcher.add("ed") == ("\nUsed", None)
    assert matcher.add("\nUser: hi") == ("", "\nUser:")
    assert matcher.rest == " hi"
    with pytest.raises(RuntimeError, match="reset"):
        matcher.add("x")


def test_an_empty_stop_string_is_an_error() -> None:
    with pytest.raises(ValueError, match="not empty"):
        StopMatcher(["a", ""])
