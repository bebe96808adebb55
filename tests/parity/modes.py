"""The ways one sample is compared: forward, method, in-place, out=, alias, gradients, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

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
        _agree_on_error(expected, ours)
    return want, ours()


class Agreed(Exception):
    """torch raised, and so did the subject."""


def _agree_on_error(expected: Exception, ours: Callable[[], Any]) -> None:
    if isinstance(expected, NotImplementedError) or "not implemented for" in str(expected):
        raise Skip("torch lacks this dtype")
    said = f"{type(expected).__name__}: {_first_line(expected)}"
    try:
        ours()
    except Exception as error:
        if not isinstance(error, accepted(type(expected))):
            raise Mismatch(
                f"raised {type(error).__name__}: {_first_line(error)}; torch raises {said}"
            ) from error
        raise Agreed from error
    raise Mismatch(f"returned a result; torch raises {said}")


def accepted(kind: type[Exception]) -> tuple[type[Exception], ...]:
    """Exception types that count as torch's `kind`: its nearest built-in base and subclasses."""
    for builtin in (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError):
        if issubclass(kind, builtin):
            return (builtin,)
    return (kind,)


def forward(case: Case) -> None:
    """The function form, and that it changes no argument which torch leaves alone."""
    theirs, ours = translate(TORCH, case.op.op, case.op.name) or case.op.op, _ours(case)
    _compare_call(case, theirs, ours)


def method(case: Case) -> None:
    """The Tensor method and the Python operator."""
    variants = [case.op.method_variant, case.op.operator_variant]
    if not any(variants):
        raise Skip("no method")
    for variant in filter(None, variants):
        _compare_call(case, translate(TORCH, variant) or variant, _variant(case, variant))


def alias(case: Case) -> None:
    """The operator's other names."""
    if not case.op.aliases:
        raise Skip("no aliases")
    for other in case.op.aliases:
        ours = case.subject.find(other.name.removeprefix("torch."))
        if ours is None:
            raise Mismatch(f"{case.subject.name} has no {other.name}")
        _compare_call(case, other.op, ours)


def _ours(case: Case) -> Callable:
    fn = counterpart(case.subject, case.op)
    if fn is None:
        raise Mismatch(f"{case.subject.name} has no {case.op.name}")
    return fn


def _variant(case: Case, variant: Any) -> Callable:
    fn = translate(case.subject, variant)
    if fn is None:
        raise Mismatch(f"{case.subject.name} has no {getattr(variant, '__qualname__', variant)}")
    return fn


def _compare_call(case: Case, theirs: Callable, ours: Callable) -> None:
    twin = case.twin()
    state = torch.get_rng_state()
    want, got = agree(lambda: twin.torch.run(theirs), lambda: twin.votive.run(ours))
    random = not torch.equal(state, torch.get_rng_state()) and _varies(case, theirs, want)
    compare_outputs(case, want, got, random, _wide_answer(case, theirs))
    _compare_arguments(case, twin, random)
    if case.views:
        _compare_aliasing(case, twin, want, got)


def compare_outputs(
    case: Case, want: Any, got: Any, random: bool, wide: Callable[[], Any] | None
) -> None:
    """Equal results; of a result that the operator leaves open, only what it does define."""
    name = case.op.name
    if random or name in known.UNINITIALISED:
        return same(case.subject, want, got, SHAPE_ONLY)
    if name in known.GAUGE:
        same(case.subject, want, got, SHAPE_ONLY)
        want, got = _processed(case, want, got)
    if name in known.TIES and isinstance(want, tuple):
        want, got = _resolve_ties(case, want, got)
    try:
        same(case.subject, want, got, case.rules)
    except Mismatch:
        # torch's narrow answer may be the one that is off: the same sum in float64 decides.
        truth = wide() if wide else None
        if truth is None:
            raise
        if name in known.GAUGE:
            truth = case.sample.output_process_fn_grad(truth)
        same(case.subject, want, got, case.rules, truth)


def _processed(case: Case, want: Any, got: Any) -> tuple[Any, Any]:
    process = case.sample.output_process_fn_grad
    return process(want), (translate(case.subject, process) or process)(got)


def _varies(case: Case, theirs: Callable, want: Any) -> bool:
    """Whether torch's result depends on the numbers drawn (dropout with p=0 does not)."""
    if case.op.name in known.GAUGE:
        return False
    for _ in range(100):
        again = case.twin().torch.run(theirs)
        try:
            same(TORCH, want, again)
        except Mismatch:
            return True
    return False


def _wide_answer(case: Case, theirs: Callable) -> Callable[[], Any] | None:
    def widen(value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return _WIDE.get(value, value)
        return value.detach().to(_WIDE.get(value.dtype, value.dtype))

    def answer() -> Any:
        # Results in float64 have no wider witness: torch's own stands.
        if not any(t.dtype in _WIDE for t in _tensors([case.sample.input, case.sample.args])):
            return None
        try:
            wide = case.sample.transform(widen)
            return theirs(wide.input, *wide.args, **wide.kwargs)
        except Exception:
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
    for theirs, ours in zip(_tensors(want), _tensors(got, case.subject), strict=True):
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
    if x.ndim == 0 or x.numel() == 0:
        return want, got

    def values_at(index: np.ndarray) -> torch.Tensor:
        full = index if index.ndim == x.ndim else np.expand_dims(index, dim)
        if full.min() < 0 or full.max() >= x.shape[dim]:
            raise Mismatch(f"indices lie outside of dim {dim} with size {x.shape[dim]}")
        if (np.diff(np.sort(full, dim), axis=dim) == 0).any():
            raise Mismatch(f"an index occurs twice along dim {dim}")
        return torch_from_numpy(np.take_along_axis(torch_to_numpy(x), full, dim))

    theirs = values_at(torch_to_numpy(want[1]))
    ours = values_at(case.subject.to_numpy(got[1]))
    same(TORCH, theirs, ours, case.rules, at="input[output.indices]")
    return want[0], got[0]


def inplace(case: Case) -> None:
    """The in-place method: its result is its argument, changed, or torch's error."""
    variants = [case.op.inplace_variant, case.op.inplace_operator_variant]
    if not any(variants) or not isinstance(case.sample.input, torch.Tensor):
        raise Skip("no in-place form")
    if case.sample.broadcasts_input and case.op.name in known.GROWS:
        raise Skip("torch resizes the input instead of refusing")
    for variant in filter(None, variants):
        twin = case.twin()
        theirs, ours = translate(TORCH, variant) or variant, _variant(case, variant)
        state = torch.get_rng_state()
        want, got = agree(partial(twin.torch.run, theirs), partial(twin.votive.run, ours))
        if want is twin.torch.input and got is not twin.votive.input:
            raise Mismatch("the in-place form did not return its argument")
        random = not torch.equal(state, torch.get_rng_state()) and _varies(case, theirs, want)
        compare_outputs(case, want, got, random, None)


def out(case: Case) -> None:
    """out=: written through its strides, resized when empty, refused by dtype as torch does."""
    if not case.op.supports_out:
        raise Skip("no out=")
    ours = _ours(case)
    plain = case.twin()
    try:
        want = plain.torch.run(case.op.op)
    except Exception as error:
        raise Skip("torch raises") from error
    if not list(_tensors(want)):
        raise Skip("no tensor to write")
    for make in (_strided, _empty, _other_dtype)[: 3 if case.first else 1]:
        _compare_out(case, want, ours, make)


def _compare_out(case: Case, want: Any, ours: Callable, make: Callable) -> None:
    twin, single = case.twin(), isinstance(want, torch.Tensor)
    theirs_out = [make(t) for t in _tensors(want)]
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
        for buffer, result in zip(ours_out, _tensors(got, case.subject), strict=True):
            if result is not buffer:
                raise Mismatch("what was returned is another tensor")
        compare_outputs(case, expected, got, random, _wide_answer(case, case.op.op))
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


def errors(case: Case) -> None:
    """torch refuses this sample (of an ErrorInput): the subject must, with the same type."""
    twin = case.twin()
    fn = translate(TORCH, case.op.op, case.op.name) or case.op.op
    ours = _ours(case)
    try:
        twin.torch.run(fn)
    except Exception as expected:
        _agree_on_error(expected, lambda: twin.votive.run(ours))
    raise Skip("torch raises nothing on the cpu")


def _tensors(value: Any, subject: Subject = TORCH) -> Iterator[Any]:
    if subject.is_tensor(value):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()), subject)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item, subject)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]
