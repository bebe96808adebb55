"""Every record of the operator catalog on native kernels and on the reference, held together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import votive
from tests.ops.catalog import Record, arrays, load, transform
from tests.ops.test_catalog import dtypes_of, outcome, outputs, strange
from votive.ops.registry import OPS

from .compare import TOLERANCE, needs_native, reference_only, same

pytestmark = needs_native
# What is empty holds anything.
RECORDS = [r for r in load() if "empty" not in r.name]
each = pytest.mark.parametrize("record", RECORDS, ids=[r.name for r in RECORDS])
Run = tuple[str, Callable[[], list[Any]]]


def hold(record: Record, runs: list[Run], scale: float = 0.0) -> None:
    """Every run gives the same on both kinds of kernels.

    `scale`: how large the terms of a result are at least, for results in which terms cancel.
    """
    ours = [outcome(fn) for _, fn in runs]
    with reference_only():
        theirs = [outcome(fn) for _, fn in runs]
    for (what, _), a, b in zip(runs, ours, theirs, strict=True):
        if isinstance(a, Exception) or isinstance(b, Exception):
            assert (type(a), str(a)) == (type(b), str(b)), what
            continue
        try:
            for x, y in zip(a, b, strict=True):
                if x is None or y is None:
                    assert x is y
                else:
                    rtol = tolerance(record, x)
                    same(x, y, rtol, rtol * max(scale, largest(y)) if scale else None)
        except AssertionError as e:
            raise AssertionError(f"{what}: {e}") from None


def largest(x: Any) -> float:
    values = np.abs(x.detach().numpy().astype(np.complex128))
    return float(values[np.isfinite(values)].max(initial=0.0))


def tolerance(record: Record, x: Any) -> float:
    """The usual one, or what the record asks for if that is more."""
    usual = TOLERANCE.get(x.dtype, 0.0)
    return max([usual, *(t[0] for t in record.tol.values())]) if usual else 0.0


def place(given: Any, how: str, requires_grad: bool = False) -> Any:
    """NumPy arrays inside arguments become tensors in some layout."""

    def make(a: np.ndarray[Any, Any]) -> Any:
        t = strange(a, how)
        return t.requires_grad_() if requires_grad and t.dtype.is_inexact else t

    return transform(given, make, np.ndarray)


def values(record: Record, sample: Any, dtype: str, how: str) -> Callable[[], list[Any]]:
    def run() -> list[Any]:
        args, kwargs = place(arrays(record, sample, dtype), how)
        return outputs(record.resolve(votive)(*args, **kwargs))

    return run


def gradients(record: Record, sample: Any, dtype: str, how: str) -> Callable[[], list[Any]]:
    def run() -> list[Any]:
        args, kwargs = place(arrays(record, sample, dtype), how, requires_grad=True)
        leaves: list[Any] = []
        transform((args, kwargs), leaves.append, votive.Tensor)
        leaves = [t for t in leaves if t.requires_grad]
        results = [
            r for r in outputs(record.resolve(votive)(*args, **kwargs)) if r.dtype.is_inexact and r.requires_grad
        ]
        if not leaves or not results:
            return []
        rng = np.random.default_rng(3)
        weights = [votive.from_numpy(np.asarray(rng.uniform(-1, 1, tuple(r.shape)))).to(r.dtype) for r in results]
        return list(votive.autograd.grad(results, leaves, weights, allow_unused=True))

    return run


@each
def test_values_agree_with_the_reference(record: Record) -> None:
    hold(
        record,
        [
            (f"{record.name}{sample} {dtype}", values(record, sample, dtype, ""))
            for sample in record.samples
            for dtype in dtypes_of(record)
        ],
    )


@each
def test_layouts_agree_with_the_reference(record: Record) -> None:
    if not record.layouts:
        pytest.skip("defined by the layout")
    known = dtypes_of(record)
    dtype = "float32" if "float32" in known else known[0]
    hold(
        record,
        [
            (f"{record.name}{sample} {how}", values(record, sample, dtype, how))
            for sample in record.samples
            for how in ("permuted", "sliced", "shifted")
        ],
    )


@each
def test_gradients_agree_with_the_reference(record: Record) -> None:
    if record.grad is False:
        pytest.skip("not differentiable")
    known = dtypes_of(record)
    kinds = [d for d in ("float64", "float32", "bfloat16", "complex128") if d in known]
    runs = [
        (f"{record.name}{sample} {dtype}", gradients(record, sample, dtype, ""))
        for sample in record.samples
        for dtype in kinds
    ]
    if record.layouts and kinds:
        runs += [
            (f"{record.name}{sample} {how}", gradients(record, sample, kinds[0], how))
            for sample in record.samples
            for how in ("permuted", "sliced")
        ]
    hold(record, runs, scale=1.0)


@each
def test_errors_agree_with_the_reference(record: Record) -> None:
    if not record.errors:
        pytest.skip("no error cases")
    dtype = dtypes_of(record)[0]
    hold(record, [(f"{record.name}{sample}", values(record, sample, dtype, "")) for sample, _ in record.errors])


def elementwise() -> Iterator[Record]:
    for record in RECORDS:
        op = OPS.get(record.name.rsplit(".", 1)[-1])
        if op is not None and op.kind == "pointwise":
            yield record


@pytest.mark.parametrize("record", list(elementwise()), ids=lambda r: r.name)
def test_large_elementwise_work_agrees_with_the_reference(record: Record) -> None:
    """Shared out among threads, and with a tail that fills no vector."""
    n = 70_001

    def large(sample: Any, dtype: str) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            given = arrays(record, sample, dtype)
            args, kwargs = place(transform(given, lambda a: np.resize(a, n) if a.ndim else a, np.ndarray), "")
            return outputs(record.resolve(votive)(*args, **kwargs))

        return run

    known = dtypes_of(record)
    runs = [
        (f"{record.name} {dtype}", large(record.samples[0], dtype))
        for dtype in ("float32", "float64", "bfloat16", "int64", "uint8", "bool")
        if dtype in known
    ]
    hold(record, runs)
