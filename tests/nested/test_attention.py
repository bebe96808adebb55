"""Nested batches go through attention and encoders as each of their components alone does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import nn

LENGTHS = (3, 1, 4)


def _parts() -> list[votive.Tensor]:
    votive.manual_seed(1)
    return [votive.randn(n, 8) for n in LENGTHS]


def _close(a: votive.Tensor, b: votive.Tensor) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layout", [votive.strided, votive.jagged], ids=str)
@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_gives_what_it_gives_for_each_component(layout: Any, norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=not norm_first)
    parts = _parts()
    batch = votive.nested.nested_tensor(parts, layout=layout)
    for module in (layer, encoder, encoder.eval()):
        out = module(batch)
        assert out.is_nested
        assert out.layout is layout
        for got, part in zip(out.unbind(), parts, strict=True):
            _close(got, module(part.unsqueeze(0))[0])


def test_attention_between_nested_batches_and_its_weights() -> None:
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    parts = _parts()
    other = [votive.ones(2, 8), votive.randn(5, 8), votive.zeros(1, 8)]
    batch = votive.nested.nested_tensor(parts)
    memory = votive.nested.nested_tensor(other)
    out, weights = attention(batch, memory, memory)
    assert weights.shape == (3, 4, 5)
    for i, (q, k) in enumerate(zip(parts, other, strict=True)):
        want, each = attention(q.unsqueeze(0), k.unsqueeze(0), k.unsqueeze(0))
        _close(out.unbind()[i], want[0])
        _close(weights[i, : len(q), : len(k)], each[0])
        assert weights[i, len(q) :].abs().sum() == 0
        assert weights[i, :, len(k) :].abs().sum() == 0
    heads = attention(batch, batch, batch, average_attn_weights=False)[1]
    assert heads.shape == (3, 2, 4, 4)
    assert attention(batch, batch, batch, need_weights=False)[1] is None


def test_gradients_reach_the_components_and_the_weights() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    parts = [p.requires_grad_() for p in _parts()]
    layer(votive.nested.as_nested_tensor(parts, layout=votive.jagged)).values().square().sum().backward()
    nested = [p.grad for p in parts], layer.linear1.weight.grad
    for p in (*parts, layer.linear1.weight):
        p.grad = None
    sum(layer(p.unsqueeze(0)).square().sum() for p in parts).backward()
    for a, b in zip((*nested[0], nested[1]), (*(p.grad for p in parts), layer.linear1.weight.grad), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def test_masks_and_orders_that_do_not_fit_are_refused() -> None:
    batch = votive.nested.nested_tensor(_parts())
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    with pytest.raises(RuntimeError, match="pass no other"):
        layer(batch, src_mask=votive.zeros(4, 4))
    with pytest.raises(AssertionError, match="batch_first"):
        nn.MultiheadAttention(8, 2)(batch, batch, batch)
    with pytest.raises(AssertionError, match="batch_first"):
        nn.TransformerEncoderLayer(8, 2, 16)(batch)
    flat = votive.nested.nested_tensor([votive.ones(2), votive.ones(3)])
    with pytest.raises(RuntimeError, match="embedding"):
        nn.TransformerEncoder(layer, 1)(flat)
