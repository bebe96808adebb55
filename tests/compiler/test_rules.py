"""Rewrites: what programs write out of single operators is joined, with their results and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.nn.functional as F

W = 16


def _norm(x: Any, w: Any) -> Any:
    return x * vt.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def _wide_norm(x: Any, w: Any) -> Any:
    h = x.float()
    return w * (h * vt.rsqrt((h * h).mean((-1,), keepdim=True) + 1e-6)).to(x.dtype)


def _late_cast(x: Any, w: Any) -> Any:
    h = x.float()
    h = h * vt.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)
    return (h * w.float()).to(x.dtype)


def _turned(x: Any, w: Any) -> Any:
    angles = vt.arange(x.shape[-2]).float()[:, None] * vt.arange(W // 2).float()[None] / 7
    angles = vt.cat((angles, angles), dim=-1)
    a, b = x.chunk(2, dim=-1)
    return (x * angles.cos() + vt.cat((-b, a), dim=-1) * angles.sin()) * w


def _without_gradient(x: Any, w: Any) -> Any:
    h = _norm(x, w)
    with vt.no_grad():
        scale = h.abs().mean()
    return h * scale


def _detached(x: Any, w: Any) -> Any:
    h = _norm(x, w)
    return h * h.detach().exp() + _norm(h.detach() * 2, w)


def _inside_no_grad(x: Any, w: Any) -> Any:
    with vt.no_grad():
        h = _norm(x, w)
    return h * w


def _squares_seen(x: Any, w: Any) -> Any:
    """What the program returns besides must still be there."""
    r = vt.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return x * r * w + r


def _parts(x: Any, w: Any) -> Any:
    a, b, c, d = (x * w).split(W // 4, dim=-1)
    return vt.cat((c * a, vt.tanh(d) * b, a, d), -1)


def _joined(x: Any, w: Any) -> Any:
    return F.relu(F.linear(_norm(x, w), vt.ones(W, W)))


PROGRAMS = {
    "rms norm": (_norm, "_rms_norm", 1),
    "in float32": (_wide_norm, "_rms_norm", 1),
    "cast behind the weight": (_late_cast, "_rms_norm", 1),
    "rotation": (_turned, "_rope", 1),
    "no_grad": (_without_gradient, "_rms_norm", 1),
    "detach": (_detached, "_rms_norm", 2),
    "inside no_grad": (_inside_no_grad, "_rms_norm", 0),
    "seen": (_squares_seen, "_rms_norm", 0),
    "parts": (_parts, "_into_window", 0),
    "joined": (_joined, "_rms_norm", 1),
}


def _gradients(fn: Callable[..., Any], x: Any, w: Any) -> list[Any]:
    x, w = (t.detach().clone().requires_grad_() for t in (x, w))
    y = fn(x, w)
    (y.float() * vt.linspace(-1, 1, W)).sum().backward()
    return [y.detach(), *(None if t.grad is None else t.grad for t in (x, w))]


@pytest.mark.parametrize("dtype", [vt.float32, vt.float64, vt.bfloat16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str, dtype: Any) -> None:
    fn, op, count = PROGRAMS[name]
    if dtype is vt.float64 and name in ("in float32", "cast behind the weight", "joined", "rotation"):
        pytest.skip("the program itself is of float32")
    if dtype is vt.bfloat16 and name in ("joined", "rotation"):
        pytest.skip("the program itself is of float32")
    vt.manual_seed(1)
    compiled = vt.compile(fn)
    for _ in range(3):
        x, w = vt.randn(3, 5, W, dtype=dtype), vt.randn(W, dtype=dtype)
        for found, wanted in zip(_gradients(compiled, x, w), _gradients(fn, x, w), strict=True):
            assert (found is None) == (wanted is None)
            if wanted is not None:
                a, b = (t.double().numpy() for t in (found, wanted))
                off = {vt.float32: 2e-6, vt.float64: 1e-13, vt.bfloat16: 0.04}[dtype]
                np.testing.assert_allclose(a, b, rtol=off, atol=off * max(1.0, np.abs(b).max()))
    assert not compiled.eager
    (entry,) = [e for versions in compiled.entries.values() for e in versions]
    if dtype is vt.float32 and not _reference():
        assert [n.op.name for n in entry.graph.nodes if not n.backward].count(op) == count


def _reference() -> bool:
    from votive.backends.base import has_own

    return not has_own("_rms_norm", "cpu")


def test_halves_that_are_not_known_to_be_equal_are_left_alone() -> None:
    def turn(x: Any, cos: Any, sin: Any) -> Any:
        a, b = x.chunk(2, dim=-1)
        return x * cos + vt.cat((-b, a), dim=-1) * sin

    compiled = vt.compile(turn)
    vt.manual_seed(0)
    for _ in range(3):
        args = vt.randn(2, 4, W), vt.randn(4, W), vt.randn(4, W)
        np.testing.assert_allclose(compiled(*args).numpy(), turn(*args).numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [vt.bfloat16, vt.float16])
def test_rounding_on_purpose_is_kept(dtype: Any) -> None:
    def rounded(x: Any) -> Any:
        return (x * 1.1).to(dtype).float() * 3 + 1 + (x + 0.3).to(dtype) * x

    compiled = vt.compile(rounded)
    vt.manual_seed(0)
    for _ in range(3):
        x = vt.randn(64)
        np.testing.assert_allclose(compiled(x).numpy(), rounded(x).numpy(), rtol=1e-6, atol=1e-6)
