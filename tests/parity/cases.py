"""One sample on both sides: calls, errors and results compared. Knows no mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.testing._internal.opinfo.core import UnaryUfuncInfo

from . import known
from .compare import EXACT, SHAPE_ONLY, Mismatch, Rules, same
from .convert import Twin
from .resolve import counterpart, translate
from .subject import Subject, torch_from_numpy, torch_subject, torch_to_numpy

TORCH = torch_subject()
_WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


class Skip(Exception):
    """The sample says nothing in this mode."""


class Agreed(Exception):
    """torch raised, and so did the subject."""


@dataclass
class Case:
    """One sample of one operator, with what the comparison may look at."""

    subject: Subject
    op: Any
    sample: Any
    rules: Rules = EXACT
    views: bool = False
    first: bool = False

    def twin(self, grad: bool = False) -> Twin:
        return Twin.of(self.subject, self.sample, grad)


def agree(theirs: Callable[[], Any], ours: Callable[[], Any]) -> tuple[Any, Any]:
    """Both results; both raising the same kind of error raises `Agreed`."""
    try:
        want = theirs()
    except Exception as expected:
        agree_on_error(expected, ours)
    return want, ours()


def agree_on_error(expected: Exception, ours: Callable[[], Any]) -> None:
    if isinstance(expected, NotImplementedError) or "not implemented for" in str(expected):
        raise Skip("torch lacks this dtype")
    said = f"{type(expected).__name__}: {_first_line(expected)}"
    try:
        ours()
    except Exception as error:
        if not isinstance(error, accepted(type(expected))):
            raise Mismatch(f"raised {type(error).__name__}: {_first_line(error)}; torch raises {said}") from error
        raise Agreed from error
    raise Mismatch(f"returned a result; torch raises {said}")


def accepted(kind: type[Exception]) -> tuple[type[Exception], ...]:
    """Exception types that count as torch's `kind`: its nearest built-in base and subclasses."""
    for builtin in (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError):
        if issubclass(kind, builtin):
            return (builtin,)
    return (kind,)


def counterpart_of(case: Case) -> Callable:
    fn = counterpart(case.subject, case.op)
    if fn is None:
        raise Mismatch(f"{case.subject.name} has no {case.op.name}")
    return fn


def variant_of(case: Case, variant: Any) -> Callable:
    fn = translate(case.subject, variant)
    if fn is None:
        raise Mismatch(f"{case.subject.name} has no Tensor.{getattr(variant, '__name__', variant)}")
    return fn


def compare_call(case: Case, theirs: Callable, ours: Callable) -> None:
    twin = case.twin()
    state = torch.get_rng_state()
    want, got = agree(lambda: twin.torch.run(theirs), lambda: twin.votive.run(ours))
    random = not torch.equal(state, torch.get_rng_state()) and varies(case, theirs, want)
    try:
        compare_outputs(case, want, got, random, wide_answer(case, theirs))
    except Mismatch:
        if varies(case, theirs, want, times=2):
            raise Skip("torch disagrees with itself: it reads foreign memory") from None
        raise
    _compare_arguments(case, twin, random)
    if case.views:
        _compare_aliasing(case, twin, want, got)


def compare_outputs(case: Case, want: Any, got: Any, random: bool, wide: Callable[[], Any]) -> None:
    """Equal results; of a result that the operator leaves open, only what it does define."""
    name = case.op.name
    if random or name in known.UNINITIALISED:
        return same(case.subject, want, got, SHAPE_ONLY)
    if name in known.GAUGE:
        same(case.subject, want, got, SHAPE_ONLY)
        want, got = _processed(case, want, got)
    if name in known.TIES and (isinstance(want, tuple) or name == "argsort"):
        want, got = _resolve_ties(case, want, got)
    try:
        same(case.subject, want, got, case.rules)
    except Mismatch:
        # torch's narrow answer may be the one that is off: the same sum in float64 decides.
        truth = wide()
        if truth is None:
            raise
        if name in known.GAUGE:
            truth = case.sample.output_process_fn_grad(truth)
        elif isinstance(want, list) and name in known.TIES:
            truth = list(tensors(truth))[: len(want)]
        same(case.subject, want, got, case.rules, truth)


def _processed(case: Case, want: Any, got: Any) -> tuple[Any, Any]:
    process = case.sample.output_process_fn_grad
    return process(want), (translate(case.subject, process) or process)(got)


def varies(case: Case, theirs: Callable, want: Any, times: int = 100) -> bool:
    """Whether torch's result depends on the numbers drawn (dropout with p=0 does not)."""
    if case.op.name in known.GAUGE:
        return False
    for _ in range(times):
        again = case.twin().torch.run(theirs)
        try:
            same(TORCH, want, again)
        except Mismatch:
            return True
    return False


def wide_answer(case: Case, theirs: Callable) -> Callable[[], Any]:
    """A better witness than torch's answer, made when asked for; None where there is none."""

    def widen(value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return _WIDE.get(value, value)
        return value.detach().to(_WIDE.get(value.dtype, value.dtype))

    def answer() -> Any:
        sample = case.sample
        try:
            narrow = {t.dtype for t in tensors([sample.input, sample.args])}
            if (narrow | {sample.kwargs.get("dtype")}) & _WIDE.keys():
                wide = sample.transform(widen)
                return theirs(wide.input, *wide.args, **wide.kwargs)
            if isinstance(case.op, UnaryUfuncInfo) and not (sample.args or sample.kwargs):
                # OpInfo names SciPy's function, which is closer than torch's for some of them.
                return torch.from_numpy(np.asarray(case.op.ref(torch_to_numpy(sample.input))))
        except Exception:
            return None
        return None

    return answer


def _compare_arguments(case: Case, twin: Twin, random: bool) -> None:
    # By content: torch's version counter does not tell of batch_norm's running statistics.
    match twin.overwritten():
        case (False, False):
            return
        case (False, True):
            raise Mismatch("an argument was overwritten; torch leaves them alone")
    rules = SHAPE_ONLY if random or case.op.name in known.UNINITIALISED else case.rules
    for index, (theirs, ours) in enumerate(twin.tensors):
        same(case.subject, theirs, ours, rules, at=f"tensor argument {index} after the call")


def _compare_aliasing(case: Case, twin: Twin, want: Any, got: Any) -> None:
    owners = {t.untyped_storage().data_ptr() for t, _ in twin.tensors}
    for theirs, ours in zip(tensors(want), tensors(got, case.subject), strict=True):
        if theirs.numel() == 0:
            continue
        expected = theirs.untyped_storage().data_ptr() in owners
        array = case.subject.to_numpy(ours)
        found = any(np.may_share_memory(array, block) for _, _, block in twin.blocks)
        if expected != found:
            which = ("a copy", "a view") if expected else ("a view", "a copy")
            raise Mismatch(f"output is {which[0]} of an argument, torch's {which[1]}")


def _resolve_ties(case: Case, want: Any, got: Any) -> tuple[Any, Any]:
    """Compare the values at both sides' indices: which of equal elements is unspecified."""
    position = known.TIES[case.op.name]
    args, kwargs, x = case.sample.args, case.sample.kwargs, case.sample.input
    dim = kwargs.get("dim", args[position] if len(args) > position else -1)
    same(case.subject, want, got, SHAPE_ONLY)
    if kwargs.get("stable") or x.ndim == 0 or x.numel() == 0:
        return want, got

    def values_at(index: np.ndarray) -> torch.Tensor:
        full = index if index.ndim == x.ndim else np.expand_dims(index, dim)
        if full.min() < 0 or full.max() >= x.shape[dim]:
            raise Mismatch(f"indices lie outside of dim {dim} with size {x.shape[dim]}")
        if (np.diff(np.sort(full, dim), axis=dim) == 0).any():
            raise Mismatch(f"an index occurs twice along dim {dim}")
        return torch_from_numpy(np.take_along_axis(torch_to_numpy(x), full, dim))

    (*values, theirs), (*ours_values, ours) = tensors(want), tensors(got, case.subject)
    at = values_at(torch_to_numpy(theirs)), values_at(case.subject.to_numpy(ours))
    same(TORCH, *at, case.rules, at="input[indices]")
    return values, ours_values


def tensors(value: Any, subject: Subject = TORCH) -> Iterator[Any]:
    if subject.is_tensor(value):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()), subject)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item, subject)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]
