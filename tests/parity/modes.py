"""The ways to call an operator: function, keywords, method, operator, alias, in place, wrongly."""

from __future__ import annotations

from functools import partial

import torch

from . import known
from .cases import (
    TORCH,
    Case,
    Skip,
    agree,
    agree_on_error,
    compare_call,
    compare_outputs,
    counterpart_of,
    variant_of,
    varies,
    wide_answer,
)
from .compare import Mismatch
from .keywords import keyword_forms
from .resolve import TABLE, translate


def forward(case: Case) -> None:
    """The function form, and that it changes no argument which torch leaves alone."""
    theirs, ours = translate(TORCH, case.op.op, case.op.name) or case.op.op, counterpart_of(case)
    compare_call(case, theirs, ours)


def keywords(case: Case) -> None:
    """The function form with its arguments by torch's names."""
    if case.op.name in TABLE or case.op.name.startswith("__"):
        raise Skip("no function of that name")
    values = (case.sample.input, *case.sample.args)
    theirs, ours = case.op.op, counterpart_of(case)
    for names in keyword_forms(case.op, len(values)):
        by_name = lambda fn, names=names: lambda *args, **kw: fn(**dict(zip(names, args)), **kw)
        try:
            case.twin().torch.run(by_name(theirs))
        except Exception:
            continue
        compare_call(case, by_name(theirs), by_name(ours))
        return
    raise Skip("torch takes these by position only")


def method(case: Case) -> None:
    """The Tensor method and the Python operator."""
    variants = [case.op.method_variant, case.op.operator_variant]
    if not any(variants) or case.op.name in TABLE:
        raise Skip("no method")
    for variant in filter(None, variants):
        compare_call(case, translate(TORCH, variant) or variant, variant_of(case, variant))


def alias(case: Case) -> None:
    """The operator's other names."""
    if not case.op.aliases:
        raise Skip("no aliases")
    for other in case.op.aliases:
        ours = case.subject.find(other.name.removeprefix("torch."))
        if ours is None:
            raise Mismatch(f"{case.subject.name} has no {other.name}")
        compare_call(case, other.op, ours)


def inplace(case: Case) -> None:
    """The in-place method: its result is its argument, changed, or torch's error."""
    variants = [case.op.inplace_variant, case.op.inplace_operator_variant]
    if not any(variants) or not isinstance(case.sample.input, torch.Tensor):
        raise Skip("no in-place form")
    if case.sample.broadcasts_input and case.op.name in known.GROWS:
        raise Skip("torch resizes the input instead of refusing")
    for variant in filter(None, variants):
        twin = case.twin()
        theirs, ours = translate(TORCH, variant) or variant, variant_of(case, variant)
        state = torch.get_rng_state()
        want, got = agree(partial(twin.torch.run, theirs), partial(twin.votive.run, ours))
        if want is twin.torch.input and got is not twin.votive.input:
            raise Mismatch("the in-place form did not return its argument")
        random = not torch.equal(state, torch.get_rng_state()) and varies(case, theirs, want)
        compare_outputs(case, want, got, random, wide_answer(case, theirs))


def errors(case: Case) -> None:
    """torch refuses this sample (of an ErrorInput): the subject must, with the same type."""
    if not isinstance(case.sample.input, torch.Tensor) and case.op.name.startswith("__"):
        raise Skip("Python never calls a reflected operator so")
    twin = case.twin()
    fn = translate(TORCH, case.op.op, case.op.name) or case.op.op
    ours = counterpart_of(case)
    try:
        twin.torch.run(fn)
    except Exception as expected:
        agree_on_error(expected, lambda: twin.votive.run(ours))
    raise Skip("torch raises nothing on the cpu")
