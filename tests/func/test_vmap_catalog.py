"""vmap of every operator is a loop over the examples, and vmap of vmap a loop of loops."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.func import vmap

from ..ops.catalog import KINDS, Record, load, transform
from ..ops.test_catalog import outputs, wide

RECORDS = [r for r in load() if not r.random]
N = 3
# What vmap cannot do in torch either, by the words of the refusal.
REFUSED = ("output dynamic shape", "randomness error mode", "inplace arithmetic", "writes into 'running")
# Their results depend on how memory lies, which is another for the examples of a batch.
OF_MEMORY = ("as_strided", "resize", "view_as_complex", "scaled_mm")


class Versions:
    """A sample of a record with several draws of its tensors."""

    def __init__(self, record: Record, sample: Any) -> None:
        dtype = next(d for k in record.dtypes for d in KINDS[k])
        self.drawn = []
        for k in range(N):
            rng = np.random.default_rng(record.seed(dtype + repr(sample) + str(k)))
            make = lambda s, rng=rng: s.make(rng, dtype, record.domain, record.kinks)
            self.drawn.append(transform(record.split(sample), make))
        self.arrays = [self._flat(v) for v in self.drawn]
        self.fn = record.resolve(vt)

    @staticmethod
    def _flat(nested: Any) -> list[Any]:
        found: list[Any] = []
        transform(nested, lambda a: found.append(a) or a, np.ndarray)
        return found

    def tensors(self, k: int, batched: set[int]) -> list[vt.Tensor]:
        return [vt.from_numpy(np.array(self.arrays[k if i in batched else 0][i])) for i in range(len(self.arrays[0]))]

    def call(self, *tensors: Any) -> tuple[Any, ...]:
        given = iter(tensors)
        args, kwargs = transform(self.drawn[0], lambda a: next(given), np.ndarray)
        return tuple(outputs(self.fn(*args, **kwargs)))


def check(record: Record, which: str) -> None:
    for sample in record.samples if which == "all" else record.samples[:2]:
        v = Versions(record, sample)
        n = len(v.arrays[0])
        if not n or any(a.shape != b.shape for a, b in zip(v.arrays[0], v.arrays[1], strict=True)):
            continue
        batched = {"all": set(range(n)), "first": {0}, "last": {n - 1}, "back": set(range(n)), "twice": {0}}[which]
        try:
            want = [v.call(*v.tensors(k, batched)) for k in range(N)]
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            continue  # another draw is outside of what the operator takes
        if not want[0]:
            continue
        rows = [v.tensors(k, batched) for k in range(N)]
        dim = -1 if which == "back" else 0
        ins = [vt.stack([r[i] for r in rows], dim) if i in batched else rows[0][i] for i in range(n)]
        dims = tuple(dim if i in batched else None for i in range(n))
        run: Any = vmap(v.call, in_dims=dims)
        if which == "twice":
            ins[0] = vt.stack([ins[0], ins[0].flip(0)])
            run = vmap(run, in_dims=dims)
        try:
            got = run(*ins)
        except RuntimeError as e:
            known = any(text in str(e) for text in REFUSED) or record.name.endswith("_")
            if not known:
                raise
            continue
        for j, g in enumerate(got):
            assert g.dtype is want[0][j].dtype, f"{record.name} {sample}: {g.dtype} for {want[0][j].dtype}"
            w = np.stack([wide(x[j].numpy(force=True)) for x in want])
            w = np.stack([w, w[::-1]]) if which == "twice" else w
            np.testing.assert_allclose(
                wide(g.numpy(force=True)), w, rtol=1e-5, atol=1e-6, err_msg=f"{record.name} {sample}"
            )


def _ids(which: str) -> list[Any]:
    skipped = OF_MEMORY if which == "back" else ()
    return [pytest.param(r, id=r.name) for r in RECORDS if not any(s in r.name for s in skipped)]


@pytest.mark.parametrize("which", ["all", "first", "last", "back", "twice"])
def test_vmap_of_every_operator_is_a_loop_over_examples(which: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for param in _ids(which):
            check(param.values[0], which)
