"""The models with an encoder and a decoder that are compared, each with what sets its configuration apart."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import votive.models as models

from .compare import both, pair, torch, transformers

SIZES = {
    "vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 40, "max_position_embeddings": 40,
    # A layer that is left out would be another one in each of both.
    "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0,
}  # fmt: skip
# Padding, beginning and end have ids that no text of the tests has.
ONE = {**SIZES, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
ZERO = {**SIZES, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
T5 = {
    "vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12, "decoder_start_token_id": 0,
    "pad_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
# The caches of transformers have room for as many layers as the encoder has.
AS_DEEP = {"decoder_layers": 2}
USES = {
    "base": "Model",
    "seq2seq": "ForConditionalGeneration",
    "causal": "ForCausalLM",
    "classify": "ForSequenceClassification",
    "answer": "ForQuestionAnswering",
    "tokens": "ForTokenClassification",
    "encoder": "EncoderModel",
}
WRITES = ("base", "seq2seq", "causal")
EVERY = (*WRITES, "classify", "answer")
HEADS = ("base", "seq2seq", "classify", "answer", "tokens", "encoder")  # of T5


class Row(NamedTuple):
    """What the classes of a family are called, its settings, and its heads."""

    family: str
    settings: dict[str, Any]
    uses: tuple[str, ...] = EVERY


ROWS: dict[str, Row] = {
    "bart": Row("Bart", ONE),
    "bart scaled": Row(
        "Bart",
        {
            **ONE, "scale_embedding": True, "activation_function": "relu", "classifier_dropout": 0.2,
            "forced_bos_token_id": 0,
        },
    ),
    "bart apart": Row("Bart", {**ONE, "tie_word_embeddings": False}),
    "plbart": Row("PLBart", {**ONE, "decoder_start_token_id": 60}, (*WRITES, "classify")),
    "mvp": Row("Mvp", ONE),
    "mbart": Row("MBart", {**ONE, "scale_embedding": True, "decoder_start_token_id": 60, "forced_bos_token_id": 59}),
    "blenderbot": Row("Blenderbot", {**ZERO, "scale_embedding": True}, WRITES),
    "blenderbot small": Row("BlenderbotSmall", ZERO, WRITES),
    "pegasus": Row(
        "Pegasus",
        {**SIZES, "pad_token_id": 0, "eos_token_id": 1, "scale_embedding": True, "length_penalty": 0.8},
        WRITES,
    ),
    "marian": Row(
        "Marian",
        {
            **SIZES, "pad_token_id": 63, "decoder_start_token_id": 63, "eos_token_id": 0, "scale_embedding": True,
            "bad_words_ids": [[63]], "activation_function": "swish",
        },
        WRITES,
    ),
    "marian of two vocabularies": Row(
        "Marian",
        {
            **SIZES, "pad_token_id": 50, "decoder_start_token_id": 50, "eos_token_id": 0, "decoder_vocab_size": 51,
            "share_encoder_decoder_embeddings": False,
        },
        ("base", "seq2seq"),  # transformers' decoder alone has a head of the other size
    ),
    "m2m": Row("M2M100", {**ONE, "forced_bos_token_id": 58}, ("base", "seq2seq")),
    "t5": Row("T5", T5, HEADS),
    "mt5": Row("MT5", {**T5, "feed_forward_proj": "gated-silu"}, HEADS),
    "umt5": Row("UMT5", {**T5, "feed_forward_proj": "gated-gelu"}, HEADS),
}  # fmt: skip
CASES = [(name, use) for name, row in ROWS.items() for use in row.uses]


@cache
def models_of(name: str, use: str) -> tuple[Any, Any]:
    """Both models of a row; they are shared, so tests leave them as they are."""
    return fresh(name, use)


def fresh(name: str, use: str, train: bool = False, dtype: str | None = None, **more: Any) -> tuple[Any, Any]:
    """Both models of a row, made anew."""
    row = ROWS[name]
    labels = {"num_labels": 2 if use == "answer" else 3}
    if use == "causal":
        more = {**AS_DEEP, **more}
    config = getattr(transformers, f"{row.family}Config")(**{**row.settings, **labels, **more})
    theirs, ours = class_of(transformers, name, use), class_of(models, name, use)
    # Scores of T5 are not scaled: larger weights would let one key win by what rounding leaves.
    gain = 3.0 if "d_kv" not in row.settings else 1.0 if dtype is None else 0.5
    return pair((theirs, config), ours, train=train, dtype=dtype, gain=gain)


def class_of(where: Any, name: str, use: str) -> Any:
    """The class of a row for a use."""
    family = ROWS[name].family
    suffix = "MTModel" if (family, use) == ("Marian", "seq2seq") else USES[use]
    return getattr(where, f"{family}{suffix}")


def texts(name: str, use: str, left: bool = False, padded: bool = True) -> tuple[Any, Any, Any]:
    """What both are called with, and which positions of the answer are real: three texts of different lengths."""
    generator, settings = torch.manual_seed(3), ROWS[name].settings
    pad, end = settings.get("pad_token_id", 0), settings.get("eos_token_id", 1)
    lengths = (9, 6, 2)

    def rows(length: int, counts: tuple[int, ...]) -> tuple[Any, Any]:
        ids = torch.randint(5, 48, (3, length), generator=generator)
        real = torch.tensor([[1] * count + [0] * (length - count) for count in counts])
        # What classifies reads ends; each text has one.
        for i, count in enumerate(counts):
            ids[i, count - 1] = end
            if left:
                ids[i] = ids[i].roll(length - count)
        real = real.flip(1) if left else real
        return ids.masked_fill(real == 0, pad), real

    ids, real = rows(9, lengths if padded else (9,) * 3)
    given = {"input_ids": ids} | ({"attention_mask": real} if padded else {})
    where = real
    if use not in ("causal", "encoder"):
        own, where = rows(5, (5, 3, 4) if padded else (5,) * 3)
        if use in ("base", "seq2seq"):
            given |= {"decoder_input_ids": own} | ({"decoder_attention_mask": where} if padded else {})
        else:
            where = real
    return given, {key: both(value.numpy())[1] for key, value in given.items()}, where.numpy().astype(bool)


SCORES = ("logits", "start_logits", "end_logits")


def answers(out: Any) -> dict[str, Any]:
    """What a model says, by name."""
    names = ("last_hidden_state", *SCORES)
    return {name: out[name] for name in names if name in out and out[name] is not None}
