"""Rotary positions that come from outside: before the first, and what is no position."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive import nn


@pytest.mark.parametrize(
    "scaling",
    [
        None,
        {"rope_type": "linear", "factor": 2.0},
        {"rope_type": "yarn", "factor": 4.0},
        {"rope_type": "dynamic", "factor": 2.0},
    ],
)
def test_a_position_before_the_first_turns_the_other_way(scaling: Any) -> None:
    rope = nn.RotaryEmbedding(8, 16, scaling=scaling)
    votive.manual_seed(0)
    q, k = votive.randn(1, 1, 4, 8), votive.randn(1, 1, 4, 8)
    there = rope(q, position_ids=votive.tensor([[0, 1, 2, 3]]))
    before = rope(q, position_ids=votive.tensor([[-3, -2, -1, 0]]))
    # Only the distance between two positions counts.
    a = there @ rope(k, position_ids=votive.tensor([[0, 1, 2, 3]])).transpose(-1, -2)
    b = before @ rope(k, position_ids=votive.tensor([[-3, -2, -1, 0]])).transpose(-1, -2)
    assert votive.allclose(a, b, atol=1e-4)
    cos, sin, _ = rope.angles(1, position_ids=votive.tensor([[-5]]))
    assert votive.allclose(cos[0, 0], rope.cos[5], atol=1e-6)
    assert votive.allclose(sin[0, 0], -rope.sin[5], atol=1e-6)


@pytest.mark.parametrize("ids", [votive.tensor([[0.0, 1.0]]), votive.tensor([[True, False]]), [[0]]])
def test_what_is_no_position_is_told_by_name(ids: Any) -> None:
    with pytest.raises(TypeError, match="position_ids must be a tensor of integers"):
        nn.RotaryEmbedding(8)(votive.ones(1, 1, 2, 8), position_ids=ids)


def test_a_model_takes_positions_before_the_first() -> None:
    config = votive.models.LlamaConfig(
        **tiny_sizes.transformer(32, 48, layers=2, heads=4, vocab=50, kv_heads=2), head_dim=8, initializer_range=0.3
    )
    model = votive.models.LlamaForCausalLM(config).eval()
    ids = votive.tensor([[3, 4, 5]])
    with votive.no_grad():
        moved = model(ids, position_ids=votive.tensor([[-2, -1, 0]])).logits
        assert votive.allclose(moved, model(ids).logits, atol=1e-4)
