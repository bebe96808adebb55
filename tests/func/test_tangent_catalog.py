"""Tangents of every differentiable operator are exact: `<v, J t>` is `<J^T v, t>`, also for a batch of tangents."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import votive as vt
from votive.func import jvp, vjp, vmap

from ..ops.catalog import KINDS, Record, load, transform
from ..ops.test_catalog import outputs

# Differentiable once only: tangents go through the gradient of the gradient.
ONCE = ("scatter_reduce", "index_reduce")
RECORDS = [r for r in load() if r.grad is not False and not r.random and r.name not in ONCE]


def products(record: Record, sample: Any, dtype: str) -> list[tuple[Any, Any]]:
    """`<v, J t>` and `<J^T v, t>` for random v and t, one pair per tangent."""
    rng = np.random.default_rng(record.seed(repr(sample)))
    make = lambda s: (s.make(rng, dtype, record.domain, record.kinks), s.grad)
    drawn = transform(record.split(sample), make)
    pairs: list[Any] = []

    def collect(x: Any) -> Any:
        if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], np.ndarray):
            pairs.append(x)
            return x
        if isinstance(x, (tuple, list)):
            return [collect(v) for v in x]
        return {k: collect(v) for k, v in x.items()} if isinstance(x, dict) else x

    collect(drawn)
    tensors = [vt.from_numpy(np.array(a)) for a, _ in pairs]
    free = [i for i, (a, g) in enumerate(pairs) if g and a.dtype.kind in "fc"]
    if not free:
        return []

    def put(x: Any, given: Any) -> Any:
        if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], np.ndarray):
            return next(given)
        if isinstance(x, (tuple, list)):
            return type(x)(put(v, given) for v in x)
        return {k: put(v, given) for k, v in x.items()} if isinstance(x, dict) else x

    fn = record.resolve(vt)

    def call(*xs: Any) -> tuple[Any, ...]:
        given = list(tensors)
        for i, x in zip(free, xs, strict=True):
            given[i] = x.clone() if record.name.endswith("_") else x
        args, kwargs = put(drawn, iter(given))
        return tuple(y for y in outputs(fn(*args, **kwargs)) if y.dtype.is_inexact)

    xs = tuple(tensors[i] for i in free)
    noise = lambda x: vt.from_numpy(np.array(rng.standard_normal(x.shape).astype(x.resolve_conj().numpy().dtype)))
    ys, back = vjp(call, *xs)
    if not ys:
        return []
    vs = tuple(noise(y) for y in ys)
    grads = back(vs)

    def dot(a: Any, b: Any) -> float:
        return sum((p.conj() * q).real.sum().item() for p, q in zip(a, b, strict=True))

    found = []
    ts = [tuple(noise(x) for x in xs) for _ in range(2)]
    for t in ts:
        _, moved = jvp(call, xs, t)
        found.append((dot(vs, moved), dot(grads, t)))
    if (
        record.name in ("masked_select", "svd_lowrank", "pca_lowrank", "nn.functional.rrelu")
        or "attention" in record.name
    ):
        return found  # refused by vmap, as in torch
    many = vmap(lambda *t: jvp(call, xs, t)[1])(*(vt.stack(pair) for pair in zip(*ts, strict=True)))
    found.append((dot(vs, [m[1] for m in many]), dot(grads, ts[1])))
    return found


def test_tangents_of_every_operator_are_the_transpose_of_gradients() -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for record in RECORDS:
            kinds = [d for k in record.dtypes for d in KINDS[k] if d in ("float64", "complex128")]
            for dtype in kinds:
                for sample in record.samples[:2]:
                    try:
                        for got, want in products(record, sample, dtype):
                            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)
                    except Exception as e:
                        wrong.append(f"{record.name} {dtype} {str(sample)[:80]}: {type(e).__name__} {str(e)[:200]}")
    assert not wrong, "\n".join([str(len(wrong)), *wrong])
