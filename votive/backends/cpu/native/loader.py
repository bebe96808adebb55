"""Loads the native module for this processor, or says why there is none."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any

from ....core import dtype as dt
from ....core.storage import Storage, cpu_allocator

LEVELS = ("baseline", "avx2", "avx512")
# In the order of the enumeration in src/vt/dtype.h.
_ORDER = (
    dt.bool_, dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8, dt.uint16, dt.uint32, dt.uint64,
    dt.float16, dt.bfloat16, dt.float32, dt.float64, dt.complex64, dt.complex128,
)  # fmt: skip
codes = {d: i for i, d in enumerate(_ORDER)}

module: Any = None
reason = ""


def _load() -> tuple[Any, str]:
    wanted = os.environ.get("VOTIVE_NATIVE", "")
    if wanted == "0":
        return None, "switched off by VOTIVE_NATIVE=0"
    try:
        best = import_module(f"{__package__}._probe").level()
    except ImportError as e:
        why = f"the native module was not built ({e})"
        warnings.warn(
            f"votive: {why}; computing with the slower NumPy kernels. "
            "Install votive again with a C++20 compiler at hand, or set VOTIVE_NATIVE=0.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None, why
    if wanted:
        if wanted not in LEVELS:
            raise ValueError(
                f"VOTIVE_NATIVE must be 0 or one of {', '.join(LEVELS)}, got {wanted!r}."
            )
        if LEVELS.index(wanted) > LEVELS.index(best):
            raise ValueError(f"VOTIVE_NATIVE={wanted}: this processor's best level is {best}.")
        return import_module(f"{__package__}._native_{wanted}"), ""
    # A build may hold fewer levels than there are.
    for level in reversed(LEVELS[: LEVELS.index(best) + 1]):
        try:
            return import_module(f"{__package__}._native_{level}"), ""
        except ImportError:
            continue
    return None, f"no native module for level {best} or below was built"


module, reason = _load()
if module is not None:
    module.register_dtype(dt.bfloat16.np, codes[dt.bfloat16])
    assert all(module.dtype_code(d.np) == i for d, i in codes.items())
    module.set_storage_class(Storage)
    cpu_allocator.source = module
