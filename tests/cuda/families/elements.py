"""Families that work on elements: formulas, copies, indices, reductions, sorts, random numbers."""

from __future__ import annotations

from typing import Any

from .registry import family, tensor_of


@family
def pointwise(vt: Any) -> None:
    for dtype in ("bfloat16", "float32"):
        x = tensor_of(vt, 256, 4096, dtype=dtype)
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
    x = tensor_of(vt, 4096, dtype="float32")
    vt.polygamma(2, x)
    vt.igamma(x, x)
    for name in ("bessel_y1", "i1e", "modified_bessel_k0", "airy_ai"):
        getattr(vt.special, name)(x)
    for name in ("zeta", "chebyshev_polynomial_u", "legendre_polynomial_p"):
        getattr(vt.special, name)(x, x)


@family
def filling(vt: Any) -> None:
    tensor_of(vt, 64, 4096)[:, 1:].fill_(3)
    tensor_of(vt, 4096, dtype="float32").fill_(0.5)
    vt.arange(1000, device="cuda")
    vt.arange(1000.0, device="cuda", dtype=vt.bfloat16)
    vt.linspace(0, 1, 100, device="cuda")
    vt.eye(64, device="cuda")


@family
def moving(vt: Any) -> None:
    x = tensor_of(vt, 8, 64, 512)
    vt.tril(x)
    vt.flip(x, (1,))
    vt.roll(x, (3, 5), (1, 2))
    for mode in ("constant", "reflect", "replicate", "circular"):
        vt.nn.functional.pad(x, (1, 2), mode)
    vt.cat([x, x], 1)
    vt.stack([x, x], 2)


@family
def indexing(vt: Any) -> None:
    x, i = tensor_of(vt, 512, 1024), vt.zeros(64, dtype=vt.int64, device="cuda")
    x[i]
    x[i, i]
    x[:, i]
    vt.index_select(x, 1, i)
    vt.gather(x, 1, vt.zeros(512, 8, dtype=vt.int64, device="cuda"))
    vt.take(x, i)
    x[i] = x[:64]
    for dtype in ("bfloat16", "float32", "int64"):
        y = tensor_of(vt, 512, 1024, dtype=dtype)
        y.index_put_((i,), y[:64], accumulate=True)
        y.index_add_(0, i, y[:64])
        y.scatter_add_(1, vt.zeros(512, 8, dtype=vt.int64, device="cuda"), y)
    y.scatter_(1, vt.zeros(512, 8, dtype=vt.int64, device="cuda"), y)
    vt.nn.functional.embedding(i, x)
    w = tensor_of(vt, 512, 1024, dtype="float32").requires_grad_()
    vt.nn.functional.embedding(i, w, padding_idx=1, scale_grad_by_freq=True).backward(w[:64].detach())


@family
def extremes(vt: Any) -> None:
    for dtype in ("bfloat16", "int64", "float64"):
        x = tensor_of(vt, 256, 4096, dtype=dtype)
        x.amax(1)
        x.argmax(1)
        x.min(0)
    tensor_of(vt, 1, 100_000).argmax(1)
    x.var(1)
    x.std()


@family
def odd_sizes(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32"):
        x = tensor_of(vt, 1653, 4051, dtype=dtype)
        x.exp() * x
        x.t().contiguous()
        vt.full_like(x, 0.3)
        F.dropout(x, 0.5)
        for y in (x, x.t(), tensor_of(vt, 3, 500_001, dtype=dtype), tensor_of(vt, 500_001, 3, dtype=dtype)):
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
            x = tensor_of(vt, 4, n, dtype=dtype)
            x.cumsum(1)
            x.cumprod(1)
            x.logcumsumexp(1)
            x.cummax(1)
    tensor_of(vt, 4, 100_000, dtype="int32").cummin(1)


@family
def sorting(vt: Any) -> None:
    for dtype in ("bfloat16", "int64"):
        x = tensor_of(vt, 4, 50_000, dtype=dtype)
        x.sort(1)
        x.topk(50, 1)
        x.median(1)
    tensor_of(vt, 1 << 20, dtype="float32").sort(descending=True)
    for dtype in ("bfloat16", "float32", "int64"):
        tensor_of(vt, 4, 400, dtype=dtype).sort(1)
    tensor_of(vt, 8, 4000).kthvalue(7, 1)
    tensor_of(vt, 8, 40).median(1)
    vt.searchsorted(x, x)
    vt.bucketize(tensor_of(vt, 1000), tensor_of(vt, 100))


@family
def rows(vt: Any) -> None:
    F = vt.nn.functional
    for n in (4096, 50_304):
        x = tensor_of(vt, 64, n).requires_grad_()
        F.softmax(x, -1).sum().backward()
        F.log_softmax(x, -1).sum().backward()
        vt.logsumexp(x, -1)
    x.sum(0)
    x.mean(1)
    x.prod(1)


@family
def sets(vt: Any) -> None:
    x, i = tensor_of(vt, 64, 512, dtype="float32"), vt.zeros(64, 512, dtype=vt.int64, device="cuda")
    vt.scatter_reduce(x, 1, i, x, "amax")
    F = vt.nn.functional
    F.embedding_bag(i, x)


@family
def randomness(vt: Any) -> None:
    vt.rand(1000, device="cuda")
    vt.randn(1000, device="cuda", dtype=vt.bfloat16)
    vt.randint(10, (1000,), device="cuda")
    vt.randperm(1000, device="cuda")
    vt.randperm(1 << 20, device="cuda")
    x = tensor_of(vt, 4, 1000, dtype="float32")
    for dtype in ("float32", "int64"):
        tensor_of(vt, 1000, dtype=dtype).random_()
        tensor_of(vt, 1000, dtype=dtype).geometric_(0.5)
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
    vt.nn.functional.dropout(tensor_of(vt, 64, 4096).requires_grad_(), 0.1).sum().backward()


@family
def complex_numbers(vt: Any) -> None:
    for dtype in ("complex64", "complex128"):
        x = tensor_of(vt, 64, 1024, dtype=dtype)
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
