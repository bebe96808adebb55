"""The optimizers with their options, and a bounded problem whose gradients NumPy computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SHAPES: list[tuple[int, ...]] = [(3, 4), (5,), (), (2, 0), (2, 1, 3)]

_EACH = [{"maximize": True}, {"foreach": True}, {"foreach": False}]
_BETAS: list[dict[str, Any]] = [{}, {"betas": (0.4, 0.95)}, {"weight_decay": 0.1}, {"eps": 1e-3}]
_DECOUPLED = {"weight_decay": 0.1, "decoupled_weight_decay": True}

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {"lr": 0.1},
        {},
        {"lr": 0.1, "momentum": 0.9},
        {"lr": 0.1, "weight_decay": 0.05},
        {"lr": 0.05, "momentum": 0.9, "dampening": 0.3},
        {"lr": 0.05, "momentum": 0.8, "nesterov": True},
        {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1, "maximize": True},
        {"lr": 0.1, "momentum": 0.9, "fused": True},
        {"lr": 0.1, "fused": True, "maximize": True},
        *_EACH,
    ],
    "Adam": [
        {"lr": 0.05, **o}
        for o in [*_BETAS, {"amsgrad": True}, _DECOUPLED, {"fused": True}, {"amsgrad": True, "fused": True}, *_EACH]
    ],
    "AdamW": [
        {"lr": 0.05, **o}
        for o in [
            *_BETAS,
            {"amsgrad": True},
            {"weight_decay": 0},
            {"fused": True},
            {"amsgrad": True, "maximize": True, "weight_decay": 0.3},
            *_EACH,
        ]
    ],
    "RMSprop": [
        {},
        {"centered": True},
        {"momentum": 0.9, "lr": 0.003},
        {"alpha": 0.4},
        {"eps": 1e-3},
        {"centered": True, "momentum": 0.9, "weight_decay": 0.1, "lr": 0.003},
        *_EACH,
    ],
    "Adagrad": [
        {"lr": 0.1},
        {"lr": 0.1, "lr_decay": 0.1},
        {"weight_decay": 0.1},
        {"initial_accumulator_value": 0.5, "eps": 1e-3},
        {"fused": True},
        *_EACH,
    ],
    "Adadelta": [{}, {"rho": 0.5, "lr": 0.5}, {"eps": 1e-2}, {"weight_decay": 0.1}, *_EACH],
    "Adamax": [*({"lr": 0.05, **o} for o in _BETAS), *_EACH],
    "NAdam": [*({"lr": 0.05, **o} for o in _BETAS), _DECOUPLED, {"momentum_decay": 0.1}, *_EACH],
    "RAdam": [*({"lr": 0.05, **o} for o in _BETAS), _DECOUPLED, {"betas": (0.9, 0.9)}, *_EACH],
    "Rprop": [{}, {"etas": (0.3, 1.5)}, {"step_sizes": (1e-3, 0.02)}, *_EACH],
    "ASGD": [
        {"lr": 0.05},
        {"lambd": 0.01},
        {"alpha": 0.5, "weight_decay": 0.1},
        {"t0": 10, "lr": 0.05},
        # Not foreach=True: there torch itself rounds the rates of float64 steps to float32.
        {"maximize": True},
        {"foreach": False},
    ],
}
CASES = [(name, options) for name, many in OPTIONS.items() for options in many]
LION: list[dict[str, Any]] = [{"lr": 0.01}, {"lr": 0.01, "betas": (0.4, 0.6)}, {"weight_decay": 0.3}, *_EACH]


def case_id(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{k}={v}" for k, v in value.items()) or "defaults"
    return getattr(value, "__name__", str(value))


def start(seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Parameters at the beginning."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in SHAPES]


def gradient(i: int, p: np.ndarray[Any, Any], step: int) -> np.ndarray[Any, Any] | None:
    """The gradient of sum(sin(2 p + i) / 2), disturbed as batches do; some steps have none."""
    if i == 1 and step % 4 == 3:
        return None
    noise = np.random.default_rng(1000 * i + step).normal(size=p.shape) * 0.1
    return np.asarray(np.cos(2 * p + i) + noise)


def trajectory(
    params: list[Any],
    optimizer: Any,
    to_numpy: Callable[[Any], Any],
    to_tensor: Callable[[Any], Any],
    steps: int = 50,
    begin: int = 0,
) -> list[list[np.ndarray[Any, Any]]]:
    """All parameters after each step."""
    out = []
    for step in range(begin, begin + steps):
        for i, p in enumerate(params):
            g = gradient(i, to_numpy(p), step)
            p.grad = None if g is None else to_tensor(g)
        optimizer.step()
        out.append([to_numpy(p).copy() for p in params])
    return out
