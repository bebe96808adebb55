"""Recipes by llama.cpp's names: which format each weight of a module, or of a file, gets."""

from __future__ import annotations

import pytest

import votive
from tests import tiny_sizes
from votive import nn
from votive.models.gguf_mixtures import IQ_MIXTURES, Model, chosen
from votive.models.gguf_types import FILE_TYPES, mixture
from votive.quant.recipes import recipe

LAYERS = 16
PARTS = {
    "self_attn.q_proj": (1024, 256),
    "self_attn.k_proj": (1024, 256),
    "self_attn.v_proj": (1024, 256),
    "self_attn.o_proj": (256, 1024),
    "mlp.up_proj": (512, 256),
    "mlp.down_proj": (256, 512),
}
MODULES = {f"model.layers.{i}.{part}": shape for i in range(LAYERS) for part, shape in PARTS.items()}
MODULES |= {"lm_head": (512, 256), "model.embed_tokens": (512, 256)}


def formats(kind: str, layer: int, *, weighed: bool = False, kv: int = 1024) -> list[str]:
    """Those of query, key, value, output, up and down."""
    modules = {n: (kv, s[1]) if n.endswith(("k_proj", "v_proj")) else s for n, s in MODULES.items()}
    choose = recipe(kind, modules, weighed=weighed)
    found = [choose(f"model.layers.{layer}.{part}", modules[f"model.layers.{layer}.{part}"]) for part in PARTS]
    return [f.name for f in found if f is not None]


@pytest.mark.parametrize(
    ("kind", "first", "middle"),
    [
        ("iq1_s", "iq1_s iq1_s q2_k iq2_xxs iq1_s q2_k", "iq1_s iq1_s q2_k iq2_xxs iq1_s iq1_s"),
        ("iq2_xs", "iq2_xs iq2_xs q2_k iq2_xs iq2_xs q2_k", "iq2_xs iq2_xs q2_k iq2_xs iq2_xs iq2_xs"),
        ("iq2_s", "iq2_xs iq2_xs iq3_s iq3_s iq2_xs iq3_s", "iq2_xs iq2_xs iq3_s iq3_s iq2_xs iq2_xs"),
        ("iq2_m", "iq2_s iq2_s iq3_s iq3_s iq2_s iq3_s", "iq2_s iq2_s iq3_s iq3_s iq2_s iq2_s"),
        ("iq3_xxs", "iq2_s iq2_s iq3_s iq3_s iq3_xxs q4_k", "iq2_s iq2_s iq3_s iq3_s iq3_xxs q3_k"),
        ("iq3_xs", "iq3_xxs iq3_xxs iq3_s iq3_s iq3_s iq3_s", "iq3_xxs iq3_xxs iq3_s iq3_s iq3_xxs iq3_s"),
        ("iq3_m", "iq3_s iq3_s q4_k q4_k iq3_s q4_k", "iq3_s iq3_s q4_k q4_k iq3_s iq3_s"),
        ("iq4_xs", "iq4_xs iq4_xs iq4_xs iq4_xs iq4_xs q5_k", "iq4_xs iq4_xs iq4_xs iq4_xs iq4_xs iq4_xs"),
    ],
)
def test_mixtures_are_those_of_llama_cpps_names(kind: str, first: str, middle: str) -> None:
    assert formats(kind, 0) == first.split()
    assert formats(kind, 7) == middle.split()


def test_an_importance_matrix_and_shared_keys_change_a_mixture() -> None:
    assert formats("iq3_xxs", 0, weighed=True)[2:] == ["iq3_xxs", "iq3_s", "iq3_xxs", "iq3_xxs"]
    assert formats("iq4_xs", 0, weighed=True)[5] == "iq4_xs"
    for kind, value in (("iq2_xs", "q4_k"), ("iq3_s", "q4_k"), ("iq4_nl", "q5_k")):
        assert formats(kind, 7, kv=256)[2] == value


def test_outputs_and_tables_keep_more_bits() -> None:
    for kind, output, table in (("iq2_xs", "q5_k", "q2_k"), ("iq2_m", "q5_k", "iq3_s"), ("iq4_xs", "q6_k", "iq4_xs")):
        choose = recipe(kind, MODULES)
        assert choose("lm_head", (512, 256)) is getattr(votive, output)
        assert choose("model.embed_tokens", (512, 256)) is getattr(votive, table)


def test_one_and_two_bits_leave_the_output_precise() -> None:
    for kind in ("q1_0", "q2_0"):
        assert recipe(kind, MODULES)("lm_head", (512, 256)) is votive.q6_k
        assert recipe(getattr(votive, kind), MODULES)("lm_head", (512, 256)) is getattr(votive, kind)


def test_eight_experts_keep_attention_precise() -> None:
    eight = Model(LAYERS, 4, 8)
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_down_exps", "ffn_up_exps")
    found = {k: [chosen(k, f"blk.7.{n}.weight", [], eight) for n in names] for k in ("IQ2_XS", "IQ3_S", "IQ3_M")}
    assert found["IQ2_XS"] == ["IQ2_XS", "Q4_K", "Q4_K", "Q5_K", "IQ2_XS", "IQ2_XS"]
    assert found["IQ3_S"] == ["IQ3_S", "Q8_0", "Q8_0", "Q5_K", "IQ3_S", "IQ3_S"]
    assert found["IQ3_M"] == ["IQ3_S", "Q8_0", "Q8_0", "Q5_K", "Q4_K", "IQ3_S"]
    assert chosen("IQ3_M", "blk.3.ffn_down_exps.weight", [], eight) == "IQ3_S"


def test_files_tell_which_kind_they_are() -> None:
    head = {"general.architecture": "llama", "llama.block_count": 4, "llama.attention.head_count": [8, 0, 8, 8]}
    for kind in IQ_MIXTURES:
        choose, written = mixture(kind.lower(), head, ["output.weight"])
        assert written == {"general.quantization_version": 2, "general.file_type": FILE_TYPES[kind]}
        assert choose("blk.0.ffn_up.weight", (256, 96), votive.float32) == "IQ4_NL"
        assert choose("blk.0.ffn_up.weight", (256, 40), votive.float32) == "F16"
        assert choose("blk.0.attn_norm.weight", (256,), votive.float32) == "F32"


def test_a_format_itself_is_given_to_all_and_a_name_means_the_mixture() -> None:
    net = nn.Sequential(nn.Linear(256, 8), nn.ReLU(), nn.Linear(8, 256), nn.Linear(256, 4))
    votive.quantize_(net, votive.iq2_s, skip="2")
    assert net[0].weight.dtype is net[3].weight.dtype is votive.iq2_s
    net = nn.Sequential(nn.Linear(256, 8))
    votive.quantize_(net, "iq2_s")
    assert net[0].weight.dtype is votive.iq2_xs


@pytest.mark.parametrize("kind", ["iq2_xxs", "iq3_m", "iq4_xs", "nvfp4", "q2_0"])
def test_quantized_models_compute_from_their_blocks(kind: str) -> None:
    config = votive.models.LlamaConfig(**tiny_sizes.transformer(256, 256, layers=1, heads=2, vocab=50, kv_heads=2))
    votive.manual_seed(0)
    model = votive.models.LlamaForCausalLM(config)
    tokens = votive.randint(0, 50, (2, 5))
    report = votive.quantize_(model, kind)
    assert report.bits_per_weight < 6
    logits = model(tokens).logits
    for module in model.modules():
        if isinstance(getattr(module, "weight", None), votive.Tensor) and hasattr(module.weight, "dequantize"):
            module.weight = nn.Parameter(module.weight.dequantize())
    assert float((model(tokens).logits - logits).abs().max()) < 0.02 * float(logits.abs().max())
