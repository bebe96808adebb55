"""Work that makes each family of kernels compile: a few layouts and dtypes, at real sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FAMILIES: dict[str, Callable[[Any], None]] = {}


def family(fn: Callable[[Any], None]) -> Callable[[Any], None]:
    FAMILIES[fn.__name__] = fn
    return fn


def _of(vt: Any, *shape: int, dtype: str = "bfloat16") -> Any:
    return vt.empty(*shape, dtype=getattr(vt, dtype), device="cuda")


@family
def pointwise(vt: Any) -> None:
    for dtype in ("bfloat16", "float32"):
        x = _of(vt, 256, 4096, dtype=dtype)
        vt.nn.functional.gelu(x)
        x.t() + x.t().contiguous()
        x[:, ::2] * 2
    x.to(vt.int64)
    for fn in (vt.lgamma, vt.digamma, vt.special.log_ndtr):
        fn(x)
    vt.gcd(x.to(vt.int64), x.to(vt.int32))
    vt.eq(x, x[0])


@family
def special(vt: Any) -> None:
    x = _of(vt, 4096, dtype="float32")
    vt.polygamma(2, x)
    vt.igamma(x, x)
    for name in ("bessel_y1", "i1e", "modified_bessel_k0", "airy_ai"):
        getattr(vt.special, name)(x)
    for name in ("zeta", "chebyshev_polynomial_u", "legendre_polynomial_p"):
        getattr(vt.special, name)(x, x)


@family
def filling(vt: Any) -> None:
    _of(vt, 64, 4096)[:, 1:].fill_(3)
    _of(vt, 4096, dtype="float32").fill_(0.5)
    vt.arange(1000, device="cuda")
    vt.arange(1000.0, device="cuda", dtype=vt.bfloat16)
    vt.linspace(0, 1, 100, device="cuda")
    vt.eye(64, device="cuda")


@family
def moving(vt: Any) -> None:
    x = _of(vt, 8, 64, 512)
    vt.tril(x)
    vt.flip(x, (1,))
    vt.roll(x, (3, 5), (1, 2))
    for mode in ("constant", "reflect", "replicate", "circular"):
        vt.nn.functional.pad(x, (1, 2), mode)
    vt.cat([x, x], 1)
    vt.stack([x, x], 2)


@family
def indexing(vt: Any) -> None:
    x, i = _of(vt, 512, 1024), vt.zeros(64, dtype=vt.int64, device="cuda")
    x[i]
    x[i, i]
    x[:, i]
    vt.index_select(x, 1, i)
    vt.gather(x, 1, vt.zeros(512, 8, dtype=vt.int64, device="cuda"))
    vt.take(x, i)
    x[i] = x[:64]
    for dtype in ("bfloat16", "float32", "int64"):
        y = _of(vt, 512, 1024, dtype=dtype)
        y.index_put_((i,), y[:64], accumulate=True)
        y.index_add_(0, i, y[:64])
        y.scatter_add_(1, vt.zeros(512, 8, dtype=vt.int64, device="cuda"), y)
    y.scatter_(1, vt.zeros(512, 8, dtype=vt.int64, device="cuda"), y)
    vt.nn.functional.embedding(i, x)
    w = _of(vt, 512, 1024, dtype="float32").requires_grad_()
    vt.nn.functional.embedding(i, w, padding_idx=1, scale_grad_by_freq=True).backward(w[:64].detach())


@family
def extremes(vt: Any) -> None:
    for dtype in ("bfloat16", "int64", "float64"):
        x = _of(vt, 256, 4096, dtype=dtype)
        x.amax(1)
        x.argmax(1)
        x.min(0)
    _of(vt, 1, 100_000).argmax(1)
    x.var(1)
    x.std()


@family
def odd_sizes(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32"):
        x = _of(vt, 1653, 4051, dtype=dtype)
        x.exp() * x
        x.t().contiguous()
        vt.full_like(x, 0.3)
        F.dropout(x, 0.5)
        for y in (x, x.t(), _of(vt, 3, 500_001, dtype=dtype), _of(vt, 500_001, 3, dtype=dtype)):
            for dim in (0, 1):
                y.sum(dim), y.std(dim), y.max(dim), y.logsumexp(dim)
                leaf = y.detach().requires_grad_()
                F.log_softmax(leaf, dim).backward(y)
        vt.cat([x, x[:, :7], x], 1)
        vt.stack([x[:9]] * 40, 1)


@family
def scans(vt: Any) -> None:
    for dtype in ("bfloat16", "float64"):
        for n in (4096, 100_000):
            x = _of(vt, 4, n, dtype=dtype)
            x.cumsum(1)
            x.cumprod(1)
            x.logcumsumexp(1)
            x.cummax(1)
    _of(vt, 4, 100_000, dtype="int32").cummin(1)


@family
def sorting(vt: Any) -> None:
    for dtype in ("bfloat16", "int64"):
        x = _of(vt, 4, 50_000, dtype=dtype)
        x.sort(1)
        x.topk(50, 1)
        x.median(1)
    _of(vt, 1 << 20, dtype="float32").sort(descending=True)
    for dtype in ("bfloat16", "float32", "int64"):
        _of(vt, 4, 400, dtype=dtype).sort(1)
    _of(vt, 8, 4000).kthvalue(7, 1)
    _of(vt, 8, 40).median(1)
    vt.searchsorted(x, x)
    vt.bucketize(_of(vt, 1000), _of(vt, 100))


@family
def convolutions(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32", "float64"):
        x = _of(vt, 8, 64, 32, 32, dtype=dtype)
        for w, groups in ((_of(vt, 64, 64, 3, 3, dtype=dtype), 1), (_of(vt, 64, 1, 3, 3, dtype=dtype), 64)):
            w.requires_grad_()
            F.conv2d(x.detach().requires_grad_(), w, padding=1, groups=groups).sum().backward()
        F.conv2d(x.to(memory_format=vt.channels_last), w, stride=2, groups=64)
        last = x.to(memory_format=vt.channels_last).requires_grad_()
        F.conv2d(last, _of(vt, 64, 64, 3, 3, dtype=dtype).requires_grad_(), stride=2, padding=1).sum().backward()


@family
def little_convolutions(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32", "float64"):
        x, w = _of(vt, 13, 3, 45, dtype=dtype), _of(vt, 64, 3, 3, dtype=dtype)
        F.conv1d(x, w, _of(vt, 64, dtype=dtype))
        F.conv_transpose1d(_of(vt, 5, 64, 1, dtype=dtype), w)
        F.conv2d(_of(vt, 2, 20, 7, 7, dtype=dtype), _of(vt, 8, 20, 3, 3, dtype=dtype), padding=1)
        F.conv_transpose3d(_of(vt, 2, 20, 3, 4, 4, dtype=dtype), _of(vt, 20, 7, 3, 3, 3, dtype=dtype), stride=2)


@family
def batch_norms(vt: Any) -> None:
    x = _of(vt, 8, 64, 32, 32).requires_grad_()
    norm = vt.nn.BatchNorm2d(64, device="cuda", dtype=vt.bfloat16)
    norm(x).sum().backward()
    vt.nn.functional.group_norm(x, 8).sum().backward()
    running = [_of(vt, 64), _of(vt, 64)]
    vt.nn.functional.instance_norm(x, *running)


@family
def small_batches(vt: Any) -> None:
    for dtype in ("bfloat16", "float64"):
        x = _of(vt, 8, 16, 7, dtype=dtype)
        vt.nn.BatchNorm1d(16, device="cuda", dtype=x.dtype)(x)
        vt.cat([x.mT, x.mT], 1)
        vt.nn.functional.dropout(x.mT, 0.5)
        for draw in ("uniform_", "normal_", "exponential_", "cauchy_", "random_"):
            getattr(x.mT, draw)()
        x.mT.geometric_(0.5)
        vt.bernoulli(x.mT.contiguous())
        vt.bernoulli(x.mT)


@family
def pools(vt: Any) -> None:
    F = vt.nn.functional
    x = _of(vt, 4, 16, 32, 32).requires_grad_()
    F.max_pool2d(x, 3, 2, 1).sum().backward()
    F.avg_pool2d(x, 3, 2, 1).sum().backward()
    F.adaptive_avg_pool2d(x, 7).sum().backward()
    F.adaptive_max_pool2d(x, 7).sum().backward()
    F.max_pool2d(x.detach(), 2)
    last = x.detach().permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    for y in (x, last):  # large windows
        F.adaptive_avg_pool2d(y, 3)
        F.adaptive_avg_pool2d(y, 2)
        F.adaptive_max_pool2d(y, 3).sum()
        F.avg_pool2d(y, 9, 4, 2, divisor_override=3)
        F.max_pool2d(y.detach().double(), 9, 4, 2)
    F.interpolate(last, size=(20, 40), mode="bicubic")
    F.fractional_max_pool2d(x.detach(), 2, output_size=9)
    F.avg_pool2d(vt.zeros(1, 2, 8, 8, dtype=vt.int64, device="cuda"), 2)
    F.interpolate(x, scale_factor=2, mode="bilinear").sum().backward()
    F.interpolate(x, scale_factor=2)
    F.fold(F.unfold(x, 3), (32, 32), 3)


@family
def sets(vt: Any) -> None:
    x, i = _of(vt, 64, 512, dtype="float32"), vt.zeros(64, 512, dtype=vt.int64, device="cuda")
    vt.scatter_reduce(x, 1, i, x, "amax")
    F = vt.nn.functional
    F.embedding_bag(i, x)


@family
def points(vt: Any) -> None:
    x, i = _of(vt, 300, 16, dtype="float32"), vt.zeros(300, dtype=vt.int64, device="cuda")
    vt.cdist(x, x)
    vt.cdist(x, x, p=3.0)
    vt.cross(x[:, :3], x[:, 3:6], 1)
    vt.isin(i, i)
    vt.searchsorted(x[:, 0], x[:, 1], sorter=i)
    vt.histogramdd(x[:, :2], bins=[4, 5], range=[0.0, 1.0, 0.0, 1.0])
    vt.mode(x, 0)
    vt.combinations(i[:10], 3)
    vt.frexp(x)
    for dtype in ("float32", "bfloat16"):
        y = x.to(getattr(vt, dtype))
        vt.nextafter(y, y)
        vt.scatter_reduce(y, 0, i[:, None], y, "prod")
    vt.as_strided(x.requires_grad_(), (3, 3), (1, 1)).sum().backward()
    offsets = vt.zeros(4, dtype=vt.int64, device="cuda")
    vt.nn.functional.embedding_bag(i, x, offsets, mode="max")


@family
def alignments(vt: Any) -> None:
    from votive.ops.registry import F as ops

    for n in (20, 600):
        x = _of(vt, 50, 4, 30, dtype="float32")
        lengths = vt.zeros(4, dtype=vt.int64, device="cuda")
        targets = vt.zeros(4, n, dtype=vt.int64, device="cuda")
        ops._ctc_loss(x, targets, lengths, lengths, 0, False)
        ops._ctc_loss_backward(x[0, :, 0], x, targets, lengths, lengths, 0, False)


@family
def losses(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32"):
        x = _of(vt, 64, 5000, dtype=dtype).requires_grad_()
        F.cross_entropy(x, vt.zeros(64, dtype=vt.int64, device="cuda")).backward()


@family
def norms(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32"):
        x, w = _of(vt, 64, 768, dtype=dtype).requires_grad_(), _of(vt, 768, dtype=dtype)
        w.requires_grad_()
        F.layer_norm(x, (768,), w, w).sum().backward()
        F.rms_norm(x, (768,), w).sum().backward()


@family
def attentions(vt: Any) -> None:
    attend = vt.nn.functional.scaled_dot_product_attention
    for dtype in ("bfloat16", "float16", "float32", "float64"):
        q = _of(vt, 2, 4, 256, 64, dtype=dtype).requires_grad_()
        attend(q, q, q, is_causal=True).sum().backward()
        k = q.detach()[:, :2]
        attend(q.detach()[:, :, :1], k, k, enable_gqa=True)
    q, k = _of(vt, 2, 4, 256, 64).requires_grad_(), _of(vt, 2, 2, 256, 64).requires_grad_()
    attend(q, k, k, is_causal=True, enable_gqa=True).sum().backward()
    attend(q, q, q, dropout_p=0.1).sum().backward()
    mask = _of(vt, 256, 256).requires_grad_()
    attend(q, q, q, mask).sum().backward()
    attend(q, q, q, mask.detach() > 0).sum().backward()
    wide = _of(vt, 2, 2, 256, 320).requires_grad_()
    attend(wide, wide, wide).sum().backward()
    wide = _of(vt, 2, 2, 256, 128)
    attend(wide, wide, wide, is_causal=True)
    ends = vt.zeros(4, dtype=vt.int32, device="cuda")
    for d in (4, 16, 32, 64, 128):
        q = _of(vt, 2, 2, 256, d, dtype="float64").requires_grad_()
        attend(q, q, q, dropout_p=0.1).sum().backward()
        attend(q, q, q, vt.zeros(256, 256, dtype=vt.bool, device="cuda")).sum().backward()
        mask = _of(vt, 256, 256, dtype="float64").requires_grad_()
        attend(q[:, :, :3], q, q, mask[:3]).sum().backward()
        x = _of(vt, 512, 4, d, dtype="float64").requires_grad_()
        vt.nn.attention.varlen.varlen_attn(x, x, x, ends, ends, 256, 256).sum().backward()
    for shape in ((1, 1, 2, 4), (2, 2, 5, 3)):  # few queries, keys and features
        q = _of(vt, *shape, dtype="float64").requires_grad_()
        attend(q, q, q, is_causal=True).sum().backward()
    x = _of(vt, 512, 4, 64).requires_grad_()
    for window in ((-1, 0), (64, 0)):
        vt.nn.attention.varlen.varlen_attn(x, x, x, ends, ends, 256, 256, window_size=window).sum().backward()


@family
def attention_by_products(vt: Any) -> None:
    from unittest.mock import patch

    from votive.backends.cuda.kernels.attention import products

    with patch.object(products, "pays", lambda *args: True):
        for dtype in ("float32", "float64"):
            q = _of(vt, 2, 4, 200, 48, dtype=dtype).requires_grad_()
            for how in ({"is_causal": True}, {"dropout_p": 0.1}, {"attn_mask": _of(vt, 200, 200, dtype=dtype)}):
                vt.nn.functional.scaled_dot_product_attention(q, q, q, **how).sum().backward()


@family
def optimizers(vt: Any) -> None:
    p = _of(vt, 64, 768, dtype="float32").requires_grad_()
    p.grad = _of(vt, 64, 768, dtype="float32")
    vt.optim.AdamW([p], lr=1e-3, amsgrad=True).step()
    vt.optim.SGD([p], lr=1e-3, momentum=0.9, weight_decay=0.1).step()
    vt.optim.RMSprop([p], momentum=0.9, centered=True).step()
    vt.optim.Adagrad([p], fused=True).step()
    for name in ("Adadelta", "Adagrad", "Adamax", "ASGD", "Lion", "NAdam", "RAdam", "Rprop"):
        getattr(vt.optim, name)([p]).step()
    scaler = vt.amp.GradScaler("cuda")
    for name in ("AdamW", "SGD", "Adagrad"):
        scaler.scale(vt.ones((), device="cuda"))
        scaler.step(getattr(vt.optim, name)([p], fused=True))
        scaler.update()


@family
def one_token(vt: Any) -> None:
    from votive.ops.registry import F as ops

    for dtype in ("bfloat16", "float32"):
        x, norm, w = (_of(vt, *s, dtype=dtype) for s in ((1, 1, 512), (512,), (768, 512)))
        keys, at = _of(vt, 1, 4, 128, 64, dtype=dtype), vt.zeros(1, dtype=vt.int64, device="cuda")
        table = _of(vt, 128, 32, dtype="float32")
        ops._norm_linear(x, norm, 1e-6, [w, w], True)
        ops._linear_add(x, w, ops._norm_linear(x, norm, 1e-6, [w], False))
        qkv = _of(vt, 1, 1, 16 * 64, dtype=dtype)
        counts = vt.zeros(4, dtype=vt.int32, device="cuda")
        ops._rotate_and_attend(qkv, norm[:64], norm[:64], 1e-6, table, table, keys, keys.clone(), at, counts, 8, 0.125)
        vt.nn.functional.linear(x, w)
    for rows in (8, 64):
        x, norm, w = (_of(vt, *s) for s in ((rows, 1, 2048), (2048,), (768, 2048)))
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

    x, w = _of(vt, 1024, 512), _of(vt, 512, 2048)
    for back in (False, True):
        Tiles(x._spec, w._spec, TILES[0], "gelu_tanh", back=back).program._load(True).function[0]
        columns = w.t().contiguous().t()._spec
        for tile in TILES:
            Tiles(x._spec, columns, tile, "gelu", back=back).program._load(True).function[0]


@family
def bytes_products(vt: Any) -> None:
    one, rows = _of(vt, 1, dtype="float32"), _of(vt, 256, 1, dtype="float32")
    for kind in (vt.float8_e4m3fn, vt.float8_e5m2):
        for other in (vt.int64, vt.uint8, vt.bool, vt.float64, vt.bfloat16):
            vt.empty(100, device="cuda", dtype=other).to(kind).to(other)
    for kind in ("float8_e4m3fn", "float8_e5m2"):
        x = _of(vt, 256, 512, dtype=kind)
        for w in (x.t(), x.t().contiguous()):
            vt._scaled_mm(x, w, one, one, out_dtype=vt.bfloat16)
        vt._scaled_mm(x, x.t(), rows, rows.t(), one.expand(256), out_dtype=vt.float32)
        vt._scaled_mm(x, x.t(), one, one, scale_result=one, use_fast_accum=True)
    x = _of(vt, 256, 512, dtype="int8")
    vt._int_mm(x, x.t())
    vt._int_mm(x, x.t().contiguous())
    vt._int_mm(x.view(vt.uint8), x.t())


@family
def products(vt: Any) -> None:
    from votive.ops.registry import F as ops

    for dtype in ("bfloat16", "float32", "float64"):
        x, w, b = (_of(vt, *s, dtype=dtype) for s in ((256, 512), (384, 512), (384,)))
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
def rows(vt: Any) -> None:
    F = vt.nn.functional
    for n in (4096, 50_304):
        x = _of(vt, 64, n).requires_grad_()
        F.softmax(x, -1).sum().backward()
        F.log_softmax(x, -1).sum().backward()
        vt.logsumexp(x, -1)
    x.sum(0)
    x.mean(1)
    x.prod(1)


@family
def randomness(vt: Any) -> None:
    vt.rand(1000, device="cuda")
    vt.randn(1000, device="cuda", dtype=vt.bfloat16)
    vt.randint(10, (1000,), device="cuda")
    vt.randperm(1000, device="cuda")
    vt.randperm(1 << 20, device="cuda")
    x = _of(vt, 4, 1000, dtype="float32")
    for dtype in ("float32", "int64"):
        _of(vt, 1000, dtype=dtype).random_()
        _of(vt, 1000, dtype=dtype).geometric_(0.5)
    x.cauchy_()
    vt.multinomial(x, 3)
    vt.multinomial(x, 3, replacement=True)
    vt.bernoulli(x)
    vt.normal(x, x)
    vt.poisson(x)
    vt.binomial(x, x)
    D = vt.distributions
    x = x.requires_grad_()
    D.Gamma(x, x, validate_args=False).rsample().sum().backward()
    D.Dirichlet(x, validate_args=False).rsample().sum().backward()
    vt.nn.functional.dropout(_of(vt, 64, 4096).requires_grad_(), 0.1).sum().backward()


@family
def complex_numbers(vt: Any) -> None:
    for dtype in ("complex64", "complex128"):
        x = _of(vt, 64, 1024, dtype=dtype)
        x.t() * x.t().contiguous() + 2j
        for fn in (vt.exp, vt.log, vt.sqrt, vt.tanh, vt.asin, vt.atan, vt.abs, vt.sigmoid):
            fn(x)
        x / x[0]
        x**x
        x.sum(1)
        x.var(0)
        x.prod(1)
        x.to(vt.complex64)
        x.real.to(x.dtype)


@family
def pivots(vt: Any) -> None:
    for n in (64, 4096):
        vt.lu_unpack(_of(vt, 2, n, n, dtype="float32"), _of(vt, 2, n, dtype="int32"), False)
    vt.lu_unpack(_of(vt, 2, n, n, dtype="float32"), _of(vt, 2, n, dtype="int32"))


@family
def sounds_and_pictures(vt: Any) -> None:
    from votive.ops.registry import F as ops

    F = vt.nn.functional
    for dtype in ("bfloat16", "float32", "float64"):
        x, a = _of(vt, 2, 2, 20000, dtype=dtype), _of(vt, 2, 3, dtype=dtype)
        long = _of(vt, 2, 12, dtype=dtype)
        for c in (a, long):
            c.requires_grad_()
            ops._lfilter(x.detach().requires_grad_(), c, c, False).sum().backward()
        ops._delay_feedback(x, x, vt.ones(2, 2, 20000, dtype=vt.int64, device="cuda"), True)
        k = _of(vt, 160, 41, dtype=dtype).requires_grad_()
        ops._polyphase(x[0].detach().requires_grad_(), k, 441, 20, 7257).sum().backward()
        picture = _of(vt, 2, 64, 56, 56, dtype=dtype).requires_grad_()
        for mode in ("bilinear", "bicubic"):
            theta = _of(vt, 2, 2, 3, dtype=dtype).requires_grad_()
            grid = F.affine_grid(theta, (2, 64, 56, 56), False)
            F.grid_sample(picture, grid, mode, "reflection", False).sum().backward()
        boxes, of = _of(vt, 1000, 4, dtype=dtype), vt.zeros(1000, dtype=vt.int64, device="cuda")
        ops._survivors(boxes, of, 0.5)
        edges, by = of.view(100, 10), _of(vt, 100, 7, 56, dtype=dtype)
        ops._region_argmax(picture.detach(), of[:100], edges, edges, edges, edges)
        ops._region_sums(picture, of[:100], by, by).sum().backward()
    F.interpolate(vt.zeros(2, 3, 60, 80, dtype=vt.uint8, device="cuda"), (20, 30), mode="bilinear")


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
            ops._block_linear(_of(vt, rows, 512, dtype=dtype), data, None, kind, False)
        ops._block_matmul(_of(vt, 8, 64, dtype=dtype), data, kind)


@family
def recurrent(vt: Any) -> None:
    for mode, hidden, batch in (("LSTM", 96, 4), ("GRU", 40, 8), ("RNN", 320, 64)):
        for dtype in ("bfloat16", "float32"):
            kind = getattr(vt, dtype)
            net = getattr(vt.nn, mode)(16, hidden, bidirectional=mode == "GRU").to(device="cuda", dtype=kind)
            net(_of(vt, 8, batch, 16, dtype=dtype))[0].sum().backward()
