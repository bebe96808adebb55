"""Products with epilogues and of 8-bit numbers, paired with torch, and the times of the ways among
which each product chose: `python -m benchmarks.gpu.products`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from . import Case, measure, show
from .kernels import error, pair

# Rows, width and inner width of the feed-forward part: GPT-2 at 16 x 1024, and a larger model.
SHAPES = ((16384, 768, 3072), (8192, 2048, 8192))


def _worst(mine: Callable[[], Any], theirs: Callable[[], Any]) -> Callable[[], float]:
    return lambda: max(error(a, b) for a, b in zip(mine(), theirs(), strict=True))


def epilogues() -> Iterator[Case]:
    """Activations, biases and their gradients around products."""
    import torch
    import torch.nn.functional as TF

    import votive
    from votive.ops.registry import F as ops

    for rows, width, inner in SHAPES:
        scale = width**-0.5
        x, tx = pair(rows, width)
        w1, tw1 = pair(inner, width, scale=scale)
        w2, tw2 = pair(width, inner, scale=inner**-0.5)
        b1, tb1 = pair(inner)
        b2, tb2 = pair(width)
        g, tg = pair(rows, width)
        work, label = 2.0 * rows * width * inner, f"{rows}x{width}x{inner}"
        for name, gelu in (("gelu_tanh", True), ("relu", False)):
            mine = lambda x=x, w=w1, b=b1, n=name: ops._linear_activated(x, w, b, n)
            theirs = lambda x=tx, w=tw1, b=tb1, g=gelu: torch._addmm_activation(b, x, w.t(), use_gelu=g)
            yield Case(
                f"linear, {name} {label}", mine, theirs, flops=work, check=lambda a=mine, b=theirs: error(a(), b())
            )
        params = [t.clone().requires_grad_() for t in (x, w1, b1, w2, b2)]
        tparams = [t.clone().requires_grad_() for t in (tx, tw1, tb1, tw2, tb2)]

        def mine(p: Any = params, g: Any = g) -> Any:
            y = ops._feed_forward(*p, "gelu_tanh")[0]
            return votive.autograd.grad(y, p, g)

        def apart(p: Any = params, g: Any = g) -> Any:
            y = ops._feed_forward_composite(*p, "gelu_tanh")
            return votive.autograd.grad(y, p, g)

        def theirs(p: Any = tparams, g: Any = tg) -> Any:
            x, w1, b1, w2, b2 = p
            y = TF.linear(TF.gelu(TF.linear(x, w1, b1), approximate="tanh"), w2, b2)
            return torch.autograd.grad(y, p, g)

        yield Case(f"feed-forward step, fused {label}", mine, theirs, flops=6 * work, check=_worst(mine, theirs))
        columns = [*(p.t().contiguous().detach() for p in (w1, w2))]
        transposed = [t.detach().requires_grad_() for t in (x, columns[0].t(), b1, columns[1].t(), b2)]
        yield Case(
            f"feed-forward step, by columns {label}",
            lambda p=transposed, f=mine: f(p),
            theirs,
            flops=6 * work,
            check=_worst(lambda p=transposed, f=mine: f(p), theirs),
        )
        yield Case(f"feed-forward step, apart {label}", apart, theirs, flops=6 * work)
        h, th = pair(rows, inner)
        both = lambda h=h, x=x: ops._linear_gradients(h, x, False)
        tboth = lambda h=th, x=tx: (h.t() @ x, h.sum(0))
        yield Case(f"gradients of weight and bias {label}", both, tboth, flops=work, check=_worst(both, tboth))


def _narrow(rows: int, cols: int) -> tuple[Any, Any]:
    """The same float8 numbers on both sides; between libraries they travel as bytes."""
    import torch

    import votive

    t = torch.randn(rows, cols, device="cuda").to(torch.float8_e4m3fn)
    mine = votive.from_dlpack(t.view(torch.uint8)).view(votive.float8_e4m3fn)
    return mine, t


def _level(name: str, mine: Callable[[], Any], theirs: Callable[[], Any], flops: float) -> Case:
    """A product that is to be as fast as torch's, and of the same value."""
    return Case(name, mine, theirs, flops=flops, target="0.98 of torch", check=lambda: error(mine(), theirs()))


def bytes_products() -> Iterator[Case]:
    """float8 with one scale and with scales of rows, int8."""
    import torch

    import votive

    for m, k, n in ((4096, 4096, 4096), (8192, 8192, 8192), (16, 4096, 4096)):
        (a, ta), (b, tb) = _narrow(m, k), _narrow(n, k)
        one, tone = votive.ones(1, device="cuda"), torch.ones(1, device="cuda")
        work, label = 2.0 * m * k * n, f"{m}x{k}x{n}"
        rows = [pair(*s, dtype="float32") for s in ((m, 1), (1, n))]
        mine_rows, their_rows = ([p[i] for p in rows] for i in (0, 1))
        for name, scales, tscales, fast in (
            ("f8, fast sums", (one, one), (tone, tone), True),
            ("f8", (one, one), (tone, tone), False),
            ("f8 by rows", mine_rows, their_rows, True),
        ):
            mine = lambda a=a, b=b, s=scales, f=fast: votive._scaled_mm(
                a, b.t(), *s, out_dtype=votive.bfloat16, use_fast_accum=f
            )
            theirs = lambda a=ta, b=tb, s=tscales, f=fast: torch._scaled_mm(
                a, b.t(), *s, out_dtype=torch.bfloat16, use_fast_accum=f
            )
            yield _level(f"{name} {label}", mine, theirs, work)
        if m <= 16:
            continue  # torch wants more rows
        ti, tj = (torch.randint(-128, 128, s, device="cuda", dtype=torch.int8) for s in ((m, k), (n, k)))
        i, j = votive.from_dlpack(ti), votive.from_dlpack(tj)
        whole = lambda i=i, j=j: votive._int_mm(i, j.t())
        twhole = lambda i=ti, j=tj: torch._int_mm(i, j.t())
        yield _level(f"int8 {label}", whole, twhole, work)


def _told() -> None:
    """Print the times of all ways whenever a product chooses one."""
    from votive.backends.cuda.runtime import autotune

    choose = autotune.Autotuned._choose

    def tell(self: Any, args: Any, how: Any) -> None:
        choose(self, args, how)
        if len(self.candidates) > 1 and self.times:
            names = [getattr(w, "__qualname__", type(w).__name__) for w in self.candidates]
            each = ", ".join(
                f"{n} {'refused' if math.isinf(t) else f'{1000 * t:.1f} us'}"
                for n, t in zip(names, self.times, strict=True)
            )
            print(f"  ways: {each}", flush=True)

    autotune.Autotuned._choose = tell  # type: ignore[method-assign]


def main() -> None:
    _told()
    for suite in (epilogues, bytes_products):
        for case in suite():
            print(show(measure(case)), flush=True)


if __name__ == "__main__":
    main()
