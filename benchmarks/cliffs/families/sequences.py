"""Work on sequences: recurrent modules, attention, Fourier transforms."""

from __future__ import annotations

from typing import Any

from ..draw import Draw
from ..family import Drawn, family
from ..side import Side, Work
from ..spec import Layout


def _recurrent(d: Draw) -> Drawn:
    batch, steps = d.size(1, 64), d.size(1, 128)
    room = max(4, d.work // 8 // (batch * steps))
    width, hidden = d.size(1, 256), d.size(1, 256)
    while hidden * (hidden + width) * 4 > room and hidden + width > 2:
        width, hidden = (width + 1) // 2, (hidden + 1) // 2
    params: dict[str, Any] = {"x": f"{batch}x{steps}x{width}", "hidden": hidden, "layers": d.pick((1, 1, 1, 2))}
    return d.pick(("LSTM", "LSTM", "GRU", "RNN")), params | {"both": d.pick((0, 0, 1)), "first": d.pick((0, 1))}


@family("recurrent", _recurrent, weight=2, gradient=0.6, dtypes=("float32",) * 4 + ("bfloat16",))
def _build_recurrent(s: Side) -> Work:
    p = s.spec
    x = s(p["x"])
    made = getattr(s.m.nn, p.op)(
        x.shape[-1], p["hidden"], p["layers"], batch_first=bool(p["first"]), bidirectional=bool(p["both"])
    )
    module = s.module(made)
    return lambda: module(x)[0]


def _attention(d: Draw) -> Drawn:
    op = d.pick(("full", "causal", "causal", "mask", "bool_mask"))
    batch, heads, width = d.size(1, 16), d.size(1, 16), d.pick((16, 32, 64, 64, 80, 128))
    room = max(1, d.work // 4 // (batch * heads * width))
    queries = d.size(1, min(2048, room))
    keys = queries if op == "causal" or d.chance(0.7) else d.size(1, min(2048, max(1, room // queries)))
    while queries * keys > room:
        queries, keys = (queries + 1) // 2, (keys + 1) // 2
    return op, {"b": batch, "h": heads, "q": queries, "k": keys, "d": width, "turned": d.pick((0, 1))}


@family("attention", _attention, weight=2)
def _build_attention(s: Side) -> Work:
    p, F = s.spec, s.F
    batch, heads, width = p["b"], p["h"], p["d"]
    memory = "p0213" if p["turned"] else ""
    q, k, v = (s(str(Layout((batch, heads, n, width), memory))) for n in (p["q"], p["k"], p["k"]))
    if p.op == "full":
        return lambda: F.scaled_dot_product_attention(q, k, v)
    if p.op == "causal":
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    text = str(Layout((batch, 1, p["q"], p["k"])))
    mask = s.plain(text, "bool" if p.op == "bool_mask" else "normal")
    if p.op == "bool_mask":
        mask[..., 0] = True  # a row that sees nothing is no number
    return lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _fft(d: Draw) -> Drawn:
    op = d.pick(("rfft", "rfft", "fft", "irfft", "fft2", "rfft2", "ifft"))
    shape = d.shape(d.pick((1, 2, 2, 3)) if "2" not in op else d.pick((2, 3)), d.elements // 4, least=8)
    if op == "irfft":
        shape = (*shape[:-1], max(2, shape[-1]))
    n = len(shape)
    return op, {"x": d.layout(shape, 0.8), "dim": n - 1 if "2" in op else d.pick((n - 1, n - 1, d.random.randrange(n)))}


@family("fft", _fft, weight=2, dtypes=("float32",) * 5 + ("float64",))
def _build_fft(s: Side) -> Work:
    op, dim, m = s.spec.op, s.spec["dim"], s.m
    x = s(s.spec["x"])
    fn = getattr(m.fft, op)
    if "2" in op:
        return lambda: m.view_as_real(fn(x))
    if op in ("irfft", "ifft"):
        if op == "irfft" and x.shape[dim] < 2:
            return lambda: m.view_as_real(m.fft.rfft(x, dim=dim))
        z = m.complex(x.detach(), s.plain(s.spec["x"]))
        if s.spec.grad:
            z = z.requires_grad_()
            s.leaves[:] = [z]
        if op == "irfft":
            return lambda: fn(z, dim=dim)
        return lambda: m.view_as_real(fn(z, dim=dim))
    return lambda: m.view_as_real(fn(x, dim=dim))
