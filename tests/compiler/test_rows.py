"""Reductions of rows are part of the loops of what is computed before and after them."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.backends.base import BACKENDS
from votive.backends.cpu import native
from votive.compiler import explain

from .compare import Outcome, close, same


def softmax(x: Any, y: Any) -> Any:
    e = votive.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def layer_norm(x: Any, y: Any) -> Any:
    d = x - x.mean(-1, keepdim=True)
    return d / votive.sqrt((d * d).mean(-1, keepdim=True) + 0.1) * y + 1


def sums(x: Any, y: Any) -> Any:
    z = votive.sin(x) * votive.exp(-y * y) + votive.sqrt(x * x + 1)
    return votive.tanh(z).sum(-1), z.amin(-1), (z * 2).mean((-1,), keepdim=True)


def several(x: Any, y: Any) -> Any:
    low, high = (x + y).amin(-1, True), (x + y).amax(-1, True)
    scale = votive.rsqrt((high - low) ** 2 + 1) * 3
    z = (x - low) * scale
    return z, scale, (z * z).mean(-1), low.squeeze(-1)


def whole(x: Any, y: Any) -> Any:
    return (x * y).sum(), (x.transpose(-1, -2) * 2).sum(-1), (x * y + 1).sum(0), x.sum(-1)


def used_between(x: Any, y: Any) -> Any:
    m = (x * 2).mean(-1, True)
    k = m.cumsum(0)
    return x - m + k


PROGRAMS = [softmax, layer_norm, sums, several, whole, used_between]


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions with rows, but no compiler: the reference computes them."""
    monkeypatch.setattr(type(BACKENDS["cpu"]), "compiles_rows", staticmethod(lambda: True))
    if native.available:
        from votive.backends.cpu.native import jit

        monkeypatch.setattr(jit, "compiler", lambda: None)


def arguments(shape: tuple[int, ...], dtype: Any, gradient: bool) -> dict[str, Any]:
    votive.manual_seed(1)
    x = votive.randn(shape).to(dtype)
    y = votive.randn(shape[-1:]).to(dtype)
    return {"x": x.requires_grad_(gradient), "y": y.requires_grad_(gradient)}


def check(program: Any, shape: tuple[int, ...], dtype: Any, gradient: bool) -> Any:
    compiled = votive.compile(program)
    scale = 20.0 if dtype is votive.bfloat16 else 1.0
    for _ in range(2):
        one = Outcome(program, arguments(shape, dtype, gradient), 0)
        same(one, Outcome(compiled, arguments(shape, dtype, gradient), 0), scale)
    return explain(compiled)


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("dtype", [votive.float32, votive.float64, votive.bfloat16], ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_rows_are_reduced_within_regions(program: Any, dtype: Any) -> None:
    for shape in ((3, 40), (2, 5, 600), (2, 17)):
        found = check(program, shape, dtype, dtype is not votive.bfloat16)
    assert any("_row_region" in v.forward for v in found.versions) is (program is not whole) or program is whole


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("shape", [(1, 40), (40,), (3, 4), (0, 40), (2, 0), ()], ids=str)
def test_one_row_short_rows_and_none_stay_as_they_are(shape: tuple[int, ...]) -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * 2 + 1).sum(-1), x - (x * y).mean(-1, keepdim=True)

    found = check(f, shape, votive.float32, False)
    assert not any("_row_region" in v.forward for v in found.versions)


def everything(x: Any, y: Any) -> Any:
    return [p(x, y) for p in (softmax, layer_norm, sums, several)]


def test_rows_are_not_joined_where_nothing_is_left_of_reductions() -> None:
    if not BACKENDS["cpu"].compiles_rows():
        pytest.skip("no C++ compiler")
    for shape in ((2, 20), (3, 2, 16), (2, 1, 700)):
        found = check(softmax, shape, votive.float32, False)
    assert any("_row_region" in v.forward for v in found.versions)
    for shape in ((2, 20), (1, 2, 40)):
        check(layer_norm, shape, votive.float32, True)


@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16], ids=str)
def test_loops_with_rows_are_compiled(dtype: Any) -> None:
    if not BACKENDS["cpu"].compiles_rows():
        pytest.skip("no C++ compiler")
    for shape in ((3, 1000), (2, 3, 17)):
        found = check(everything, shape, dtype, False)
    assert all(k.source for k in found.kernels)
    assert any("extreme_of" in k.source for k in found.kernels)
    x, y = arguments((3, 1000), dtype, False).values()
    x[1, 500], x[2, 3], x[0, 7] = float("nan"), float("inf"), 1e5
    compiled = votive.compile(everything)
    compiled(votive.ones_like(x), y)
    for a, b in zip(everything(x, y)[2:], compiled(x, y)[2:], strict=True):
        for p, q in zip(a, b, strict=True):
            close(p, q, 20.0 if dtype is votive.bfloat16 else 1.0)


def test_rows_of_a_number_that_changes_share_a_loop_and_rows_of_other_lengths_have_none() -> None:
    if not BACKENDS["cpu"].compiles_rows():
        pytest.skip("no C++ compiler")
    rows, lengths = votive.compile(layer_norm), votive.compile(softmax)
    for n in (4, 5, 9, 30):
        x = votive.randn(n, 3, 20, requires_grad=True)
        y = votive.randn(20)
        one, other = Outcome(layer_norm, {"x": x, "y": y}, 0), None
        grads, x.grad = [one.grads[0].clone()], None
        other = Outcome(rows, {"x": x, "y": y}, 0)
        close(one.result, other.result)
        close(grads[0], other.grads[0], 10)
        z = votive.randn(3, 20 + n)
        close(lengths(z, None), softmax(z, None))
    assert [bool(v.symbols) for v in explain(rows).versions] == [False, True]
    assert "_row_region" in explain(rows).versions[1].forward
    assert [("_row_region" in v.forward) for v in explain(lengths).versions] == [True, False]
