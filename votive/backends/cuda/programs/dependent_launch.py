"""Programs that start while the one before them on the stream still runs. Knows launches only.

Where each launch is short, starting it costs as much as its work. Such a program begins early,
fetches what was there before the last ordinary launch (weights), and only then waits for the launch
before it. Every program of such a kernel calls `wait_for_last`: whoever comes next relies on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .. import runtime as rt
from .program import Program


@triton.jit
def launch_dependents(DEPENDENT: tl.constexpr):
    """Let the next launch start as soon as there is room."""
    if DEPENDENT:
        gdc_launch_dependents()


@triton.jit
def wait_for_previous(DEPENDENT: tl.constexpr):
    """Go on when all that earlier launches wrote can be read."""
    if DEPENDENT:
        gdc_wait()


class _Dependent(Program):
    __slots__ = ()
    dependent = True


def dependent(fn: Callable[..., Any], types: list[str], constants: dict[str, Any], **options: Any) -> Program:
    """A program of a kernel with a constant DEPENDENT, started early where the GPU can do that."""
    can = not rt.runtime.driver.emulated and rt.runtime.property(rt.here.device).major >= 9
    return (_Dependent if can else Program)(fn, types, {**constants, "DEPENDENT": can}, **options)
