"""Decoders of many families, cut over ranks: losses, norms of gradients and tokens are those of one process."""

from __future__ import annotations

from typing import Any

import pytest

import votive
import votive.distributed as dist
import votive.models as models
from votive.distributed.tensor import DTensor, Shard
from votive.models.tensor_parallel import tensor_parallel, tp_plan

SIZES = {"vocab_size": 21, "hidden_size": 16, "intermediate_size": 22, "num_hidden_layers": 1, "num_attention_heads": 4}
LLAMA = {**SIZES, "max_position_embeddings": 32}
GPT = {"vocab_size": 21, "n_embd": 16, "n_layer": 1, "n_head": 4, "n_positions": 32}
MIXTURE = {"num_local_experts": 4, "num_experts_per_tok": 2}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "shared keys": ("Llama", {**LLAMA, "num_key_value_heads": 2}),
    "one key head": ("Llama", {**LLAMA, "num_key_value_heads": 1}),
    "tied": ("Qwen2", {**LLAMA, "num_key_value_heads": 4, "tie_word_embeddings": True}),
    "normed heads": ("Qwen3", {**LLAMA, "num_key_value_heads": 2, "head_dim": 4}),
    "normed queries": ("Olmo2", {**LLAMA, "num_key_value_heads": 4}),
    "one product": ("GPT2", {**GPT, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}),
    "fused net": ("Phi3", {**LLAMA, "num_key_value_heads": 2, "pad_token_id": 0}),
    "slopes": ("Bloom", {"vocab_size": 21, "hidden_size": 16, "n_layer": 1, "n_head": 4}),
    "sinks": ("GptOss", {**SIZES, "num_key_value_heads": 2, "head_dim": 4, **MIXTURE}),
    "mixture": ("Mixtral", {**LLAMA, "num_key_value_heads": 2, **MIXTURE}),
    "latent": (
        "DeepseekV2",
        {
            **SIZES, "moe_intermediate_size": 8, "n_routed_experts": 4, "num_experts_per_tok": 2, "kv_lora_rank": 8,
            "q_lora_rank": None, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 4,
            "first_k_dense_replace": 0,
        },
    ),
}  # fmt: skip
ENDINGS = {"GPT2": "LMHeadModel"}


def built(family: str) -> Any:
    name, options = FAMILIES[family]
    votive.manual_seed(0)
    return getattr(models, name + ENDINGS.get(name, "ForCausalLM"))(getattr(models, name + "Config")(**options))


def trained(family: str, ranks: int) -> tuple[list[float], list[list[int]]]:
    model = built(family)
    if ranks > 1:
        tensor_parallel(model, dist.init_device_mesh("cpu", (ranks,)))
    optimizer = votive.optim.AdamW(model.parameters(), lr=1e-2)
    g, found = votive.Generator().manual_seed(1), []
    for _ in range(3):
        ids = votive.randint(0, 21, (2, 6), generator=g)
        optimizer.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        found += [loss.item(), float(votive.nn.utils.clip_grad_norm_(model.parameters(), 1.0))]
        optimizer.step()
    ids = votive.tensor([[1, 2, 3], [4, 5, 6]])
    return found, model.eval().generate(ids, max_new_tokens=5, do_sample=False, eos_token_id=None).tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_decoder_that_is_cut_trains_and_writes_as_in_one_process(family: str) -> None:
    numbers, tokens = dist.simulate(trained, 1, family, 1)[0]
    for ranks in (2, 4):
        if family == "latent" and ranks == 4:
            continue
        for found, written in dist.simulate(trained, ranks, family, ranks):
            assert found == pytest.approx(numbers, rel=1e-4), ranks
            assert written == tokens, ranks


def drawn() -> list[int]:
    model = tensor_parallel(built("shared keys").eval(), dist.init_device_mesh("cpu", (2,)))
    votive.manual_seed(3)
    ids = model.generate(votive.tensor([[1, 2]]), max_new_tokens=8, do_sample=True, temperature=2.0, eos_token_id=None)
    return ids[0].tolist()


def test_ranks_draw_the_same_tokens() -> None:
    first, second = dist.simulate(drawn, 2)
    votive.manual_seed(3)
    model = built("shared keys").eval()
    votive.manual_seed(3)
    ids = model.generate(votive.tensor([[1, 2]]), max_new_tokens=8, do_sample=True, temperature=2.0, eos_token_id=None)
    assert first == second == ids[0].tolist()


def parts() -> None:
    mesh = dist.init_device_mesh("cpu", (2,))
    model = tensor_parallel(built("tied"), mesh)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert isinstance(model.lm_head.weight, DTensor)
    assert model.lm_head.weight.placements == (Shard(0),)
    assert tuple(model.model.layers[0].self_attn.q_proj.weight.to_local().shape) == (8, 16)
    with pytest.raises(ValueError, match="do not divide among"):
        tp_plan(models.LlamaForCausalLM(models.LlamaConfig(**{**LLAMA, "num_attention_heads": 1})), mesh)
    with pytest.raises(NotImplementedError, match="is no decoder"):
        tp_plan(votive.nn.Linear(2, 2), mesh)
    adapted = built("shared keys")
    models.add_adapter(adapted, models.LoraConfig(r=2, target_modules="all-linear"))
    with pytest.raises(NotImplementedError, match="Merge adapters"):
        tensor_parallel(adapted, mesh)


def test_what_is_cut_and_what_is_refused() -> None:
    dist.simulate(parts, 2)
