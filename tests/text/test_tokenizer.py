"""Encoding, padding, truncation, special tokens and decoding."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import votive
from votive.text import Tokenizer, train_bpe

from .vocabularies import KINDS, TEXTS, byte_level, sentencepiece_bpe, unigram, wordpiece


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_every_text_comes_back_from_a_byte_level_vocabulary(text: str) -> None:
    tok = byte_level()
    ids = tok.encode(text, split_special_tokens=True)
    assert tok.decode(ids) == text
    assert b"".join(tok.token_bytes(i) for i in ids).decode() == text


def test_one_text_gives_lists_of_numbers_and_a_batch_lists_of_lists() -> None:
    tok = byte_level()
    one, many = tok("again"), tok(["again", "the fox"])
    assert many.input_ids[0] == one.input_ids
    assert one.attention_mask == [1] * len(one.input_ids)
    assert "token_type_ids" not in one


def test_tensors_and_arrays_have_a_batch_dimension_and_are_int64() -> None:
    tok = byte_level()
    vt = tok("again", return_tensors="vt").input_ids
    assert isinstance(vt, votive.Tensor)
    assert vt.dtype == votive.int64
    assert vt.shape == (1, len(tok.encode("again")))
    array = tok(["a", "the fox jumps"], padding=True, return_tensors="np").input_ids
    assert isinstance(array, np.ndarray)
    assert array.shape[0] == 2


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_goes_to_the_side_asked_for_and_is_masked(side: str) -> None:
    tok = byte_level()
    enc = tok(["a", "the fox"], padding=True, padding_side=side)
    short, length = tok.encode("a"), len(enc.input_ids[1])
    fill = [tok.pad_token_id] * (length - 1)
    assert enc.input_ids[0] == (fill + short if side == "left" else short + fill)
    assert enc.attention_mask[0] == ([0] * (length - 1) + [1])[:: 1 if side == "left" else -1]


def test_padding_reaches_max_length_and_multiples() -> None:
    tok = byte_level()
    assert len(tok("a", padding="max_length", max_length=9).input_ids) == 9
    assert len(tok("a", padding=True, pad_to_multiple_of=8).input_ids) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"padding": "max_length"}, "names no limit"),
        ({"padding": "longst"}, "padding='longst' is not known"),
        ({"truncation": "middle", "max_length": 3}, "truncation='middle' is not known"),
        ({"return_tensors": "pt"}, "use 'vt'"),
        ({"padding": True, "padding_side": "top"}, "use 'left' or 'right'"),
    ],
)
def test_arguments_that_cannot_be_honoured_are_errors(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        byte_level()("text", **arguments)


def test_rows_of_different_length_make_no_tensor() -> None:
    with pytest.raises(ValueError, match="padding=True"):
        byte_level()(["a", "the fox jumps"], return_tensors="vt")


def test_padding_without_a_padding_token_is_an_error_until_one_is_set() -> None:
    tok = pickle.loads(pickle.dumps(sentencepiece_bpe()))
    with pytest.raises(ValueError, match="padding token"):
        tok(["a", "the"], padding=True)
    tok.pad_token = tok.eos_token
    assert tok(["a", "the the"], padding=True).input_ids[0][-1] == 2


def test_truncation_keeps_special_tokens_and_the_longer_text_gives_way() -> None:
    tok = wordpiece()
    enc = tok("the the the the", "the", truncation=True, max_length=6)
    assert enc.tokens() == ["[CLS]", "the", "the", "[SEP]", "the", "[SEP]"]
    assert enc.token_type_ids == [0, 0, 0, 0, 1, 1]
    with pytest.raises(ValueError, match="leaves no room"):
        tok("the", truncation=True, max_length=1)
    # Nothing of a call's settings stays.
    assert len(tok.encode("the " * 20)) == 22


def test_truncation_cuts_on_the_side_of_the_tokenizer() -> None:
    tok = pickle.loads(pickle.dumps(wordpiece()))
    tok.truncation_side = "left"
    enc = tok("do not the", truncation=True, max_length=4)
    assert enc.tokens() == ["[CLS]", "not", "the", "[SEP]"]


def test_pairs_are_two_arguments_or_a_list_of_tuples() -> None:
    tok = wordpiece()
    assert tok([("do", "not")]).input_ids[0] == tok("do", "not").input_ids
    assert tok(["do"], ["not"]).input_ids[0] == tok("do", "not").input_ids
    with pytest.raises(ValueError, match="one text for each"):
        tok(["do", "not"], ["the"])


@pytest.mark.parametrize("bad", [3, None, [3], [["a", "b", "c"]], {"a": 1}])
def test_what_is_no_text_is_a_type_error(bad: object) -> None:
    with pytest.raises(TypeError, match="tokenizer: "):
        byte_level()(bad)


def test_words_given_apart_keep_their_numbers() -> None:
    enc = wordpiece()(["doing", "the"], is_split_into_words=True)
    assert enc.word_ids() == [None, 0, 0, 1, None]


def test_offsets_and_masks_come_on_request() -> None:
    tok = wordpiece()
    enc = tok("the do", return_offsets_mapping=True, return_special_tokens_mask=True)
    assert enc.offset_mapping == [(0, 0), (0, 3), (4, 6), (0, 0)]
    assert enc.special_tokens_mask == [1, 0, 0, 1]
    assert enc.char_to_token(5) == 2
    assert enc.token_to_chars(1) == (0, 3)


def test_special_tokens_in_the_text_can_be_kept_as_text() -> None:
    tok = byte_level()
    end = tok.convert_tokens_to_ids("<|im_end|>")
    assert tok.encode("a<|im_end|>")[-1] == end
    assert end not in tok.encode("a<|im_end|>", split_special_tokens=True)
    assert tok.encode("a<|im_end|>")[-1] == end


def test_decode_takes_numbers_lists_arrays_tensors_and_rows() -> None:
    tok = byte_level()
    ids = tok.encode("the fox")
    rows = ["the fox", "the fox"]
    assert tok.decode(votive.tensor(ids)) == tok.decode(np.array(ids)) == tok.decode(ids)
    assert tok.decode(ids[0]) == tok.decode([ids[0]])
    assert tok.decode([ids, ids]) == tok.batch_decode(votive.tensor([ids, ids])) == rows
    assert tok.decode([]) == ""


def test_a_masked_label_is_no_token() -> None:
    with pytest.raises(ValueError, match="-100"):
        byte_level().decode([5, -100])


def test_clean_up_follows_the_files_except_for_bpe_and_always_the_argument() -> None:
    tok = unigram()
    ids = tok.encode("a . the , x")
    assert tok.decode(ids) == "a. the, x"
    assert tok.decode(ids, clean_up_tokenization_spaces=False) == "a . the , x"
    bpe = pickle.loads(pickle.dumps(byte_level()))
    bpe.clean_up_tokenization_spaces = True
    assert bpe.decode(bpe.encode("a . b")) == "a . b"
    assert bpe.decode(bpe.encode("a . b"), clean_up_tokenization_spaces=True) == "a. b"


def test_special_tokens_have_names_and_ids() -> None:
    tok = pickle.loads(pickle.dumps(byte_level()))
    assert tok.eos_token == tok.pad_token == "<|endoftext|>"
    assert tok.eos_token_id == 0
    assert tok.bos_token is None
    assert tok.bos_token_id is None
    assert tok.all_special_ids == [0, 1, 2]
    tok.bos_token = "<s>"
    assert tok.bos_token_id == len(tok) - 1
    assert tok.decode(tok.encode("<s>a"), skip_special_tokens=True) == "a"
    tok.pad_token_id = 2
    assert tok.pad_token == "<|im_end|>"
    with pytest.raises(ValueError, match="no such token"):
        tok.eos_token_id = 10**6
    assert tok.add_special_tokens({"mask_token": "<mask>"}) == 1
    with pytest.raises(ValueError, match="is not known"):
        tok.add_special_tokens({"end": "x"})


def test_added_tokens_are_never_split_and_decode_to_themselves() -> None:
    tok = pickle.loads(pickle.dumps(byte_level()))
    before = len(tok)
    assert tok.add_tokens(["<tool>", "a"]) == 1  # "a" is there already
    assert len(tok) == before + 1
    assert tok.vocab_size == before
    ids = tok.encode("a<tool>b")
    assert tok.convert_tokens_to_ids("<tool>") in ids
    assert tok.decode(ids, skip_special_tokens=True) == "a<tool>b"


def test_unknown_tokens_have_the_unknown_id() -> None:
    tok = wordpiece()
    assert tok.convert_tokens_to_ids(["the", "nothere"])[1] == tok.unk_token_id
    assert byte_level().convert_tokens_to_ids("nothere") is None


@pytest.mark.parametrize(
    ("kind", "text", "want"),
    [
        ("byte_level", " é", b" \xc3\xa9"),
        ("sentencepiece_bpe", "the 𝄞", " the 𝄞".encode()),
        ("wordpiece", "doing", b"doing"),
        ("unigram", "the a", b" the a"),
    ],
)
def test_tokens_know_their_bytes(kind: str, text: str, want: bytes) -> None:
    tok = KINDS[kind]()
    ids = tok.encode(text, add_special_tokens=False)
    assert b"".join(tok.token_bytes(i) for i in ids) == want


def test_there_are_no_bytes_for_an_id_without_token() -> None:
    with pytest.raises(IndexError, match="there is no token"):
        byte_level().token_bytes(10**6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_survives_pickling_and_saving(kind: str, tmp_path) -> None:
    tok = KINDS[kind]()
    tok.save_pretrained(tmp_path / "tok")
    for other in (pickle.loads(pickle.dumps(tok)), Tokenizer.from_pretrained(tmp_path / "tok")):
        for text in [*TEXTS, "a b"]:
            assert other.encode(text) == tok.encode(text)
        assert other.special_tokens_map == tok.special_tokens_map
        assert other.model_input_names == tok.model_input_names
        assert len(other) == len(tok)
        ids = list(range(len(tok)))
        assert other.decode(ids) == tok.decode(ids)


def test_rows_are_padded_after_the_fact_with_labels_ignored() -> None:
    tok = byte_level()
    rows = [{"input_ids": [5, 6], "labels": [5, 6]}, {"input_ids": [7], "labels": [7]}]
    batch = tok.pad(rows, return_tensors="np")
    assert batch.labels.tolist() == [[5, 6], [7, -100]]
    assert batch.attention_mask.tolist() == [[1, 1], [1, 0]]


def test_training_twice_gives_the_same_vocabulary() -> None:
    one, two = (train_bpe(iter(TEXTS), 350, progress=False).backend.to_str() for _ in range(2))
    assert one == two


def test_training_reads_files_as_it_reads_texts(tmp_path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes("\n".join(TEXTS).encode())
    from_file = train_bpe(path, 350, progress=False)
    assert from_file.get_vocab() == train_bpe(["\n".join(TEXTS)], 350, progress=False).get_vocab()


def test_special_tokens_come_first_and_all_bytes_follow() -> None:
    tok = train_bpe(TEXTS, 300, special_tokens=["<a>", "<b>"], bos_token="<c>", progress=False)
    assert tok.convert_ids_to_tokens([0, 1, 2]) == ["<a>", "<b>", "<c>"]
    assert tok.eos_token == "<a>"
    assert {bytes([b]) for b in range(256)} <= {tok.token_bytes(i) for i in range(3, len(tok))}
    assert len(tok) == 300


def test_training_says_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="need 257"):
        train_bpe(TEXTS, 100, progress=False)
    with pytest.raises(TypeError, match="pathlib"):
        train_bpe("corpus.txt", 300, progress=False)
    with pytest.raises(ValueError, match="'gpt-3' is not known"):
        train_bpe(TEXTS, 300, split="gpt-3", progress=False)
