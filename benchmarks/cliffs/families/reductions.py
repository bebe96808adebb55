"""Reductions over any dimensions, softmax and norms."""

from __future__ import annotations

import math
from typing import Any

from ..draw import Draw
from ..family import Drawn, family
from ..side import Side, Work
from ..spec import Layout

SUMS = ["sum", "mean", "var", "std", "amax", "amin", "logsumexp", "norm"]
ONE = ["max", "min", "argmax", "argmin", "median", "prod", "any", "all"]


def _reduce(d: Draw) -> Drawn:
    op = d.pick(SUMS * 2 + ONE)
    x = d.array(1, 5, least=4)
    n = len(Layout.parse(x).shape)
    if op in ONE:
        return op, {"x": x, "dim": d.random.randrange(n)}
    if d.chance(0.15) and op not in ("logsumexp",):
        return op, {"x": x}
    dims = d.some_dims(n)
    if op in ("var", "std") and all(Layout.parse(x).shape[i] == 1 for i in dims):
        op = "sum"
    return op, {"x": x, "dim": dims, "keepdim": int(d.chance(0.5))}


def _first(result: Any) -> Any:
    """Values without places: of equal ones either library may name another."""
    return result[0] if isinstance(result, tuple) and len(result) == 2 and hasattr(result[0], "detach") else result


@family("reduce", _reduce, weight=4, compared=_first, ties=("max", "min", "argmax", "argmin", "median"))
def _build_reduce(s: Side) -> Work:
    op, dim = s.spec.op, s.spec.get("dim")
    if op in ("any", "all"):
        x = s.plain(s.spec["x"], "bool")
        if s.spec.grad:
            v = s(s.spec["x"])
            return lambda: (v * x).sum(dim)
        return lambda: getattr(s.m, op)(x, dim)
    x = s(s.spec["x"], "positive" if op == "prod" else "normal")
    if op == "prod":
        return lambda: s.m.prod(x * 1.5, dim)
    if op in ("argmax", "argmin"):
        pick = getattr(s.m, op)
        # Equal values may be found at other places, so the value at the place is compared.
        return lambda: x.gather(dim, pick(x, dim, keepdim=True))
    fn = s.m.linalg.vector_norm if op == "norm" else getattr(s.m, op)
    if op in ("max", "min", "median"):
        return lambda: fn(x, dim)
    if dim is None:
        return (lambda: fn(x)) if op not in ("amax", "amin") else (lambda: fn(x, tuple(range(x.ndim))))
    keep = bool(s.spec["keepdim"])
    return lambda: fn(x, dim=dim, keepdim=keep)


def _softmax(d: Draw) -> Drawn:
    x = d.array(1, 4)
    n = len(Layout.parse(x).shape)
    return d.pick(("softmax", "log_softmax")), {"x": x, "dim": d.pick((n - 1, n - 1, d.random.randrange(n)))}


@family("softmax", _softmax, weight=2)
def _build_softmax(s: Side) -> Work:
    x, dim = s(s.spec["x"]), s.spec["dim"]
    fn = getattr(s.F, s.spec.op)
    return lambda: fn(x, dim)


def _norm(d: Draw) -> Drawn:
    op = d.pick(("layer_norm", "layer_norm", "rms_norm", "rms_norm", "group_norm", "batch_norm", "batch_norm_eval"))
    if op in ("layer_norm", "rms_norm"):
        return op, {"x": d.array(2, 4, least=16)}
    shape = list(d.shape(d.pick((2, 3, 4, 4)), least=64))
    groups = 1
    if op == "group_norm":
        groups = d.pick((1, 2, 4, 8))
        shape[1] = max(1, shape[1] // groups) * groups
    if op == "batch_norm" and shape[0] * math.prod(shape[2:]) < 2:
        shape[0] = 2
    if op == "group_norm" and shape[1] // groups * math.prod(shape[2:]) < 2:
        shape[1] *= 2
    return op, {"x": d.layout(tuple(shape)), "groups": groups}


@family("norm", _norm, weight=2)
def _build_norm(s: Side) -> Work:
    op, text = s.spec.op, s.spec["x"]
    x = s(text)
    shape = Layout.parse(text).shape
    width = shape[-1] if op in ("layer_norm", "rms_norm") else shape[1]
    weight = s(str(width), "positive")
    if op == "rms_norm":
        return lambda: s.F.rms_norm(x, (width,), weight)
    bias = s(str(width))
    if op == "layer_norm":
        return lambda: s.F.layer_norm(x, (width,), weight, bias)
    if op == "group_norm":
        return lambda: s.F.group_norm(x, s.spec["groups"], weight, bias)
    mean, var = s.plain(str(width)), s.plain(str(width), "positive")
    training = op == "batch_norm"
    return lambda: s.F.batch_norm(x, mean, var, weight, bias, training, 0.0)
