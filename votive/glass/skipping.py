"""What a module that is skipped gives in place of its result. Knows no model."""

from __future__ import annotations

import weakref
from typing import Any

import votive

from ..tensor import Tensor
from . import values
from .capture import first_input, input_at
from .probe import Frame, unobserved
from .snapshot import Snapshot

# By module: the kinds of arguments for which it is known to give one tensor that the input fits.
_plain: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()


def skipped_output(frame: Frame) -> Any:
    """What a module that is skipped gives: its first input, in the form of its result.

    The form is found out by running the module unobserved, with nothing left of that run. A module
    that gives one tensor runs so once for each kind of arguments; of one that gives more, the rest
    of the result stays as it is, so that it runs each time.
    """
    if not frame.is_module:
        raise ValueError(f"skip: {frame.address} is an operator; replace its value instead.")
    path = first_input(frame)
    if path is None:
        raise LookupError(f"skip: {frame.address} has no input to pass on.")
    given, module = input_at(frame, path), frame.subject
    kind = _kind((frame.args, frame.kwargs, module.training))
    known = _plain.setdefault(module, set())
    if kind is not None and kind in known:
        return given
    with votive.no_grad():  # only the form counts: nothing is recorded, nor kept for backward
        out = _run(frame)
    way = values.first_path(out)
    there = None if way is None else values.get(out, way)
    if way is None or there is None or there.shape != given.shape or not votive.can_cast(given.dtype, there.dtype):
        raise ValueError(_misfit(frame, given, there))
    if given.dtype.is_floating_point != there.dtype.is_floating_point:
        raise ValueError(_misfit(frame, given, there))
    if way == ():
        if kind is not None:
            known.add(kind)
        return given
    return values.put(_run(frame) if votive.is_grad_enabled() else out, way, given)


def _run(frame: Frame) -> Any:
    """What the module gives, with nothing left of having run it."""
    snapshot = Snapshot(frame.subject, frame.args, frame.kwargs)
    # What it is given may be overwritten by the module, and its caller still has it.
    args, kwargs = values.mapped((frame.args, frame.kwargs), lambda t: t.clone())
    try:
        with unobserved():
            return frame.subject.forward(*args, **kwargs)
    except Exception as e:
        e.add_note(
            f"skip: {frame.address} was run to find out the form of its result, and failed; swap "
            "in a function that gives what its caller expects."
        )
        raise
    finally:
        snapshot.restore()


def _kind(value: object) -> Any:
    """What of arguments the form of a result may depend on; None where that is not known."""
    if isinstance(value, votive.Tensor):
        return "tensor", tuple(value.shape), str(value.dtype)
    if value is None or isinstance(value, (bool, int, float, str)):
        return type(value).__name__, value
    if isinstance(value, (tuple, list)) or type(value) is dict:
        parts = [(k, _kind(v)) for k, v in values.children(value)]
        return None if any(kind is None for _, kind in parts) else (type(value).__name__, *parts)
    return None


def _misfit(frame: Frame, given: Tensor, there: Tensor | None) -> str:
    gives = "no tensor" if there is None else f"{there.dtype} {tuple(there.shape)} first"
    return (
        f"skip: {frame.address or '(model)'} cannot give its input on, which is {given.dtype} "
        f"{tuple(given.shape)}: it gives {gives}. Swap in a function that makes of its arguments "
        "what its caller expects."
    )
