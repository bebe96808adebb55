"""One token at a time on the GPU: the fused operators against the CPU, and a whole decoder."""

from __future__ import annotations

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive.generation.graphs import GraphStepper
from votive.generation.preparing import prepare
from votive.generation.stepping import DecoderStepper, Wanted
from votive.models import Qwen3Config, Qwen3ForCausalLM
from votive.models.fused_decoder import FusedDecoder
from votive.ops.registry import OPS
from votive.ops.registry import F as ops

from .device import EMULATED, cpu_fallbacks

TYPES = [("float32", 1e-5), ("bfloat16", 3e-2)]


def _close(got, want, tolerance):
    got, want = (v.detach().cpu().float().numpy() for v in (got, want))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def _pair(*shape, dtype):
    x = (votive.randn(*shape) / 2).to(dtype)
    return x, x.to("cuda")


@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
@pytest.mark.parametrize("sizes", [(24, 8, 8), (7,), (40, 8)])
def test_normed_products(dtype, tolerance, sizes, monkeypatch):
    from votive.backends.cuda.kernels.decoding import products as decoding

    monkeypatch.setattr(decoding, "LARGE", 40)
    votive.manual_seed(0)
    dtype = getattr(votive, dtype)
    x, cx = _pair(2, 1, 20, dtype=dtype)
    norm, cnorm = _pair(20, dtype=dtype)
    w, cw = zip(*(_pair(n, 20, dtype=dtype) for n in sizes), strict=True)
    for gated in (False, True) if len(sizes) == 3 else (False,):
        a, b = (list(v[:2] if gated else v) for v in (w, cw))
        if gated:
            a, b = [a[0], a[0] * 2], [b[0], b[0] * 2]
        got = ops._norm_linear(cx, cnorm, 1e-6, b, gated)
        _close(got, ops._norm_linear(x, norm, 1e-6, a, gated), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
@pytest.mark.parametrize("width", [20, 9000])
def test_products_that_are_added(dtype, tolerance, width):
    votive.manual_seed(1)
    dtype = getattr(votive, dtype)
    x, cx = _pair(1, 1, width, dtype=dtype)
    w, cw = _pair(6, width, dtype=dtype)
    r, cr = _pair(1, 1, 6, dtype=dtype)
    scale = width**-0.5
    _close(ops._linear_add(cx * scale, cw, cr), ops._linear_add(x * scale, w, r), tolerance)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    ("rows", "width", "sizes"),
    [(2, 40, (48, 16, 16)), (8, 64, (7,)), (17, 72, (33,)), (3, 520, (32,)), (64, 24, (20,))],
)
def test_products_of_several_rows_read_weights_once(dtype, rows, width, sizes):
    votive.manual_seed(4)
    dtype = getattr(votive, dtype)
    x, cx = _pair(rows, 1, width, dtype=dtype)
    norm, cnorm = _pair(width, dtype=dtype)
    w, cw = zip(*(_pair(n, width, dtype=dtype) for n in sizes), strict=True)
    r, cr = _pair(rows, 1, sizes[0], dtype=dtype)
    with cpu_fallbacks() as left:
        got = [
            ops._norm_linear(cx, cnorm, 1e-6, list(cw), False),
            ops._norm_linear(cx, cnorm, 1e-6, [cw[0], cw[0] * 2], True),
            ops._linear_add(cx, cw[0], cr),
        ]
    assert not left
    want = [
        ops._norm_linear(x, norm, 1e-6, list(w), False),
        ops._norm_linear(x, norm, 1e-6, [w[0], w[0] * 2], True),
        ops._linear_add(x, w[0], r),
    ]
    for a, b in zip(got, want, strict=True):
        _close(a, b, 2**-6 * max(1.0, float(b.float().abs().max())))


def test_sums_that_programs_share_are_whole(monkeypatch):
    from votive.backends.cuda.kernels.decoding import streamed

    tiles = ((16, 32, 4, 3, True),) * 2
    monkeypatch.setattr(streamed, "PLAIN", tiles)
    monkeypatch.setattr(streamed, "GATED", tiles)
    monkeypatch.setattr(streamed, "PROGRAMS", 99)
    for name in ("_norm_linear", "_linear_add"):
        OPS[name].forget()
    votive.manual_seed(5)
    x, cx = _pair(3, 1, 1024, dtype=votive.bfloat16)
    norm, cnorm = _pair(1024, dtype=votive.bfloat16)
    w, cw = _pair(48, 1024, dtype=votive.bfloat16)
    r, cr = _pair(3, 1, 48, dtype=votive.bfloat16)
    graph = votive.cuda.CUDAGraph()
    for _ in range(3):  # counters are as they were
        _close(ops._linear_add(cx, cw, cr), ops._linear_add(x, w, r), 0.2)
        _close(ops._norm_linear(cx, cnorm, 1e-6, [cw, cw], True), ops._norm_linear(x, norm, 1e-6, [w, w], True), 2.0)
    with votive.cuda.graph(graph):
        kept = ops._linear_add(cx, cw, cr)
    for _ in range(3):
        graph.replay()
        _close(kept, ops._linear_add(x, w, r), 0.2)
    for name in ("_norm_linear", "_linear_add"):
        OPS[name].forget()


@pytest.mark.parametrize(("dtype", "tolerance"), TYPES)
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(("heads", "width", "length"), [(2, 16, 10), (6, 24, 200)])
def test_a_token_sees_those_before_it(dtype, tolerance, normed, heads, width, length):
    votive.manual_seed(2)
    dtype, shared, batch = getattr(votive, dtype), 2, 1
    rope = votive.nn.RotaryEmbedding(width)
    rope.angles(length)
    keys, ckeys = _pair(batch, shared, length, width, dtype=dtype)
    values, cvalues = _pair(batch, shared, length, width, dtype=dtype)
    counts = votive.zeros(batch * shared, dtype=votive.int32)
    ccounts = counts.to("cuda")
    norms = [_pair(width, dtype=dtype) if normed else (None, None) for _ in range(2)]
    for at in (0, 1, 5, length // 2, length - 1):
        qkv, cqkv = _pair(batch, 1, (heads + 2 * shared) * width, dtype=dtype)
        want = ops._rotate_and_attend(
            qkv,
            norms[0][0],
            norms[1][0],
            1e-6,
            rope.cos,
            rope.sin,
            keys,
            values,
            votive.tensor([at]),
            counts,
            heads,
            width**-0.5,
        )
        got = ops._rotate_and_attend(
            cqkv,
            norms[0][1],
            norms[1][1],
            1e-6,
            rope.cos.to("cuda"),
            rope.sin.to("cuda"),
            ckeys,
            cvalues,
            votive.tensor([at], device="cuda"),
            ccounts,
            heads,
            width**-0.5,
        )
        _close(got, want, tolerance)
        _close(ckeys, keys, tolerance)
        assert votive.equal(cvalues.cpu(), values)
        assert not ccounts.cpu().any()


def test_a_fused_decoder_says_what_the_model_says():
    votive.manual_seed(3)
    config = Qwen3Config(
        **tiny_sizes.transformer(16, 24, layers=2, heads=2, vocab=9, kv_heads=1),
        head_dim=16,
        max_position_embeddings=128,
    )
    with votive.device("cuda"), votive.no_grad():
        model = Qwen3ForCausalLM(config).eval()
        ids = votive.randint(0, 9, (1, 9))
        cache = votive.nn.StaticCache(100)
        model(ids[:, :6], past_key_values=cache, use_cache=True)
        fused = FusedDecoder.of(model)
        want = model(ids).logits
        for at in range(6, 9):
            got = fused.step(ids[:, at : at + 1], votive.tensor([at]), cache)
            _close(got[:, 0], want[:, at], 2e-5)


def _tiny():
    config = Qwen3Config(
        **tiny_sizes.transformer(16, 24, layers=1, heads=2, vocab=9, kv_heads=1),
        head_dim=16,
        max_position_embeddings=128,
    )
    with votive.device("cuda"):
        return Qwen3ForCausalLM(config).eval(), votive.tensor([[1, 2, 3]])


def _prepared(model, ids, **settings):
    config = votive.generation.GenerationConfig(**settings).resolved()
    wanted = Wanted(attentions=True) if settings.get("output_attentions") else None
    task = prepare(model, ids, config=config, wanted=wanted)
    return type(task.stepper), type(task.stepper.cache)


def test_a_step_is_recorded_where_that_pays_and_nobody_looks():
    model, ids = _tiny()
    recorded = GraphStepper, votive.nn.StaticCache
    stepped = DecoderStepper, votive.nn.DynamicCache
    assert _prepared(model, ids, max_new_tokens=40) == recorded
    assert _prepared(model, ids, max_new_tokens=4) == stepped
    assert _prepared(model, ids, max_new_tokens=40, num_beams=2) == stepped
    assert _prepared(model, ids, max_new_tokens=40, cache_implementation="dynamic") == stepped
    handle = model.model.register_forward_hook(lambda *_: None)
    assert _prepared(model, ids, max_new_tokens=40) == stepped
    handle.remove()
    assert _prepared(model.cpu(), ids.cpu(), max_new_tokens=40) == stepped


@pytest.mark.skipif(EMULATED, reason="takes too long on an emulated GPU")
def test_recorded_steps_say_the_same_tokens():
    model, ids = _tiny()
    ask = {"max_new_tokens": 40, "do_sample": False}
    recorded = model.generate(ids, **ask)
    assert votive.equal(recorded, model.generate(ids, cache_implementation="dynamic", **ask))
