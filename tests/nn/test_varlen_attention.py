"""votive.nn.attention.varlen: every sequence as scaled_dot_product_attention gives it."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import votive
from tests.native.compare import agree
from votive.core import dtype as dt
from votive.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out
from votive.ops.registry import F

from .varlen import CASES, WINDOWS, close, ends, given, normal, one_by_one


def _run(case: Any, tensors: list[Any], **options: Any) -> list[Any]:
    q, k, v = (x.detach().requires_grad_() for x in tensors[:3])
    longest = max(case[0], default=0), max(case[1], default=0)
    out = varlen_attn(q, k, v, ends(case[0], "cpu"), ends(case[1], "cpu"), *longest, enable_gqa=True, **options)
    return [out, *votive.autograd.grad(out, (q, k, v), tensors[3])]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("case", CASES)
def test_each_sequence_is_attended_by_itself(case: Any, window: tuple[int, int]) -> None:
    for dtype in (dt.float64, dt.float32, dt.bfloat16):
        tensors = given(case, dtype, over=2)
        ours = _run(case, tensors, window_size=window, scale=0.7)
        theirs = one_by_one(case, tensors, window, 0.7)
        for name, x, y in zip(("output", "query", "key", "value"), ours, theirs, strict=True):
            close(x, y, dtype, f"{name} {dtype}")


def test_the_native_kernel_is_the_reference() -> None:
    for case in CASES:
        q, k, v, g = given(case, dt.float64, over=1)
        where = ends(case[0], "cpu"), ends(case[1], "cpu")
        for left, right in WINDOWS:
            agree(lambda: F._varlen_attention(q, k, v, *where, None, 99, 99, 0.5, left, right))  # noqa: B023
            out, lse = F._varlen_attention(q, k, v, *where, None, 99, 99, 0.5, left, right)
            how = (out, lse, 99, 99, 0.5, left, right)
            agree(lambda: F._varlen_attention_backward(g, lse, q, k, v, *where, *how))  # noqa: B023


def test_gradients_of_gradients_agree_with_finite_differences() -> None:
    case = CASES[0]
    tensors = [x[:5] for x in given(case, dt.float64)[:3]]
    where = votive.tensor([0, 3, 5], dtype=dt.int32)

    def fn(*given: Any) -> Any:
        aux = AuxRequest(lse=True)
        out, lse = varlen_attn(*given, where, where, 3, 3, return_aux=aux, window_size=(-1, 0), enable_gqa=True)
        return out.sum() + (out * out).sum() + (lse * lse).sum()

    inputs = [x.detach().requires_grad_() for x in tensors]
    assert votive.autograd.gradcheck(fn, inputs)
    assert votive.autograd.gradgradcheck(fn, inputs)


def test_the_log_sum_exp_has_a_row_for_each_head() -> None:
    case = CASES[0]
    q, k, v, _ = given(case, dt.float16)
    where = ends(case[0], "cpu")
    options = {"enable_gqa": True, "return_aux": AuxRequest(lse=True)}
    out, lse = varlen_attn(q, k, v, where, where, 7, 7, **options)
    assert (lse.shape, lse.dtype) == ((4, 11), dt.float32)
    scores = (q[:3, 0].float() @ k[:3, 0].float().t()) / math.sqrt(8)
    np.testing.assert_allclose(lse[0, :3].numpy(), scores.logsumexp(1).numpy(), rtol=1e-4)
    assert isinstance(varlen_attn(q, k, v, where, where, 7, 7, enable_gqa=True), votive.Tensor)
    room = votive.empty(11, 4, 8, dtype=dt.float16)
    made = varlen_attn_out(room, q, k, v, where, where, 7, 7, enable_gqa=True)
    assert made is room
    np.testing.assert_array_equal(room.numpy(), out.numpy())


def test_keys_in_use_and_pages_say_what_is_seen() -> None:
    q = normal(0, 5, 2, 4, dtype=dt.float64)
    pool = [normal(s, 6, 3, 2, 4, dtype=dt.float64) for s in (1, 2)]
    table = votive.tensor([[4, 0], [5, 2]], dtype=dt.int32)
    used = votive.tensor([4, 2], dtype=dt.int32)
    where = ends([2, 3], "cpu")
    paged = varlen_attn(q, *pool, where, None, 3, 6, window_size=(-1, 0), seqused_k=used, block_table=table)
    k, v = (votive.cat([x[4], x[0], x[5], x[2]]) for x in pool)
    slots = ends([6, 6], "cpu")
    kept = varlen_attn(q, k, v, where, slots, 3, 6, window_size=(-1, 0), seqused_k=used)
    k, v = (votive.cat([x[:4], x[6:8]]) for x in (k, v))
    plain = varlen_attn(q, k, v, where, ends([4, 2], "cpu"), 3, 4, window_size=(-1, 0))
    np.testing.assert_allclose(paged.numpy(), plain.numpy(), atol=1e-12)
    np.testing.assert_allclose(kept.numpy(), plain.numpy(), atol=1e-12)


def test_wrong_arguments_are_named() -> None:
    q, k, v, _ = given(CASES[0], dt.float32)
    where = ends(CASES[0][0], "cpu")

    def fails(kind: type[Exception], text: str, *args: Any, **options: Any) -> None:
        with pytest.raises(kind, match=text):
            varlen_attn(*args, **options)

    fails(ValueError, "use enable_gqa=True", q, k, v, where, where, 7, 7)
    fails(ValueError, "do not divide", q[:, :3], k, v, where, where, 7, 7, enable_gqa=True)
    shared: dict[str, Any] = {"enable_gqa": True}
    fails(ValueError, "max_q is 6, but a sequence has 7", q, k, v, where, where, 6, 7, **shared)
    fails(ValueError, "must begin at 0", q, k, v, where + 1, where, 7, 7, **shared)
    fails(ValueError, "end within 11", q, k, v, where * 2, where, 20, 7, **shared)
    fails(RuntimeError, "int32", q, k, v, where.float(), where, 7, 7, **shared)
    fails(RuntimeError, "one more number", q, k, v, where[1:], where, 7, 7, **shared)
    fails(ValueError, "left, right", q, k, v, where, where, 7, 7, window_size=(1,), **shared)
    fails(ValueError, "counts keys", q, k, v, where, where, 7, 7, window_size=(-2, 0), **shared)
    fails(ValueError, "block_table", q, k, v, where, None, 7, 7, **shared)
    fails(ValueError, "num_splits", q, k, v, where, where, 7, 7, num_splits=0, **shared)
    fails(TypeError, "query must be a Tensor", 1, k, v, where, where, 7, 7, **shared)
    used = votive.tensor([1, 1, 1], dtype=dt.int32)
    inference = {"seqused_k": used, **shared}
    fails(RuntimeError, "inference", q.requires_grad_(), k, v, where, where, 7, 7, **inference)


def test_the_arguments_are_those_of_torch() -> None:
    theirs = pytest.importorskip("torch.nn.attention.varlen", reason="needs torch")
    for name in ("varlen_attn", "varlen_attn_out"):
        ours = inspect.signature(getattr(votive.nn.attention.varlen, name)).parameters
        them = inspect.signature(getattr(theirs, name)).parameters
        assert [(p.name, p.kind, p.default) for p in ours.values()] == [
            (p.name, p.kind, p.default) for p in them.values()
        ]
    assert AuxRequest._field_defaults == theirs.AuxRequest._field_defaults
