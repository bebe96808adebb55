"""Loads the native module for this processor, or says why there is none."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ....core import dtype as dt
from ....core.storage import Storage, cpu_allocator
from ...common import native_module

LEVELS = ("baseline", "avx2", "avx512")
# In the order of the enumeration in src/vt/dtype.h.
_ORDER = (
    dt.bool_,
    dt.int8,
    dt.int16,
    dt.int32,
    dt.int64,
    dt.uint8,
    dt.uint16,
    dt.uint32,
    dt.uint64,
    dt.float16,
    dt.bfloat16,
    dt.float32,
    dt.float64,
    dt.complex64,
    dt.complex128,
)
codes = {d: i for i, d in enumerate(_ORDER)}


def built() -> tuple[str, ...]:
    """The levels that this installation holds."""
    return tuple(n for n in LEVELS if find_spec(f"{__package__}._native_{n}") is not None)


def _without(why: str) -> tuple[Any, str]:
    warnings.warn(
        f"votive: the native module was not built ({why}); computing with the slower NumPy "
        "kernels. Install a C++20 compiler and votive again, or set VOTIVE_NATIVE=0.",
        RuntimeWarning,
        stacklevel=3,
    )
    return None, f"not built ({why})"


def _load() -> tuple[Any, str]:
    """The module and why it is this one, or None and why there is none."""
    wanted = os.environ.get("VOTIVE_NATIVE", "")
    if wanted == "0":
        return None, "switched off by VOTIVE_NATIVE=0"
    if wanted and wanted not in LEVELS:
        raise ValueError(f"VOTIVE_NATIVE must be 0 or one of {', '.join(LEVELS)}, got {wanted!r}.")
    try:
        best = import_module(f"{__package__}._probe").level()
    except ImportError as e:
        return _without(str(e))
    have = built()
    if wanted:
        if LEVELS.index(wanted) > LEVELS.index(best):
            raise ValueError(f"VOTIVE_NATIVE={wanted}: this processor's best level is {best}.")
        if wanted not in have:
            raise ValueError(f"VOTIVE_NATIVE={wanted}: this installation holds {', '.join(have) or 'none'}.")
        return import_module(f"{__package__}._native_{wanted}"), f"VOTIVE_NATIVE={wanted}"
    usable = [n for n in have if LEVELS.index(n) <= LEVELS.index(best)]
    if not usable:
        return _without(f"of the levels {', '.join(have)} this processor runs none")
    why = "the best that this processor runs"
    if usable[-1] != best:
        why = f"this processor also runs {best}, which was not built"
    try:
        return import_module(f"{__package__}._native_{usable[-1]}"), why
    except ImportError as e:
        return _without(str(e))


module: Any
# Why this module, or why none.
reason: str
module, reason = _load()
native_module.module = module
if module is not None:
    module.register_dtype(dt.bfloat16.np, codes[dt.bfloat16])
    assert all(module.dtype_code(d.np) == i for d, i in codes.items())
    module.set_storage_class(Storage)
    cpu_allocator.source = module
