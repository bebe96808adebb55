"""The encoders that are compared, each with a configuration that shows what sets it apart, and their heads."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import votive.models as models
from tests import tiny_sizes

from .compare import both, pair, torch, transformers

SMALL = {
    "vocab_size": 64, **tiny_sizes.transformer(32, 48, layers=2, heads=4), "max_position_embeddings": 40,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
ROBERTA = {**SMALL, "pad_token_id": 1, "bos_token_id": 0}
DISTIL = {"vocab_size": 64, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40}
# Distances beyond the furthest and in shared buckets occur in texts of nine positions.
FAR = {"relative_attention": True, "max_relative_positions": 6, "pos_att_type": "c2p|p2c"}
MODERN = {
    **SMALL, "num_hidden_layers": 4, "local_attention": 6, "cls_token_id": 1, "sep_token_id": 2,
    "reference_compile": False,
}  # fmt: skip
USES = {
    "base": "Model",
    "masked": "ForMaskedLM",
    "classify": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "answer": "ForQuestionAnswering",
    "choice": "ForMultipleChoice",
    "pretrain": "ForPreTraining",
    "next_sentence": "ForNextSentencePrediction",
}
COMMON = ("base", "masked", "classify", "tokens", "answer", "choice")
NO_CHOICE = COMMON[:5]
FOUR = COMMON[:4]


class Row(NamedTuple):
    """What the classes of a family are called, its settings, and its heads."""

    family: str
    settings: dict[str, Any]
    uses: tuple[str, ...] = COMMON
    kinds: int = 0  # of text
    near: bool = False  # layers see only what is near: what is far from any word, in padding, is not defined


ROWS: dict[str, Row] = {
    "bert": Row("Bert", SMALL, (*COMMON, "pretrain", "next_sentence"), kinds=2),
    "bert relu": Row("Bert", {**SMALL, "hidden_act": "relu", "type_vocab_size": 3, "classifier_dropout": 0.3}, kinds=3),
    "ernie": Row("Ernie", SMALL, (*COMMON, "pretrain", "next_sentence"), kinds=2),
    "ernie of tasks": Row("Ernie", {**SMALL, "use_task_id": True}, (*COMMON, "pretrain"), kinds=2),
    "bert generation": Row("BertGeneration", SMALL, ("base",)),
    "roberta": Row("Roberta", ROBERTA),
    "camembert": Row("Camembert", ROBERTA),
    "xlm roberta": Row("XLMRoberta", ROBERTA),
    "xlm roberta xl": Row("XLMRobertaXL", ROBERTA),
    "distilbert": Row("DistilBert", DISTIL),
    "albert": Row("Albert", {**SMALL, "embedding_size": 16}, (*COMMON, "pretrain"), kinds=2),
    "albert in groups": Row(
        "Albert",
        {**SMALL, "embedding_size": 16, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
        kinds=2,
    ),
    "deberta": Row("Deberta", {**SMALL, **FAR}, NO_CHOICE),
    "deberta without distances": Row("Deberta", {**SMALL, "embedding_size": 16, "type_vocab_size": 2}, NO_CHOICE, 2),
    "deberta of distances alone": Row(
        "Deberta", {**SMALL, **FAR, "position_biased_input": False, "max_relative_positions": -1}, NO_CHOICE
    ),
    "deberta to keys": Row("Deberta", {**SMALL, **FAR, "pos_att_type": ["c2p"], "legacy": False}, NO_CHOICE),
    "deberta v2": Row("DebertaV2", {**SMALL, **FAR}),
    "deberta v2 without distances": Row("DebertaV2", {**SMALL, "type_vocab_size": 2, "legacy": False}, kinds=2),
    "deberta v3": Row(
        "DebertaV2",
        {
            **SMALL, **FAR, "position_buckets": 4, "max_relative_positions": 40, "share_att_key": True,
            "norm_rel_ebd": "layer_norm", "position_biased_input": False, "pooler_dropout": 0.1, "cls_dropout": 0.2,
        },
    ),
    "deberta v2 of neighbours": Row(
        "DebertaV2",
        {**SMALL, **FAR, "conv_kernel_size": 3, "conv_act": "gelu", "share_att_key": True, "embedding_size": 16},
    ),
    "electra": Row("Electra", {**SMALL, "embedding_size": 16}, (*COMMON, "pretrain"), kinds=2),
    "electra as wide": Row(
        "Electra", {**SMALL, "embedding_size": 32, "summary_type": "mean", "summary_activation": "tanh"}, kinds=2
    ),
    "eurobert": Row("EuroBert", {**SMALL, "num_key_value_heads": 2, "mask_token_id": 4}, FOUR),
    "eurobert biased": Row(
        "EuroBert",
        {
            **SMALL, "num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True, "classifier_pooling": "mean",
            "tie_word_embeddings": True, "head_dim": 6,
            "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0},
        },
        FOUR,
    ),
    "eurobert pooled at the beginning": Row("EuroBert", {**SMALL, "classifier_pooling": "bos"}, ("classify",)),
    "modernbert": Row("ModernBert", MODERN, near=True),
    "modernbert biased": Row(
        "ModernBert",
        {
            **MODERN, "attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True,
            "decoder_bias": False, "classifier_pooling": "mean", "hidden_activation": "relu",
            "classifier_activation": "silu", "layer_types": ["sliding_attention", "full_attention"] * 2,
        },
        near=True,
    ),
    "modernbert of what is labeled": Row("ModernBert", {**MODERN, "sparse_prediction": True}, ("masked",), near=True),
    "mpnet": Row("MPNet", ROBERTA),
    "nomic": Row("NomicBert", SMALL, FOUR, kinds=2),
    "nomic of wide heads": Row(
        "NomicBert", {**SMALL, "head_dim": 12, "rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}, FOUR, 2
    ),
    "gte": Row("Gte", {**ROBERTA, "type_vocab_size": 2}, FOUR, kinds=2),
    "jina": Row("JinaEmbeddingsV3", ROBERTA, NO_CHOICE),
    "roformer": Row("RoFormer", {**SMALL, "embedding_size": 16}, kinds=2),
    "roformer turning values": Row("RoFormer", {**SMALL, "rotary_value": True}, kinds=2),
}  # fmt: skip
CASES = [(name, use) for name, row in ROWS.items() for use in row.uses]


@cache
def models_of(name: str, use: str) -> tuple[Any, Any]:
    """Both models of a row; they are shared, so tests leave them as they are."""
    return fresh(name, use)


def fresh(name: str, use: str, train: bool = False, dtype: str | None = None, **more: Any) -> tuple[Any, Any]:
    """Both models of a row, made anew."""
    row = ROWS[name]
    labels = {"num_labels": 2 if use in ("answer", "pretrain") else 3}
    config = getattr(transformers, f"{row.family}Config")(**{**row.settings, **labels, **more})
    return pair((class_of(transformers, name, use), config), class_of(models, name, use), train=train, dtype=dtype)


def class_of(where: Any, name: str, use: str) -> Any:
    """The class of a row for a use."""
    suffix = "Encoder" if (family := ROWS[name].family) == "BertGeneration" else USES[use]
    return getattr(where, f"{family}{suffix}")


def texts(name: str, use: str, length: int = 9, left: bool = False, padded: bool = True) -> tuple[Any, Any, Any]:
    """What both are called with, and which positions are real: three texts of different lengths."""
    row = ROWS[name]
    generator = torch.manual_seed(3)
    ids = torch.randint(5, 61, (3, length), generator=generator)
    least = length - 3 if row.near and use != "base" else 2
    real = torch.tensor([[1] * count + [0] * (length - count) for count in (length, length - 3, least)])
    real = real.flip(1) if left else real
    given = {"input_ids": ids}
    if padded:
        pad = row.settings.get("pad_token_id", 0)
        given = {"input_ids": ids.masked_fill(real == 0, pad), "attention_mask": real}
    if row.kinds:
        given["token_type_ids"] = torch.randint(0, row.kinds, ids.shape, generator=generator)
    if row.settings.get("use_task_id") and use != "choice":  # which transformers does not flatten
        given["task_type_ids"] = torch.randint(0, 3, ids.shape, generator=generator)
    if use == "choice":
        given = {key: torch.stack([value, value.flip(0)], 1) for key, value in given.items()}
    return given, {key: both(value.numpy())[1] for key, value in given.items()}, real.numpy().astype(bool)


def labels_of(name: str, use: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Labels for a head, for both."""
    generator = torch.manual_seed(4)
    words = torch.randint(5, 61, (3, 9), generator=generator)
    words = words.masked_fill(words < 25, -100)
    pretrain = {
        "Albert": {"labels": words, "sentence_order_label": torch.tensor([0, 1, 1])},
        "Electra": {"labels": torch.randint(0, 2, (3, 9), generator=generator)},
    }
    found = {
        "masked": {"labels": words},
        "classify": {"labels": torch.tensor([2, 0, 1])},
        "tokens": {"labels": torch.randint(0, 3, (3, 9), generator=generator)},
        "answer": {"start_positions": torch.tensor([1, 0, 99]), "end_positions": torch.tensor([3, 8, 1])},
        "choice": {"labels": torch.tensor([0, 1, 1])},
        "pretrain": pretrain.get(
            ROWS[name].family, {"labels": words, "next_sentence_label": torch.tensor([0, 1, 1])}
        ),
        "next_sentence": {"labels": torch.tensor([0, 1, 1])},
    }[use]  # fmt: skip
    return found, {key: both(value.numpy())[1] for key, value in found.items()}


SCORES = ("logits", "start_logits", "end_logits", "prediction_logits", "seq_relationship_logits", "sop_logits")


def answers(out: Any) -> dict[str, Any]:
    """What a model says, by name."""
    names = ("last_hidden_state", "pooler_output", *SCORES)
    return {name: out[name] for name in names if name in out and out[name] is not None}
