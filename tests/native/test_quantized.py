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
from votive.core.blocks import FORMATS as FORMATS_OF_CORE
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
    if format.name == "nvfp4":
        records["d"] = rng.integers(1, 48, records["d"].shape)
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


def in_tables(format: block_dtype) -> bool:
    """Whether codes stand for numbers that are no small integers: products are of single precision then."""
    return format.name.startswith(("nf4", "fp4", "fp8"))


def even_scales(rows: int, width: int, dtype: votive.dtype) -> votive.Tensor:
    """An input whose codes do not depend on how the product with the inverse of a scale is rounded."""
    rng = np.random.default_rng(rows)
    x = np.clip(rng.standard_normal((rows, width // 32, 32)), -1.98, 1.98)
    x[..., 7] = 127 / 64  # the largest: scales are powers of two
    x *= 2.0 ** rng.integers(-3, 4, (rows, width // 32, 1))
    return votive.from_numpy(x.reshape(rows, width)).to(dtype)


# Half a unit in the last place.
UNIT = {votive.float32: 2.0**-24, votive.bfloat16: 2.0**-9, votive.float16: 2.0**-12}


@pytest.mark.parametrize("format", FORMATS, ids=IDS)
@pytest.mark.parametrize("dtype", list(UNIT))
def test_products_round_the_input_as_documented_and_nothing_else(format: block_dtype, dtype: votive.dtype) -> None:
    raw = noise(format, 21, 3 if format.block_size == 256 else 11)
    weight = decoded(raw, format, votive.float64)
    for rows in (1, 3, 4, 7, 16, 17, 33, 100, 129):
        x = even_scales(rows, weight.shape[1], dtype)
        got = F._block_linear(x, tensor(raw), None, format, False)
        assert got.dtype is dtype
        wide = x.double().numpy()
        want = (wide if in_tables(format) else rounded(x.float().numpy())) @ weight.T
        some = np.abs(wide) @ np.abs(weight).T
        error, last = np.abs(got.double().numpy() - want), 2.02 * UNIT[dtype] * np.abs(want)
        close = bool((error <= 2e-6 * some.max() + last).all())
        if rows > (16 if in_tables(format) else 32) and not close:
            # Both factors are rounded to bfloat16 where the processor multiplies those, else none.
            error = np.abs(got.double().numpy() - wide @ weight.T)
            close = bool((error <= 1.01 * 2.0**-8 * some + last + 1e-6).all())
        assert close, (rows, error.max())


@pytest.mark.parametrize("format", FORMATS, ids=IDS)
def test_inputs_of_any_layout_and_none_at_all(format: block_dtype) -> None:
    blocks = 2 if format.block_size == 256 else 5
    raw = tensor(noise(format, 40, 2 * blocks))
    part = raw[3:37:2, format.block_bytes * blocks :]  # rows and columns of a larger table
    width = format.row_elements(part.shape[1])
    for rows in (2, 9):
        x = votive.randn(width, 2 * rows).T[::2]
        for exact in (False, True):
            want = F._block_linear(x.contiguous(), part.contiguous(), None, format, exact)
            assert F._block_linear(x, part, None, format, exact).equal(want)
        g = votive.randn(17, rows).T
        want = F._block_matmul(g.contiguous(), part.contiguous(), format)
        assert F._block_matmul(g, part, format).equal(want)
    assert F._block_embedding(votive.tensor([[16, 0]]), part, format, votive.float32).equal(
        F._block_decode(part, format, votive.float32)[[16, 0]][None]
    )
    bias = votive.arange(17.0)
    assert F._block_linear(votive.ones(0, width), part, bias, format, False).shape == (0, 17)
    assert F._block_linear(votive.ones(2, width), part[:0], None, format, False).shape == (2, 0)
    assert F._block_linear(votive.ones(2, 0), part[:, :0], bias, format, False).equal(bias.expand(2, 17))
    assert F._block_matmul(votive.ones(2, 0), part[:0], format).equal(votive.zeros(2, width))
    assert F._block_decode(part[:0], format, votive.float32).shape == (0, width)


@pytest.mark.parametrize("format", FORMATS, ids=IDS)
def test_inputs_that_are_not_finite_give_nan(format: block_dtype) -> None:
    raw = tensor(noise(format, 18, 2))
    width = format.row_elements(raw.shape[1])
    for rows in (2, 6):
        for bad in (float("nan"), float("inf"), float("-inf")):
            x = votive.ones(rows, width)
            x[1, width - 3] = bad
            y = F._block_linear(x, raw, None, format, False)
            assert y[1].isnan().all()
            assert y[0].isfinite().all()
            assert y[2:].isfinite().all()


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


def test_codes_of_fp8_that_are_no_number_give_nan() -> None:
    format = by_name("fp8_g64")
    raw = noise(format, 18, 3)
    for row, code in ((2, 0x7F), (17, 0xFF)):
        raw[row, 100] = code
    for rows in (1, 3, 9, 40):
        y = F._block_linear(votive.zeros(rows, 192), tensor(raw), None, format, False)
        assert y[:, 2].isnan().all()
        assert y[:, 17].isnan().all()
        assert int(y.isnan().sum()) == 2 * rows


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


def test_the_module_tells_the_formats_that_it_knows() -> None:
    told = module.block_formats()
    assert [name.lower() for name, _, _ in told] == IDS
    assert set(IDS) <= set(FORMATS_OF_CORE)
    for name, size, nbytes in told:
        assert (by_name(name).block_size, by_name(name).block_bytes) == (size, nbytes)


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
