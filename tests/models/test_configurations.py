"""Absent, null and a value are three things, in every key of every configuration."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive.models import (
    AutoConfig,
    BertConfig,
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
)

from .configuration_differences import READ_OTHERWISE
from .configurations import (
    DIFFERENT,
    FAMILIES,
    FILE,
    LOSSY,
    REFUSED,
    STATES,
    config_class,
    content,
    decided_otherwise,
    found,
    keys,
    made_of,
    table,
    their_class,
)

KNOWN = json.loads(FILE.read_text())
SMALL = {"vocab_size": 20, **tiny_sizes.transformer(16, 16, layers=2, heads=2), "num_key_value_heads": 1, "head_dim": 8}


def test_the_stored_table_covers_every_family() -> None:
    assert sorted(KNOWN) == sorted(FAMILIES)
    assert sum(len(rows) for rows in KNOWN.values()) > 500


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("state", STATES)
def test_a_key_means_what_it_means_to_transformers(family: str, state: str) -> None:
    wrong = {}
    for key, told in KNOWN[family].items():
        ours = found(lambda key=key: made_of(family, key, state, True), key)
        if (ours == told[state]) == decided_otherwise(family, key, state):
            # Either another answer, or one that is listed as another and is not.
            if ("*", key) not in DIFFERENT or ours != told[state]:
                wrong[key] = ours, told[state]
    assert not wrong


@pytest.mark.parametrize("family", FAMILIES)
def test_a_configuration_comes_back_from_a_file_as_it_was(family: str, tmp_path: Path) -> None:
    kind = config_class(family)
    checked = 0
    for key in keys(family):
        for state in STATES:
            made = found(lambda: kind.from_dict(content(family, key, state)), key)  # noqa: B023
            if made == REFUSED or ((family, key) in LOSSY and state == "value"):
                continue
            config = kind.from_dict(content(family, key, state))
            config.save_pretrained(tmp_path)
            stored = json.loads((tmp_path / "config.json").read_text())
            unset = {n for n in keys(family) if getattr(config, n) is None}
            assert set(stored) >= {"model_type", *keys(family)} - unset
            assert not set(stored) & unset & {"layer_types"}
            assert AutoConfig.from_pretrained(tmp_path) == config, (key, state)
            checked += 1
    assert checked > 2 * len(keys(family))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parity
def test_transformers_reads_what_is_written_here(family: str) -> None:
    pytest.importorskip("transformers")
    theirs, ours = their_class(family), config_class(family)
    wrong = {}
    for key, told in KNOWN[family].items():
        for state in STATES:
            if told[state] == REFUSED or (family, key) in READ_OTHERWISE or decided_otherwise(family, key, state):
                continue
            here, came = (made_of(family, key, state, ours is kind) for kind in (ours, theirs))
            there = found(lambda: theirs.from_dict(here.to_dict()), key)  # noqa: B023
            back = found(lambda: ours.from_dict(came.to_dict()), key)  # noqa: B023
            if not there == back == told[state]:
                wrong[key, state] = there, back, told[state]
    assert not wrong


@pytest.mark.parity
def test_the_stored_table_is_what_transformers_says() -> None:
    pytest.importorskip("transformers")
    assert json.loads(json.dumps(table())) == KNOWN


def test_a_window_of_null_sees_all() -> None:
    """Mistral since v0.2: beyond the default window, its text was silently another."""
    votive.manual_seed(0)
    ids = votive.randint(0, 20, (1, 12))
    near = MistralForCausalLM(MistralConfig(**SMALL, sliding_window=4)).eval()
    far = MistralForCausalLM(MistralConfig.from_dict({**SMALL, "sliding_window": None})).eval()
    far.load_state_dict(near.state_dict())
    other = ids.clone()
    other[0, 0] = (ids[0, 0] + 1) % 20
    with votive.no_grad():
        seen = [(m(ids).logits[0, -1] - m(other).logits[0, -1]).abs().max() for m in (near, far)]
        cached = far.generate(ids[:, :1], max_new_tokens=8, min_new_tokens=8)
        plain = far.generate(ids[:, :1], max_new_tokens=8, min_new_tokens=8, use_cache=False)
    assert float(seen[0]) == 0
    assert float(seen[1]) > 0
    assert cached.tolist() == plain.tolist()
    assert MistralConfig.from_dict({}).sliding_window == 4096


@pytest.mark.parametrize("key", ["final_logit_softcapping", "attn_logit_softcapping"])
def test_a_cap_of_null_caps_nothing(key: str) -> None:
    votive.manual_seed(0)
    ids = votive.randint(0, 20, (1, 6))
    capped = Gemma2ForCausalLM(Gemma2Config(**SMALL, initializer_range=5.0)).eval()
    free = Gemma2ForCausalLM(Gemma2Config.from_dict({**SMALL, "initializer_range": 5.0, key: None})).eval()
    free.load_state_dict(capped.state_dict())
    huge = Gemma2Config(**SMALL, initializer_range=5.0, **{key: 1e9})
    wide = Gemma2ForCausalLM(huge).eval()
    wide.load_state_dict(capped.state_dict())
    with votive.no_grad():
        a, b, c = (m(ids).logits for m in (capped, free, wide))
    assert not votive.allclose(a, b, rtol=1e-2)
    assert votive.allclose(b, c, rtol=1e-3, atol=1e-3)


def test_a_window_that_is_asked_for_without_its_size_has_the_usual_one() -> None:
    config = Qwen2Config.from_dict({"use_sliding_window": True, "max_window_layers": 30})
    assert [config.window_of(i) for i in (29, 30)] == [None, 4096]
    assert Qwen2Config.from_dict({"sliding_window": 8}).window_of(31) is None


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("hidden_size", 10**12, "hidden_size=1,000,000,000,000 is more than any model"),
        ("vocab_size", 2**62, "vocab_size=.* is more than"),
        ("num_hidden_layers", 10**9, "num_hidden_layers=1,000,000,000 is more"),
        ("intermediate_size", 10**15, "intermediate_size="),
        ("head_dim", 10**10, "head_dim="),
        ("max_position_embeddings", 2**40, "max_position_embeddings="),
        ("hidden_size", 0, "hidden_size must be 1 or more, got 0"),
        ("num_attention_heads", 0, "num_attention_heads must be 1 or more"),
        ("vocab_size", -1, "vocab_size must be 1 or more"),
        ("sliding_window", 0, "sliding_window must be 1 or more"),
        ("hidden_size", "64", "hidden_size must be int, got '64'"),
        ("hidden_size", 64.5, "hidden_size must be int, got 64.5"),
        ("hidden_size", True, "hidden_size must be int, got True"),
        ("hidden_size", None, "hidden_size must be int, got None"),
        ("rms_norm_eps", "small", "rms_norm_eps must be float"),
        ("rope_theta", None, "rope_theta must be a number, got None"),
    ],
)
def test_a_size_that_no_model_has_is_told_with_its_name(key: str, value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        LlamaConfig.from_dict({key: value})
    if key != "rope_theta":
        with pytest.raises(ValueError, match=told):
            LlamaConfig(**{key: value})
        config = LlamaConfig()
        with pytest.raises(ValueError, match=told):
            setattr(config, key, value)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_size_of_any_family_ends_in_a_raw_error(family: str) -> None:
    kind = config_class(family)
    for key in keys(family):
        if type(getattr(kind(), key)) is not int or key.endswith("token_id"):
            continue
        for value in (10**30, -1, 0, "many", 1.5, [1]):
            told = _refusal(kind, key, value)
            assert told is None or key in told, (key, value)


def _refusal(kind: Any, key: str, value: Any) -> str | None:
    try:
        kind.from_dict({key: value})
    except ValueError as error:
        return str(error)
    return None


def test_more_memory_than_there_is_is_told_with_the_sizes() -> None:
    config = LlamaConfig(**{**SMALL, "intermediate_size": 1 << 23, "hidden_size": 1 << 22})
    with pytest.raises(MemoryError, match=r"(?s)hidden_size=4,194,304.*does not fit"):
        votive.models.AutoModelForCausalLM.from_config(config)


def test_other_numbers_and_types_are_taken_as_what_they_are() -> None:
    np = pytest.importorskip("numpy")
    config = LlamaConfig(hidden_size=np.int64(64), rms_norm_eps=np.float32(0.5), vocab_size=32.0)
    assert type(config.hidden_size) is int
    assert type(config.rms_norm_eps) is float
    assert config.vocab_size == 32
    assert json.dumps(config.to_dict())
    config.dtype = votive.float16
    assert config.dtype == "float16"


def test_what_is_set_later_is_saved_too() -> None:
    config = LlamaConfig()
    config.made_by = "me"
    config.sliding_window = None
    again = LlamaConfig.from_dict(config.to_dict())
    assert again.made_by == "me"
    assert again == config
    again.rope_scaling = {"rope_type": "linear", "factor": 2.0}
    assert config.rope_scaling is None


def test_classes_have_names_and_a_number() -> None:
    assert BertConfig.from_dict({"id2label": {"0": "no", "1": "yes"}}).id2label == {0: "no", 1: "yes"}
    assert BertConfig(num_labels=1).id2label == {0: "LABEL_0"}
    with pytest.warns(UserWarning, match="num_labels=3 replaces the 2 classes"):
        config = BertConfig(num_labels=3, id2label={0: "no", 1: "yes"})
    assert len(config.id2label) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert BertConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize("family", ["llama", "mistral", "mixtral", "phi3", "qwen3_moe", "gemma2"])
def test_the_types_of_layers_are_honoured(family: str) -> None:
    types = ["full_attention"] + ["sliding_attention"] * 3
    told = {**SMALL, "num_hidden_layers": 4, "sliding_window": 4, "layer_types": types}
    config = config_class(family).from_dict({**told, "use_sliding_window": True})
    assert [config.window_of(i) for i in range(4)] == [None, 4, 4, 4]
    assert config.to_dict()["layer_types"] == types


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "gemma3_text", "phi3"])
def test_a_type_of_layer_that_is_none_is_refused(family: str) -> None:
    for word in ("chunked_attention", "slidng_attention"):
        told = {**SMALL, "layer_types": ["full_attention", word]}
        with pytest.raises(ValueError, match=f"'{word}'.*'full_attention' or 'sliding_attention'"):
            config_class(family).from_dict(told)
    config = config_class(family).from_dict(SMALL)
    with pytest.raises(ValueError, match="layer_types"):
        config.layer_types = ["full_attention", "hybrid"]


def test_the_types_of_layers_are_written_where_there_are_some() -> None:
    assert "layer_types" not in MistralConfig(**SMALL).to_dict()
    assert Gemma2Config(**SMALL).to_dict()["layer_types"] is not None


@pytest.mark.parametrize("value", [0, -2.0, None, float("nan"), float("inf"), "2", True])
@pytest.mark.parametrize("kind", ["linear", "dynamic", "yarn", "llama3"])
def test_a_factor_that_stretches_nothing_is_told_with_its_name(kind: str, value: Any) -> None:
    scaling = {"rope_type": kind, "factor": value}
    for told in ("rope_scaling", "rope_parameters"):
        with pytest.raises(ValueError, match=r"rope_scaling.*factor must be a finite number above"):
            LlamaConfig.from_dict({**SMALL, told: scaling})
    with pytest.raises(ValueError, match="factor must be a finite number above 0"):
        LlamaConfig(**SMALL, rope_scaling=scaling)
    with pytest.raises(ValueError, match="factor must be a finite number above 0"):
        votive.nn.RotaryEmbedding(8, scaling=scaling)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("low_freq_factor", float("nan")),
        ("high_freq_factor", "4"),
        ("beta_fast", -1.0),
        ("original_max_position_embeddings", 0),
        ("short_factor", [1.0, 0.0]),
        ("long_factor", 2.0),
        ("attention_factor", float("inf")),
        ("mscale", -1.0),
    ],
)
def test_other_numbers_of_stretching_are_checked_too(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"rope_scaling.*{key} must be a"):
        LlamaConfig(**SMALL, rope_scaling={"rope_type": "yarn", "factor": 2.0, key: value})


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_base_of_rotations_is_above_zero(value: float) -> None:
    with pytest.raises(ValueError, match="rope_theta must be a finite number above 0"):
        LlamaConfig(**SMALL, rope_theta=value)
    with pytest.raises(ValueError, match="rope_theta must be a finite number above 0"):
        LlamaConfig.from_dict({"rope_parameters": {"rope_theta": value}})
    with pytest.raises(ValueError, match="base must be a finite number above 0"):
        votive.nn.RotaryEmbedding(8, base=value)


@pytest.mark.parametrize(
    ("family", "key"),
    [
        ("llama", "rms_norm_eps"),
        ("gpt2", "layer_norm_epsilon"),
        ("bert", "layer_norm_eps"),
        ("t5", "layer_norm_epsilon"),
    ],
)
def test_a_norm_does_not_take_less_than_nothing(family: str, key: str) -> None:
    for value in (-1e-6, float("nan")):
        with pytest.raises(ValueError, match=f"{key} must be a finite number of 0 or more"):
            config_class(family).from_dict({key: value})
    assert getattr(config_class(family).from_dict({key: 0.0}), key) == 0


def test_a_factor_without_a_rule_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"factor=2\.0 and no rope_type"):
        assert LlamaConfig.from_dict({"rope_scaling": {"factor": 2.0}}).rope_scaling is None


def test_phi3_is_stretched_by_one_rule() -> None:
    with pytest.raises(ValueError, match=r"rope_type 'linear'.*'longrope'"):
        votive.models.Phi3Config.from_dict({"rope_scaling": {"type": "linear", "factor": 2.0}})


@pytest.mark.parametrize("family", ["gemma2", "gemma3_text"])
def test_an_activation_under_a_name_that_is_not_read_is_refused(family: str) -> None:
    kind = config_class(family)
    with pytest.raises(ValueError, match="hidden_act='relu' is not read; pass hidden_activation"):
        kind(**SMALL, hidden_act="relu")
    assert kind(**SMALL, hidden_activation="relu").hidden_act == "relu"
    again = kind.from_dict(kind(**SMALL, hidden_activation="relu").to_dict())
    assert again.hidden_act == "relu"
    assert kind(**SMALL, hidden_act="gelu").hidden_act == "gelu_pytorch_tanh"


def test_the_sides_of_a_clip_may_have_older_names() -> None:
    told = {
        "text_config": {"hidden_size": 64, "num_hidden_layers": 3},
        "text_config_dict": {"hidden_size": 128},
        "vision_config_dict": {"patch_size": 16},
    }
    config = votive.models.CLIPConfig.from_dict(told)
    assert config.text_config.hidden_size == 128
    assert config.text_config.num_hidden_layers == 12
    assert config.vision_config.patch_size == 16
    assert not {"text_config_dict", "vision_config_dict"} & set(config.to_dict())


@pytest.mark.parity
def test_the_older_names_of_a_clip_mean_what_they_mean_to_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    told = {"text_config": {"hidden_size": 64, "vocab_size": 9}, "text_config_dict": {"hidden_size": 128}}
    theirs = transformers.CLIPConfig.from_dict(json.loads(json.dumps(told))).text_config
    ours = votive.models.CLIPConfig.from_dict(told).text_config
    assert (ours.hidden_size, ours.vocab_size) == (theirs.hidden_size, theirs.vocab_size)


@pytest.mark.parametrize("family", ["bert", "distilbert", "vit", "clip"])
def test_a_new_number_of_classes_renews_their_names(family: str) -> None:
    config = config_class(family)(id2label={0: "no", 1: "yes"})
    config.num_labels = 2
    assert config.id2label == {0: "no", 1: "yes"}
    config.num_labels = 5
    assert config.id2label == {i: f"LABEL_{i}" for i in range(5)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert config_class(family).from_dict(config.to_dict()).num_labels == 5
