"""Functions that are one call of NVIDIA's library of precise functions. Knows blocks, not memory.

`tl`'s own approximations lose digits for large arguments (`exp(80)` to 1e-5).
"""

from __future__ import annotations

import triton
import triton.language as tl

from .source import one_liners

if triton.knobs.runtime.interpret:
    from ..emulated.libdevice import libdevice as libdevice
else:
    from triton.language.extra.cuda import libdevice as libdevice  # type: ignore[no-redef]


@triton.jit
def f_lgamma(x):
    # A negative infinity has no sign to choose; the mathematics says infinity.
    return tl.where(x == -float("inf"), float("inf"), libdevice.lgamma(x))


@triton.jit
def f_reciprocal(x):
    return f_div(tl.full((), 1, x.dtype), x)


@triton.jit
def f_div(a, b):
    return libdevice.div_rn(a, b)


one_liners(
    globals(),
    {
        "f_exp(x)": "libdevice.exp(x)",
        "f_exp2(x)": "libdevice.exp2(x)",
        "f_expm1(x)": "libdevice.expm1(x)",
        "f_log(x)": "libdevice.log(x)",
        "f_log2(x)": "libdevice.log2(x)",
        "f_log10(x)": "libdevice.log10(x)",
        "f_log1p(x)": "libdevice.log1p(x)",
        "f_sin(x)": "libdevice.sin(x)",
        "f_cos(x)": "libdevice.cos(x)",
        "f_tan(x)": "libdevice.tan(x)",
        "f_asin(x)": "libdevice.asin(x)",
        "f_acos(x)": "libdevice.acos(x)",
        "f_atan(x)": "libdevice.atan(x)",
        "f_sinh(x)": "libdevice.sinh(x)",
        "f_cosh(x)": "libdevice.cosh(x)",
        "f_tanh(x)": "libdevice.tanh(x)",
        "f_asinh(x)": "libdevice.asinh(x)",
        "f_acosh(x)": "libdevice.acosh(x)",
        "f_atanh(x)": "libdevice.atanh(x)",
        "f_erf(x)": "libdevice.erf(x)",
        "f_erfc(x)": "libdevice.erfc(x)",
        "f_erfcx(x)": "libdevice.erfcx(x)",
        "f_erfinv(x)": "libdevice.erfinv(x)",
        "f_ndtri(x)": "libdevice.normcdfinv(x)",
        "f_i0(x)": "libdevice.cyl_bessel_i0(x)",
        "f_i1(x)": "libdevice.cyl_bessel_i1(x)",
        "f_sqrt(x)": "libdevice.sqrt(x)",
        "f_rsqrt(x)": "libdevice.rsqrt(x)",
    },
)
