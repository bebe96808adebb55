"""Writing one array over another, converting as torch does. Knows arrays only."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

_finfo: Any = ml_dtypes.finfo
_E4M3FN = np.dtype(ml_dtypes.float8_e4m3fn)
_E4M3FN_MAX = float(_finfo(_E4M3FN).max)


def assign(out: Any, x: Any) -> None:
    """Write `x` over `out`, converting as torch does where NumPy leaves it open or differs."""
    have, want = x.dtype, out.dtype
    if have != want:
        if have.kind == "c" and want.kind not in "cb":
            x = x.real
        if want.kind == "u" and x.dtype.kind not in "biu":
            # Negative and large numbers wrap around by way of int64.
            x = x.astype(np.int64)
        elif want == _E4M3FN:
            # The type has no infinity; torch saturates, NumPy's cast gives NaN.
            x = np.clip(x.astype(np.float32), -_E4M3FN_MAX, _E4M3FN_MAX)
    np.copyto(out, x, casting="unsafe")
