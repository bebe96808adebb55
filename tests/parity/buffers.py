"""The out= form of an operator. Knows buffers, no operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .cases import (
    Agreed,
    Case,
    Skip,
    agree,
    compare_outputs,
    counterpart_of,
    tensors,
    wide_answer,
)
from .compare import Mismatch, Rules, same
from .convert import Twin
from .subject import Subject


def out(case: Case) -> None:
    """out=: written through its strides, resized when empty, refused by dtype as torch does."""
    if not case.op.supports_out:
        raise Skip("no out=")
    ours = counterpart_of(case)
    plain = case.twin()
    try:
        want = plain.torch.run(case.op.op)
    except Exception as error:
        raise Skip("torch raises") from error
    if not list(tensors(want)):
        raise Skip("no tensor to write")
    for make in (_strided, _empty, _other_dtype)[: 3 if case.first else 1]:
        _compare_out(case, want, ours, make)


def _compare_out(case: Case, want: Any, ours: Callable, make: Callable) -> None:
    twin, single = case.twin(), isinstance(want, torch.Tensor)
    theirs_out = [make(t) for t in tensors(want)]
    ours_out = [_mirror(case.subject, t) for t in theirs_out]
    pick = (lambda buffers: buffers[0]) if single else tuple
    state = torch.get_rng_state()
    try:
        expected, got = agree(
            lambda: twin.torch.run(case.op.op, out=pick(theirs_out)),
            lambda: twin.votive.run(ours, out=pick(ours_out)),
        )
        random = not torch.equal(state, torch.get_rng_state())
        if expected is None:
            raise Skip("torch returns nothing")
        for buffer, result in zip(ours_out, tensors(got, case.subject), strict=True):
            if result is not buffer:
                raise Mismatch("what was returned is another tensor")
        compare_outputs(case, expected, got, random, wide_answer(case, case.op.op))
        if make is _strided:
            same(case.subject, theirs_out, ours_out, Rules(values=False, strides=True), at="out")
    except Agreed:
        return
    except Mismatch as error:
        raise Mismatch(f"out= {make.__doc__}: {error}") from error


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
