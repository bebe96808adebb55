"""Runs the same call with votive and torch on tensors of any layout, and compares results, layouts and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import votive

Call = Callable[..., Any]


def dense(x: Any) -> np.ndarray[Any, Any]:
    """The elements of a tensor of either library."""
    x = x.detach()
    return (x if str(x.layout).endswith("strided") else x.to_dense()).numpy()


def sparse_array(rng: np.random.Generator, *shape: int, density: float = 0.4) -> np.ndarray[Any, Any]:
    """Normal numbers, most of them replaced by zero."""
    values = rng.standard_normal(shape)
    return np.where(rng.random(shape) < density, values, 0).astype(np.float32)


def attempt(call: Call, *args: Any) -> tuple[Any, Exception | None]:
    """A result or the error that came instead."""
    try:
        return call(*args), None
    except Exception as error:
        return None, error


def listed(value: Any) -> list[Any]:
    """One result or several as a list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def same(name: str, call: Call, arrays: Sequence[Any], convert: Sequence[Call | None]) -> None:
    """Assert that votive gives what torch gives, where torch gives anything: values, layouts, dtypes, gradients."""
    import torch

    given = []
    for library in (torch, votive):
        tensors = []
        for array, to in zip(arrays, convert, strict=True):
            made = library.tensor(array)
            made = (made if to is None else to(made)).detach()
            tensors.append(made.requires_grad_() if made.is_floating_point() else made)
        given.append(tensors)
    theirs, error = attempt(call, torch, *given[0])
    if error is not None:
        return
    ours = call(votive, *given[1])
    for a, b in zip(listed(theirs), listed(ours), strict=True):
        if not isinstance(a, torch.Tensor):
            assert a == b, name
            continue
        assert str(a.layout).rpartition(".")[2] == b.layout.name, name
        assert str(a.dtype).rpartition(".")[2] == b.dtype.name, name
        assert tuple(a.shape) == tuple(b.shape), name
        np.testing.assert_allclose(dense(b), dense(a), rtol=1e-4, atol=1e-5, err_msg=name)
    if any(isinstance(a, torch.Tensor) and a.requires_grad for a in listed(theirs)):
        _same_gradients(name, theirs, ours, given)


def _same_gradients(name: str, theirs: Any, ours: Any, given: list[list[Any]]) -> None:
    def backward(results: Any) -> None:
        total = 0
        for r in listed(results):
            if r.requires_grad:
                r = r if str(r.layout).endswith("strided") else r.to_dense()
                total = total + (r * r * 0.5 + r).sum()
        total.backward()

    if attempt(backward, theirs)[1] is not None:
        return
    backward(ours)
    for a, b in zip(*given, strict=True):
        assert (a.grad is None) == (b.grad is None), f"{name}: gradient"
        if a.grad is not None:
            np.testing.assert_allclose(dense(b.grad), dense(a.grad), rtol=1e-3, atol=1e-4, err_msg=f"{name}: gradient")
