"""Runs one operator's OpInfo samples through torch and votive and tallies where they agree.

From the repository root:

    python -m tests.parity.opinfo add 'linalg.*' gelu       forward: all dtypes, all samples
    python -m tests.parity.opinfo gelu --grad --gradgrad    and derivatives (float64, complex128)
    python -m tests.parity.opinfo sum --all -v              every mode, every distinct failure
    python -m tests.parity.opinfo sum --dtype bfloat16 -vv  one dtype, with votive's tracebacks
    python -m tests.parity.opinfo add --reference           torch's larger, nastier sample set
    python -m tests.parity.opinfo --missing                 operators votive lacks
    python -m tests.parity.opinfo --self-check --all        torch against itself: finds nothing

In tests, `check(op, Settings(...), subject)` gives an `OpReport`. May not know what votive has.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
import torch

from . import buffers, gradients, known, modes
from .cases import Agreed, Case, Skip
from .compare import EXACT, Mismatch, Rules
from .resolve import counterpart
from .subject import Subject, Unsupported

MODES: dict[str, Callable[[Case], None]] = {
    "forward": modes.forward,
    "keywords": modes.keywords,
    "method": modes.method,
    "alias": modes.alias,
    "inplace": modes.inplace,
    "out": buffers.out,
    "errors": modes.errors,
    "grad": gradients.grad,
    "inplace_grad": gradients.inplace_grad,
    "gradgrad": gradients.gradgrad,
}
GRADIENT_MODES = ("grad", "inplace_grad", "gradgrad")
DTYPES = ("float64", "float32", "bfloat16", "int64", "uint8", "bool", "complex128")


@dataclass(frozen=True)
class Settings:
    """What to run."""

    modes: tuple[str, ...] = ("forward",)
    dtypes: tuple[str, ...] = DTYPES
    max_samples: int | None = None
    reference: bool = False
    rules: Rules = EXACT
    views: bool = False
    seconds: float = 60.0


@dataclass(frozen=True)
class Failure:
    """One sample on which the two disagree."""

    mode: str
    dtype: str
    index: int
    call: str
    message: str
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.mode} {self.dtype} #{self.index} {self.call}: {self.message}"


@dataclass
class Tally:
    """How many samples of one mode agreed, failed, or said nothing."""

    ok: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.ok + len(self.failures)


@dataclass
class OpReport:
    """The outcome for one operator."""

    name: str
    missing: bool = False
    tallies: dict[str, Tally] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Failure]:
        return [failure for tally in self.tallies.values() for failure in tally.failures]


class Deadline(BaseException):
    """An operator took too long. Not an Exception: no comparison may mistake it for a result."""


def key(op: Any) -> str:
    """An OpInfo's name for people: "add", "div:floor_rounding"."""
    return f"{op.name}:{op.variant_test_name}" if op.variant_test_name else op.name


def _op_db() -> list[Any]:
    # A great many objects that all stay: collecting garbage meanwhile doubles the loading time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return import_module("torch.testing._internal.common_methods_invocations").op_db
    finally:
        if collecting:
            gc.enable()


OPS: dict[str, Any] = {key(op): op for op in _op_db()}


def check(op: Any, settings: Settings, subject: Subject) -> OpReport:
    """Compare one operator in every mode asked for."""
    report = OpReport(key(op), missing=counterpart(subject, op) is None)
    if report.missing:
        return report
    report.tallies = {mode: Tally() for mode in settings.modes}
    start = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            with _deadline(settings.seconds):
                if (seed := subject.find("manual_seed")) is not None:
                    seed(0)
                for mode, dtype, index, case in _cases(op, settings, subject):
                    report.tallies[mode] = _run(report.tallies[mode], mode, dtype, index, case)
        except Deadline:
            late = TimeoutError(f"took more than {settings.seconds:g} s")
            report.tallies |= crashed(report.name, late).tallies
    report.seconds = time.perf_counter() - start
    return report


def crashed(name: str, reason: Exception) -> OpReport:
    """The report of an operator that did not come to an end."""
    failure = Failure("run", "", 0, name, f"{type(reason).__name__}: {reason}")
    return OpReport(name, tallies={"run": Tally(failures=[failure])})


def _cases(op: Any, settings: Settings, subject: Subject) -> Iterator[tuple[str, str, int, Case]]:
    plain = [m for m in settings.modes if m not in GRADIENT_MODES and m != "errors"]
    derivative = [m for m in settings.modes if m in GRADIENT_MODES]
    for name in settings.dtypes:
        dtype = getattr(torch, name)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        wants_grad = bool(derivative) and _differentiable(op, dtype)
        active = plain + derivative if wants_grad else plain
        if not active:
            continue
        for index, sample in _samples(op, dtype, wants_grad, settings):
            rules = replace(settings.rules, float32=known.ROUNDING.get(op.name))
            case = Case(subject, op, sample, rules, settings.views, first=index == 0)
            yield from ((mode, name, index, case) for mode in active)
    if "errors" in settings.modes and op.error_inputs_func is not None:
        _seed()
        for index, item in enumerate(op.error_inputs_func(op, "cpu")):
            yield "errors", "", index, Case(subject, op, item.sample_input)


def _differentiable(op: Any, dtype: torch.dtype) -> bool:
    supported = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    return supported and dtype in gradients.DTYPES


def _samples(op: Any, dtype: torch.dtype, grad: bool, settings: Settings) -> list[tuple[int, Any]]:
    # Not op.sample_inputs: for each list it reads the source of every frame on the stack.
    make = (settings.reference and op.reference_inputs_func) or op.sample_inputs_func
    _seed()
    numbered = list(enumerate(make(op, "cpu", dtype, grad)))
    if settings.max_samples is None or len(numbered) <= settings.max_samples:
        return numbered
    # Spread over the whole list: neighbours tend to differ in one option only.
    chosen = np.linspace(0, len(numbered) - 1, settings.max_samples).round().astype(int)
    return [numbered[i] for i in dict.fromkeys(chosen.tolist())]


def _run(tally: Tally, mode: str, dtype: str, index: int, case: Case) -> Tally:
    try:
        MODES[mode](case)
        tally.ok += 1
    except Agreed:
        tally.ok += 1
    except (Skip, Unsupported):
        tally.skipped += 1
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        message = first if isinstance(error, Mismatch) else f"raised {type(error).__name__}: {first}"
        trace = _trace(error)
        call = summary(case.op, case.sample)
        tally.failures.append(Failure(mode, dtype, index, call, message, trace))
    return tally


def _trace(error: BaseException) -> str:
    """The traceback, and its cause's, without the frames of this folder."""
    here = os.path.dirname(__file__)
    described = traceback.TracebackException.from_exception(error)
    level: traceback.TracebackException | None = described
    while level is not None:
        frames = [frame for frame in level.stack if not frame.filename.startswith(here)]
        level.stack = traceback.StackSummary.from_list(frames)
        level = level.__cause__ or level.__context__
    return "".join(described.format())


def _seed() -> None:
    # torch.manual_seed would also queue a call, with its stack as text, for each absent device.
    torch.default_generator.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise Deadline

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def summary(op: Any, sample: Any) -> str:
    """The call in one line: add(f64[3,4], i64[2]{0,1}, alpha=2)."""
    parts = [_brief(sample.input), *map(_brief, sample.args)]
    parts += [f"{name}={_brief(value)}" for name, value in sample.kwargs.items()]
    return f"{op.name}({', '.join(parts)})"


def _brief(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return _brief_tensor(value)
    if type(value) in (list, tuple):
        inner = ", ".join(map(_brief, value))
        return f"[{inner}]" if type(value) is list else f"({inner})"
    if isinstance(value, slice):
        ends = (value.start, value.stop, value.step)
        return ":".join("" if end is None else _brief(end) for end in ends)
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else repr(value)


def _brief_tensor(t: torch.Tensor) -> str:
    kind = "bool" if t.dtype == torch.bool else str(t.dtype).removeprefix("torch.")
    for long, short in (("float", "f"), ("complex", "c"), ("int", "i"), ("ui", "u")):
        kind = kind.replace(long, short)
    text = f"{kind}[{','.join(map(str, t.shape))}]"
    if t.layout != torch.strided:
        return f"{text}({t.layout})"
    if not t.is_contiguous():
        text += f"~{t.stride()}".replace(" ", "")
    if 0 < t.numel() <= 4:
        text += "{" + ",".join(f"{v:.4g}" for v in t.detach().flatten().tolist()) + "}"
    return text
