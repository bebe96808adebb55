"""Products of 8-bit numbers: results of every type, any layout, and what torch makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive as vt

E4, E5 = vt.float8_e4m3fn, vt.float8_e5m2
OUTS = [E4, E5, vt.bfloat16, vt.float16, vt.float32]
# Two neighbours of a type differ by this much at most, as a part of the larger one.
STEP = {E4: 2**-3, E5: 2**-2, vt.bfloat16: 2**-7, vt.float16: 2**-10, vt.float32: 1e-6}


def given(kind: Any = E4, other: Any = E4, rows: bool = False) -> list[Any]:
    rng = np.random.default_rng(0)
    a, b = vt.tensor(rng.uniform(-2, 2, (5, 24))).to(kind), vt.tensor(rng.uniform(-2, 2, (24, 6)))
    shapes = ((5, 1), (1, 6)) if rows else ((), (1,))
    scales = [vt.tensor(rng.uniform(0.5, 1.5, s), dtype=vt.float32) for s in shapes]
    return [a, b.to(other), *scales]


def exact(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
    return (a.double() @ b.double()) * scale_a.double() * scale_b.double()


@pytest.mark.parametrize("rows", [False, True], ids=["one scale", "scales of rows"])
@pytest.mark.parametrize("out", OUTS, ids=str)
def test_results_are_rounded_once(out: Any, rows: bool) -> None:
    args = given(rows=rows)
    bias = vt.linspace(-1, 1, 6)
    got = vt._scaled_mm(*args, bias, out_dtype=out)
    want = (exact(*args) + bias).numpy()
    assert got.dtype is out
    np.testing.assert_allclose(got.double().numpy(), want, rtol=STEP[out] / 2, atol=1e-4)


def test_the_result_has_the_type_of_the_input_unless_told() -> None:
    for kind, other in ((E4, E4), (E5, E4), (E4, E5), (E5, E5)):
        assert vt._scaled_mm(*given(kind, other)).dtype is kind


def test_a_factor_of_the_result_is_for_narrow_results() -> None:
    args, factor = given(), vt.tensor(0.25)
    got = vt._scaled_mm(*args, scale_result=factor)
    want = (exact(*args) * 0.25).numpy()
    np.testing.assert_allclose(got.double().numpy(), want, rtol=2**-4, atol=2**-8)
    with pytest.raises(RuntimeError, match="scale_result is for float8 results"):
        vt._scaled_mm(*args, scale_result=factor, out_dtype=vt.bfloat16)
    with pytest.raises(RuntimeError, match="one float32 number"):
        vt._scaled_mm(*args, scale_result=vt.ones(2))


def test_layout_does_not_matter() -> None:
    a, b, *scales = given()
    want = vt._scaled_mm(a, b, *scales, out_dtype=vt.float32)
    turned = lambda t: t.t().contiguous().t()
    gaps = lambda t: vt.stack([t.float(), t.float()], -1).to(E4)[..., 0]
    for left, right in ((turned(a), turned(b)), (gaps(a), gaps(b)), (a, turned(b))):
        assert vt.equal(vt._scaled_mm(left, right, *scales, out_dtype=vt.float32), want)


def test_results_are_written_where_told() -> None:
    args, out = given(), vt.empty(5, 6, dtype=vt.bfloat16)
    assert vt._scaled_mm(*args, out_dtype=vt.bfloat16, out=out) is out
    assert vt.equal(out, vt._scaled_mm(*args, out_dtype=vt.bfloat16))


def test_gradients_are_refused_when_asked_for() -> None:
    a, b, one, other = given()
    y = vt._scaled_mm(a, b, one, other, vt.zeros(6, requires_grad=True), out_dtype=vt.float32)
    with pytest.raises(NotImplementedError, match="derivative"):
        y.sum().backward()


def test_sums_of_bytes_are_exact() -> None:
    x = vt.full((3, 3000), -128, dtype=vt.int8)
    assert (vt._int_mm(x, x.t()) == 128 * 128 * 3000).all()
    y = vt.full((3, 3000), 255, dtype=vt.uint8)
    assert (vt._int_mm(y, x.t()) == -255 * 128 * 3000).all()


@pytest.mark.parity
@pytest.mark.parametrize("out", OUTS, ids=str)
@pytest.mark.parametrize("rows", [False, True], ids=["one scale", "scales of rows"])
def test_torch_gives_the_same(out: Any, rows: bool) -> None:
    torch = pytest.importorskip("torch")
    args = given(rows=rows)
    theirs = [torch.from_numpy(np.array(t.float().numpy())) for t in args]
    theirs[:2] = [t.to(torch.float8_e4m3fn) for t in theirs[:2]]
    want = torch._scaled_mm(*theirs, out_dtype=getattr(torch, out.name)).float().numpy()
    got = vt._scaled_mm(*args, out_dtype=out).float().numpy()
    np.testing.assert_allclose(got, want, rtol=STEP[out], atol=1e-5)
