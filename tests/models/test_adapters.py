"""Adapters by name in one model: added, switched, mixed, merged, trained, above blocks and in compiled models."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import glass, models, nn
from votive.models import IA3Config, LoHaConfig, LoKrConfig, LoraConfig, PrefixTuningConfig, PromptTuningConfig

IDS = votive.tensor([[3, 7, 1, 9, 4], [5, 5, 2, 8, 6]])
LORA: dict[str, Any] = {"r": 3, "target_modules": ["q_proj", "down_proj"], "init_lora_weights": False}


def llama(**more: Any) -> Any:
    votive.manual_seed(0)
    sizes = {"vocab_size": 16, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, **more}
    config = models.LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, eos_token_id=None)
    model = models.LlamaForCausalLM(config).eval()
    with votive.no_grad():
        for p in model.parameters():
            p.mul_(4)
    return model


def logits(model: Any) -> Any:
    with votive.no_grad():
        return model(IDS).logits


def two() -> Any:
    model = llama()
    model.add_adapter(LoraConfig(**LORA), "a")
    model.add_adapter(LoraConfig(**{**LORA, "target_modules": ["q_proj", "v_proj"], "lora_alpha": 4}), "b")
    return model


def test_adapters_are_switched_combined_disabled_and_deleted() -> None:
    model = two()
    plain = logits(llama())
    assert model.active_adapters() == ["b"]
    assert {n for n, p in model.named_parameters() if p.requires_grad} == {
        n for n, _ in model.named_parameters() if ".adapters.b." in n
    }
    b = logits(model)
    model.set_adapter("a")
    a = logits(model)
    model.set_adapter(["a", "b"])
    both = logits(model)
    assert len({round(float(x.sum()), 4) for x in (plain, a, b, both)}) == 4
    model.disable_adapters()
    assert votive.equal(logits(model), plain)
    model.enable_adapters()
    assert votive.equal(logits(model), both)
    with pytest.raises(RuntimeError, match="no key"), model.disabled_adapters():
        raise RuntimeError("no key")
    assert votive.equal(logits(model), both)
    twin = copy.deepcopy(model)
    twin.set_adapter("a")
    assert votive.equal(logits(model), both)
    assert votive.equal(logits(twin), a)
    model.delete_adapter("a")
    assert model.active_adapters() == ["b"]
    assert votive.equal(logits(model), b)
    model.delete_adapter("b")
    assert votive.equal(logits(model), plain)
    assert list(model.state_dict()) == list(llama().state_dict())
    with pytest.raises(ValueError, match="has no adapter"):
        model.set_adapter("b")


def test_merging_is_undone_bit_by_bit_and_switching_waits_for_it() -> None:
    model = two()
    model.set_adapter(["a", "b"])
    before, weights = logits(model), {n: p for n, p in model.named_parameters() if ".base." in n}
    model.merge_adapter()
    assert votive.allclose(logits(model), before, atol=1e-4)
    assert not votive.equal(
        model.model.layers[0].self_attn.q_proj.base.weight, weights["model.layers.0.self_attn.q_proj.base.weight"]
    )
    for call in (
        lambda: model.set_adapter("a"),
        model.merge_adapter,
        model.state_dict,
        lambda: model.delete_adapter("a"),
    ):
        with pytest.raises(RuntimeError, match="merged"):
            call()
    with model.disabled_adapters():
        assert votive.equal(logits(model), logits(llama()))
    assert votive.allclose(logits(model), before, atol=1e-4)
    model.unmerge_adapter()
    assert votive.equal(logits(model), before)
    assert all(p is weights[n] for n, p in model.named_parameters() if n in weights)


def test_a_tied_head_keeps_its_weight_when_the_table_is_merged() -> None:
    model = llama(tie_word_embeddings=True)
    model.add_adapter(LoraConfig(r=2, target_modules=["embed_tokens"], init_lora_weights=False))
    before = logits(model)
    model.merge_adapter()
    assert votive.allclose(logits(model), before, atol=1e-4)
    assert votive.allclose(logits(model.merge_and_unload()), before, atol=1e-4)


@pytest.mark.parametrize("way", ["cat", "svd"])
def test_weighted_adapters_do_what_the_sum_does(way: str) -> None:
    model = two()
    model.add_weighted_adapter(["a", "b"], [0.5, -2.0], "mixed", way, 6 if way == "svd" else None)
    assert model.active_adapters() == ["b"]
    model.set_adapter("mixed")
    layer = model.model.layers[1].self_attn.q_proj
    parts = {n: layer.adapters[n].delta(layer.place) for n in ("a", "b", "mixed")}
    assert votive.allclose(parts["mixed"], 0.5 * parts["a"] - 2 * parts["b"], atol=1e-4)


def test_weighted_adapters_refuse_what_has_no_sum() -> None:
    model = two()
    model.add_adapter(LoraConfig(**{**LORA, "r": 2}), "small")
    model.add_adapter(LoraConfig(**LORA, use_dora=True), "dora")
    for names, weights, way, told in (
        (["a", "small"], [1, 1], "linear", "needs one rank"),
        (["a", "dora"], [1, 1], "cat", "no sum"),
        (["a"], [1, 1], "cat", "one each"),
        (["a", "x"], [1, 1], "cat", "no adapter 'x'"),
        (["a", "b"], [1, 1], "ties", "svd, linear, cat"),
    ):
        with pytest.raises(ValueError, match=told):
            model.add_weighted_adapter(names, weights, "new", way)
    assert list(model.peft_config) == ["a", "b", "small", "dora"]


@pytest.mark.parametrize(
    "config",
    [
        LoraConfig(**LORA, use_dora=True, lora_dropout=0.1),
        LoraConfig(**LORA, bias="all", modules_to_save=["lm_head"]),
        IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
        LoHaConfig(r=2, target_modules=["q_proj"], rank_dropout=0.1),
        LoKrConfig(r=2, target_modules=["q_proj"], module_dropout=0.1),
        PromptTuningConfig(num_virtual_tokens=2),
        PrefixTuningConfig(num_virtual_tokens=2, prefix_projection=True),
    ],
    ids=lambda c: c.peft_type,
)
def test_only_adapters_learn_and_what_was_learned_comes_back(config: Any, tmp_path: Path) -> None:
    model = llama()
    frozen = {n: p.clone() for n, p in model.named_parameters()}
    model.add_adapter(config)
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = votive.optim.AdamW(trained, lr=0.05)
    losses = []
    for _ in range(8):
        loss = model(IDS, labels=IDS).loss
        loss.backward()
        assert all(p.grad is not None for p in trained)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0]
    model.eval()
    model.save_adapter(tmp_path)
    again = llama()
    again.load_adapter(tmp_path)
    assert votive.allclose(logits(again), logits(model), atol=1e-5)
    again.unload()
    assert all(votive.equal(p, frozen[n]) for n, p in again.named_parameters())
    plain = model.unload()
    assert all(votive.equal(p, frozen[n]) for n, p in plain.named_parameters())


@pytest.mark.parametrize("config", [LoraConfig(**LORA), LoraConfig(**LORA, use_dora=True)], ids=["lora", "dora"])
def test_blocks_below_stay_and_merge_into_numbers(config: Any) -> None:
    model = llama()
    votive.quantize_(model, "q8_0")
    plain = logits(model)
    model.add_adapter(config)
    out = logits(model)
    assert not votive.allclose(out, plain, atol=1e-2)
    layer = model.model.layers[0].self_attn.q_proj
    assert layer.base.weight.dtype is votive.q8_0
    model.merge_adapter()
    assert float((logits(model) - out).abs().max()) < 0.05 * float(out.abs().max())
    model.unmerge_adapter()
    assert layer.base.weight.dtype is votive.q8_0
    assert votive.equal(logits(model), out)
    model.merge_and_unload()
    assert model.model.layers[0].self_attn.q_proj.weight.dtype is votive.float32


def test_compiled_models_see_which_adapter_is_active() -> None:
    model = two()
    eager: dict[str, Any] = {}
    compiled = votive.compile(model)
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("b", lambda: model.set_adapter("b")),
        ("a", lambda: model.set_adapter("a")),
        ("both", lambda: model.set_adapter(["a", "b"])),
        ("off", model.disable_adapters),
        ("on", model.enable_adapters),
        ("merged", model.merge_adapter),
        ("unmerged", model.unmerge_adapter),
    ]
    for name, step in steps:
        step()
        eager[name] = logits(model)
        with votive.no_grad():
            found = compiled(IDS).logits
        assert votive.allclose(found, eager[name], atol=1e-4), name
    assert not votive.allclose(eager["a"], eager["b"], atol=1e-2)


def test_the_glass_sees_into_adapted_layers_and_what_they_multiply_with() -> None:
    model = two()
    model.set_adapter(["a", "b"])
    layer = model.model.layers[1].self_attn.q_proj
    with (
        glass.capture(model, ["layers.1.self_attn.q_proj", "layers.1.self_attn.q_proj.base"]) as seen,
        votive.no_grad(),
    ):
        model(IDS)
    outer, inner = (seen[name] for name in sorted(seen, key=len))
    assert not votive.allclose(outer, inner, atol=1e-2)
    W = glass.weights(model).W_Q[1]
    x = votive.randn(1, 32)
    with votive.no_grad():
        assert votive.allclose(votive.cat([x @ W[h] for h in range(4)], -1), layer(x), atol=1e-3)
        with glass.patch(model, {"layers.1.self_attn.q_proj": 0.0}):
            assert not votive.allclose(model(IDS).logits, logits(two()), atol=1e-3)


@pytest.mark.parametrize("kind", [PromptTuningConfig, PrefixTuningConfig])
def test_generation_behind_a_learned_prompt_is_the_models_own_choice(kind: Any) -> None:
    model = llama()
    model.add_adapter(kind(num_virtual_tokens=3))
    ids = IDS.clone()
    with votive.no_grad():
        for _ in range(4):
            ids = votive.cat([ids, model(ids).logits[:, -1:].argmax(-1)], 1)
        found = model.generate(IDS, max_new_tokens=4)
        assert found.tolist() == ids.tolist()
        # by hand, with a cache
        out = model(IDS, use_cache=True, attention_mask=votive.ones_like(IDS))
        step = model(ids[:, 5:6], past_key_values=out.past_key_values, attention_mask=votive.ones(2, 6).long())
        assert votive.allclose(step.logits[:, -1], model(ids[:, :6]).logits[:, -1], atol=1e-4)
        padded = votive.tensor([[0, 0, 5, 5], [1, 2, 5, 6]])
        mask = (padded > 0).long()
        rows = model.generate(padded, attention_mask=mask, max_new_tokens=3)
        assert rows[1].tolist() == model.generate(padded[1:], max_new_tokens=3)[0].tolist()
    with pytest.raises(ValueError, match="repetition_penalty does not go"):
        model.generate(IDS, repetition_penalty=1.2)
    with pytest.raises(ValueError, match="no part of a model's weights"):
        model.save_pretrained("nowhere")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (LoraConfig(), "say which layers"),
        (LoraConfig(target_modules=["query"]), "name no layer; there are .*q_proj"),
        (LoraConfig(target_modules=["mlp"]), "is a GatedMLP, which cannot be adapted"),
        (LoraConfig(target_modules=["q_proj"], modules_to_save=["hat"]), "no module 'hat'"),
        (LoraConfig(target_modules=["q_proj"], init_lora_weights="pissa"), "init_lora_weights='pissa'"),
        ({"peft_type": "LORA", "target_modules": ["q_proj"], "use_bdlora": {"a": 1}}, "use_bdlora="),
        ({"peft_type": "LORA", "target_modules": ["q_proj"], "target_parameters": ["x"]}, "target_parameters="),
        ({"peft_type": "LORA", "target_modules": ["q_proj"], "lora_dropot": 0.5}, "did you mean 'lora_dropout'"),
        ({"peft_type": "OFT", "target_modules": ["q_proj"]}, "peft_type='OFT'"),
        (LoHaConfig(target_modules=["embed_tokens"]), "LoHa: takes Linear"),
        (LoraConfig(target_modules=["embed_tokens"], lora_bias=True), "lora_bias"),
    ],
)
def test_what_is_not_built_is_refused_and_changes_nothing(config: Any, told: str) -> None:
    model = llama()
    with pytest.raises(ValueError, match=told):
        model.add_adapter(config)
    assert list(model.state_dict()) == list(llama().state_dict())
    assert all(p.requires_grad for p in model.parameters())


def test_a_second_kind_and_a_second_name_are_refused() -> None:
    model = two()
    with pytest.raises(ValueError, match="IA3 cannot stand beside"):
        model.add_adapter(IA3Config(target_modules=["q_proj"], feedforward_modules=[]), "c")
    with pytest.raises(ValueError, match="already"):
        model.add_adapter(LoraConfig(**LORA), "a")
    with pytest.raises(ValueError, match="no dots"):
        model.add_adapter(LoraConfig(**LORA), "a.b")
    with pytest.raises(ValueError, match="no adapter 'x'"):
        model.set_adapter("x")
    assert model.active_adapters() == ["b"]
    model.add_adapter(LoraConfig(**LORA, modules_to_save=["lm_head"]), "c")
    model.add_adapter(LoraConfig(**LORA, modules_to_save=["lm_head"]), "d")
    with pytest.raises(ValueError, match="both bring lm_head"):
        model.set_adapter(["c", "d"])
    assert model.active_adapters() == ["d"]


@pytest.mark.parametrize("damage", ["lacks", "extra", "shape"])
def test_files_that_do_not_fit_change_nothing(damage: str, tmp_path: Path) -> None:
    model = llama()
    model.add_adapter(LoraConfig(**LORA))
    model.save_adapter(tmp_path)
    file = tmp_path / "adapter_model.safetensors"
    weights = dict(votive.io.safetensors.load_file(file))
    name = next(iter(weights))
    if damage == "lacks":
        del weights[name]
    elif damage == "extra":
        weights["base_model.model.model.layers.9.q_proj.lora_A.weight"] = votive.ones(3, 3)
    else:
        settings = json.loads((tmp_path / "adapter_config.json").read_text())
        (tmp_path / "adapter_config.json").write_text(json.dumps({**settings, "r": 5}))
    votive.io.safetensors.save_file(weights, file)
    fresh = llama()
    with pytest.raises(ValueError, match={"lacks": "lacks", "extra": "no place for", "shape": "has the shape"}[damage]):
        fresh.load_adapter(tmp_path)
    assert list(fresh.state_dict()) == list(llama().state_dict())


def test_layers_of_any_module_are_adapted_convolutions_too() -> None:
    votive.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.Flatten(), nn.Linear(96, 5))
    x = votive.randn(2, 3, 8, 8)
    plain = net(x)
    for config in (
        LoraConfig(r=2, target_modules=["0", "2"], init_lora_weights=False),
        LoraConfig(r=2, target_modules=["0"], init_lora_weights=False, use_dora=True),
        LoHaConfig(r=2, target_modules=["0"], init_weights=False, use_effective_conv2d=True),
        LoKrConfig(r=2, target_modules=["0"], init_weights=False),
        LoKrConfig(r=1, target_modules=["0"], init_weights=False, use_effective_conv2d=True),
    ):
        models.add_adapter(net, config)
        out = net(x)
        assert not votive.allclose(out, plain, atol=1e-3)
        models.merge_adapter(net)
        assert votive.allclose(net(x), out, atol=1e-4)
        models.unmerge_adapter(net)
        models.unload(net)
        assert votive.equal(net(x), plain)
