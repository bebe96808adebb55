"""Weights in blocks on the GPU, decoded, as tables and in products, are what NumPy makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.backends.common.blocks import decode_into
from votive.core.blocks import by_name
from votive.core.group_formats import KINDS, SIZES
from votive.ops.registry import F as ops

from .device import LAYOUTS, cpu_fallbacks, placed

pytest.importorskip("triton", reason="needs Triton")
from votive.backends.cuda.kernels.quantized import kernels, products, rounded, words
from votive.backends.cuda.kernels.quantized.blocks import FORMATS, WHOLE

NAMES = (
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
    "q2_k",
    "q3_k",
    "q4_k",
    "q5_k",
    "q6_k",
    "iq4_nl",
    "iq4_xs",
    "mxfp4",
    "tq1_0",
    "tq2_0",
)
TOLERANCE = {vt.float64: 1e-12, vt.float32: 2e-6, vt.bfloat16: 1e-2, vt.float16: 2e-3}
EVERY = pytest.mark.parametrize("name", NAMES)
GROUPS = tuple(f"{kind}_g{size}" for kind in KINDS for size in SIZES)


def blocks(name: str, rows: int, elements: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Rows of blocks with any codes, and scales that keep float16 in range: every bit of a code counts."""
    kind = by_name(name)
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (rows, kind.row_bytes(elements)), dtype=np.uint8)
    if name.startswith("fp8"):
        raw &= 0xF7  # never not a number
    records = raw.view(kind.np)
    for field in ("d", "dmin", "m"):
        if field in (kind.np.names or ()):
            records[field] = rng.uniform(0.005, 0.015, records.shape)
    if "z" in (kind.np.names or ()):
        records["z"] = rng.integers(0, 9, records.shape)
    if name == "mxfp4":
        records["e"] = rng.integers(125, 131, records.shape)
        records["e"][0, 0] = 1  # a subnormal scale
    return raw


def decoded(raw: np.ndarray[Any, Any], name: str, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    kind = by_name(name)
    out = np.empty((len(raw), kind.row_elements(raw.shape[1])), dtype)
    decode_into(out.reshape(-1), np.ascontiguousarray(raw).reshape(-1), kind)
    return out


def near(got: Any, want: np.ndarray[Any, Any], scale: np.ndarray[Any, Any], what: str) -> None:
    """To the rounding of the dtype, relative to the terms that were added."""
    assert got.device.type == "cuda", what
    assert tuple(got.shape) == want.shape, what
    off = np.abs(got.detach().cpu().double().numpy() - want) / np.maximum(scale, 1e-30)
    assert off.max(initial=0.0) < TOLERANCE[got.dtype], f"{what}: {off.max()}"


def rows_of(shape: tuple[int, ...], dtype: Any, how: str = "") -> tuple[Any, np.ndarray[Any, Any]]:
    x = placed(np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype.np), how, "cuda")
    return x, x.cpu().double().numpy()


@pytest.mark.parametrize("name", NAMES + GROUPS)
def test_blocks_decode_bit_for_bit(name: str) -> None:
    kind = by_name(name)
    raw = blocks(name, 3, 512)
    for dtype in (vt.float32, vt.bfloat16, vt.float16, vt.float64):
        with cpu_fallbacks() as left:
            got = ops._block_decode(vt.from_numpy(raw).to("cuda"), kind, dtype)
        assert not left
        assert got.device.type == "cuda"
        np.testing.assert_array_equal(got.cpu().numpy(), decoded(raw, name, dtype.np), err_msg=f"{dtype}")


@EVERY
@pytest.mark.parametrize("dtype", [vt.float32, vt.bfloat16, vt.float16], ids=str)
def test_linear_layers_and_their_gradients_read_blocks(name: str, dtype: Any) -> None:
    kind, n, k = by_name(name), 24, 256
    raw = blocks(name, n, k)
    weight = decoded(raw, name, np.float64)
    data = vt.from_numpy(raw).to("cuda")
    bias, b = rows_of((n,), dtype)
    for rows in (1, 3, 17, 40):
        x, a = rows_of((rows, k), dtype)
        x.requires_grad_()
        with cpu_fallbacks() as left:
            y = ops._block_linear(x, data, bias, kind, False)
            near(y, a @ weight.T + b, np.abs(a) @ np.abs(weight.T) + np.abs(b), f"{rows} rows")
            if rows in (3, 40):
                g, back = rows_of((rows, n), dtype)
                y.backward(g)
                near(x.grad, back @ weight, np.abs(back) @ np.abs(weight), f"gradient of {rows} rows")
        assert not left


@pytest.mark.parametrize("name", GROUPS)
def test_groups_are_read_by_products(name: str) -> None:
    kind = by_name(name)
    raw = blocks(name, 24, 256)
    weight, data = decoded(raw, name, np.float64), vt.from_numpy(raw).to("cuda")
    with cpu_fallbacks() as left:
        for rows in (2, 20):
            x, a = rows_of((rows, 256), vt.float32)
            near(ops._block_linear(x, data, None, kind, False), a @ weight.T, np.abs(a) @ np.abs(weight.T), f"{rows}")
        x, a = rows_of((3, 24), vt.float32)
        near(ops._block_matmul(x, data, kind), a @ weight, np.abs(a) @ np.abs(weight), "across")
        got = ops._block_embedding(vt.tensor([5, 0], device="cuda"), data, kind, vt.float64)
    assert not left
    np.testing.assert_array_equal(got.cpu().numpy(), weight[[5, 0]])


@pytest.mark.parametrize("name", words.PIECES)
@pytest.mark.parametrize("dtype", [vt.float32, vt.bfloat16, vt.float16], ids=str)
def test_words_are_read_whole_only_where_they_lie_so(name: str, dtype: Any) -> None:
    kind, n, k = by_name(name), 6, 512
    raw = blocks(name, n, k)
    weight = decoded(raw, name, np.float64)
    room = vt.zeros(n, raw.shape[1] + 2, dtype=vt.uint8, device="cuda")[:, 2:]
    room.copy_(vt.from_numpy(raw))
    wide, row = (vt.zeros(4, k + 8, dtype=dtype, device="cuda") for _ in range(2))
    seen: list[tuple[int, int]] = []
    call = kernels.Shared.__call__

    def noted(self: Any, out: Any, x: int, data: int, bias: int) -> None:
        seen.append((x, data))
        call(self, out, x, data, bias)

    with pytest.MonkeyPatch.context() as patch, cpu_fallbacks() as left:
        patch.setattr(kernels.Shared, "__call__", noted)
        for rows in (1, 3):
            x, a = rows_of((rows, k), dtype)
            for part in (x, wide[:rows, 1 : k + 1].copy_(x), row[:1, 3 : k + 3].copy_(x[:1]).expand(rows, k)):
                b = a if part.stride(0) else a[:1].repeat(rows, 0)
                for data in (vt.from_numpy(raw).to("cuda"), room):
                    y = ops._block_linear(part, data, None, kind, False)
                    near(y, b @ weight.T, np.abs(b) @ np.abs(weight.T), f"{rows} rows, {part.stride()}")
    assert not left
    assert len(seen) == 12
    assert not any(data % (4 if name in WHOLE else 2) for _, data in seen)
    assert dtype is vt.float32 or not any(x % 8 for x, _ in seen)


@pytest.mark.parametrize("name", ["q4_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k", "int4_g128", "int8_g64", "q2_k"])
@pytest.mark.parametrize("rows", [1, 2, 3, 70])
def test_every_way_to_a_product_gives_it(name: str, rows: int) -> None:
    """Ways are chosen by time where there is a GPU, so each is called here by itself."""
    format, n, k = FORMATS[name], 40, 512
    raw = blocks(name, n, k)
    weight, data = decoded(raw, name, np.float64), vt.from_numpy(raw).to("cuda")
    x, a = rows_of((rows, k), vt.bfloat16)
    bias, b = rows_of((n,), vt.bfloat16)
    want, scale = a @ weight.T + b, np.abs(a) @ np.abs(weight.T) + np.abs(b)
    for exact in (False, True):
        ways = products._ways(x._spec, k, rows, format, n, k, raw.shape[1], True, True, exact)
        kinds = {type(way).__name__ for way in ways}
        # What is rounded must not depend on what was timed.
        assert kinds == {"Rounded"} or "Rounded" not in kinds
        assert ("Rounded" in kinds) == (not exact and rows <= 2 and format.name in rounded.KINDS)
        if rows == 70:
            assert kinds == ({"Planes", "Decoded"} if name != "q2_k" else {"Tiles", "Decoded"})
        first: dict[str, Any] = {}
        for way in ways:
            first.setdefault(type(way).__name__, way)
        for way in first.values() if exact else ways:
            out = vt.full((rows, n), vt.nan, dtype=vt.bfloat16, device="cuda")
            way(out._data, x.data_ptr(), data.data_ptr(), bias.data_ptr())
            near(out, want, scale, type(way).__name__)


def test_rows_that_are_not_finite_stay_so_where_they_are_rounded() -> None:
    kind, raw = by_name("q4_k"), blocks("q4_k", 8, 512)
    data = vt.from_numpy(raw).to("cuda")
    for bad in (np.nan, np.inf):
        x = vt.ones(2, 512, dtype=vt.bfloat16, device="cuda")
        x[1, 37] = bad
        y = ops._block_linear(x, data, None, kind, False)
        assert y[0].isfinite().all().item()
        assert not y[1].isfinite().any().item()
    zero = ops._block_linear(vt.zeros(1, 512, dtype=vt.float16, device="cuda"), data, None, kind, False)
    assert zero.tolist() == [[0.0] * 8]


@pytest.mark.parametrize("how", LAYOUTS)
def test_blocks_and_rows_may_lie_anywhere(how: str) -> None:
    kind, raw = by_name("q4_1"), blocks("q4_1", 24, 64)
    raw = np.repeat(raw[:1], 24, 0) if how == "expanded" else raw
    weight = decoded(raw, "q4_1", np.float64)
    data = placed(raw, how, "cuda")
    assert how != "shifted" or data.data_ptr() % 2
    np.testing.assert_array_equal(ops._block_decode(data, kind, vt.float64).cpu().numpy(), weight)
    for shape in ((64,), (2, 1, 64), (2, 3, 64)):
        x, a = rows_of(shape, vt.float64, how if len(shape) > 1 else "")
        near(ops._block_linear(x, data, None, kind, True), a @ weight.T, np.abs(a) @ np.abs(weight.T), f"{shape}")
        x, a = rows_of((*shape[:-1], 24), vt.float64, how if len(shape) > 1 else "")
        near(ops._block_matmul(x, data, kind), a @ weight, np.abs(a) @ np.abs(weight), f"{shape}")
    index = placed(np.array([[3, 0, 3], [23, 1, 2]]), how, "cuda")
    got = ops._block_embedding(index, data, kind, vt.float64)
    np.testing.assert_array_equal(got.cpu().numpy(), weight[index.cpu().numpy()])


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_long_sums_are_shared_among_programs(rows: int) -> None:
    n, k, shared = 5, 8192, []
    raw = blocks("q8_0", n, k)
    weight = decoded(raw, "q8_0", np.float64)
    (x, a), (bias, b) = rows_of((rows, k), vt.float32), rows_of((n,), vt.float32)
    call = kernels.Shared.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels.Shared, "__call__", lambda self, *v: (shared.append(self.split), call(self, *v)))
        y = ops._block_linear(x, vt.from_numpy(raw).to("cuda"), bias, by_name("q8_0"), False)
    assert shared[0] > 1
    near(y, a @ weight.T + b, np.abs(a) @ np.abs(weight.T) + np.abs(b), "shared")


def test_empty_products_are_zero_or_the_bias() -> None:
    kind, data = by_name("q8_0"), vt.from_numpy(blocks("q8_0", 3, 32)).to("cuda")
    bias = vt.tensor([1.0, 2.0, 3.0], device="cuda")
    with cpu_fallbacks() as left:
        assert ops._block_linear(vt.zeros(0, 32, device="cuda"), data, bias, kind, False).shape == (0, 3)
        got = ops._block_linear(vt.zeros(2, 0, device="cuda"), data[:, :0], bias, kind, False)
        assert got.tolist() == [[1.0, 2.0, 3.0]] * 2
        assert ops._block_matmul(vt.zeros(2, 0, device="cuda"), data[:0], kind).tolist() == [[0.0] * 32] * 2
        assert ops._block_decode(data[:0], kind, vt.float32).shape == (0, 32)
        nothing = vt.zeros(0, dtype=vt.int64, device="cuda")
        assert ops._block_embedding(nothing, data, kind, vt.float32).shape == (0, 32)
    assert not left


def test_other_formats_are_computed_on_the_cpu_and_say_so() -> None:
    kind = by_name("iq2_xxs")
    raw = blocks("iq2_xxs", 3, 256)
    x, a = rows_of((2, 256), vt.float32)
    with cpu_fallbacks() as left:
        y = ops._block_linear(x, vt.from_numpy(raw).to("cuda"), None, kind, True)
    assert left == {"_block_linear"}
    weight = decoded(raw, "iq2_xxs", np.float64)
    assert y.device.type == "cuda"
    np.testing.assert_allclose(y.cpu().numpy(), a @ weight.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_beyond_the_table_is_an_error(index: int) -> None:
    data = vt.from_numpy(blocks("q8_0", 3, 32)).to("cuda")
    with pytest.raises(IndexError, match="embedding: an index is out of bounds for dimension 0 with size 3"):
        ops._block_embedding(vt.tensor([0, index], device="cuda"), data, by_name("q8_0"), vt.float32).cpu()
