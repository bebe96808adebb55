"""Convolution, pooling, norms and attention in the shapes of ResNet-18 and Whisper tiny."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .case import Case, leaf, randn, tensor, uniform

F = Callable[..., Any]
# name: (channels in, channels out, kernel, stride, padding, side)
RESNET = {
    "conv1 7x7/2": (3, 64, 7, 2, 3, 224),
    "layer1 3x3": (64, 64, 3, 1, 1, 56),
    "layer2 3x3/2": (64, 128, 3, 2, 1, 56),
    "layer2 3x3": (128, 128, 3, 1, 1, 28),
    "layer2 1x1/2": (64, 128, 1, 2, 0, 56),
    "layer3 3x3": (256, 256, 3, 1, 1, 14),
    "layer4 3x3": (512, 512, 3, 1, 1, 7),
}


def _case(name: str, fn: F, arrays: list[Any], seconds: float, grad: int = 0) -> list[Case]:
    """Forward, and with `grad` also the gradients of the first `grad` arguments."""

    def forward(m: Any) -> Callable[[], object]:
        values = [tensor(m, a) for a in arrays]

        def run() -> object:
            with m.no_grad():
                return fn(m, *values)

        return run

    def both(m: Any) -> Callable[[], object]:
        values = [leaf(m, a) if i < grad else tensor(m, a) for i, a in enumerate(arrays)]
        out = fn(m, *values)
        weight = tensor(m, randn(*out.shape, seed=5))
        return lambda: m.autograd.grad(fn(m, *values), values[:grad], weight)

    found = [Case(name, forward, seconds, least=2)]
    if grad:
        found.append(Case(f"{name}, gradients", both, seconds, least=2))
    return found


def cases(scale: str) -> Iterator[Case]:
    """ResNet-18 with batches of 1 and 8, Whisper on 30 seconds."""
    seconds = {"full": 0.6, "quick": 0.15, "tiny": 0.0}[scale]
    batches = {"full": (1, 8), "quick": (1,), "tiny": (1,)}[scale]
    for n in batches:
        yield from _resnet(n, 16 if scale == "tiny" else 1, seconds)
    yield from _whisper(100 if scale == "tiny" else 1, seconds)


def _resnet(n: int, less: int, seconds: float) -> Iterator[Case]:
    for name, (c, o, k, stride, padding, side) in RESNET.items():
        c, o, side = max(1, c // less), o // less, max(7, side // less)

        def conv(m: Any, x: Any, w: Any, s: int = stride, p: int = padding) -> Any:
            return m.nn.functional.conv2d(x, w, None, s, p)

        yield from _case(f"{name} batch {n}", conv, [randn(n, c, side, side), randn(o, c, k, k)], seconds, 2)
    c, side = max(1, 64 // less), 112 // less

    def pool(m: Any, x: Any) -> Any:
        return m.nn.functional.max_pool2d(x, 3, 2, 1)

    def norm(m: Any, x: Any, w: Any, b: Any, mean: Any, var: Any) -> Any:
        return m.nn.functional.batch_norm(x, mean, var, w, b, True)

    def norm_eval(m: Any, x: Any, w: Any, b: Any, mean: Any, var: Any) -> Any:
        return m.nn.functional.batch_norm(x, mean, var, w, b, False)

    x = randn(n, c, side, side)
    statistics = [uniform(c).copy(), randn(c), randn(c).copy(), uniform(c).copy()]
    yield from _case(f"max_pool 3x3/2 batch {n}", pool, [x], seconds, 1)
    yield from _case(f"batch_norm batch {n}", norm, [x, *statistics], seconds, 3)
    yield from _case(f"batch_norm eval batch {n}", norm_eval, [x, *statistics], seconds)
    yield from _case(f"add, relu batch {n}", lambda m, x, y: m.relu(x + y), [x, x], seconds, 2)
    last = randn(n, max(1, 512 // less), 7, 7)
    mean = lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 1)
    yield from _case(f"adaptive_avg_pool batch {n}", mean, [last], seconds, 1)
    avg = lambda m, x: m.nn.functional.avg_pool2d(x, 2)
    yield from _case(f"avg_pool 2x2 batch {n}", avg, [x], seconds, 1)


def _whisper(less: int, seconds: float) -> Iterator[Case]:
    frames, width, heads = 3000 // less, 384 if less == 1 else 12, 6
    half = frames // 2

    def conv(m: Any, x: Any, w: Any, b: Any) -> Any:
        return m.nn.functional.conv1d(x, w, b, padding=1)

    def conv_half(m: Any, x: Any, w: Any, b: Any) -> Any:
        return m.nn.functional.conv1d(x, w, b, 2, 1)

    def attend(m: Any, q: Any, k: Any, v: Any) -> Any:
        return m.nn.functional.scaled_dot_product_attention(q, k, v)

    def causal(m: Any, q: Any, k: Any, v: Any) -> Any:
        return m.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def norm(m: Any, x: Any, w: Any, b: Any) -> Any:
        return m.nn.functional.layer_norm(x, (width,), w, b)

    def linear(m: Any, x: Any, w: Any, b: Any) -> Any:
        return m.nn.functional.linear(x, w, b)

    bias = randn(width)
    yield from _case("whisper conv1d k3", conv, [randn(1, 80, frames), randn(width, 80, 3), bias], seconds, 3)
    yield from _case(
        "whisper conv1d k3/2", conv_half, [randn(1, width, frames), randn(width, width, 3), bias], seconds, 3
    )
    x = randn(1, half, width)
    yield from _case("whisper layer_norm", norm, [x, uniform(width), bias], seconds, 3)
    heads_of = [randn(1, heads, half, width // heads, seed=i) for i in range(3)]
    yield from _case("whisper attention", attend, heads_of, seconds, 3)
    yield from _case("whisper attention causal", causal, heads_of, seconds, 3)
    yield from _case("whisper attention, one query", attend, [heads_of[0][:, :, :1].copy(), *heads_of[1:]], seconds)
    wide = randn(4 * width, width)
    yield from _case("whisper linear", linear, [x, wide, randn(4 * width)], seconds, 3)
    yield from _case("whisper gelu", lambda m, x: m.nn.functional.gelu(x), [randn(1, half, 4 * width)], seconds, 1)
