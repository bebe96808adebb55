"""Every record of the operator catalog on the GPU and on the CPU, held together.

A GPU compiles a kernel per dtype and layout, and the emulated one is slow. So each sample meets one
dtype and one layout, chosen by its place: all of them come up, and the same ones every time.
VOTIVE_CUDA_THOROUGH=1 runs every sample with every dtype and layout.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import votive
from tests.ops.catalog import Record, arrays, load, transform
from tests.ops.test_catalog import dtypes_of, outcome, outputs

from .cpu_fallbacks import DECOMPOSED, ON_CPU, RENAMED, SIGNS_OPEN, UNDEFINED, UNNOTICED, empty, may_leave, rounded
from .device import EMULATED, LAYOUTS, REASON, agree, cpu_fallbacks, placed
from .libraries import solvers, transforms

THOROUGH = os.environ.get("VOTIVE_CUDA_THOROUGH", "") not in ("", "0")
# What is empty holds anything.
RECORDS = [] if REASON else [r for r in load() if "empty" not in r.name and r.name not in ON_CPU]
each = pytest.mark.parametrize("record", RECORDS, ids=[r.name for r in RECORDS])
# Samples per record whose gradients are compared, beside all that are empty.
GRADIENTS = 2 if EMULATED else 4
Case = tuple[Any, str, str]


@pytest.fixture(scope="module", autouse=True)
def _libraries() -> Iterator[None]:
    if REASON:
        yield
        return
    with solvers(), transforms():
        yield


def placing(given: Any, how: str, device: str, requires_grad: bool = False) -> Any:
    """NumPy arrays inside arguments become tensors of a device in some layout."""

    def make(a: np.ndarray[Any, Any]) -> Any:
        t = placed(a, how, device)
        return t.detach().requires_grad_() if requires_grad and t.dtype.is_inexact else t

    return transform(given, make, np.ndarray)


def called(record: Record, args: Any, kwargs: Any, device: str) -> Any:
    fn = record.resolve(votive)
    tensors: list[Any] = []
    transform((args, kwargs), tensors.append, votive.Tensor)
    if (not tensors or record.name in ("linspace", "logspace")) and "device" not in kwargs:
        try:
            if "device" in inspect.signature(fn).parameters:
                kwargs = {**kwargs, "device": device}
        except (TypeError, ValueError):
            pass
    return outputs(fn(*args, **kwargs))


def values(record: Record, case: Case, device: str) -> list[Any]:
    sample, dtype, how = case
    args, kwargs = placing(arrays(record, sample, dtype), how, device)
    return called(record, args, kwargs, device)  # type: ignore[no-any-return]


def gradients(record: Record, case: Case, device: str) -> list[Any]:
    sample, dtype, how = case
    args, kwargs = placing(arrays(record, sample, dtype), how, device, requires_grad=True)
    leaves: list[Any] = []
    transform((args, kwargs), leaves.append, votive.Tensor)
    leaves = [t for t in leaves if t.requires_grad]
    results = [r for r in called(record, args, kwargs, device) if r.dtype.is_inexact and r.requires_grad]
    if not leaves or not results:
        return []
    rng = np.random.default_rng(3)
    weights = [
        votive.from_numpy(np.asarray(rng.uniform(-1, 1, tuple(r.shape)))).to(r.dtype).to(device) for r in results
    ]
    return list(votive.autograd.grad(results, leaves, weights, allow_unused=True))


def hold(record: Record, run: Callable[[Record, Case, str], list[Any]], cases: list[Case], scale: float = 0.0) -> None:
    """Every case gives the same on both devices, and only operators that may leave the GPU do."""
    for case in cases:
        usual = max([*(t[0] for t in record.tol.values()), rounded(record.name, case[0])])
        if "'cpu'" in repr(case[0]):
            continue  # asks for the CPU
        what = f"{record.name}{case[0]} {case[1]} {case[2]}"
        theirs = outcome(lambda case=case: run(record, case, "cpu"))
        with cpu_fallbacks() as left:
            ours = outcome(lambda case=case: run(record, case, "cuda"))
        if isinstance(theirs, Exception):
            # What the CPU refuses because of where its input lies, the GPU may refuse as well.
            assert type(ours) is type(theirs), f"{what}: {ours!r}, expected {theirs!r}"
            continue
        if isinstance(ours, Exception):
            raise AssertionError(f"{what}: {ours!r}") from ours
        assert len(ours) == len(theirs), what
        if record.name in UNDEFINED and run is values and bool(theirs[-1].any()):
            ours, theirs = ours[-1:], theirs[-1:]
        if record.name in SIGNS_OPEN and record.random:
            ours, theirs = ([t.abs() for t in ts] for ts in (ours, theirs))
        for x, y in zip(ours, theirs, strict=True):
            assert (x is None) == (y is None), what
            if x is None:
                continue
            agree(x, y, what, usual, max(scale, terms(record, case)))
        # Sums of no complex products are left to the CPU.
        none = "complex" in case[1] and empty(record, case[0])
        away = set() if none else {o for o in left if not may_leave(o, what)}
        assert not away, f"{what}: computed on the CPU: {sorted(away)}"


def terms(record: Record, case: Case) -> float:
    """How large the terms are that cancel in a result: a determinant is a sum of products of rows,
    and zero for a singular matrix but for their rounding. Hadamard's bound.
    """
    if record.name not in ("det", "linalg.det"):
        return 0.0
    (a, *_), _ = arrays(record, case[0], case[1])
    return float(np.linalg.norm(np.asarray(a), axis=-1).prod(-1).max(initial=0.0))


def cases(record: Record, dtypes: list[str], layouts: tuple[str, ...]) -> Iterator[Case]:
    """Each sample with one dtype and layout, or with all of them."""
    if not record.layouts:
        layouts = ("",)
    k = record.seed()
    for sample in record.samples:
        if THOROUGH:
            yield from ((sample, d, how) for d in dtypes for how in layouts)
            continue
        k += 1
        yield sample, dtypes[k % len(dtypes)], layouts[k % len(layouts)]
        if sample is record.samples[0] and "float32" in dtypes:
            yield sample, "float32", ""


def _tame(record: Record) -> tuple[str, ...]:
    """An operator that writes its first argument, or minds singular ones, takes no expanded one."""
    written = record.name.endswith("_") or "linalg" in record.name or record.name in DECOMPOSED
    return LAYOUTS[:-1] if written else LAYOUTS


@each
def test_values_agree_with_the_cpu(record: Record) -> None:
    hold(record, values, list(cases(record, dtypes_of(record), _tame(record))))


@each
def test_gradients_agree_with_the_cpu(record: Record) -> None:
    if record.grad is False:
        pytest.skip("not differentiable")
    if record.name in SIGNS_OPEN and record.random:
        pytest.skip("its gradients depend on the signs of vectors")
    known = dtypes_of(record)
    kinds = [d for d in ("float32", "float64", "bfloat16", "complex64") if d in known]
    if not kinds:
        pytest.skip("not differentiable in these dtypes")
    found = list(cases(record, kinds, LAYOUTS[:-1]))
    if not THOROUGH:
        more = [case for case in found[GRADIENTS:] if empty(record, case[0])]
        found = [*found[:GRADIENTS], *more]
    hold(record, gradients, found, scale=1.0)


@each
def test_errors_agree_with_the_cpu(record: Record) -> None:
    if not record.errors:
        pytest.skip("no error cases")
    dtype = dtypes_of(record)[0]
    for sample, _ in record.errors:
        case = (sample, dtype, "")
        theirs = outcome(lambda case=case: values(record, case, "cpu"))
        # An index out of range is noticed on the GPU; the host hears of it when it waits.
        ours = outcome(lambda case=case: [t.cpu() for t in values(record, case, "cuda")])
        assert isinstance(theirs, Exception)
        if any(text in str(theirs) for text in UNNOTICED):
            assert isinstance(ours, list)
            continue
        if record.name in RENAMED and "out of bounds" in str(theirs):
            assert isinstance(ours, RuntimeError)
            assert re.match(r"scatter_\w+: .*out of bounds", str(ours))
            continue
        assert type(ours) is type(theirs), f"{record.name}{sample}: {ours!r}, expected {theirs!r}"
