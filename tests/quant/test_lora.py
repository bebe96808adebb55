"""Low-rank adaptation of models whose weights stay in blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

import votive
from votive.models import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, load_adapter, save_adapter


def quantized() -> LlamaForCausalLM:
    votive.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
    )
    model = LlamaForCausalLM(config)
    votive.quantize_(model, "q8_0")
    return model


def test_adapters_are_trained_while_the_blocks_below_stay(tmp_path: Path) -> None:
    model = quantized()
    votive.nn.apply_lora(model, ["q_proj", "down_proj"], r=4)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert len(trained) == 4
    before = {n: p.blocks.clone() for n, p in model.named_parameters() if p.dtype is votive.q8_0}
    assert len(before) == 9
    optimizer = votive.optim.AdamW(trained, lr=1e-2)
    ids = votive.randint(0, 64, (4, 12), generator=votive.Generator().manual_seed(1))
    losses = []
    for _ in range(12):
        loss = model(ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0] - 0.1
    assert all(p.blocks.equal(before[n]) for n, p in model.named_parameters() if n in before)
    save_adapter(model, tmp_path)
    fresh = quantized()
    load_adapter(fresh, tmp_path)
    assert fresh(ids).logits.equal(model(ids).logits)


def test_gradients_of_adapters_are_those_above_the_same_numbers() -> None:
    before = votive.backends.quantized.activations
    votive.backends.quantized.activations = "exact"
    try:
        x = votive.randn(3, 64, generator=votive.Generator().manual_seed(2))
        grads = []
        for blocks in (True, False):
            layer = votive.nn.Sequential(votive.nn.Linear(64, 32, bias=False))
            weight = votive.randn(32, 64, generator=votive.Generator().manual_seed(3)).to(votive.q8_0)
            layer[0].weight = votive.nn.Parameter(weight if blocks else weight.dequantize(), requires_grad=False)
            votive.nn.apply_lora(layer, "0", r=2)
            made = layer[0]
            made.lora_A.data = votive.ones(2, 64) / 8
            made.lora_B.data = votive.ones(32, 2) / 8
            (layer(x) ** 2).sum().backward()
            grads.append((made.lora_A.grad, made.lora_B.grad))
    finally:
        votive.backends.quantized.activations = before
    for a, b in zip(*grads, strict=True):
        assert float((a - b).abs().max()) <= 1e-4 * float(b.abs().max())


def test_blocks_cannot_hold_a_sum_and_merging_the_model_gives_numbers() -> None:
    net = votive.nn.Sequential(votive.nn.Linear(64, 32))
    votive.quantize_(net, "q8_0")
    votive.nn.apply_lora(net, "0", r=2)
    net[0].lora_B.data = votive.ones(32, 2)
    with pytest.raises(RuntimeError, match="q8_0 blocks, which cannot hold the sum"):
        net[0].merge()
    x = votive.randn(40, 64)
    expected = net(x)
    votive.nn.merge_lora(net)
    assert net[0].weight.dtype is votive.float32
    assert float((net(x) - expected).abs().max()) <= 0.02 * float(expected.abs().max())


def test_a_saved_adapted_model_loads_as_numbers(tmp_path: Path) -> None:
    model = quantized().eval()
    votive.nn.apply_lora(model, "q_proj", r=2)
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert again.model.layers[0].self_attn.q_proj.weight.dtype is votive.float32
    assert again.model.layers[0].self_attn.k_proj.weight.dtype is votive.q8_0
