"""Caches of few bits on the GPU: the bytes and the numbers of the CPU, without leaving the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.nn.rounding import FORMATS
from tests.nn.test_quantized_cache import hard
from votive import nn
from votive.nn import functional as F
from votive.nn.layers.kv_storage import row_format
from votive.ops.registry import F as ops
from votive.surface.block_attention import rows_as_blocks

from .device import cpu_fallbacks

pytest.importorskip("triton", reason="needs Triton")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16], ids=str)
def test_rows_are_written_and_read_as_on_the_cpu(name: str, dtype: Any) -> None:
    x = votive.from_numpy(hard(64)).clamp(-60000, 60000).to(dtype)
    kind = row_format(name, 64)
    want = ops._block_encode(x, kind)
    with cpu_fallbacks() as left:
        got = rows_as_blocks(x.to("cuda"), kind)
        numbers = ops._block_decode(got, kind, dtype)
    assert not left
    # A GPU may flush the smallest of all numbers, which are below what any format tells from zero.
    differ = (got.cpu() != want).any(-1)
    assert not bool(differ[[0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11]].any())
    same = ops._block_decode(want, kind, dtype)
    np.testing.assert_array_equal(numbers.cpu().float().numpy()[7:], same.float().numpy()[7:])


def test_a_cache_on_the_gpu_gives_what_one_on_the_cpu_gives() -> None:
    votive.manual_seed(0)
    q, k, v = (votive.randn(2, heads, 5, 64) for heads in (4, 2, 2))
    with votive.no_grad(), cpu_fallbacks() as left:
        results = []
        for device in ("cpu", "cuda"):
            cache = nn.DynamicCache(overwrite=True, dtype=("q8_0", "int8"))
            a, b, c = (x.to(device) for x in (q, k, v))
            cache.update(b[:, :, :2], c[:, :, :2])
            keys, values = cache.update(b[:, :, 2:], c[:, :, 2:])
            y = F.scaled_dot_product_attention(a, keys, values, is_causal=True, enable_gqa=True)
            assert y.device.type == device
            results.append(y.cpu().numpy())
    assert not left
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-6)
