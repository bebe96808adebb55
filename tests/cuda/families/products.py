"""Families of matrix products: attention, tokens of a text, bytes, blocks, small systems."""

from __future__ import annotations

from typing import Any

from .registry import family, tensor_of


@family
def attentions(vt: Any) -> None:
    attend = vt.nn.functional.scaled_dot_product_attention
    for dtype in ("bfloat16", "float16", "float32", "float64"):
        q = tensor_of(vt, 2, 4, 256, 64, dtype=dtype).requires_grad_()
        attend(q, q, q, is_causal=True).sum().backward()
        k = q.detach()[:, :2]
        attend(q.detach()[:, :, :1], k, k, enable_gqa=True)
    q, k = tensor_of(vt, 2, 4, 256, 64).requires_grad_(), tensor_of(vt, 2, 2, 256, 64).requires_grad_()
    attend(q, k, k, is_causal=True, enable_gqa=True).sum().backward()
    attend(q, q, q, dropout_p=0.1).sum().backward()
    mask = tensor_of(vt, 256, 256).requires_grad_()
    attend(q, q, q, mask).sum().backward()
    attend(q, q, q, mask.detach() > 0).sum().backward()
    wide = tensor_of(vt, 2, 2, 256, 320).requires_grad_()
    attend(wide, wide, wide).sum().backward()
    wide = tensor_of(vt, 2, 2, 256, 128)
    attend(wide, wide, wide, is_causal=True)
    ends = vt.zeros(4, dtype=vt.int32, device="cuda")
    for d in (4, 16, 32, 64, 128):
        q = tensor_of(vt, 2, 2, 256, d, dtype="float64").requires_grad_()
        attend(q, q, q, dropout_p=0.1).sum().backward()
        attend(q, q, q, vt.zeros(256, 256, dtype=vt.bool, device="cuda")).sum().backward()
        mask = tensor_of(vt, 256, 256, dtype="float64").requires_grad_()
        attend(q[:, :, :3], q, q, mask[:3]).sum().backward()
        x = tensor_of(vt, 512, 4, d, dtype="float64").requires_grad_()
        vt.nn.attention.varlen.varlen_attn(x, x, x, ends, ends, 256, 256).sum().backward()
    for shape in ((1, 1, 2, 4), (2, 2, 5, 3)):  # few queries, keys and features
        q = tensor_of(vt, *shape, dtype="float64").requires_grad_()
        attend(q, q, q, is_causal=True).sum().backward()
    x = tensor_of(vt, 512, 4, 64).requires_grad_()
    for window in ((-1, 0), (64, 0)):
        vt.nn.attention.varlen.varlen_attn(x, x, x, ends, ends, 256, 256, window_size=window).sum().backward()


@family
def attention_by_products(vt: Any) -> None:
    from unittest.mock import patch

    from votive.backends.cuda.kernels.attention import products

    with patch.object(products, "pays", lambda *args: True):
        for dtype in ("float32", "float64"):
            q = tensor_of(vt, 2, 4, 200, 48, dtype=dtype).requires_grad_()
            for how in ({"is_causal": True}, {"dropout_p": 0.1}, {"attn_mask": tensor_of(vt, 200, 200, dtype=dtype)}):
                vt.nn.functional.scaled_dot_product_attention(q, q, q, **how).sum().backward()


@family
def one_token(vt: Any) -> None:
    from votive.ops.registry import F as ops

    for dtype in ("bfloat16", "float32"):
        x, norm, w = (tensor_of(vt, *s, dtype=dtype) for s in ((1, 1, 512), (512,), (768, 512)))
        keys, at = tensor_of(vt, 1, 4, 128, 64, dtype=dtype), vt.zeros(1, dtype=vt.int64, device="cuda")
        table = tensor_of(vt, 128, 32, dtype="float32")
        ops._norm_linear(x, norm, 1e-6, [w, w], True)
        ops._linear_add(x, w, ops._norm_linear(x, norm, 1e-6, [w], False))
        qkv = tensor_of(vt, 1, 1, 16 * 64, dtype=dtype)
        counts = vt.zeros(4, dtype=vt.int32, device="cuda")
        ops._rotate_and_attend(qkv, norm[:64], norm[:64], 1e-6, table, table, keys, keys.clone(), at, counts, 8, 0.125)
        vt.nn.functional.linear(x, w)
    for rows in (8, 64):
        x, norm, w = (tensor_of(vt, *s) for s in ((rows, 1, 2048), (2048,), (768, 2048)))
        ops._norm_linear(x, norm, 1e-6, [w, w], True)
        ops._linear_add(x, w, ops._norm_linear(x, norm, 1e-6, [w], False))


@family
def whole_products(vt: Any) -> None:
    for dtype in (vt.int64, vt.uint8):
        x = vt.zeros(64, 64, dtype=dtype, device="cuda")
        x @ x
        vt.nn.functional.linear(x, x, x[0])
        vt.addmm(x, x, x, alpha=2)


@family
def passed_products(vt: Any) -> None:
    from votive.backends.cuda.kernels.matmul.tiles import TILES, Tiles

    x, w = tensor_of(vt, 1024, 512), tensor_of(vt, 512, 2048)
    for back in (False, True):
        Tiles(x._spec, w._spec, TILES[0], "gelu_tanh", back=back).program._load(True).function[0]
        columns = w.t().contiguous().t()._spec
        for tile in TILES:
            Tiles(x._spec, columns, tile, "gelu", back=back).program._load(True).function[0]


@family
def bytes_products(vt: Any) -> None:
    one, rows = tensor_of(vt, 1, dtype="float32"), tensor_of(vt, 256, 1, dtype="float32")
    for kind in (vt.float8_e4m3fn, vt.float8_e5m2):
        for other in (vt.int64, vt.uint8, vt.bool, vt.float64, vt.bfloat16):
            vt.empty(100, device="cuda", dtype=other).to(kind).to(other)
    for kind in ("float8_e4m3fn", "float8_e5m2"):
        x = tensor_of(vt, 256, 512, dtype=kind)
        for w in (x.t(), x.t().contiguous()):
            vt._scaled_mm(x, w, one, one, out_dtype=vt.bfloat16)
        vt._scaled_mm(x, x.t(), rows, rows.t(), one.expand(256), out_dtype=vt.float32)
        vt._scaled_mm(x, x.t(), one, one, scale_result=one, use_fast_accum=True)
    x = tensor_of(vt, 256, 512, dtype="int8")
    vt._int_mm(x, x.t())
    vt._int_mm(x, x.t().contiguous())
    vt._int_mm(x.view(vt.uint8), x.t())


@family
def products(vt: Any) -> None:
    from votive.ops.registry import F as ops

    for dtype in ("bfloat16", "float32", "float64"):
        x, w, b = (tensor_of(vt, *s, dtype=dtype) for s in ((256, 512), (384, 512), (384,)))
        x @ w.t()
        for name in ("relu", "gelu", "gelu_tanh", "silu") if dtype == "bfloat16" else ("gelu",):
            y = ops._linear_activated(x, w, b, name)
            ops._linear_activated(x[:1], w, b, name)
            ops._linear_slope(x, w.t(), y, name)
            ops._feed_forward(x, w, b, w.t(), x[0], name)
        ops._linear_gradients(y, x, False)
        ops._linear_gradients(y, x, True)
        vt.addmm(b, x, w.t(), beta=2)


@family
def pivots(vt: Any) -> None:
    for n in (64, 4096):
        vt.lu_unpack(tensor_of(vt, 2, n, n, dtype="float32"), tensor_of(vt, 2, n, dtype="int32"), False)
    vt.lu_unpack(tensor_of(vt, 2, n, n, dtype="float32"), tensor_of(vt, 2, n, dtype="int32"))


@family
def quantized(vt: Any) -> None:
    from votive.core.blocks import by_name
    from votive.ops.registry import F as ops

    for name, dtype, counts in (
        ("q4_k", "bfloat16", (1, 8, 64)),
        ("q6_k", "float32", (4,)),
        ("q5_0", "float16", (8,)),
        ("q4_1", "float64", (8,)),
    ):
        kind = by_name(name)
        data = vt.zeros(64, kind.row_bytes(512), dtype=vt.uint8, device="cuda")
        for rows in counts:
            ops._block_linear(tensor_of(vt, rows, 512, dtype=dtype), data, None, kind, False)
        ops._block_matmul(tensor_of(vt, 8, 64, dtype=dtype), data, kind)
