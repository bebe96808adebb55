"""Weights by head: what they multiply is what the model computes, in every family."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import glass, nn
from votive.glass import FactoredMatrix

from .decoders import CAUSAL, decoder


def rand(*shape: int, seed: int = 0) -> Any:
    return votive.randn(shape, generator=votive.Generator().manual_seed(seed), dtype=votive.float64)


@pytest.mark.parametrize("family", CAUSAL)
def test_weights_by_head_make_what_a_run_has(family: str) -> None:
    model, ids = decoder(family)
    model.eval()
    plain, folded = glass.weights(model), glass.weights(model, folded=True)
    names = ["layers.*.attn.{q,k,v,z,result,scores}", "layers.*.{attn_in,attn_out}", "layers.*.ln1.scale", "embed"]
    names += ["layers.1.{mlp_in,mlp_out,resid_post}", "layers.1.ln2.scale", "ln_final.scale", "logits"]
    dense = family not in ("mixtral", "qwen3_moe")
    if dense:
        names.append("layers.1.mlp.post")
    with glass.capture(model, names) as seen, votive.no_grad():
        model(ids)
    for i in range(plain.layers):
        at = f"layers.{i}"
        scaled = seen[f"{at}.attn_in"] / seen[f"{at}.ln1.scale"]
        normed = plain._norms(i)[0](seen[f"{at}.attn_in"])
        for w, x in ((plain, normed), (folded, scaled)):
            v = votive.einsum("btc,hcd->bthd", x, w.W_V[i]) + w.b_V[i]
            assert votive.allclose(v, seen[f"{at}.attn.v"], atol=2e-6)
        made = votive.einsum("bthd,hdc->bthc", seen[f"{at}.attn.z"], plain.W_O[i])
        assert votive.allclose(made, seen[f"{at}.attn.result"], atol=2e-6)
        attention = plain._attention(i)
        if getattr(attention, "qk_norm", False) or getattr(attention, "cap", None) or bool((folded.b_Q[i] != 0).any()):
            continue
        for h in range(plain.heads):  # what a head gives a query at 4 for a key at 1
            score = scaled[0, 4] @ folded.QK(i, h, distance=0 if family == "gpt2" else 3) @ scaled[0, 1]
            scale = attention.scale or plain.W_Q[i].shape[-1] ** -0.5
            assert float(score) * scale == pytest.approx(float(seen[f"{at}.attn.scores"][0, h, 4, 1]), abs=1e-5)
    assert votive.allclose(plain.W_E[ids], seen["embed"], atol=1e-6)
    if family != "gemma2":  # which caps them
        logits = seen["layers.1.resid_post"] / seen["ln_final.scale"] @ folded.W_U + folded.b_U
        assert votive.allclose(logits, seen["logits"], atol=1e-5)
    if dense and folded._norms(1)[3] is None:
        bias = getattr(getattr(plain._net(1), "c_proj", None), "bias", None)
        out = seen["layers.1.mlp.post"] @ plain.W_out[1] + (0.0 if bias is None else bias)
        assert votive.allclose(out, seen["layers.1.mlp_out"], atol=2e-6)


def test_neurons_and_experts_have_directions() -> None:
    model, _ = decoder("llama")
    w = glass.weights(model)
    read, write = w.neuron(0, 3)
    assert votive.equal(read, model.model.layers[0].mlp.up_proj.weight[3])
    assert votive.equal(write, model.model.layers[0].mlp.down_proj.weight[:, 3])
    assert votive.equal(w.W_gate[0], model.model.layers[0].mlp.gate_proj.weight.t())
    mixture, _ = decoder("mixtral")
    w = glass.weights(mixture)
    with pytest.raises(LookupError, match="experts"):
        w.W_in[0]
    first, gate, last = w.expert(0, 1)
    assert first.shape == gate.shape == last.t().shape
    gpt2, _ = decoder("gpt2")
    w = glass.weights(gpt2)
    assert w.W_pos.shape[1] == w.W_E.shape[1]
    with pytest.raises(LookupError, match="no gate"):
        w.W_gate[0]
    with pytest.raises(LookupError, match="rotates"):
        glass.weights(model).W_pos  # noqa: B018


def test_a_view_follows_the_model_and_never_changes_it() -> None:
    model, _ = decoder("gpt2")
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    w = glass.weights(model, folded=True)
    first = w.W_Q[0].clone()
    _ = w.W_U, w.W_in[1], w.composition("K"), w.full_OV(1, 0).copying()
    assert all(votive.equal(p, before[n]) for n, p in model.named_parameters())
    with votive.no_grad():
        model.transformer.h[0].attn.c_attn.weight.mul_(2.0)
    assert votive.allclose(w.W_Q[0], 2 * first, atol=1e-6)
    assert not w.W_Q[0].requires_grad


def test_weights_in_blocks_and_with_adapters_are_read() -> None:
    config = votive.models.LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
    )
    model = votive.models.LlamaForCausalLM(config)
    plain = glass.weights(model).W_Q[0]
    votive.quantize_(model, "q8_0")
    w = glass.weights(model)
    assert w.W_Q[0].dtype == votive.float32
    assert votive.allclose(w.W_Q[0], plain, atol=1e-3)
    assert w.W_E.shape == (64, 64)
    half = glass.weights(votive.models.LlamaForCausalLM(config).to(votive.bfloat16), folded=True)
    assert half.full_OV(0, 1).copying().dtype == half.W_U.dtype == votive.float32

    class Doubled(nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.in_features = inner, inner.in_features

        def forward(self, x: Any) -> Any:
            return 2 * self.inner(x)

    model = votive.models.LlamaForCausalLM(config)
    plain = glass.weights(model).W_V[0].clone()
    model.model.layers[0].self_attn.v_proj = Doubled(model.model.layers[0].self_attn.v_proj)
    assert votive.allclose(glass.weights(model).W_V[0], 2 * plain, atol=1e-6)


def test_factored_matrices_are_what_their_product_is() -> None:
    a, b = rand(7, 3), rand(3, 7, seed=1)
    m, whole = FactoredMatrix(a, b), a @ b
    U, S, V = m.svd()
    assert votive.allclose((U * S) @ V.t(), whole)
    assert votive.allclose(S, votive.linalg.svdvals(whole)[:3])
    assert votive.allclose(m.norm(), votive.linalg.matrix_norm(whole))
    assert votive.allclose(m.trace(), whole.trace())
    expected = votive.linalg.eigvals(whole)
    expected = expected[expected.abs() > 1e-9]
    assert sorted(m.eigenvalues().abs().tolist()) == pytest.approx(sorted(expected.abs().tolist()))
    x, wide = rand(7, seed=2), rand(7, 2, seed=3)
    assert votive.allclose(x @ m, x @ whole)
    assert votive.allclose(m @ x, whole @ x)
    assert votive.allclose((m @ wide).AB, whole @ wide)
    assert votive.allclose((wide.t() @ m).AB, wide.t() @ whole)
    assert votive.allclose((m @ m.T).AB, whole @ whole.t())
    other = FactoredMatrix(rand(7, 2, seed=4), rand(2, 7, seed=5))
    assert (m @ other).rank == 2
    assert votive.allclose((m @ other).AB, whole @ other.AB)
    many = FactoredMatrix(votive.stack([a, 2 * a]), b)
    assert votive.allclose(many[1].AB, 2 * whole)
    assert many.shape == (2, 7, 7)
    with pytest.raises(ValueError, match="not square"):
        FactoredMatrix(a, rand(3, 4)).eigenvalues()
    with pytest.raises(ValueError, match="do not multiply"):
        FactoredMatrix(a, rand(4, 7))
    tiny = FactoredMatrix(votive.full((4, 1), 1e-25), votive.full((1, 4), 1e-10))
    assert float(tiny.norm()) == pytest.approx(4e-35, rel=1e-5)


@pytest.mark.parity
@pytest.mark.parametrize("kind", ["Q", "K", "V"])
def test_composition_scores_equal_those_of_whole_matrices_in_torch(kind: str) -> None:
    torch = pytest.importorskip("torch")
    model, _ = decoder("llama")
    found = glass.weights(model).composition(kind).numpy()
    config, at = model.config, "model.layers.{}.self_attn.{}_proj.weight"
    w = {n: torch.tensor(p.detach().numpy(), dtype=torch.float64) for n, p in model.named_parameters()}
    heads, shared, width = config.num_attention_heads, config.num_key_value_heads, config.head_dim

    def matrices(layer: int, head: int) -> Any:
        group = head // (heads // shared)
        q = w[at.format(layer, "q")][head * width : (head + 1) * width].T
        k = w[at.format(layer, "k")][group * width : (group + 1) * width].T
        v = w[at.format(layer, "v")][group * width : (group + 1) * width].T
        o = w[at.format(layer, "o")][:, head * width : (head + 1) * width].T
        return q @ k.T, v @ o

    for a in range(heads):
        for b in range(heads):
            ov = matrices(0, a)[1]
            qk, own = matrices(1, b)
            reads = {"Q": qk, "K": qk.T, "V": own}[kind]
            expected = torch.linalg.norm(ov @ reads) / torch.linalg.norm(ov) / torch.linalg.norm(reads)
            np.testing.assert_allclose(found[0, a, 1, b], expected.numpy(), rtol=1e-5)
    assert not found[1].any()


def test_composition_of_two_matrices_is_that_of_the_table() -> None:
    model, _ = decoder("qwen2")
    w = glass.weights(model)
    table = w.composition("K")
    alone = glass.composition(w.OV(0, 1), w.QK(1, 0).T)
    assert float(table[0, 1, 1, 0]) == pytest.approx(float(alone), rel=1e-5)
