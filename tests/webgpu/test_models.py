"""Models on a WebGPU device: the CPU's logits, losses and texts; memory that stays flat; few dispatches."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.models import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from .device import cpu_fallbacks

HERE = "webgpu"


def _llama() -> Any:
    votive.manual_seed(1)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
        )
    )


def _gpt2() -> Any:
    votive.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=512, n_embd=32, n_layer=2, n_head=4))


MODELS = {"llama": _llama, "gpt2": _gpt2}
each = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def ids() -> Any:
    return votive.randint(0, 64, (3, 11), generator=votive.Generator().manual_seed(5))


@each
def test_logits_are_the_cpu_s(name: str, ids: Any) -> None:
    model = MODELS[name]().eval()
    with votive.no_grad():
        theirs = model(ids).logits
        with cpu_fallbacks() as left:
            ours = model.to(HERE)(ids.to(HERE)).logits
    assert not left
    assert votive.allclose(ours.cpu(), theirs, atol=1e-4, rtol=0)


@each
def test_losses_of_training_agree(name: str, ids: Any) -> None:
    def losses(device: str) -> list[float]:
        model = MODELS[name]().to(device)
        model.config.attention_dropout = 0.0
        model.eval()  # without dropout
        optimizer = votive.optim.AdamW(model.parameters(), lr=1e-2)
        found = []
        for _ in range(5):
            loss = model(ids.to(device), labels=ids.to(device)).loss
            loss.backward()
            votive.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.item())
        return found

    theirs = losses("cpu")
    with cpu_fallbacks() as left:
        ours = losses(HERE)
    assert not left
    assert theirs[-1] < 0.9 * theirs[0]
    assert ours == pytest.approx(theirs, abs=1e-4)


@each
def test_generated_texts_are_the_cpu_s(name: str, ids: Any) -> None:
    model = MODELS[name]().eval()
    theirs = model.generate(ids[:1], max_new_tokens=12, do_sample=False)
    ours = model.to(HERE).generate(ids[:1].to(HERE), max_new_tokens=12, do_sample=False)
    assert ours.tolist() == theirs.tolist()


def test_a_seed_samples_the_cpu_s_text(ids: Any) -> None:
    model = _llama().eval()
    how = {"max_new_tokens": 12, "do_sample": True, "top_k": 20, "temperature": 0.8, "seed": 3}
    theirs = model.generate(ids[:1], **how)
    with cpu_fallbacks():
        ours = model.to(HERE).generate(ids[:1].to(HERE), **how)
    assert ours.tolist() == theirs.tolist()


def test_generating_leaves_memory_flat_and_takes_few_dispatches(ids: Any) -> None:
    model = _llama().eval().to(HERE)
    start = ids[:1].to(HERE)
    model.generate(start, max_new_tokens=40, do_sample=False)
    used, count = votive.webgpu.memory_allocated(), votive.webgpu.dispatch_count()
    cached = votive.webgpu.memory_stats()["cached_bytes"]
    for _ in range(3):
        model.generate(start, max_new_tokens=40, do_sample=False)
    assert votive.webgpu.memory_allocated() == used
    assert votive.webgpu.memory_stats()["cached_bytes"] == cached
    assert (votive.webgpu.dispatch_count() - count) / 120 <= 60


def test_the_glass_sees_a_model_there(ids: Any) -> None:
    model = _llama().eval()
    with votive.glass.capture(model) as theirs, votive.no_grad():
        model(ids)
    model.to(HERE)
    with votive.glass.capture(model) as ours, votive.no_grad():
        model(ids.to(HERE))
    assert len(ours) == len(theirs)
    with cpu_fallbacks():
        text = model.generate(ids[:1].to(HERE), max_new_tokens=3)
    assert text.device.type == HERE


def test_convolutional_networks_and_dropout_train_there() -> None:
    def losses(device: str) -> list[float]:
        votive.manual_seed(0)
        net = votive.nn.Sequential(
            votive.nn.Conv2d(1, 4, 3, padding=1),
            votive.nn.BatchNorm2d(4),
            votive.nn.ReLU(),
            votive.nn.MaxPool2d(2),
            votive.nn.Dropout(0.2),
            votive.nn.Flatten(),
            votive.nn.Linear(64, 3),
        ).to(device)
        x, y = votive.randn(6, 1, 8, 8).to(device), votive.randint(0, 3, (6,)).to(device)
        votive.manual_seed(4)
        optimizer = votive.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        found = []
        for _ in range(4):
            loss = votive.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    theirs = losses("cpu")
    with cpu_fallbacks():
        ours = losses(HERE)
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_autocast_casts_products_there() -> None:
    x = votive.ones(4, 4, device=HERE)
    with votive.autocast(HERE):
        assert (x @ x).dtype is votive.float16
    assert (x @ x).dtype is votive.float32
