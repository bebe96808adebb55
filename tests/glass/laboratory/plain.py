"""The methods of the laboratory once more, written out in plain NumPy, and a small model to look into."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive
from votive.glass.features import SAE

Array = Any


def arrays(sae: SAE) -> dict[str, Array]:
    """A coder's weights in float64."""
    return {n: t.detach().double().numpy() for n, t in sae.state_dict().items()}


def encode(sae: SAE, x: Array) -> Array:
    """The features of rows (rows, numbers), from the papers' formulas."""
    c, w = sae.config, arrays(sae)
    x = x * w["scale_in"]
    centred = x - w["b_dec"] if c.center else x
    if c.kind == "gated":
        gate = centred @ w["W_enc"] + w["b_gate"]
        size = centred @ (w["W_enc"] * np.exp(w["r_mag"])) + w["b_mag"]
        return np.where(gate > 0, np.maximum(size, 0), 0)
    pre = centred @ w["W_enc"] + w["b_enc"]
    if c.kind == "relu":
        return np.maximum(pre, 0)
    if c.kind == "jumprelu":
        return np.where(pre > np.exp(w["log_threshold"]), pre, 0)
    if c.kind == "batchtopk":
        return np.where(pre > w["threshold"], np.maximum(pre, 0), 0)
    out = np.zeros_like(pre)
    for row, given in zip(out, pre, strict=True):
        best = np.argsort(-given)[: c.k]
        row[best] = np.maximum(given[best], 0)
    return out


def decode(sae: SAE, f: Array, x: Array) -> Array:
    w = arrays(sae)
    given = f @ w["W_dec"] + w["b_dec"]
    if sae.config.skip:
        given = given + (x * w["scale_in"]) @ w["W_skip"].T
    return given / w["scale_out"]


def llama(layers: int = 3, width: int = 16, tokens: int = 11) -> Any:
    config = votive.models.LlamaConfig(
        vocab_size=tokens, hidden_size=width, intermediate_size=24, num_hidden_layers=layers, num_attention_heads=2
    )
    return votive.models.LlamaForCausalLM(config).eval()


def superposed(features: int, numbers: int, rows: int, share: float, seed: int) -> tuple[Array, Array]:
    """Rows that are sparse sums of unit directions, and the directions (Elhage et al. 2022)."""
    rng = np.random.default_rng(seed)
    planted = rng.normal(size=(features, numbers))
    planted /= np.linalg.norm(planted, axis=1, keepdims=True)
    on = rng.random((rows, features)) < share
    return ((on * rng.uniform(0.5, 1.5, (rows, features))) @ planted).astype(np.float32), planted
