"""Every record of the operator catalog on a device elsewhere and here: the same kernels, so the same bits.

Each sample meets one dtype and one layout, chosen by its place, as in tests/cuda.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import votive
from tests.cuda.device import LAYOUTS, placed
from tests.ops.catalog import Record, arrays, load, transform
from tests.ops.test_catalog import dtypes_of, outcome, outputs

# What is empty holds anything; these are about memory of this machine.
HERE = frozenset(["Tensor.cpu", "Tensor.to", "Tensor.numpy", "frombuffer", "from_numpy"])
RECORDS = [r for r in load() if "empty" not in r.name and r.name not in HERE]
each = pytest.mark.parametrize("record", RECORDS, ids=[r.name for r in RECORDS])
Case = tuple[Any, str, str]


def called(record: Record, case: Case, device: votive.device, grad: bool = False) -> tuple[list[Any], list[Any]]:
    """The results of a sample and the tensors that it was given."""
    sample, dtype, how = case

    def make(a: np.ndarray[Any, Any]) -> Any:
        t = placed(a, how, device)
        return t.detach().requires_grad_() if grad and t.dtype.is_inexact else t

    args, kwargs = transform(arrays(record, sample, dtype), make, np.ndarray)
    fn = record.resolve(votive)
    tensors: list[Any] = []
    transform((args, kwargs), tensors.append, votive.Tensor)
    if (not tensors or record.name in ("linspace", "logspace")) and "device" not in kwargs:
        try:
            if "device" in inspect.signature(fn).parameters:
                kwargs = {**kwargs, "device": device}
        except (TypeError, ValueError):
            pass
    votive.manual_seed(11)
    return outputs(fn(*args, **kwargs)), tensors


def values(record: Record, case: Case, device: votive.device) -> list[Any]:
    return called(record, case, device)[0]


def gradients(record: Record, case: Case, device: votive.device) -> list[Any]:
    made, tensors = called(record, case, device, grad=True)
    leaves = [t for t in tensors if t.requires_grad]
    results = [r for r in made if r.dtype.is_inexact and r.requires_grad]
    if not leaves or not results:
        return []
    rng = np.random.default_rng(3)
    weights = [votive.from_numpy(rng.uniform(-1, 1, tuple(r.shape))).to(r.dtype).to(device) for r in results]
    return list(votive.autograd.grad(results, leaves, weights, allow_unused=True))


def same(ours: Any, theirs: Any, what: str, place: votive.device) -> None:
    if theirs is None or ours is None:
        assert ours is theirs, what
        return
    assert ours.device == place or "'cpu'" in what, f"{what}: the result is on {ours.device}"
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
    assert not ours.numel() or ours.stride() == theirs.stride(), what
    a, b = ours.detach().resolve_conj().cpu(), theirs.detach().resolve_conj()
    assert a.contiguous().numpy().tobytes() == b.contiguous().numpy().tobytes() or votive.equal(
        a.isnan() | (a == b), votive.ones_like(a, dtype=votive.bool)
    ), f"{what}: {a} is not {b}"


def hold(record: Record, run: Callable[..., list[Any]], cases: list[Case], place: votive.device) -> None:
    for case in cases:
        what = f"{record.name}{case[0]} {case[1]} {case[2]}"
        theirs = outcome(lambda case=case: run(record, case, votive.device("cpu")))
        ours = outcome(lambda case=case: run(record, case, place))
        if isinstance(theirs, Exception):
            assert type(ours) is type(theirs), f"{what}: {ours!r}, expected {theirs!r}"
            continue
        if isinstance(ours, Exception):
            raise AssertionError(f"{what}: {ours!r}") from ours
        assert len(ours) == len(theirs), what
        for x, y in zip(ours, theirs, strict=True):
            same(x, y, what, place)
    votive.remote.synchronize(place)


def cases(record: Record, dtypes: list[str], most: int) -> Iterator[Case]:
    """Each sample with one dtype and layout; an operator that writes its first argument takes no expanded one."""
    written = record.name.endswith("_") or "linalg" in record.name
    layouts = ("",) if not record.layouts else LAYOUTS[:-1] if written else LAYOUTS
    k = record.seed()
    for i, sample in enumerate(record.samples[:most]):
        yield sample, dtypes[(k + i) % len(dtypes)], layouts[(k + i) % len(layouts)]


@each
def test_values_are_those_of_this_machine(record: Record, place: votive.device) -> None:
    hold(record, values, list(cases(record, dtypes_of(record), 3)), place)


@each
def test_gradients_are_those_of_this_machine(record: Record, place: votive.device) -> None:
    kinds = [d for d in ("float32", "float64", "bfloat16", "complex64") if d in dtypes_of(record)]
    if record.grad is False or not kinds:
        pytest.skip("not differentiable")
    hold(record, gradients, list(cases(record, kinds, 2)), place)
