"""Recurrences in blocks give what they give position by position, from any start, in any pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive.models.decoder import scan

B, H, G, N, P = 2, 4, 2, 3, 5


def normal(*shape: int) -> Any:
    return votive.randn(*shape, dtype=votive.float64)


def falling(*shape: int) -> Any:
    """Logarithms of decays, from hardly any to nearly all."""
    return -votive.exp(2 * normal(*shape))


def recurrence(x: dict[str, Any], start: Any, T: slice) -> tuple[Any, Any]:
    found = scan.recurrence(votive.exp(x["fall"][:, T]), x["v"][:, T], start)
    return found, found[:, -1]


def recurrence_slowly(x: dict[str, Any]) -> Any:
    state, found = votive.zeros_like(x["v"][:, 0]), []
    for t in range(x["v"].shape[1]):
        state = votive.exp(x["fall"][:, t]) * state + x["v"][:, t]
        found.append(state)
    return votive.stack(found, 1)


def selective(x: dict[str, Any], start: Any, T: slice) -> tuple[Any, Any]:
    return scan.selective_scan(x["v"][:, T], -x["fall"][:, T], x["A"], x["k"][:, T], x["q"][:, T], start)


def selective_slowly(x: dict[str, Any]) -> Any:
    state, found = normal(B, P, N) * 0, []
    for t in range(x["v"].shape[1]):
        step = -x["fall"][:, t].unsqueeze(-1)
        state = votive.exp(step * x["A"]) * state + step * x["v"][:, t].unsqueeze(-1) * x["k"][:, t].unsqueeze(1)
        found.append((state * x["q"][:, t].unsqueeze(1)).sum(-1))
    return votive.stack(found, 1)


def attention(x: dict[str, Any], start: Any, T: slice) -> tuple[Any, Any]:
    return scan.decayed_attention(x["q"][:, T], x["k"][:, T], x["v"][:, T], x["fall"][:, T], start, block=8)


def attention_slowly(x: dict[str, Any]) -> Any:
    q, k = (x[name].repeat_interleave(H // G, 2) for name in "qk")
    state, found = normal(B, H, N, P) * 0, []
    for t in range(q.shape[1]):
        state = votive.exp(x["fall"][:, t])[..., None, None] * state + k[:, t].unsqueeze(-1) * x["v"][:, t].unsqueeze(
            -2
        )
        found.append((q[:, t].unsqueeze(-1) * state).sum(-2))
    return votive.stack(found, 1)


def delta(x: dict[str, Any], start: Any, T: slice) -> tuple[Any, Any]:
    return scan.gated_delta_rule(x["q"][:, T], x["k"][:, T], x["v"][:, T], x["fall"][:, T], x["rate"][:, T], start)


def delta_slowly(x: dict[str, Any]) -> Any:
    state, found = normal(B, H, N, P) * 0, []
    for t in range(x["q"].shape[1]):
        state = votive.exp(x["fall"][:, t])[..., None, None] * state
        key = x["k"][:, t].unsqueeze(-1)
        wrong = x["v"][:, t] - (key * state).sum(-2)
        state = state + key * (x["rate"][:, t].unsqueeze(-1) * wrong).unsqueeze(-2)
        found.append((x["q"][:, t].unsqueeze(-1) * state).sum(-2))
    return votive.stack(found, 1)


def mean(x: dict[str, Any], start: Any, T: slice) -> tuple[Any, Any]:
    return scan.weighted_mean(x["k"][:, T], x["v"][:, T], x["A"], x["bonus"], start)


def mean_slowly(x: dict[str, Any]) -> Any:
    found = []
    for t in range(x["k"].shape[1]):
        weights = [x["k"][:, i] + (t - 1 - i) * x["A"] for i in range(t)] + [x["k"][:, t] + x["bonus"]]
        share = votive.softmax(votive.stack(weights, 1), 1)
        found.append((share * x["v"][:, : t + 1]).sum(1))
    return votive.stack(found, 1)


def one_row(T: int) -> dict[str, Any]:
    return {"fall": falling(B, T, P), "v": normal(B, T, P), "A": -votive.exp(normal(P, N)), "k": normal(B, T, N),
            "q": normal(B, T, N)}  # fmt: skip


def grouped(T: int) -> dict[str, Any]:
    return {"fall": falling(B, T, H), "v": normal(B, T, H, P), "k": normal(B, T, G, N), "q": normal(B, T, G, N)}


def headed(T: int) -> dict[str, Any]:
    keys = votive.nn.functional.normalize(normal(B, T, H, N), dim=-1)
    return {"fall": falling(B, T, H), "v": normal(B, T, H, P), "k": keys, "q": normal(B, T, H, N),
            "rate": votive.sigmoid(normal(B, T, H))}  # fmt: skip


def channels(T: int) -> dict[str, Any]:
    # Weights that differ by factors of e^60, which would overflow as they are.
    return {"k": 20 * normal(B, T, P), "v": normal(B, T, P), "A": falling(P), "bonus": normal(P)}


Row = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]
ROWS: dict[str, Row] = {
    "recurrence": (recurrence, recurrence_slowly, one_row),
    "selective scan": (selective, selective_slowly, one_row),
    "decayed attention": (attention, attention_slowly, grouped),
    "gated delta rule": (delta, delta_slowly, headed),
    "weighted mean": (mean, mean_slowly, channels),
}
every = pytest.mark.parametrize("name", ROWS)


def close(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    assert float((got - expected).abs().max()) <= 1e-10 * max(1.0, float(expected.abs().max()))


@every
@pytest.mark.parametrize("length", [1, 2, 5, 8, 9, 64, 65, 150])
def test_blocks_give_what_single_positions_give(name: str, length: int) -> None:
    run, slowly, make = ROWS[name]
    votive.manual_seed(length)
    x = make(length)
    close(run(x, None, slice(None))[0], slowly(x))


@every
@pytest.mark.parametrize("pieces", [[1] * 12, [5, 1, 1, 5], [70, 1, 30]], ids=str)
def test_a_text_may_come_in_pieces(name: str, pieces: list[int]) -> None:
    run, slowly, make = ROWS[name]
    votive.manual_seed(0)
    x, at, state, found = make(sum(pieces)), 0, None, []
    for size in pieces:
        y, state = run(x, state, slice(at, at + size))
        found.append(y)
        at += size
    close(votive.cat(found, 1), slowly(x))


@every
def test_gradients_are_those_of_single_positions(name: str) -> None:
    run, slowly, make = ROWS[name]
    votive.manual_seed(0)
    x = {key: value.requires_grad_() for key, value in make(20).items()}
    used = [v for key, v in x.items() if not (name == "recurrence" and key in ("A", "k", "q"))]
    seen = normal(*slowly(x).shape).detach()
    wanted = votive.autograd.grad((slowly(x) * seen).sum(), used)
    got = votive.autograd.grad((run(x, None, slice(None))[0] * seen).sum(), used)
    for a, b in zip(got, wanted, strict=True):
        close(a, b)
