"""Keeps NumPy from warning about what is ordinary here: overflow to inf, 0/0, and their like."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

try:  # Entering np.errstate costs as much as a small kernel; its context variable costs a tenth.
    _numpy = import_module("numpy._core._multiarray_umath")
    quiet_set: Any = _numpy._extobj_contextvar.set
    quiet_reset: Any = _numpy._extobj_contextvar.reset
    QUIET: Any = _numpy._make_extobj(all="ignore")
except (ImportError, AttributeError):  # a NumPy that hides it: the public way, slower

    def quiet_set(_: Any) -> Any:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def quiet_reset(state: Any) -> None:
        state.__exit__(None, None, None)

    QUIET = None
