"""Every record of the operator catalog on a WebGPU device and on the CPU, held together.

Each sample meets one dtype and one layout, chosen by its place: all of them come up, and the same ones every time.
VOTIVE_WEBGPU_THOROUGH=1 runs every sample with every dtype and layout.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import votive
from tests.ops.catalog import Record, arrays, load, transform
from tests.ops.test_catalog import dtypes_of, outcome, outputs

from .cpu_fallbacks import DECOMPOSED, ON_CPU, SIGNS_OPEN, TWINS, UNDEFINED, UNNOTICED, WITHOUT_KERNEL, rounded
from .device import LAYOUTS, REASON, agree, cpu_fallbacks, placed

THOROUGH = os.environ.get("VOTIVE_WEBGPU_THOROUGH", "") not in ("", "0")
# What is empty holds anything.
RECORDS = [] if REASON else [r for r in load() if "empty" not in r.name and r.name not in ON_CPU]
each = pytest.mark.parametrize("record", RECORDS, ids=[r.name for r in RECORDS])
# Samples per record whose values and gradients are compared.
SAMPLES, GRADIENTS = 6, 2
Case = tuple[Any, str, str]


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
    """Every case gives the same on both devices, and only operators that may leave the device do."""
    for case in cases:
        usual = max([*(t[0] for t in record.tol.values()), rounded(record.name)])
        if "'cpu'" in repr(case[0]):
            continue  # asks for the CPU
        what = f"{record.name}{case[0]} {case[1]} {case[2]}"
        theirs = outcome(lambda case=case: run(record, case, "cpu"))
        with cpu_fallbacks() as left:
            ours = outcome(lambda case=case: run(record, case, "webgpu"))
        if isinstance(theirs, Exception):
            if any(text in str(theirs) for text in UNNOTICED):
                continue
            # What the CPU refuses because of where its input lies, the device may refuse as well.
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
            if x is not None:
                agree(x, y, what, usual, max(scale, terms(record, case)), not record.name.startswith(TWINS))
        away = left.plain - WITHOUT_KERNEL
        assert not away, f"{what}: computed on the CPU: {sorted(away)}"


def terms(record: Record, case: Case) -> float:
    """How large the terms are that cancel in a result: Hadamard's bound of a determinant."""
    if record.name not in ("det", "linalg.det"):
        return 0.0
    (a, *_), _ = arrays(record, case[0], case[1])
    return float(np.linalg.norm(np.asarray(a), axis=-1).prod(-1).max(initial=0.0))


def cases(record: Record, dtypes: list[str], layouts: tuple[str, ...], most: int) -> Iterator[Case]:
    """Each sample with one dtype and layout, or with all of them."""
    if not record.layouts:
        layouts = ("",)
    k = record.seed()
    for n, sample in enumerate(record.samples):
        if THOROUGH:
            yield from ((sample, d, how) for d in dtypes for how in layouts)
            continue
        if n >= most:
            return
        k += 1
        yield sample, dtypes[k % len(dtypes)], layouts[k % len(layouts)]
        if n == 0 and "float32" in dtypes:
            yield sample, "float32", ""


def _tame(record: Record) -> tuple[str, ...]:
    """An operator that writes its first argument, or minds singular ones, takes no expanded one."""
    written = record.name.endswith("_") or "linalg" in record.name or record.name in DECOMPOSED
    return LAYOUTS[:-1] if written else LAYOUTS


def _kinds(record: Record) -> list[str]:
    """The dtypes of a record, those that kernels compute with twice as often."""
    known = list(dtypes_of(record))
    return [*known, *[d for d in known if d in ("float32", "int64", "bool", "bfloat16", "float16")]]


@each
def test_values_agree_with_the_cpu(record: Record) -> None:
    hold(record, values, list(cases(record, _kinds(record), _tame(record), SAMPLES)))


@each
def test_gradients_agree_with_the_cpu(record: Record) -> None:
    if record.grad is False:
        pytest.skip("not differentiable")
    if record.name in SIGNS_OPEN and record.random:
        pytest.skip("its gradients depend on the signs of vectors")
    known = dtypes_of(record)
    kinds = [d for d in ("float32", "bfloat16") if d in known]
    if not kinds:
        pytest.skip("not differentiable in these dtypes")
    hold(record, gradients, list(cases(record, kinds, LAYOUTS[:-1], GRADIENTS)), scale=1.0)


@each
def test_errors_agree_with_the_cpu(record: Record) -> None:
    if not record.errors:
        pytest.skip("no error cases")
    dtype = dtypes_of(record)[0]
    for sample, _ in record.errors:
        case = (sample, dtype, "")
        theirs = outcome(lambda case=case: values(record, case, "cpu"))
        # An index out of range is noticed on the device; the host hears of it when it waits.
        with cpu_fallbacks():
            ours = outcome(lambda case=case: [t.cpu() for t in values(record, case, "webgpu")])
        assert isinstance(theirs, Exception)
        if any(text in str(theirs) for text in UNNOTICED):
            continue
        assert type(ours) is type(theirs), f"{record.name}{sample}: {ours!r}, expected {theirs!r}"
