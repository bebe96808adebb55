"""Every key of every configuration, absent, null and with a value, here and in transformers.

`python -m tests.models.configurations` writes data/configurations.json anew.
"""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from votive.models import AutoConfig, families

from .configuration_differences import differences

FILE = Path(__file__).parent / "data" / "configurations.json"
REFUSED = "(refused)"
STATES = ("absent", "null", "value")
# Whole models inside; their own families are checked.
FAMILIES = [name for name in families() if name not in ("vision-encoder-decoder", "mine", "quiet")]
NESTED = {
    "text_config", "vision_config", "attn_config", "backbone_config", "prompt_encoder_config", "mask_decoder_config",
}  # fmt: skip
# Spelled otherwise since transformers 5; test_decoders compares what they do.
ROPE = {"rope_theta", "rope_scaling", "rope_local_base_freq", "mrope_section", "llama_4_scaling_beta"}

# What is decided otherwise here: family (or *) and key, the states, why.
DIFFERENT: dict[tuple[str, str], tuple[set[str], str]] = {
    ("*", "num_labels"): ({"null"}, "as absent: id2label tells; transformers fails in range(None)"),
    ("*", "attention_dropout"): ({"null"}, "no dropout, whether the family is typed so or not"),
    ("*", "is_decoder"): ({"value"}, "an encoder that decodes is not supported, and says so"),
    ("*", "add_cross_attention"): ({"value"}, "not supported, and says so"),
    ("*", "use_bidirectional_attention"): ({"value"}, "not supported, and says so"),
    ("clip", "projection_dim"): ({"null"}, "no model can be made of it"),
    ("clip", "logit_scale_init_value"): ({"null"}, "no model can be made of it"),
    ("clip", "initializer_factor"): ({"null"}, "no model can be made of it"),
    ("clip_text_model", "projection_dim"): ({"null"}, "no model can be made of it"),
    ("clip_text_model", "layer_norm_eps"): ({"null"}, "no model can be made of it"),
    ("clip_text_model", "initializer_factor"): ({"null"}, "no model can be made of it"),
    ("clip_vision_model", "image_size"): ({"null"}, "no model can be made of it"),
    ("clip_vision_model", "patch_size"): ({"null"}, "no model can be made of it"),
    ("mixtral", "head_dim"): ({"absent", "null"}, "computed at once, there when it is used"),
    ("mt5", "tie_word_embeddings"): ({"absent"}, "the weights tell whether it is so"),
    ("mt5", "decoder_start_token_id"): ({"null"}, "the padding token, with which T5 begins"),
    ("t5", "tie_word_embeddings"): ({"value"}, "kept as told; the weights tell whether it is so"),
    ("t5", "scale_decoder_outputs"): ({"null"}, "as absent: tie_word_embeddings tells"),
}
# T5's files say by tie_word_embeddings whether scores are scaled, and nothing of the head.
LOSSY = {(family, key) for family in ("t5", "mt5", "umt5") for key in ("scale_decoder_outputs", "tie_word_embeddings")}
DIFFERENT |= differences()


@cache
def config_class(family: str) -> Any:
    return type(AutoConfig.from_dict({"model_type": family}))


@cache
def their_class(family: str) -> Any:
    import transformers

    return type(transformers.AutoConfig.for_model(family))


@cache
def keys(family: str) -> list[str]:
    unseen = {"extra", *NESTED, *ROPE}
    return [f.name for f in fields(config_class(family)) if f.name not in unseen]


@cache
def sample(family: str, key: str) -> Any:
    """Another value than the default that a file may hold."""
    fixed: dict[str, Any] = {
        "architectures": ["Mine"],
        "dtype": "float16",
        "problem_type": "regression",
        "feed_forward_proj": "gated-relu",
        "id2label": {"0": "a", "1": "b", "2": "c"},
        "num_labels": 3,
        "mlp_only_layers": [1],
        "suppress_tokens": [3],
        "begin_suppress_tokens": [4],
        "layer_norm_eps": 0.25,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "sliding_window": 77,
        "n_inner": 99,
        "cross_attention_hidden_size": 7,
        "num_decoder_layers": 3,
        "pooler_output_size": 9,
        "classifier_dropout": 0.25,
        "scale_decoder_outputs": False,
        "use_bidirectional_attention": True,
        "decoder_start_token_id": 5,
        "feat_extract_norm": "layer",
        "position_embedding_type": "learned" if family == "detr" else "absolute",
    }
    if key in fixed:
        return fixed[key]
    if key.endswith("token_id"):
        return 5
    default = getattr(config_class(family)(), key)
    if key == "layer_types":
        return ["full_attention"] * config_class(family)().num_hidden_layers
    if isinstance(default, bool):
        return not default
    if isinstance(default, str):
        return "relu"
    return default + 0.25 if isinstance(default, float) else default * 2


def content(family: str, key: str, state: str) -> dict[str, Any]:
    """A config.json that says this one thing."""
    if state == "absent":
        return {}
    return {key: None if state == "null" else sample(family, key)}


def found(make: Any, key: str) -> Any:
    """What a configuration says of a key, as JSON would; or that it was refused."""
    try:
        value = getattr(make(), key)
    except Exception:
        return REFUSED
    return json.loads(json.dumps(value, default=lambda x: str(x).removeprefix("torch.")))


def decided_otherwise(family: str, key: str, state: str) -> bool:
    rows = [DIFFERENT.get((name, key), (set(), "")) for name in ("*", family)]
    return any(state in states for states, _ in rows)


@cache
def read(family: str, here: bool) -> Any:
    """The configuration that says nothing."""
    return (config_class if here else their_class)(family).from_dict({})


def made_of(family: str, key: str, state: str, here: bool) -> Any:
    """A configuration that says one thing, made by votive's class (`here`) or by that of transformers."""
    kind = (config_class if here else their_class)(family)
    return read(family, here) if state == "absent" else kind.from_dict(content(family, key, state))


def theirs(family: str, key: str, state: str) -> Any:
    """What transformers makes of it."""
    return found(lambda: made_of(family, key, state, False), key)


def table() -> dict[str, dict[str, dict[str, Any]]]:
    """What transformers makes of every key that it knows."""
    import transformers

    transformers.logging.set_verbosity_error()
    made = {family: their_class(family)() for family in FAMILIES}
    return {
        family: {
            key: {state: theirs(family, key, state) for state in STATES} for key in keys(family) if hasattr(one, key)
        }
        for family, one in made.items()
    }


if __name__ == "__main__":
    # A line for each key.
    rows = {
        family: ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(told, sort_keys=True)}" for key, told in sorted(keyed.items())
        )
        for family, keyed in sorted(table().items())
    }
    FILE.write_text("{\n" + ",\n".join(f" {json.dumps(name)}: {{\n{row}\n }}" for name, row in rows.items()) + "\n}\n")
