"""A residual stream on the GPU: the joined sum and norm against the two apart."""

from __future__ import annotations

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import nn
from votive.models import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from votive.nn.fast_path import can_bypass
from votive.nn.residual import add_norm
from votive.ops.registry import OPS, F


def _close(one, other, tolerance=1e-5):
    one, other = (v.detach().cpu().double().numpy() for v in (one, other))
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def _both(norm, x, change, **options):
    """(results, gradients) of the joined way and of the two operators apart."""
    found = []
    for apart in (False, True):
        handle = norm.register_forward_hook(lambda *_: None) if apart else None
        a, b = x.detach().requires_grad_(), change.detach().requires_grad_()
        norm.zero_grad()
        total, normed = add_norm(a, b, norm, **options)
        (normed.float() * 3 + total.float() * normed.float().flip(-1)).sum().backward()
        grads = [a.grad, b.grad, *(p.grad for p in norm.parameters())]
        found.append(([total, normed], grads))
        if handle is not None:
            handle.remove()
    return found


def _agree(found, tolerance):
    (made, grads), (expected, wanted) = found
    for one, other in zip([*made, *grads], [*expected, *wanted], strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        _close(one, other, tolerance)


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("width", [1, 12, 300])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-5), ("float64", 1e-12), ("bfloat16", 4e-2)])
def test_joined_and_apart_agree(kind, width, dtype, tolerance):
    votive.manual_seed(0)
    dtype = getattr(votive, dtype)
    norm = kind(width, device="cuda", dtype=dtype)
    nn.init.normal_(norm.weight)
    x, change = (votive.randn(3, 5, width, device="cuda", dtype=dtype) for _ in range(2))
    assert can_bypass(norm, kind)
    _agree(_both(norm, x, change), tolerance)


def test_a_stream_in_float32_takes_changes_in_16_bits():
    votive.manual_seed(1)
    norm = nn.LayerNorm(24, device="cuda")
    x = votive.randn(7, 24, device="cuda")
    change = votive.randn(7, 24, device="cuda", dtype=votive.bfloat16)
    _agree(_both(norm, x, change), 2e-2)


@pytest.mark.parametrize("exact", [False, True])
def test_under_autocast_the_norm_has_the_type_of_products_unless_it_is_asked_not_to(exact):
    norm = nn.LayerNorm(8, device="cuda")
    x, change = (votive.randn(2, 8, device="cuda") for _ in range(2))
    with votive.autocast("cuda", dtype=votive.bfloat16):
        total, normed = add_norm(x, change.bfloat16(), norm, exact=exact)
    assert total.dtype == votive.float32
    assert normed.dtype == (votive.float32 if exact else votive.bfloat16)
    alone = norm(x + change.bfloat16())
    assert votive.equal(normed.cpu(), alone.to(normed.dtype).detach().cpu())


def test_any_layout_and_several_normed_dimensions():
    votive.manual_seed(2)
    norm = nn.LayerNorm((4, 6), device="cuda")
    nn.init.normal_(norm.bias)
    x = votive.randn(6, 4, 3, device="cuda").permute(2, 1, 0)
    change = votive.randn(3, 8, 6, device="cuda")[:, ::2]
    _agree(_both(norm, x, change), 2e-5)


def test_rows_too_long_for_registers():
    votive.manual_seed(3)
    norm = nn.LayerNorm(17000, device="cuda")
    x, change = (votive.randn(2, 17000, device="cuda") for _ in range(2))
    _agree(_both(norm, x, change), 2e-4)


def test_one_of_the_two_results_may_go_unused():
    norm = nn.LayerNorm(6, device="cuda")
    for k in (0, 1):
        x, change = (votive.randn(2, 6, device="cuda").requires_grad_() for _ in range(2))
        add_norm(x, change, norm)[k].square().sum().backward()
        y = (x.detach() + change.detach()).requires_grad_()
        (y if k == 0 else norm(y)).square().sum().backward()
        _close(x.grad, y.grad)
        _close(change.grad, y.grad)


def test_second_derivatives():
    x = votive.randn(2, 1, 3, dtype=votive.float64, device="cuda")
    inputs = [v.clone().requires_grad_() for v in x]
    weight = votive.rand(3, dtype=votive.float64, device="cuda").requires_grad_()

    def joined(a, b, w):
        return F._add_norm(a, b, w, w, 1, 1e-5, True, None)[:2]

    assert votive.autograd.gradgradcheck(joined, (*inputs, weight))
    assert votive.autograd.gradcheck(joined, (*inputs, weight))


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(RuntimeError, match="must have shape"):
        F._add_norm(votive.ones(2, 3, device="cuda"), votive.ones(3, device="cuda"), None, None, 1, 1e-5, True, None)


def _gpt2():
    none = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    config = GPT2Config(vocab_size=11, n_positions=8, n_embd=16, n_layer=2, n_head=2, **none)
    model = GPT2LMHeadModel(config)
    return model, model.transformer.h[1]


def _llama():
    config = LlamaConfig(**tiny_sizes.transformer(16, 16, layers=2, heads=2, vocab=11, kv_heads=1))
    model = LlamaForCausalLM(config)
    return model, model.model.layers[1]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("make", [_gpt2, _llama])
def test_a_model_gives_the_same_whether_somebody_looks_or_not(make, lower):
    votive.manual_seed(4)
    with votive.device("cuda"):
        model, block = make()
        ids = votive.tensor([[1, 2, 3, 4]])
    found = []
    OPS["_add_norm"].plans.clear()
    for look in (False, True):
        seen = []
        handle = block.register_forward_hook(lambda *a, to=seen: to.append(a[2])) if look else None
        model.zero_grad()
        with votive.autocast("cuda", dtype=votive.bfloat16, enabled=lower):
            out = model(ids, labels=ids)
        out.loss.backward()
        found.append([out.loss, out.logits, *[p.grad for p in model.parameters()]])
        assert len(seen) == look
        assert OPS["_add_norm"].plans  # the first time around it was fused
        if handle is not None:
            handle.remove()
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        _close(one, other, 1e-2 if lower else 1e-5)


@pytest.mark.parametrize("shape", [(0, 8), (2, 0), (2, 8)])
@pytest.mark.parametrize("make", [nn.LayerNorm, nn.RMSNorm])
def test_halves_of_both_kinds_are_summed_in_float32_also_where_there_is_nothing(shape, make):
    votive.manual_seed(0)
    x = votive.randn(*shape, device="cuda").to(votive.float16)
    change = votive.randn(*shape, device="cuda").to(votive.bfloat16)
    _agree(_both(make(shape[1], device="cuda"), x, change), 1e-2)


def test_the_joined_sum_reads_weights_as_the_norm_does():
    votive.manual_seed(5)
    x, change = (votive.randn(3, 8, device="cuda") for _ in range(2))
    norm = nn.RMSNorm(8, device="cuda")
    weight = votive.randn(8, device="cuda", requires_grad=True)
    del norm.weight
    norm.weight = weight  # a tensor that is no parameter
    normed = add_norm(x, change, norm)[1]
    _close(normed, norm(x + change))
    normed.sum().backward()
    assert weight.grad is not None
    norm = nn.LayerNorm(8, device="cuda")
    nn.utils.parametrize.register_parametrization(norm, "weight", nn.Softplus())
    _close(add_norm(x, change, norm)[1], norm(x + change))
