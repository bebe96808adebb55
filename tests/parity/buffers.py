"""The out= form of an operator. Knows buffers, no operator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .cases import TORCH, Case, Skip, compare_outputs, counterpart_of, tensors, wide_answer
from .compare import Mismatch, Rules, same
from .convert import Twin
from .resolve import translate
from .subject import Subject


def out(case: Case) -> None:
    """out=: written through its strides, resized when empty, refused where casting would lose."""
    if not case.op.supports_out:
        raise Skip("no out=")
    theirs = translate(TORCH, case.op.op, case.op.name) or case.op.op
    want = case.twin().torch.run(theirs)
    if not list(tensors(want)):
        raise Skip("no tensor to write")
    _compare_out(case, theirs, want, _strided)
    if case.first:
        _compare_out(case, theirs, want, _empty)
        _compare_out(case, theirs, want, _other_dtype)


def _compare_out(case: Case, theirs: Callable, want: Any, make: Callable) -> None:
    twin, pick = case.twin(), _first if isinstance(want, torch.Tensor) else tuple
    theirs_out = [make(t) for t in tensors(want)]
    ours_out = [_mirror(case.subject, t) for t in theirs_out]
    strides = [t.stride() for t in theirs_out]
    ours = partial(twin.votive.run, counterpart_of(case), out=pick(ours_out))
    lossy = make is _other_dtype and any(t.dtype == torch.int64 for t in theirs_out)
    state = torch.get_rng_state()
    try:
        expected = twin.torch.run(theirs, out=pick(theirs_out))
    except Exception:
        # Which of the harmless casts torch refuses differs from operator to operator.
        if lossy:
            _must_refuse(ours)
        return
    random = not torch.equal(state, torch.get_rng_state())
    settled = random or make is _other_dtype or _equal(want, expected)
    if expected is None or lossy or not settled:
        # Nothing returned, or not what the plain call gives: no model to follow.
        return
    try:
        got = ours()
        for buffer, result in zip(ours_out, tensors(got, case.subject), strict=True):
            if result is not buffer:
                raise Mismatch("what was returned is another tensor")
        compare_outputs(case, expected, got, random, wide_answer(case, theirs))
        if strides == [t.stride() for t in theirs_out]:
            same(case.subject, theirs_out, ours_out, Rules(values=False, strides=True), at="out")
    except Mismatch as error:
        raise Mismatch(f"out= {make.__doc__}: {error}") from error


def _first(buffers: list[Any]) -> Any:
    return buffers[0]


def _equal(want: Any, expected: Any) -> bool:
    try:
        same(TORCH, list(tensors(want)), list(tensors(expected)))
    except Mismatch:
        return False
    return True


def _must_refuse(ours: Callable) -> None:
    try:
        ours()
    except (RuntimeError, TypeError):
        return
    raise Mismatch("out= int64 took floating point values; torch refuses")


def _mirror(subject: Subject, t: torch.Tensor) -> Any:
    if t.numel():
        return Twin(subject).pair(t)[1]
    # Memory borrowed from NumPy cannot grow; an empty buffer is there to be resized.
    dtype = subject.find(str(t.dtype).removeprefix("torch."))
    return subject.root.empty(tuple(t.shape), dtype=dtype)


def _strided(t: torch.Tensor) -> torch.Tensor:
    """a strided buffer full of garbage"""
    if t.ndim < 2:
        return _garbage(torch.empty((*t.shape, 2), dtype=t.dtype).select(-1, 0))
    # Only matrices are transposed: into permuted batches torch's own tril and lu write wildly.
    return _garbage(torch.empty(t.mT.shape, dtype=t.dtype).mT)


def _empty(t: torch.Tensor) -> torch.Tensor:
    """an empty buffer to be resized"""
    return torch.empty(0, dtype=t.dtype)


def _other_dtype(t: torch.Tensor) -> torch.Tensor:
    """a buffer of another dtype"""
    other = torch.int64 if t.dtype.is_floating_point or t.dtype.is_complex else torch.float64
    return _garbage(torch.empty(t.shape, dtype=other))


def _garbage(t: torch.Tensor) -> torch.Tensor:
    return t.fill_(float("nan") if t.dtype.is_floating_point or t.dtype.is_complex else 1)
