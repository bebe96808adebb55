"""Varlen attention of the GPU: every sequence as scaled_dot_product_attention gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from tests.nn.varlen import CASES, WINDOWS, close, ends, given, one_by_one
from votive.core import dtype as dt
from votive.nn.attention.varlen import varlen_attn

from .device import EMULATED, cpu_fallbacks

LONG = [
    ([300, 1, 0, 129], [300, 64, 7, 500], 6, 2, 64, 64),
    ([257, 40], [130, 600], 2, 2, 128, 128),
    ([100, 70], [100, 70], 2, 1, 96, 256),
]
KINDS = [dt.float32, dt.bfloat16, dt.float64, dt.float16]


def check(case: Any, dtype: dt.dtype, window: tuple[int, int], place: Any = None) -> None:
    """Result and gradients, with positions that belong to no sequence, and nothing on the CPU."""
    tensors = given(case, dtype, over=3)
    q, k, v, g = (x.to("cuda") for x in tensors)
    if place is not None:
        q, k, v, g = (place(x) for x in (q, k, v, g))
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    where = ends(case[0], "cuda"), ends(case[1], "cuda", dt.int64)
    longest = max(case[0], default=0), max(case[1], default=0)
    with cpu_fallbacks() as left:
        out = varlen_attn(*leaves, *where, *longest, window_size=window, scale=0.4, enable_gqa=True)
        ours = [out, *votive.autograd.grad(out, leaves, g)]
    assert not left
    theirs = one_by_one(case, tensors, window, 0.4)
    for name, x, y in zip(("output", "query", "key", "value"), ours, theirs, strict=True):
        close(x, y, dtype, f"{name} of {case} {dtype} {window}")


@pytest.mark.parametrize("case", range(len(CASES)))
def test_each_sequence_is_attended_by_itself(case: int) -> None:
    for n, window in enumerate(WINDOWS):
        if EMULATED and n % 3 != case % 3:
            continue
        for dtype in KINDS if not EMULATED else (KINDS[(n + case) % 4],):
            check(CASES[case], dtype, window)


@pytest.mark.parametrize("case", range(len(LONG)))
def test_long_sequences_are_attended_by_themselves(case: int) -> None:
    if EMULATED:
        pytest.skip("too long for the interpreter")
    for window in [*WINDOWS[:2], (33, 0), (100, 65), (-1, 70), (70, -1)]:
        for dtype in KINDS:
            check(LONG[case], dtype, window)


def test_every_layout_agrees() -> None:
    for place in (
        lambda x: x.permute(2, 1, 0).contiguous().permute(2, 1, 0),
        lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
        lambda x: votive.cat([x, x], 2)[..., : x.shape[2]],
    ):
        check(CASES[0], dt.float32, (-1, 0), place)


def test_heads_wider_than_a_tile_are_served() -> None:
    check(([3, 2], [4, 2], 2, 1, 260, 257), dt.bfloat16, (-1, 0))


def test_wrong_ends_are_noticed() -> None:
    q = votive.ones(6, 2, 8, device="cuda")
    for numbers in ([0, 3, 7], [1, 3, 6], [0, 4, 2]):
        wrong = votive.tensor(numbers, dtype=dt.int32, device="cuda")
        with pytest.raises(ValueError, match="cu_seq_q must begin at 0"):
            varlen_attn(q, q, q, wrong, ends([3, 3], "cuda"), 6, 3).cpu()
    with pytest.raises(ValueError, match="longer than max_k"):
        varlen_attn(q, q, q, ends([3, 3], "cuda"), ends([2, 4], "cuda"), 3, 3).cpu()


def test_keys_in_use_are_read_on_the_device() -> None:
    q = votive.tensor(np.random.default_rng(0).normal(size=(6, 2, 8)), dtype=dt.float32)
    used = votive.tensor([2, 0], dtype=dt.int32)
    how: dict[str, Any] = {"window_size": (-1, 0), "seqused_k": used}
    theirs = varlen_attn(q, q, q, ends([3, 3], "cpu"), ends([3, 3], "cpu"), 3, 3, **how)
    how["seqused_k"] = used.to("cuda")
    x, where = q.to("cuda"), ends([3, 3], "cuda")
    ours = varlen_attn(x, x, x, where, where, 3, 3, **how)
    np.testing.assert_allclose(ours.cpu().numpy(), theirs.numpy(), atol=1e-5)
