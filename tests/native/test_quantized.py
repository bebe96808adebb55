"""Native kernels for weights in blocks against the NumPy reference, and against a model of the 8-bit rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.backends.base import switch
from votive.backends.cpu.native.loader import module
from votive.backends.cpu.native.quantized import CODES
from votive.backends.cpu.reference.quantized import decoded
from votive.core.blocks import block_dtype, by_name
from votive.ops.registry import F

pytestmark = pytest.mark.skipif(module is None, reason="there are no native kernels here")
IDS = list(CODES)
FORMATS = [by_name(name) for name in IDS]


def noise(format: block_dtype, rows: int, blocks: int, seed: int = 0) -> Any:
    """Bytes of any kind, with scales that are ordinary numbers and codes that are numbers."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (rows, blocks * format.block_bytes), dtype=np.uint8)
    records = raw.view(format.np)
    fields = format.np.fields or {}
    for field in ("d", "m", "dmin"):
        if field in fields and fields[field][0].kind == "f":
            records[field] = 0.001 * rng.standard_normal(records.shape)
    if "e" in fields:
        records["e"] = rng.integers(112, 122, records.shape)
    if "z" in fields:
        records["z"] = rng.integers(0, 17, records.shape)
    if format.name == "iq1_m":  # the highest bits of its words are those of a half number
        bits = (0.001 * rng.standard_normal(records.shape)).astype(np.float16).view(np.uint16)[..., None]
        top = ((bits >> np.arange(0, 16, 4, dtype=np.uint16)) & 15) << 12
        records["scales"] = (records["scales"] & 0xFFF) | top
    if format.name.startswith("fp8"):
        records["qs"][(records["qs"] & 127) == 127] = 0x55
    return raw


def tensor(raw: Any) -> votive.Tensor:
    return votive.from_numpy(raw)


def rounded(x: Any) -> Any:
    """What is left of an input: 8 bits for each 32 neighbours."""
    n = x.shape[-1]
    parts = x.reshape(-1, n // 32, 32).astype(np.float32)
    most = np.abs(parts).max(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = np.where(most > 0, np.rint(parts * (np.float32(127) / most)), 0)
    return (codes * (most / np.float32(127))).reshape(x.shape).astype(np.float64)


@pytest.mark.parametrize("format", FORMATS, ids=IDS)
def test_numbers_are_those_of_the_reference_bit_by_bit(format: block_dtype) -> None:
    raw = np.random.default_rng(1).integers(0, 256, (7, 3 * format.block_bytes), dtype=np.uint8)  # scales of any kind
    for dtype in (votive.float32, votive.bfloat16, votive.float16, votive.float64):
        got = F._block_decode(tensor(raw), format, dtype)
        want = votive.from_numpy(decoded(raw, format, dtype))
        assert got.dtype is dtype
        assert got.equal(want) or votive.equal(got.nan_to_num(7.5), want.nan_to_num(7.5))
        assert got.isnan().equal(want.isnan())


@pytest.mark.parametrize("format", FORMATS, ids=IDS)
@pytest.mark.parametrize("rows", [1, 3, 4, 7, 32, 33])
def test_products_of_few_rows_round_the_input_to_eight_bits_and_nothing_else(format: block_dtype, rows: int) -> None:
    raw = noise(format, 21, 3 if format.block_size == 256 else 11)
    weight = decoded(raw, format, votive.float64)
    x = np.random.default_rng(rows).standard_normal((rows, weight.shape[1])).astype(np.float32)
    got = F._block_linear(tensor(x), tensor(raw), None, format, False).numpy()
    if rows > 32:  # both factors are rounded to bfloat16 where the processor multiplies those, else none
        bound = 2.0**-8 * np.abs(x) @ np.abs(weight).T
        assert (np.abs(got - x.astype(np.float64) @ weight.T) <= 1.01 * bound + 1e-6).all()
        return
    tables = format.name.startswith(("nf4", "fp4", "fp8"))  # no small integers: the input is not rounded
    want = (x.astype(np.float64) if tables else rounded(x)) @ weight.T
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6 * np.abs(x).max() * np.abs(weight).sum(1).max())


@pytest.mark.parametrize("format", FORMATS, ids=IDS)
@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16, votive.float16])
def test_exact_products_and_gradients_are_those_of_the_numbers(format: block_dtype, dtype: votive.dtype) -> None:
    raw = noise(format, 37, 3)
    weight = votive.from_numpy(decoded(raw, format, votive.float32))
    bias = votive.arange(37).to(dtype)
    for shape in ((weight.shape[1],), (5, weight.shape[1]), (2, 0, weight.shape[1]), (2, 3, weight.shape[1])):
        x = votive.randn(shape, generator=votive.Generator().manual_seed(3)).to(dtype)
        y = F._block_linear(x, tensor(raw), bias, format, True)
        g = F._block_matmul(y, tensor(raw), format)
        assert y.dtype is g.dtype is dtype
        if y.numel():
            for got, want in ((y, x.float() @ weight.T + bias.float()), (g, y.float() @ weight)):
                limit = {votive.float32: 2e-5, votive.bfloat16: 1e-2, votive.float16: 2e-3}[dtype]
                assert float((got.float() - want).abs().max()) <= limit * float(want.abs().max())


def test_other_strides_slices_and_rows_out_of_order() -> None:
    format = FORMATS[IDS.index("q4_k")]
    raw = tensor(noise(format, 12, 4))
    part = raw[2:10:2, 144:432]  # rows and columns of a larger table, two of four blocks
    x = votive.randn(512, 6).T
    want = F._block_linear(x.contiguous(), part.contiguous(), None, format, True)
    assert F._block_linear(x, part, None, format, True).equal(want)
    at = votive.tensor([[3, 0], [3, 1]])
    rows = F._block_embedding(at, part, format, votive.float32)
    assert rows.equal(F._block_decode(part, format, votive.float32)[at])
    assert F._block_embedding(at.int().T, part, format, votive.float16).shape == (2, 2, 512)
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        F._block_embedding(votive.tensor([4]), part, format, votive.float32)
    with pytest.raises(IndexError, match="index -1"):
        F._block_embedding(votive.tensor([-1]), part, format, votive.float32)


def test_numbers_that_are_not_finite_stay_so() -> None:
    format = FORMATS[IDS.index("q8_0")]
    raw = tensor(noise(format, 3, 2))
    for bad in (float("nan"), float("inf")):
        x = votive.ones(2, 64)
        x[1, 40] = bad
        y = F._block_linear(x, raw, None, format, False)
        assert y[0].isfinite().all()
        assert y[1].isnan().all()


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    format = FORMATS[IDS.index("q6_k")]
    raw, x = tensor(noise(format, 130, 8)), votive.randn(3, 2048)
    before, made = votive.get_num_threads(), []
    try:
        for n in (1, 2):
            votive.set_num_threads(n)
            made.append(F._block_linear(x, raw, None, format, False))
    finally:
        votive.set_num_threads(before)
    assert made[0].equal(made[1])


def test_the_native_rows_serve() -> None:
    format = FORMATS[0]
    raw, x = tensor(noise(format, 4, 2)), votive.randn(2, 64)
    native = F._block_linear(x, raw, None, format, False)
    was = switch("native", False)
    try:
        reference = F._block_linear(x, raw, None, format, False)
    finally:
        switch("native", was)
    assert not native.equal(reference)  # which does not round
    assert float((native - reference).abs().max()) < 0.05 * float(reference.abs().max())
