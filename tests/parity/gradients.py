"""First and second derivatives of one sample on both sides, with the same cotangents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from . import known
from .cases import TORCH, Case, Skip, agree, counterpart_of, tensors, variant_of
from .compare import Mismatch, same
from .convert import Twin
from .resolve import translate

DTYPES = (torch.float64, torch.complex128)


def grad(case: Case) -> None:
    """Gradients of the function with respect to every input that asks for one."""
    _compare_function(case, second=False)


def gradgrad(case: Case) -> None:
    """Gradients of the gradients, also with respect to the cotangents."""
    if not case.op.supports_gradgrad:
        raise Skip("torch has no second derivative")
    _compare_function(case, second=True)


def inplace_grad(case: Case) -> None:
    """Gradients through the in-place form, applied to a copy of the input."""
    variant = case.op.inplace_variant
    if variant is None or not case.op.supports_inplace_autograd or case.sample.broadcasts_input:
        raise Skip("no differentiable in-place form")
    twin = _differentiable(case)
    theirs, ours = translate(TORCH, variant) or variant, variant_of(case, variant)
    state = torch.get_rng_state()
    try:
        twin.torch.input = twin.torch.input.clone()
        want = twin.torch.run(theirs)
    except Exception as error:
        raise Skip("torch raises") from error
    twin.votive.input = twin.votive.input.clone()
    _compare(case, twin, want, twin.votive.run(ours), state, second=False)


def _compare_function(case: Case, second: bool) -> None:
    twin = _differentiable(case)
    theirs, ours = _functions(case)
    state = torch.get_rng_state()
    want, got = agree(lambda: twin.torch.run(theirs), lambda: twin.votive.run(ours))
    _compare(case, twin, want, got, state, second)


def _functions(case: Case) -> tuple[Callable, Callable]:
    theirs = translate(TORCH, case.op.op, case.op.name) or case.op.op
    ours = counterpart_of(case)
    if case.op.name not in known.PROJECTED:
        return theirs, ours
    wrap = case.op.gradcheck_wrapper
    wrap_ours = translate(case.subject, wrap)
    return (
        lambda *args, **kwargs: wrap(theirs, *args, **kwargs),
        lambda *args, **kwargs: wrap_ours(ours, *args, **kwargs),
    )


def _differentiable(case: Case) -> Twin:
    twin = case.twin(grad=True)
    if not twin.leaves:
        raise Skip("no input wants a gradient")
    return twin


def _compare(case: Case, twin: Twin, want: Any, got: Any, state: Any, second: bool) -> None:
    subject, process = case.subject, case.sample.output_process_fn_grad
    want = list(tensors(process(want)))
    got = list(tensors((translate(subject, process) or process)(got), subject))
    if len(want) != len(got):
        raise Mismatch(f"{len(got)} tensors come out, {len(want)} of torch")
    for index, (t, v) in enumerate(zip(want, got, strict=True)):
        if t.requires_grad != v.requires_grad:
            raise Mismatch(f"output[{index}].requires_grad is {v.requires_grad}, torch's {t.requires_grad}")
    pairs = [(t, v) for t, v in zip(want, got, strict=True) if t.requires_grad]
    if not pairs:
        raise Skip("no output has a gradient")
    rng = np.random.default_rng(0)
    seeds = Twin(subject, grad=second)
    cotangents = [seeds.pair(_normal(rng, t).requires_grad_(second)) for t, _ in pairs]
    leaves = list(twin.leaves)
    try:
        first = _backward(torch.autograd.grad, pairs, leaves, cotangents, 0, second)
    except RuntimeError as error:
        raise Skip("torch cannot differentiate this") from error
    if case.op.name not in known.GAUGE and not torch.equal(state, torch.get_rng_state()):
        raise Skip("the gradient is random")
    ours = _backward(subject.root.autograd.grad, pairs, leaves, cotangents, 1, second)
    _same_gradients(case, first, ours, leaves, "gradient")
    if second:
        _compare_second(case, first, ours, [*leaves, *cotangents], rng)


def _compare_second(case: Case, first: list, ours: list, leaves: list[tuple[torch.Tensor, Any]], rng: Any) -> None:
    subject = case.subject
    pairs = [(t, v) for t, v in zip(first, ours, strict=True) if t is not None and t.requires_grad]
    if not pairs:
        return
    seeds = Twin(subject)
    cotangents = [seeds.pair(_normal(rng, t)) for t, _ in pairs]
    try:
        want = _backward(torch.autograd.grad, pairs, leaves, cotangents, 0, False)
    except RuntimeError:
        return
    # A gradient that is None or constant on our side contributes zeros: drop it, compare the sums.
    live = [i for i, (_, v) in enumerate(pairs) if v is not None and v.requires_grad]
    got: list = [None] * len(leaves)
    if live:
        some = [pairs[i] for i in live], leaves, [cotangents[i] for i in live]
        got = _backward(subject.root.autograd.grad, *some, 1, False)
    _same_gradients(case, want, got, leaves, "second gradient")


def _backward(engine: Callable, pairs: list, leaves: list, cotangents: list, side: int, create_graph: bool) -> list:
    outputs, inputs, seeds = ([both[side] for both in part] for part in (pairs, leaves, cotangents))
    return list(engine(outputs, inputs, seeds, create_graph=create_graph, allow_unused=True))


def _same_gradients(case: Case, want: list, got: list, leaves: list, what: str) -> None:
    for index, (t, v) in enumerate(zip(want, got, strict=True)):
        at = f"{what} {index}"
        if v is None and t is not None and t.count_nonzero():
            raise Mismatch(f"{at} is None, torch's has shape {tuple(t.shape)}")
        if v is None:
            continue
        # torch leaves a gradient undefined where it is zero throughout.
        expected = torch.zeros_like(leaves[index][0]) if t is None else t
        same(case.subject, expected, v, at=at)


def _normal(rng: Any, like: torch.Tensor) -> torch.Tensor:
    values = rng.standard_normal(like.shape)
    if like.dtype.is_complex:
        values = values + 1j * rng.standard_normal(like.shape)
    return torch.from_numpy(np.asarray(values)).to(like.dtype)
