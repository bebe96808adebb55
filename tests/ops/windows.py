"""Sliding windows by their definition, and random calls of what is made of them at awkward sizes.

Everything here is loops over windows and taps: slow, short, and made of none of the package's code.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

POOLS = ("max_pool", "avg_pool", "lp_pool")
CONVOLUTIONS = ("conv", "conv_transpose")
KINDS = (*POOLS, *CONVOLUTIONS, "unfold", "fold")


@dataclass
class Call:
    """A function of nn.functional, its tensors, and its arguments as NumPy and Python values."""

    kind: str
    n: int
    tensors: list[Any]
    kwargs: dict[str, Any]
    gradient: Any = None
    layouts: list[str] = field(default_factory=list)

    @property
    def function(self) -> str:
        return self.kind if self.kind in ("unfold", "fold") else f"{self.kind}{self.n}d"


def places(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    """How many windows fit."""
    return tuple(
        (i + 2 * p - d * (k - 1) - 1) // s + 1
        for i, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


def pairs(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, count: Any) -> Any:
    """(tap, place, element) of every tap of every window that lies within an array of `size`."""
    each: list[list[tuple[int, int, int]]] = []
    for i, k, s, p, d, o in zip(size, kernel, stride, padding, dilation, count, strict=True):
        found = ((t, q, q * s + t * d - p) for t in range(k) for q in range(o))
        each.append([(t, q, e) for t, q, e in found if 0 <= e < i])
    for dims in itertools.product(*each):
        yield tuple(zip(*dims, strict=True))


def _pooled(call: Call) -> Iterator[tuple[Any, Any]]:
    """(place, flat index of its elements) of every window."""
    x, k = call.tensors[0], call.kwargs
    elements: dict[Any, list[Any]] = {q: [] for q in np.ndindex(*k["places"])}
    geometry = (k["kernel"], k["stride"], k["padding"], k["dilation"], k["places"])
    for _, place, element in pairs(x.shape[2:], *geometry):
        elements[place].append(element)
    for place, found in elements.items():
        yield place, tuple(np.array(found, int).reshape(len(found), call.n).T)


def _counted(call: Call, place: Any) -> int:
    """What the sum of a window is divided by."""
    k, size = call.kwargs, call.tensors[0].shape[2:]
    if k.get("divisor_override"):
        return int(k["divisor_override"])
    many = 1
    for q, i, n, s, p in zip(place, size, k["kernel"], k["stride"], k["padding"], strict=True):
        start = q * s - p
        end = min(start + n, i + p)
        many *= end - start if k.get("count_include_pad", True) else min(end, i) - max(start, 0)
    return many


def pool(call: Call) -> list[Any]:
    """The result of a pool and the gradient of its input."""
    x, g, k = call.tensors[0], call.gradient, call.kwargs
    y, gx = np.zeros((*x.shape[:2], *k["places"])), np.zeros(x.shape)
    for place, at in _pooled(call):
        values = x[(..., *at)]
        upper = (..., *place)
        if call.kind == "max_pool":
            which = values.argmax(-1)
            y[upper] = values.max(-1)
            for b, c in np.ndindex(*x.shape[:2]):
                gx[(b, c, *(a[which[b, c]] for a in at))] += g[(b, c, *place)]
            continue
        share = 1 / _counted(call, place)
        if call.kind == "avg_pool":
            y[upper] = values.sum(-1) * share
            gx[(..., *at)] += (g[upper] * share)[..., None]
            continue
        p, share = k["norm_type"], share * math.prod(k["kernel"])
        y[upper] = ((values**p).sum(-1) * share) ** (1 / p)
        gx[(..., *at)] += (g[upper] * share * y[upper] ** (1 - p))[..., None] * values ** (p - 1)
    return [y, gx]


def convolve(call: Call) -> list[Any]:
    """The result of a convolution or its transpose, and the gradients of input and weight."""
    x, w, g, k = *call.tensors[:2], call.gradient, call.kwargs
    turned, groups = call.kind == "conv_transpose", k["groups"]
    out, per = w.shape[0] // groups, w.shape[1]
    result = np.zeros(g.shape)
    inner, outer = (result, x) if turned else (x, result)  # the windows lie in `inner`
    g_inner, g_outer = (g, np.zeros(x.shape)) if turned else (np.zeros(x.shape), g)
    gw = np.zeros(w.shape)
    geometry = (w.shape[2:], k["stride"], k["padding"], k["dilation"], outer.shape[2:])
    for tap, place, element in pairs(inner.shape[2:], *geometry):
        for group in range(groups):
            rows, cols = (slice(group * out, (group + 1) * out), slice(group * per, (group + 1) * per))
            by, to, at = ((rows, slice(None), *tap), (slice(None), rows, *place), (slice(None), cols, *element))
            if turned:
                inner[at] += _times(outer[to], w[by])
                g_outer[to] += _times(g_inner[at], w[by].T)
            else:
                outer[to] += _times(inner[at], w[by].T)
                g_inner[at] += _times(g_outer[to], w[by])
            gw[by] += _times((outer if turned else g_outer)[to].T, (g_inner if turned else inner)[at])
    gx = g_outer if turned else g_inner
    if len(call.tensors) == 2:
        return [result, gx, gw]
    bias = call.tensors[2].reshape(-1, *(1,) * call.n)
    return [result + bias, gx, gw, g.sum((0, *range(2, g.ndim)))]


def _times(a: Any, b: Any) -> Any:
    """A product of matrices, term by term: nothing but these terms enters it."""
    return (a[:, :, None] * b[None]).sum(1)


def lay_out(call: Call) -> list[Any]:
    """The result of unfold or fold, and the gradient of its input."""
    x, g, k = call.tensors[0], call.gradient, call.kwargs
    size = x.shape[2:] if call.kind == "unfold" else k["output_size"]
    geometry = (k["kernel_size"], k["stride"], k["padding"], k["dilation"])
    count = places(size, *geometry)
    columns, image = (g, x) if call.kind == "unfold" else (x, g)
    columns = columns.reshape(*image.shape[:2], *k["kernel_size"], *count)
    laid, summed = np.zeros(columns.shape), np.zeros(image.shape)
    for tap, place, element in pairs(size, *geometry, count):
        laid[(..., *tap, *place)] = image[(..., *element)]
        summed[(..., *element)] += columns[(..., *tap, *place)]
    laid = laid.reshape((g if call.kind == "unfold" else x).shape)
    return [laid, summed] if call.kind == "unfold" else [summed, laid]


def defined(call: Call) -> list[Any]:
    """What a call gives, and the gradients of its tensors, by definition."""
    if call.kind in POOLS:
        return pool(call)
    return convolve(call) if call.kind in CONVOLUTIONS else lay_out(call)


def poisoned(call: Call, rng: random.Random) -> None:
    """Put NaN or infinities into one or two of the tensors and the gradient."""
    arrays = [*call.tensors[:2], call.gradient]
    for a in rng.sample(arrays, rng.choice([1, 1, 2])):
        for _ in range(rng.choice([1, 2])):
            at = tuple(rng.randrange(s) for s in a.shape)
            a[at] = rng.choice([math.nan, math.inf, -math.inf])


def arguments(call: Call) -> dict[str, Any]:
    """Keyword arguments as the function takes them."""
    k = dict(call.kwargs)
    k.pop("places", None)
    if "kernel" in k:
        k["kernel_size"] = k.pop("kernel")
    if call.kind != "max_pool" and call.kind in POOLS:
        k.pop("dilation")
    if call.kind == "lp_pool":
        k.pop("padding")
        if call.n == 1:
            k["kernel_size"], k["stride"] = k["kernel_size"][0], k["stride"][0]
    return k


def draw(rng: random.Random, kind: str, sizes: tuple[int, ...] = ()) -> Call:
    """A random call whose sizes do not divide each other, with windows that leave remainders; with
    `sizes`, of planes that have only these.
    """
    while True:
        n = rng.choice([1, 2, 2, 3]) if kind not in ("unfold", "fold") else 2
        call = _draw(rng, kind, n, sizes or ((1, 2, 3, 4, 5, 7, 8, 9) if n < 3 else (1, 2, 3, 5)))
        if call is not None:
            layouts = ("dense", "channels_last", "every_second", "transposed", "expanded")
            call.layouts = [rng.choice(layouts) if t.ndim > 2 else "dense" for t in call.tensors]
            for t, layout in zip(call.tensors, call.layouts, strict=True):
                if layout == "expanded":
                    t[:] = t[:1]
            return call


def _each(rng: random.Random, n: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(rng.randint(low, high) for _ in range(n))


def _eighths(rng: random.Random, *shape: int) -> Any:
    """Numbers that every float type holds exactly."""
    return np.array([rng.randint(-16, 16) / 8 for _ in range(math.prod(shape))]).reshape(shape)


def _draw(rng: random.Random, kind: str, n: int, sizes: tuple[int, ...]) -> Call | None:
    size = tuple(rng.choice(sizes) for _ in range(n))
    batch, channels = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2, 3, 17])
    if kind in POOLS:
        return _draw_pool(rng, kind, n, (batch, channels, *size))
    kernel = _each(rng, n, 1, 4) if rng.random() < 0.6 else (3,) * n
    geometry: dict[str, Any] = {
        "stride": _each(rng, n, 1, 4) if rng.random() < 0.5 else (1,) * n,
        "padding": _each(rng, n, 0, 3),
        "dilation": _each(rng, n, 1, 3) if rng.random() < 0.3 else (1,) * n,
    }
    count = places(size, kernel, *geometry.values())
    if kind in ("unfold", "fold"):
        if min(count) < 1:
            return None
        rows = channels * math.prod(kernel)
        image, columns = (batch, channels, *size), (batch, rows, math.prod(count))
        given, made = (image, columns) if kind == "unfold" else (columns, image)
        if kind == "fold":
            geometry["output_size"] = size
        kwargs = {"kernel_size": kernel, **geometry}
        return Call(kind, n, [_eighths(rng, *given)], kwargs, _eighths(rng, *made))
    groups, wide = rng.choice([1, 1, 1, 2, 3]), rng.choice([1, 2, 3, 16, 17])
    narrow = rng.choice([1, 2, 3, 16]) if n < 3 else 2
    weight = (wide * groups, narrow, *kernel)
    if kind == "conv":
        x, result = (batch, narrow * groups, *size), (batch, wide * groups, *count)
    else:
        s, p, d = geometry.values()
        extra = tuple(rng.randint(0, max(a, b) - 1) for a, b in zip(s, d, strict=True))
        geometry["output_padding"] = extra
        grown = tuple(
            (i - 1) * s_ - 2 * p_ + d_ * (k - 1) + e + 1
            for i, s_, p_, d_, k, e in zip(size, s, p, d, kernel, extra, strict=True)
        )
        x, result = (batch, wide * groups, *size), (batch, narrow * groups, *grown)
    if min(result) < 1:
        return None
    tensors = [_eighths(rng, *x), _eighths(rng, *weight)]
    if rng.random() < 0.5:
        tensors.append(_eighths(rng, result[1]))
    return Call(kind, n, tensors, {**geometry, "groups": groups}, _eighths(rng, *result))


def _draw_pool(rng: random.Random, kind: str, n: int, shape: tuple[int, ...]) -> Call | None:
    size = shape[2:]
    kernel = tuple(rng.choice([i, rng.randint(1, 5)]) for i in size)
    stride = rng.choice([kernel, _each(rng, n, 1, 6)])
    padded = kind != "lp_pool" and rng.random() < 0.5
    padding = tuple(rng.randint(0, k // 2) if padded else 0 for k in kernel)
    wide = kind == "max_pool" and rng.random() < 0.3
    dilation = _each(rng, n, 1, 3) if wide else (1,) * n
    ceil = rng.random() < 0.4
    count = []
    for i, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        room = i + 2 * p - d * (k - 1) - 1
        o = (room + (s - 1) * ceil) // s + 1
        count.append(o - (ceil and (o - 1) * s >= i + p))
    if min(count) < 1:
        return None
    kwargs: dict[str, Any] = {
        "kernel": kernel,
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "ceil_mode": ceil,
        "places": tuple(count),
    }
    if kind == "avg_pool":
        kwargs["count_include_pad"] = rng.random() < 0.5
        if n > 1 and rng.random() < 0.3:
            kwargs["divisor_override"] = rng.choice([1, 3, -2])
    x = _eighths(rng, *shape)
    if kind == "max_pool":  # no two of a plane alike, so that there is one largest
        plane = range(math.prod(size))
        x = np.array([rng.sample(plane, len(plane)) for _ in range(shape[0] * shape[1])], float)
        x = x.reshape(shape) - 5
    if kind == "lp_pool":
        kwargs["norm_type"], x = rng.choice([1.0, 2.0, 3.0]), np.abs(x) + 0.5
    call = Call(kind, n, [x], kwargs, _eighths(rng, *shape[:2], *count))
    if any(not len(at[0]) for _, at in _pooled(call)):
        return None  # dilation stepped over the whole input
    return call
