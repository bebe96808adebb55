"""Functions that are one call of NVIDIA's library of precise functions. Knows blocks, not memory.

`tl`'s own approximations lose digits for large arguments (`exp(80)` to 1e-5).
"""

from __future__ import annotations

import triton
import triton.language as tl

if triton.knobs.runtime.interpret:
    from ..emulated.libdevice import libdevice as libdevice
else:
    from triton.language.extra.cuda import libdevice as libdevice  # type: ignore[no-redef]


@triton.jit
def f_exp(x):
    return libdevice.exp(x)


@triton.jit
def f_exp2(x):
    return libdevice.exp2(x)


@triton.jit
def f_expm1(x):
    return libdevice.expm1(x)


@triton.jit
def f_log(x):
    return libdevice.log(x)


@triton.jit
def f_log2(x):
    return libdevice.log2(x)


@triton.jit
def f_log10(x):
    return libdevice.log10(x)


@triton.jit
def f_log1p(x):
    return libdevice.log1p(x)


@triton.jit
def f_sin(x):
    return libdevice.sin(x)


@triton.jit
def f_cos(x):
    return libdevice.cos(x)


@triton.jit
def f_tan(x):
    return libdevice.tan(x)


@triton.jit
def f_asin(x):
    return libdevice.asin(x)


@triton.jit
def f_acos(x):
    return libdevice.acos(x)


@triton.jit
def f_atan(x):
    return libdevice.atan(x)


@triton.jit
def f_sinh(x):
    return libdevice.sinh(x)


@triton.jit
def f_cosh(x):
    return libdevice.cosh(x)


@triton.jit
def f_tanh(x):
    return libdevice.tanh(x)


@triton.jit
def f_asinh(x):
    return libdevice.asinh(x)


@triton.jit
def f_acosh(x):
    return libdevice.acosh(x)


@triton.jit
def f_atanh(x):
    return libdevice.atanh(x)


@triton.jit
def f_erf(x):
    return libdevice.erf(x)


@triton.jit
def f_erfc(x):
    return libdevice.erfc(x)


@triton.jit
def f_erfcx(x):
    return libdevice.erfcx(x)


@triton.jit
def f_erfinv(x):
    return libdevice.erfinv(x)


@triton.jit
def f_ndtri(x):
    return libdevice.normcdfinv(x)


@triton.jit
def f_lgamma(x):
    # A negative infinity has no sign to choose; the mathematics says infinity.
    return tl.where(x == -float("inf"), float("inf"), libdevice.lgamma(x))


@triton.jit
def f_i0(x):
    return libdevice.cyl_bessel_i0(x)


@triton.jit
def f_i1(x):
    return libdevice.cyl_bessel_i1(x)


@triton.jit
def f_sqrt(x):
    return libdevice.sqrt(x)


@triton.jit
def f_rsqrt(x):
    return libdevice.rsqrt(x)


@triton.jit
def f_reciprocal(x):
    return f_div(tl.full((), 1, x.dtype), x)


@triton.jit
def f_div(a, b):
    return libdevice.div_rn(a, b)
