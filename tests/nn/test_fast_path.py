"""Whoever computes a module's result without calling it sees every way to change the module."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive import nn
from votive.models import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM
from votive.nn.fast_path import can_bypass, replayable
from votive.nn.modules.module import register_module_forward_hook
from votive.nn.snapshot import Snapshot

from .changes import CHANGES, LOOKS

IDS = votive.tensor([[1, 2, 3, 4, 5]])


def llama() -> Any:
    votive.manual_seed(0)
    config = Qwen3Config(
        **tiny_sizes.transformer(16, 24, layers=2, heads=2, vocab=9, kv_heads=1),
        head_dim=16,
        max_position_embeddings=64,
        initializer_range=0.3,
        rms_norm_eps=0.01,
    )
    model = Qwen3ForCausalLM(config).eval()
    for part in model.modules():
        if isinstance(part, nn.RMSNorm):
            nn.init.uniform_(part.weight, 0.5, 1.5)
    return model


def outcome(model: Any, called: bool) -> list[Any]:
    """Logits and gradients; `called`: with every module called, as a hook on all of them needs."""
    with ExitStack() as stack:
        if called:
            stack.enter_context(register_module_forward_hook(lambda m, args, y: None))
        model.zero_grad()
        out = model(IDS, labels=IDS)
        out.loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        with votive.no_grad():
            return [out.logits, model(IDS).logits, *[g.clone() for g in grads]]


@pytest.mark.filterwarnings("ignore:For backward hooks to be called", "ignore:Full backward hook")
@pytest.mark.parametrize("way", [*LOOKS, *CHANGES])
def test_a_changed_model_gives_what_its_modules_give(way: str) -> None:
    before = outcome(llama(), called=True)
    with ExitStack() as stack:
        model = llama()
        {**CHANGES, **LOOKS}[way](model.model.layers[0], stack)
        want, got = outcome(model, called=True), outcome(model, called=False)
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            assert votive.allclose(one, other, atol=1e-6)
        assert votive.allclose(want[0], before[0], atol=1e-6) == (way in LOOKS)


@pytest.mark.parametrize("way", CHANGES)
def test_a_snapshot_notices_the_change(way: str) -> None:
    model = llama()
    taken = Snapshot(model)
    assert taken.still()
    with ExitStack() as stack:
        CHANGES[way](model.model.layers[0], stack)
        # Who has recorded addresses reads the new values; a hook on all modules is no module's.
        unseen = way in ("weights written in place", "a hook on all modules")
        assert taken.still() == unseen


@pytest.mark.parametrize("way", LOOKS)
def test_whoever_looks_is_called(way: str) -> None:
    layer = llama().model.layers[0]
    with ExitStack() as stack:
        LOOKS[way](layer, stack)
        elsewhere = ("nothing", "frozen parameters", "training", "a subclass that inherits all")
        assert can_bypass(layer.mlp.gate_proj, nn.Linear) == (way in (*elsewhere, "glass.capture"))
        assert can_bypass(layer.mlp, type(layer.mlp)) == (
            way in elsewhere or way in ("a hook that looks", "a full backward hook", "a backward pre-hook")
        )


def test_the_order_of_two_changes_does_not_matter() -> None:
    layer = nn.Linear(2, 2)
    layer.forward = lambda x: x
    assert not can_bypass(layer, nn.Linear)
    del layer.forward
    assert can_bypass(layer, nn.Linear)
    assert not can_bypass(layer, nn.RMSNorm)
    assert not can_bypass(None, nn.Linear)


def test_only_code_that_was_written_here_may_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(nn.Linear):
        pass

    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert replayable(net)
    net.append(Mine(2, 2))
    assert not replayable(net)
    del net[2]
    net[1].forward = lambda x: x
    assert not replayable(net)
    del net[1].forward
    net[1].function = lambda x: x
    assert not replayable(net)
    net[1].function = votive.nn.functional.relu
    assert replayable(net)
    monkeypatch.setattr(nn.Module, "__call__", lambda self, x: x)
    assert not replayable(net)


def gpt2() -> Any:
    votive.manual_seed(1)
    none = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    config = GPT2Config(vocab_size=9, n_positions=8, n_embd=16, n_layer=2, n_head=2, **none)
    return GPT2LMHeadModel(config).eval()


@pytest.mark.parametrize("name", ["mlp.c_fc", "mlp.c_proj", "ln_1", "ln_2", "mlp", "attn", ""])
@pytest.mark.parametrize("how", ["instance", "class", "hook"])
def test_gpt2_sees_a_change_of_each_part(name: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = outcome(gpt2(), called=True)
    model = gpt2()
    part = model.transformer.h[0].get_submodule(name)
    kind = type(part)
    forward = kind.forward
    if how == "instance":
        part.forward = lambda *a, **k: 1.5 * forward(part, *a, **k)
    elif how == "class":
        monkeypatch.setattr(kind, "forward", lambda self, *a, **k: 1.5 * forward(self, *a, **k))
    else:
        part.register_forward_hook(lambda m, args, y: 1.5 * y)
    want, got = outcome(model, called=True), outcome(model, called=False)
    for one, other in zip(got, want, strict=True):
        assert votive.allclose(one, other, atol=1e-6)
    assert not votive.allclose(want[0], before[0], atol=1e-6)


@pytest.mark.parametrize("kind", [nn.Identity, nn.Dropout, nn.AlphaDropout])
def test_a_transformer_layer_calls_whatever_stands_for_its_dropout(kind: Any) -> None:
    class Louder(kind):  # type: ignore[misc]
        def forward(self, input: Any) -> Any:
            return 2 * input

    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0).eval()
    x = votive.randn(3, 1, 8)
    before = layer(x)
    layer.dropout = Louder()
    assert not votive.allclose(layer(x), before)
