"""Single kernels: memory-bound rows, products, attention, losses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import Case

ROWS, COLUMNS = 8192, 4096


def pair(*shape: int, dtype: str = "bfloat16", scale: float = 1.0) -> tuple[Any, Any]:
    """The same numbers on both sides."""
    import torch

    import votive

    t = torch.randn(shape, device="cuda", dtype=getattr(torch, dtype)) * scale
    return votive.from_dlpack(t.detach()), t


def error(a: Any, b: Any) -> float:
    """Relative difference in the Euclidean norm, in float64."""
    import torch

    x = torch.from_numpy(a.detach().float().cpu().numpy()).double()
    y = b.detach().double().cpu()
    return float((x - y).norm() / (y.norm() + 1e-30))


def memory_bound() -> Iterator[Case]:
    import torch
    import torch.nn.functional as TF

    import votive
    import votive.nn.functional as F
    from votive.nn.residual import add_norm

    x, tx = pair(ROWS, COLUMNS)
    y, ty = pair(ROWS, COLUMNS)
    w, tw = pair(COLUMNS)
    b, tb = pair(COLUMNS)
    n = ROWS * COLUMNS * 2
    yield Case("copy", lambda: x.clone(), lambda: tx.clone(), bytes=2 * n)
    yield Case("add", lambda: x + y, lambda: tx + ty, bytes=3 * n)
    yield Case(
        "gelu",
        lambda: F.gelu(x),
        lambda: TF.gelu(tx),
        bytes=2 * n,
        target="0.9 of copy",
        check=lambda: error(F.gelu(x), TF.gelu(tx)),
    )
    fused = votive.fuse(lambda a, c: F.silu(a) * c)
    yield Case(
        "silu(a) * b, fused",
        lambda: fused(x, y),
        lambda: TF.silu(tx) * ty,
        bytes=3 * n,
        target="0.9 of copy",
        check=lambda: error(fused(x, y), TF.silu(tx) * ty),
    )
    yield Case(
        "softmax",
        lambda: F.softmax(x, -1),
        lambda: TF.softmax(tx, -1),
        bytes=2 * n,
        target="0.85 of copy",
        check=lambda: error(F.softmax(x, -1), TF.softmax(tx, -1)),
    )
    shape = (COLUMNS,)
    norm, tnorm = lambda: F.layer_norm(x, shape, w, b), lambda: TF.layer_norm(tx, shape, tw, tb)
    yield Case("layer_norm", norm, tnorm, bytes=2 * n, target="0.85 of copy", check=lambda: error(norm(), tnorm()))
    rms, trms = lambda: F.rms_norm(x, shape, w), lambda: TF.rms_norm(tx, shape, tw)
    yield Case("rms_norm", rms, trms, bytes=2 * n, target="0.85 of copy", check=lambda: error(rms(), trms()))
    yield Case("sum of rows", lambda: x.sum(1), lambda: tx.sum(1), bytes=n, check=lambda: error(x.sum(1), tx.sum(1)))
    yield Case("sum of columns", lambda: x.sum(0), lambda: tx.sum(0), bytes=n, check=lambda: error(x.sum(0), tx.sum(0)))
    yield Case("transposed copy", lambda: x.t().contiguous(), lambda: tx.t().contiguous(), bytes=2 * n)
    gx, gtx = x.clone().requires_grad_(), tx.clone().requires_grad_()
    gw, gtw = w.clone().requires_grad_(), tw.clone().requires_grad_()
    gb, gtb = b.clone().requires_grad_(), tb.clone().requires_grad_()
    out, tout = F.layer_norm(gx, shape, gw, gb), TF.layer_norm(gtx, shape, gtw, gtb)
    yield Case(
        "layer_norm backward",
        lambda: votive.autograd.grad(out, (gx, gw, gb), y, retain_graph=True),
        lambda: torch.autograd.grad(tout, (gtx, gtw, gtb), ty, retain_graph=True),
        bytes=3 * n,
    )
    layer = votive.nn.LayerNorm(COLUMNS, device="cuda", dtype=votive.bfloat16)
    tlayer = torch.nn.LayerNorm(COLUMNS, device="cuda", dtype=torch.bfloat16)

    def tboth(a: Any, b: Any) -> Any:
        s = a + b
        return s, tlayer(s)

    for module in (layer, tlayer):
        module.requires_grad_(False)
    yield Case(
        "x + y, layer_norm of it",
        lambda: add_norm(x, y, layer),
        lambda: tboth(tx, ty),
        bytes=4 * n,
        check=lambda: error(add_norm(x, y, layer)[1], tboth(tx, ty)[1]),
    )
    for module in (layer, tlayer):
        module.requires_grad_(True)
    outs, touts = add_norm(gx, y, layer), tboth(gtx, ty)
    yield Case(
        "the same, backward",
        lambda: votive.autograd.grad(outs, (gx, layer.weight, layer.bias), (y, x), retain_graph=True),
        lambda: torch.autograd.grad(touts, (gtx, tlayer.weight, tlayer.bias), (ty, tx), retain_graph=True),
        bytes=4 * n,
    )


def moving() -> Iterator[Case]:
    """Scans, joins and random positions: torch draws other numbers, so those are not compared."""
    import torch

    import votive

    n = 1 << 24
    x, tx = pair(n, dtype="float32")
    yield Case(
        "cumsum of 2^24",
        lambda: x.cumsum(0),
        lambda: tx.cumsum(0),
        bytes=8 * n,
        check=lambda: error(x.cumsum(0), tx.double().cumsum(0)),
    )
    many = [pair(64, 1024) for _ in range(64)]
    parts, tparts = [p[0] for p in many], [p[1] for p in many]
    size = 64 * 64 * 1024 * 2
    for dim in (0, 1):
        mine, theirs = lambda d=dim: votive.cat(parts, d), lambda d=dim: torch.cat(tparts, d)
        yield Case(
            f"cat of 64, dim {dim}", mine, theirs, bytes=2 * size, check=lambda a=mine, b=theirs: error(a(), b())
        )
    p, tp = pair(64, 50304, dtype="float32")
    weights, tweights = p.softmax(-1), tp.softmax(-1)
    yield Case(
        "multinomial of 64 x 50304",
        lambda: votive.multinomial(weights, 1),
        lambda: torch.multinomial(tweights, 1),
        bytes=weights.numel() * 4,
    )
    yield Case(
        "randperm of 2^20",
        lambda: votive.randperm(1 << 20, device="cuda"),
        lambda: torch.randperm(1 << 20, device="cuda"),
        bytes=8 << 20,
    )
    yield Case("sort of 2^20", lambda: x[: 1 << 20].sort(), lambda: tx[: 1 << 20].sort(), bytes=16 << 20)


def losses() -> Iterator[Case]:
    import torch
    import torch.nn.functional as TF

    import votive
    import votive.nn.functional as F

    rows, classes = 16384, 50304
    x, tx = pair(rows, classes)
    tt = torch.randint(0, classes, (rows,), device="cuda")
    t = votive.from_dlpack(tt)
    n = rows * classes * 2
    yield Case(
        "cross entropy 16384 x 50304",
        lambda: F.cross_entropy(x, t),
        lambda: TF.cross_entropy(tx, tt),
        bytes=n,
        target="0.55 ms",
        check=lambda: error(F.cross_entropy(x.float(), t), TF.cross_entropy(tx.float(), tt)),
    )
    gx, gtx = x.requires_grad_(), tx.requires_grad_()
    loss, tloss = F.cross_entropy(gx, t), TF.cross_entropy(gtx, tt)
    yield Case(
        "cross entropy backward",
        lambda: votive.autograd.grad(loss, gx, retain_graph=True),
        lambda: torch.autograd.grad(tloss, gtx, retain_graph=True),
        bytes=2 * n,
    )


def products() -> Iterator[Case]:
    for size in (4096, 8192):
        a, ta = pair(size, size)
        b, tb = pair(size, size)
        yield Case(
            f"matmul {size}^3 bf16",
            lambda a=a, b=b: a @ b,
            lambda a=ta, b=tb: a @ b,
            flops=2 * size**3,
            target="0.98 of torch",
            check=lambda a=a, b=b, c=ta, d=tb: error(a @ b, c @ d),
        )
    for name, m, k, n in (("qkv", 16384, 768, 2304), ("decode", 1, 1024, 3072), ("decode head", 1, 1024, 151936)):
        import torch.nn.functional as TF

        import votive.nn.functional as F

        x, tx = pair(m, k)
        w, tw = pair(n, k)
        bias, tbias = pair(n)
        mine = lambda x=x, w=w, b=bias: F.linear(x, w, b)
        theirs = lambda x=tx, w=tw, b=tbias: TF.linear(x, w, b)
        yield Case(
            f"linear {name} {m}x{k}x{n}",
            mine,
            theirs,
            flops=2 * m * k * n,
            check=lambda a=mine, b=theirs: error(a(), b()),
        )


def attentions() -> Iterator[Case]:
    import torch
    import torch.nn.functional as TF
    from torch.nn.attention import SDPBackend, sdpa_kernel

    import votive
    import votive.nn.functional as F

    for B, H, T, D in ((4, 16, 4096, 128), (16, 12, 1024, 64)):
        qkv = [pair(B, H, T, D) for _ in range(3)]
        q, k, v = (p[0] for p in qkv)
        tq, tk, tv = (p[1] for p in qkv)
        work = 4 * B * H * T * T * D / 2

        def mine(q: Any = q, k: Any = k, v: Any = v) -> Any:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        def theirs(q: Any = tq, k: Any = tk, v: Any = tv, kind: Any = SDPBackend.FLASH_ATTENTION) -> Any:
            with sdpa_kernel(kind):
                return TF.scaled_dot_product_attention(q, k, v, is_causal=True)

        yield Case(
            f"attention {B}x{H}x{T}x{D}, flash",
            mine,
            theirs,
            flops=work,
            target="flash",
            check=lambda a=mine, b=theirs: error(a(), b()),
        )
        cudnn = lambda f=theirs: f(kind=SDPBackend.CUDNN_ATTENTION)
        yield Case(f"attention {B}x{H}x{T}x{D}, cuDNN", mine, cudnn, flops=work)
        gq, gk, gv = (x.clone().requires_grad_() for x in (q, k, v))
        hq, hk, hv = (x.clone().requires_grad_() for x in (tq, tk, tv))
        out, tout = mine(gq, gk, gv), theirs(hq, hk, hv)
        g, tg = pair(B, H, T, D)

        def back(out: Any = out, to: Any = (gq, gk, gv), g: Any = g) -> Any:
            return votive.autograd.grad(out, to, g, retain_graph=True)

        def tback(out: Any = tout, to: Any = (hq, hk, hv), g: Any = tg) -> Any:
            return torch.autograd.grad(out, to, g, retain_graph=True)

        worst = lambda a=back, b=tback: max(error(p, r) for p, r in zip(a(), b(), strict=True))
        yield Case(
            f"attention backward {B}x{H}x{T}x{D}, flash", back, tback, flops=2.5 * work, target="flash", check=worst
        )
