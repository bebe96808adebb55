"""The gradients of attention lie in memory as its inputs do, so that heads merge without a copy."""

from __future__ import annotations

import pytest

import votive
from votive.nn.functional import scaled_dot_product_attention

B, T, H, D = 2, 5, 3, 4


def _step(packed: votive.Tensor) -> tuple[votive.Tensor, ...]:
    q, k, v = packed.view(B, T, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
    return q, k, v


def test_heads_that_were_split_off_rows_merge_again_without_a_copy() -> None:
    rows = [votive.randn(B, T, H * D).requires_grad_() for _ in range(3)]
    heads = [x.view(B, T, H, D).transpose(1, 2) for x in rows]
    out = scaled_dot_product_attention(*heads, is_causal=True)
    for g in votive.autograd.grad(out, heads, votive.ones_like(out), retain_graph=True):
        assert g.transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_parts_of_a_permuted_tensor_join_in_its_memory_order(dim: int) -> None:
    x = votive.randn(2, 3, 4, dtype=votive.float64).requires_grad_()
    turned = x.permute(1, 2, 0)
    weights = [votive.randn(*part.shape, dtype=votive.float64) for part in turned.unbind(dim)]
    loss = sum((w * part).sum() for w, part in zip(weights, turned.unbind(dim), strict=True))
    (g,) = votive.autograd.grad(loss, (turned,))
    assert g.stride() == turned.stride()
    assert votive.equal(g, votive.stack(weights, dim))


def test_the_gradient_of_packed_heads_is_that_of_separate_ones() -> None:
    packed = votive.randn(B, T, 3 * H * D, dtype=votive.float64).requires_grad_()
    (ours,) = votive.autograd.grad(scaled_dot_product_attention(*_step(packed)).sum(), (packed,))
    apart = [x.detach().clone().requires_grad_() for x in _step(packed)]
    found = votive.autograd.grad(scaled_dot_product_attention(*apart).sum(), apart)
    theirs = votive.stack(found, 2).permute(0, 3, 2, 1, 4).reshape(B, T, 3 * H * D)
    assert votive.allclose(ours, theirs)
