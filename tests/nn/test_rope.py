"""Rotary embedding: what it rotates by, how tables grow, and how scaling stretches them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive
from tests.nn.arrays import close, normal
from votive import nn


def rotated(x: np.ndarray, angles: np.ndarray, interleaved: bool) -> np.ndarray:
    """Pairs as complex numbers, multiplied by e^(i angle)."""
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    z = (a + 1j * b) * np.exp(1j * angles)
    if interleaved:
        return np.stack([z.real, z.imag], -1).reshape(x.shape)
    return np.concatenate([z.real, z.imag], -1)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotation_is_multiplication_by_a_unit_number(interleaved: bool) -> None:
    rope = nn.RotaryEmbedding(6, 32, base=100.0, interleaved=interleaved, dtype=votive.float64)
    x = normal(2, 3, 5, 6)
    angles = np.outer(np.arange(4, 9), 100.0 ** (-np.arange(3) / 3))
    close(rope(x, offset=4), rotated(x.numpy(), angles, interleaved))


def test_positions_can_be_given_per_sample() -> None:
    rope = nn.RotaryEmbedding(4, 16, dtype=votive.float64)
    x = normal(2, 3, 2, 4)
    ids = votive.tensor([[3, 4], [9, 1]])
    got = rope(x, position_ids=ids)
    close(got[0], rope(x[0], offset=3))
    close(got[1, :, 0:1], rope(x[1, :, 0:1], offset=9))
    close(got[1, :, 1:2], rope(x[1, :, 1:2], offset=1))


def test_features_past_the_width_pass_through() -> None:
    rope = nn.RotaryEmbedding(4, 16, dtype=votive.float64)
    x = normal(1, 1, 3, 10)
    close(rope(x)[..., 4:], x[..., 4:])
    close(rope(x)[..., :4], rope(x[..., :4]))


def test_tables_grow_with_the_positions_and_are_no_state() -> None:
    rope = nn.RotaryEmbedding(4, 2, dtype=votive.float64)
    x = normal(1, 1, 1, 4)
    angles = 50 * 10000.0 ** (-np.arange(2) / 2)
    close(rope(x, offset=50), rotated(x.numpy(), angles, False), rtol=1e-9)
    assert not rope.state_dict()
    assert sorted(n for n, _ in rope.named_buffers()) == ["cos", "inv_freq", "sin"]


def test_tables_stay_exact_when_a_model_is_cast_to_half() -> None:
    model = nn.Sequential(nn.RotaryEmbedding(4, 2048), nn.Linear(4, 4)).bfloat16()
    assert model[1].weight.dtype == votive.bfloat16
    assert model[0].cos.dtype == votive.float32
    assert votive.equal(model[0].cos, nn.RotaryEmbedding(4, 2048).cos)
    assert model[0](votive.ones(1, 3, 4).bfloat16()).dtype == votive.bfloat16
    assert model.double()[0].cos.dtype == votive.float64


def frequencies(scaling: dict[str, Any], dim: int = 8, trained: int = 16) -> np.ndarray:
    rope = nn.RotaryEmbedding(dim, trained, 100.0, scaling=scaling, dtype=votive.float64)
    return rope.inv_freq.numpy()


PLAIN = 100.0 ** (-np.arange(4) / 4)


def test_linear_scaling_divides_all_frequencies() -> None:
    got = frequencies({"rope_type": "linear", "factor": 4.0})
    np.testing.assert_allclose(got, PLAIN / 4, rtol=1e-12)
    np.testing.assert_allclose(frequencies({"type": "linear", "factor": 4.0}), got, rtol=0)


def test_dynamic_scaling_follows_the_longest_text_and_returns() -> None:
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    rope = nn.RotaryEmbedding(8, 16, 100.0, scaling=scaling, dtype=votive.float64)
    x = votive.ones(1, 40, 8).double()
    close(rope.inv_freq, PLAIN)
    rope(x)
    base = 100.0 * (2.0 * 40 / 16 - 1.0) ** (8 / 6)
    close(rope.inv_freq, base ** (-np.arange(4) / 4))
    rope(x[:, :20])
    close(rope.inv_freq, base ** (-np.arange(4) / 4))
    rope(x[:, :16])
    close(rope.inv_freq, PLAIN)


def test_llama3_scaling_keeps_fast_turns_and_divides_slow_ones() -> None:
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    got = frequencies(scaling)
    want = []
    for f in PLAIN:
        wavelength = 2 * math.pi / f
        if wavelength < 64 / 4.0:
            want.append(f)
        elif wavelength > 64 / 1.0:
            want.append(f / 8)
        else:
            smooth = (64 / wavelength - 1.0) / 3.0
            want.append((1 - smooth) * f / 8 + smooth * f)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert got[0] == PLAIN[0]
    np.testing.assert_allclose(got[3], PLAIN[3] / 8, rtol=1e-12)
    assert PLAIN[2] / 8 < got[2] < PLAIN[2]


def test_yarn_ramps_between_pairs_and_warms_the_attention() -> None:
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    rope = nn.RotaryEmbedding(8, 256, 100.0, scaling=scaling, dtype=votive.float64)
    pair = lambda turns: 8 * math.log(64 / (turns * 2 * math.pi)) / (2 * math.log(100.0))
    low, high = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), 7)
    assert (low, high) == (0, 3)
    share = np.array([0, 1 / 3, 2 / 3, 1])
    close(rope.inv_freq, PLAIN / 4 * share + PLAIN * (1 - share))
    warmth = 0.1 * math.log(4.0) + 1
    assert rope.attention_scaling == pytest.approx(warmth)
    close(rope.cos[0], np.full(4, warmth))
    one = {"mscale": 0.7, "mscale_all_dim": 1.0}
    other = nn.RotaryEmbedding(8, 256, 100.0, scaling=scaling | one)
    assert other.attention_scaling == pytest.approx((0.07 * math.log(4.0) + 1) / warmth)
    given = nn.RotaryEmbedding(8, 256, 100.0, scaling=scaling | {"attention_factor": 1.5})
    assert given.attention_scaling == 1.5


@pytest.mark.parametrize(
    "scaling, text",
    [
        ({"rope_type": "su"}, "unknown rope_type 'su'"),
        ({"rope_type": "linear"}, r"missing \['factor'\]"),
        ({"rope_type": "linear", "factor": 2.0, "beta": 1}, r"unknown \['beta'\]"),
        ({"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 4.0}, "must be below"),
    ],
)
def test_a_wrong_scaling_is_named(scaling: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        nn.RotaryEmbedding(4, 16, scaling=scaling)


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="even"):
        nn.RotaryEmbedding(5)
