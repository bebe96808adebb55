"""Quantized blocks: values are those of the gguf package, and fitting beats rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import votive
from votive.backends.common.blocks.bits import (
    pack,
    pack_k_scales,
    pack_q3_scales,
    unpack,
    unpack_k_scales,
    unpack_q3_scales,
)
from votive.backends.common.blocks.encode import encode
from votive.io.gguf import QUANTIZABLE, READABLE, TYPES, dequantize, quantize

DATA = Path(__file__).parent / "data"
BLOCKS = [name for name in READABLE if not TYPES[name].plain]
EXACT = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4", "TQ1_0", "TQ2_0"]
FITTED = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
# Those of few levels or a codebook, and what llama.cpp's quantizers leave of a Gaussian (mean squares, `gaussian()`),
# with uniform importance where they demand some; then what is left here.
LLAMA_CPP = {
    "IQ4_NL": (5.8443e-3, 5.481e-3),
    "IQ4_XS": (5.9262e-3, 5.548e-3),
    "NVFP4": (8.9847e-3, 6.676e-3),
    "Q2_0": (5.1715e-1, 1.3172e-1),
    "Q1_0": (3.5971e-1, 3.5971e-1),
    "IQ3_S": (2.7606e-2, 1.7763e-2),
    "IQ3_XXS": (4.5528e-2, 3.2861e-2),
    "IQ2_S": (7.0593e-2, 5.9597e-2),
    "IQ2_XS": (9.0473e-2, 8.5912e-2),
    "IQ2_XXS": (1.1861e-1, 1.1269e-1),
    "IQ1_M": (3.4027e-1, 1.7937e-1),
    "IQ1_S": (2.3693e-1, 2.0849e-1),
}
SEARCHED = list(LLAMA_CPP)


def weights(rows: int = 64, width: int = 1024, seed: int = 0) -> np.ndarray:
    """Numbers with the heavy tails that trained weights have."""
    rng = np.random.default_rng(seed)
    spread = rng.lognormal(size=(rows, width)) ** 0.5
    return (rng.standard_normal((rows, width)) * spread * 0.02).astype(np.float32)


def blocks(name: str, count: int, seed: int) -> np.ndarray:
    """Random blocks; scales that are no finite numbers are left out."""
    t = TYPES[name]
    raw = np.random.default_rng(seed).integers(0, 256, count * t.record.itemsize, dtype=np.uint8)
    records = raw.view(t.record).copy()
    for field in t.record.names:
        if t.record[field].kind == "f":
            broken = ~np.isfinite(records[field])
            records[field][broken] = 1
    return records.view(np.uint8)


def error(name: str, x: np.ndarray) -> float:
    y = dequantize(quantize(x, name), name)
    return float(np.sqrt(((y - x) ** 2).mean() / (x**2).mean()))


def test_stored_blocks_decode_to_the_stored_numbers() -> None:
    golden = np.load(DATA / "gguf_blocks.npz")
    assert {k.split(".")[0] for k in golden} == set(BLOCKS)
    for name in BLOCKS:
        got = dequantize(golden[f"{name}.raw"], name)
        np.testing.assert_array_equal(got.view(np.uint32), golden[f"{name}.f32"].view(np.uint32))


def test_stored_numbers_encode_to_the_stored_blocks() -> None:
    golden = np.load(DATA / "gguf_encoded.npz")
    for name in EXACT:
        np.testing.assert_array_equal(quantize(golden["x"], name), golden[name])


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n in BLOCKS if n not in ("Q8_1", "Q8_K", "Q1_0", "Q2_0")])
def test_any_block_decodes_bit_for_bit_as_in_the_gguf_package(name: str) -> None:
    gguf = pytest.importorskip("gguf")
    raw = np.random.default_rng(1).integers(0, 256, (5, 300 * TYPES[name].record.itemsize), dtype=np.uint8)
    with np.errstate(all="ignore"):
        want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[name])
    got = dequantize(raw, name)
    same = got.view(np.uint32) == want.view(np.uint32)
    assert (same | (np.isnan(got) & np.isnan(want))).all()


@pytest.mark.parity
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
def test_rounding_types_encode_bit_for_bit_as_in_the_gguf_package(name: str, scale: float) -> None:
    gguf = pytest.importorskip("gguf")
    x = weights() * np.float32(scale)
    x[0], x[1], x[2], x[3, 32:64] = 0, 1, -1, 0
    want = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name])
    np.testing.assert_array_equal(quantize(x, name), want)


@pytest.mark.parity
def test_the_table_of_types_is_that_of_the_gguf_package() -> None:
    gguf = pytest.importorskip("gguf")
    for t in gguf.GGMLQuantizationType:
        if t.name == "Q8_1":  # two halves in ggml's structure, two singles in the package's table
            continue
        assert (TYPES[t.name].block, TYPES[t.name].record.itemsize) == gguf.GGML_QUANT_SIZES[t]
        assert TYPES[t.name].code == t.value


# Relative to the root mean square of the weights, what the fit reaches plus a tenth.
LIMITS = {"Q2_K": 0.345, "Q3_K": 0.195, "Q4_K": 0.096, "Q5_K": 0.048, "Q6_K": 0.024}


@pytest.mark.parametrize("name", FITTED)
def test_fitted_types_keep_the_error_small(name: str) -> None:
    assert error(name, weights()) < LIMITS[name]


def gaussian() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((64, 1024)).astype(np.float32)


@pytest.mark.parametrize("name", SEARCHED)
def test_searched_types_leave_no_more_error_than_llama_cpps_quantizers(name: str) -> None:
    x = gaussian()
    mse = float(np.square(dequantize(quantize(x, name), name) - x, dtype=np.float64).mean())
    theirs, ours = LLAMA_CPP[name]
    assert mse < 1.0005 * theirs  # signs and a mean leave no choice
    assert mse < 1.002 * ours


@pytest.mark.parametrize("name", [*FITTED, *SEARCHED])
def test_importance_lowers_the_error_that_it_weighs(name: str) -> None:
    x, w = weights(16), np.random.default_rng(2).lognormal(sigma=2, size=1024).astype(np.float32)

    def weighted(raw: np.ndarray) -> float:
        return float((w * (dequantize(raw, name) - x) ** 2).sum())

    assert weighted(quantize(x, name, importance=w)) < 0.9 * weighted(quantize(x, name))
    none = quantize(x, name, importance=np.zeros(1024, np.float32))
    np.testing.assert_array_equal(none, quantize(x, name))


def test_importance_that_cannot_be_used_is_refused() -> None:
    x = np.ones((2, 256), np.float32)
    with pytest.raises(ValueError, match=r"each of the 256 columns, got shape \(2,\)"):
        quantize(x, "Q4_K", importance=np.ones(2))
    with pytest.raises(ValueError, match="negative numbers, nan or inf"):
        quantize(x, "Q4_K", importance=-np.ones(256))
    for name in ("Q4_0", "F16"):
        with pytest.raises(ValueError, match=f"{name} .* importance has no effect"):
            quantize(x, name, importance=np.ones(256))


def test_ternary_and_binary_numbers_come_back_where_a_type_has_them() -> None:
    rng = np.random.default_rng(0)
    three = rng.integers(-1, 2, (4, 256)).astype(np.float32) * 0.5
    np.testing.assert_array_equal(dequantize(quantize(three, "Q2_0"), "Q2_0"), three)
    two = np.where(rng.random((4, 256)) < 0.5, np.float32(-0.25), np.float32(0.25))
    for name in ("Q1_0", "Q2_0", "IQ2_S", "IQ3_S"):
        np.testing.assert_allclose(dequantize(quantize(two, name), name), two, rtol=1e-3)


def test_blocks_of_activations_hold_their_sums() -> None:
    x = weights(2, 512)
    one = quantize(x, "Q8_1").reshape(-1).view(TYPES["Q8_1"].record)
    step = np.abs(x.reshape(-1, 32)).max(axis=1) / np.float32(127)
    np.testing.assert_array_equal(one["d"], step.astype(np.float16))
    np.testing.assert_array_equal(one["s"], (step * one["qs"].sum(axis=1, dtype=np.int64)).astype(np.float16))
    k = quantize(x, "Q8_K").reshape(-1).view(TYPES["Q8_K"].record)
    rows = x.reshape(-1, 256)
    extreme = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
    np.testing.assert_allclose(k["d"], extreme / -127, rtol=1e-6)
    np.testing.assert_array_equal(k["sums"], k["qs"].reshape(-1, 16, 16).sum(axis=2, dtype=np.int16))
    assert (np.abs(k["qs"] - np.rint(rows / k["d"][:, None])) <= 1).all()


def test_more_bits_are_better_and_fitting_beats_rounding() -> None:
    x = weights()
    e = {name: error(name, x) for name in [*FITTED, "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]}
    assert e["Q8_0"] < e["Q6_K"] < e["Q5_K"] < e["Q4_K"] < e["Q3_K"] < e["Q2_K"]
    # The same bits per weight (4.5 and 5.5) as the plain types, with less error.
    assert e["Q4_K"] < 0.8 * e["Q4_0"]
    assert e["Q4_K"] < e["Q4_1"]
    assert e["Q5_K"] < 0.8 * e["Q5_0"]


@pytest.mark.parametrize("name", QUANTIZABLE)
def test_what_decoding_gives_is_encoded_without_a_large_change(name: str) -> None:
    x = dequantize(quantize(weights(4), name), name)
    assert error(name, x) < {"Q2_K": 0.2, "Q3_K": 0.1, "Q4_K": 0.05}.get(name, 0.02)


@pytest.mark.parametrize("name", QUANTIZABLE)
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 3e-2, -2e3])
def test_constant_blocks_come_back(name: str, value: float) -> None:
    x = np.full((2, 256), value, np.float32)
    tolerance = {"MXFP4": 0.35, "NVFP4": 0.05}.get(name, 4e-3)
    np.testing.assert_allclose(dequantize(quantize(x, name), name), x, rtol=tolerance)


@pytest.mark.parametrize("name", QUANTIZABLE)
def test_tiny_and_huge_numbers_do_not_break_a_block(name: str) -> None:
    x = weights(2, 256)
    # FP8 scales end where half-precision ones do not.
    for scale in (1e-30, 1e-42, 1e-4, 1e4 if name == "NVFP4" else 1e5):
        y = dequantize(quantize(x * np.float32(scale), name), name)
        assert np.isfinite(y).all()
        # A block of tiny numbers is at worst zero, never larger than what it was made from.
        assert np.abs(y).max() <= 1.5 * np.abs(x).max() * scale + 1e-7


@pytest.mark.parametrize("name", QUANTIZABLE)
def test_numbers_without_a_code_are_refused(name: str) -> None:
    for bad in (np.nan, np.inf):
        x = np.ones(256, np.float32)
        x[7] = bad
        with pytest.raises(ValueError, match="nan or inf"):
            quantize(x, name)


def test_scales_beyond_half_precision_are_refused() -> None:
    with pytest.raises(ValueError, match=r"too large .* Q4_0"):
        quantize(np.full(32, 1e7, np.float32), "Q4_0")
    for name in QUANTIZABLE:
        if name not in ("MXFP4", "Q8_K"):
            with pytest.raises(ValueError, match=f"too large .*{name}"):
                quantize(weights(1, 256) * np.float32(1e15), name)


def test_rows_that_fill_no_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match=r"multiple of 256 long for Q4_K, got shape \(2, 100\)"):
        quantize(np.zeros((2, 100), np.float32), "Q4_K")
    with pytest.raises(ValueError, match="whole number of Q4_0 blocks"):
        dequantize(np.zeros((2, 17), np.uint8), "Q4_0")


def test_unknown_and_unsupported_types_say_what_there_is() -> None:
    with pytest.raises(ValueError, match="'Q9_X' is not a type of tensor; there are F32"):
        quantize(np.zeros(32, np.float32), "Q9_X")
    with pytest.raises(ValueError, match=r"writes no INT4_G32; it writes Q4_0"):
        encode(np.zeros(32, np.float32), votive.int4_g32)


def test_decoding_to_half_types_rounds_the_float32_result() -> None:
    raw = quantize(weights(4), "Q4_K")
    for dtype in (votive.float16, votive.bfloat16, votive.float64):
        got = dequantize(raw, "Q4_K", dtype=dtype)
        np.testing.assert_array_equal(got, dequantize(raw, "Q4_K").astype(dtype.np))


def test_results_do_not_depend_on_the_pieces_they_are_made_in(monkeypatch: pytest.MonkeyPatch) -> None:
    x = weights(3, 1024)
    whole = {name: quantize(x, name) for name in QUANTIZABLE}
    monkeypatch.setattr("votive.backends.common.blocks.encode._ENCODE", 512)
    monkeypatch.setattr("votive.backends.common.blocks.decode._PIECE", 256)
    for name, raw in whole.items():
        np.testing.assert_array_equal(quantize(x, name), raw)
        parts = np.concatenate([dequantize(row, name) for row in raw])
        np.testing.assert_array_equal(dequantize(raw, name).reshape(-1), parts)


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("votive.backends.common.blocks.encode._ENCODE", 512)
    x = weights(6, 512)
    before = votive.get_num_threads()
    made = {}
    try:
        for threads in (1, 3):
            votive.set_num_threads(threads)
            made[threads] = {name: quantize(x, name) for name in QUANTIZABLE}
            x_bad = x.copy()
            x_bad[5, 7] = np.nan
            with pytest.raises(ValueError, match="nan or inf"):
                quantize(x_bad, "Q4_K")
    finally:
        votive.set_num_threads(before)
    for name in QUANTIZABLE:
        np.testing.assert_array_equal(made[1][name], made[3][name])


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 4]), st.sampled_from([4, 8, 16, 32]), st.integers(0, 2**32 - 1))
def test_bits_are_packed_and_unpacked_again(bits: int, run: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = rng.integers(0, 1 << bits, (3, 64 * 8), dtype=np.uint8)
    np.testing.assert_array_equal(unpack(pack(q, bits, run), bits, run), q)
    s, m = rng.integers(0, 64, (2, 3, 8), dtype=np.uint8)
    for got, want in zip(unpack_k_scales(pack_k_scales(s, m)), (s, m), strict=True):
        np.testing.assert_array_equal(got, want)
    s3 = rng.integers(-32, 32, (3, 16)).astype(np.int8)
    np.testing.assert_array_equal(unpack_q3_scales(pack_q3_scales(s3)), s3)
