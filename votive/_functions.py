"""Public functions, written by `scripts/generate.py`: do not edit."""

# ruff: noqa
from __future__ import annotations

from typing import Any

from .dispatch import binary, call, call_inplace, call_out, unary
from .operators import declared_operators
from .ops.registry import COMPOSITES, OPS
from .surface import composite_inplace, composite_out, wrong_argument

_op_softplus = OPS["softplus"]
_fast_softplus = unary(_op_softplus)


def softplus(input, beta=1, threshold=20, *, out=None) -> Any:
    if out is None and beta == 1 and threshold == 20:
        return _fast_softplus(input)
    if out is None:
        return call(_op_softplus, (input, beta, threshold))
    return call_out(_op_softplus, (input, beta, threshold), out)


_op_logsigmoid = OPS["logsigmoid"]
_fast_logsigmoid = unary(_op_logsigmoid)


def logsigmoid(input, *, out=None) -> Any:
    if out is None:
        return _fast_logsigmoid(input)
    return call_out(_op_logsigmoid, (input,), out)


_op_gelu = OPS["gelu"]
_fast_gelu = unary(_op_gelu)


def gelu(input, *, approximate='none', out=None) -> Any:
    if out is None and approximate == 'none':
        return _fast_gelu(input)
    if out is None:
        return call(_op_gelu, (input, approximate))
    return call_out(_op_gelu, (input, approximate), out)


_op_silu = OPS["silu"]
_fast_silu = unary(_op_silu)


def silu(input) -> Any:
    return _fast_silu(input)


_op_mish = OPS["mish"]
_fast_mish = unary(_op_mish)


def mish(input) -> Any:
    return _fast_mish(input)


_op_swiglu = OPS["swiglu"]
_fast_swiglu = binary(_op_swiglu)


def swiglu(gate, up, *, out=None) -> Any:
    if out is None:
        return _fast_swiglu(gate, up)
    return call_out(_op_swiglu, (gate, up), out)


_op_hardsigmoid = OPS["hardsigmoid"]
_fast_hardsigmoid = unary(_op_hardsigmoid)


def hardsigmoid(input) -> Any:
    return _fast_hardsigmoid(input)


_op_hardswish = OPS["hardswish"]
_fast_hardswish = unary(_op_hardswish)


def hardswish(input) -> Any:
    return _fast_hardswish(input)


_op_hardshrink = OPS["hardshrink"]
_fast_hardshrink = unary(_op_hardshrink)


def hardshrink(input, lambd=0.5, *, out=None) -> Any:
    if out is None and lambd == 0.5:
        return _fast_hardshrink(input)
    if out is None:
        return call(_op_hardshrink, (input, lambd))
    return call_out(_op_hardshrink, (input, lambd), out)


_op_softshrink = OPS["softshrink"]
_fast_softshrink = unary(_op_softshrink)


def softshrink(input, lambd=0.5, *, out=None) -> Any:
    if out is None and lambd == 0.5:
        return _fast_softshrink(input)
    if out is None:
        return call(_op_softshrink, (input, lambd))
    return call_out(_op_softshrink, (input, lambd), out)


_op_tanhshrink = OPS["tanhshrink"]
_fast_tanhshrink = unary(_op_tanhshrink)


def tanhshrink(input) -> Any:
    return _fast_tanhshrink(input)


_op_softsign = OPS["softsign"]
_fast_softsign = unary(_op_softsign)


def softsign(input) -> Any:
    return _fast_softsign(input)


_op_matmul = OPS["matmul"]


def matmul(input, other, *, out=None) -> Any:
    if out is None:
        return call(_op_matmul, (input, other))
    return call_out(_op_matmul, (input, other), out)


_op_linear = OPS["linear"]


def linear(input, weight, bias=None, *, out=None) -> Any:
    if out is None:
        return call(_op_linear, (input, weight, bias))
    return call_out(_op_linear, (input, weight, bias), out)


_op_add = OPS["add"]
_fast_add = binary(_op_add)


def add(input, other, *, alpha=1, out=None) -> Any:
    if out is None and alpha == 1:
        return _fast_add(input, other)
    if out is None:
        return call(_op_add, (input, other, alpha))
    return call_out(_op_add, (input, other, alpha), out)


def add_(input, other, *, alpha=1) -> Any:
    return call_inplace(_op_add, (input, other, alpha))


_op_sub = OPS["sub"]
_fast_sub = binary(_op_sub)


def sub(input, other, *, alpha=1, out=None) -> Any:
    if out is None and alpha == 1:
        return _fast_sub(input, other)
    if out is None:
        return call(_op_sub, (input, other, alpha))
    return call_out(_op_sub, (input, other, alpha), out)


def sub_(input, other, *, alpha=1) -> Any:
    return call_inplace(_op_sub, (input, other, alpha))


_op_mul = OPS["mul"]
_fast_mul = binary(_op_mul)


def mul(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_mul(input, other)
    return call_out(_op_mul, (input, other), out)


def mul_(input, other) -> Any:
    return call_inplace(_op_mul, (input, other))


_op_div = OPS["div"]
_fast_div = binary(_op_div)


def div(input, other, *, rounding_mode=None, out=None) -> Any:
    if out is None and rounding_mode == None:
        return _fast_div(input, other)
    if out is None:
        return call(_op_div, (input, other, rounding_mode))
    return call_out(_op_div, (input, other, rounding_mode), out)


def div_(input, other, *, rounding_mode=None) -> Any:
    return call_inplace(_op_div, (input, other, rounding_mode))


_op_floor_divide = OPS["floor_divide"]
_fast_floor_divide = binary(_op_floor_divide)


def floor_divide(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_floor_divide(input, other)
    return call_out(_op_floor_divide, (input, other), out)


def floor_divide_(input, other) -> Any:
    return call_inplace(_op_floor_divide, (input, other))


_op_remainder = OPS["remainder"]
_fast_remainder = binary(_op_remainder)


def remainder(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_remainder(input, other)
    return call_out(_op_remainder, (input, other), out)


def remainder_(input, other) -> Any:
    return call_inplace(_op_remainder, (input, other))


_op_fmod = OPS["fmod"]
_fast_fmod = binary(_op_fmod)


def fmod(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_fmod(input, other)
    return call_out(_op_fmod, (input, other), out)


def fmod_(input, other) -> Any:
    return call_inplace(_op_fmod, (input, other))


_op_neg = OPS["neg"]
_fast_neg = unary(_op_neg)


def neg(input, *, out=None) -> Any:
    if out is None:
        return _fast_neg(input)
    return call_out(_op_neg, (input,), out)


def neg_(input) -> Any:
    return call_inplace(_op_neg, (input,))


_op_addcmul = OPS["addcmul"]


def addcmul(input, tensor1, tensor2, *, value=1, out=None) -> Any:
    if out is None:
        return call(_op_addcmul, (input, tensor1, tensor2, value))
    return call_out(_op_addcmul, (input, tensor1, tensor2, value), out)


def addcmul_(input, tensor1, tensor2, *, value=1) -> Any:
    return call_inplace(_op_addcmul, (input, tensor1, tensor2, value))


_op_addcdiv = OPS["addcdiv"]


def addcdiv(input, tensor1, tensor2, *, value=1, out=None) -> Any:
    if out is None:
        return call(_op_addcdiv, (input, tensor1, tensor2, value))
    return call_out(_op_addcdiv, (input, tensor1, tensor2, value), out)


def addcdiv_(input, tensor1, tensor2, *, value=1) -> Any:
    return call_inplace(_op_addcdiv, (input, tensor1, tensor2, value))


_op_lerp = OPS["lerp"]


def lerp(input, end, weight, *, out=None) -> Any:
    if out is None:
        return call(_op_lerp, (input, end, weight))
    return call_out(_op_lerp, (input, end, weight), out)


def lerp_(input, end, weight) -> Any:
    return call_inplace(_op_lerp, (input, end, weight))


_op_hypot = OPS["hypot"]
_fast_hypot = binary(_op_hypot)


def hypot(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_hypot(input, other)
    return call_out(_op_hypot, (input, other), out)


def hypot_(input, other) -> Any:
    return call_inplace(_op_hypot, (input, other))


_op_gcd = OPS["gcd"]
_fast_gcd = binary(_op_gcd)


def gcd(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_gcd(input, other)
    return call_out(_op_gcd, (input, other), out)


def gcd_(input, other) -> Any:
    return call_inplace(_op_gcd, (input, other))


_op_lcm = OPS["lcm"]
_fast_lcm = binary(_op_lcm)


def lcm(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_lcm(input, other)
    return call_out(_op_lcm, (input, other), out)


def lcm_(input, other) -> Any:
    return call_inplace(_op_lcm, (input, other))


_op_relu = OPS["relu"]
_fast_relu = unary(_op_relu)


def relu(input, *, out=None) -> Any:
    if out is None:
        return _fast_relu(input)
    return call_out(_op_relu, (input,), out)


def relu_(input) -> Any:
    return call_inplace(_op_relu, (input,))


_op_hardtanh = OPS["hardtanh"]


def hardtanh(input, min_val, max_val) -> Any:
    return call(_op_hardtanh, (input, min_val, max_val))


_op_threshold = OPS["threshold"]


def threshold(input, threshold, value) -> Any:
    return call(_op_threshold, (input, threshold, value))


_op_leaky_relu = OPS["leaky_relu"]


def leaky_relu(input, negative_slope) -> Any:
    return call(_op_leaky_relu, (input, negative_slope))


_op_elu = OPS["elu"]


def elu(input, alpha, scale, input_scale) -> Any:
    return call(_op_elu, (input, alpha, scale, input_scale))


_op_bitwise_and = OPS["bitwise_and"]
_fast_bitwise_and = binary(_op_bitwise_and)


def bitwise_and(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_bitwise_and(input, other)
    return call_out(_op_bitwise_and, (input, other), out)


def bitwise_and_(input, other) -> Any:
    return call_inplace(_op_bitwise_and, (input, other))


_op_bitwise_or = OPS["bitwise_or"]
_fast_bitwise_or = binary(_op_bitwise_or)


def bitwise_or(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_bitwise_or(input, other)
    return call_out(_op_bitwise_or, (input, other), out)


def bitwise_or_(input, other) -> Any:
    return call_inplace(_op_bitwise_or, (input, other))


_op_bitwise_xor = OPS["bitwise_xor"]
_fast_bitwise_xor = binary(_op_bitwise_xor)


def bitwise_xor(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_bitwise_xor(input, other)
    return call_out(_op_bitwise_xor, (input, other), out)


def bitwise_xor_(input, other) -> Any:
    return call_inplace(_op_bitwise_xor, (input, other))


_op_bitwise_not = OPS["bitwise_not"]
_fast_bitwise_not = unary(_op_bitwise_not)


def bitwise_not(input, *, out=None) -> Any:
    if out is None:
        return _fast_bitwise_not(input)
    return call_out(_op_bitwise_not, (input,), out)


def bitwise_not_(input) -> Any:
    return call_inplace(_op_bitwise_not, (input,))


_op_bitwise_left_shift = OPS["bitwise_left_shift"]
_fast_bitwise_left_shift = binary(_op_bitwise_left_shift)


def bitwise_left_shift(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_bitwise_left_shift(input, other)
    return call_out(_op_bitwise_left_shift, (input, other), out)


def bitwise_left_shift_(input, other) -> Any:
    return call_inplace(_op_bitwise_left_shift, (input, other))


_op_bitwise_right_shift = OPS["bitwise_right_shift"]
_fast_bitwise_right_shift = binary(_op_bitwise_right_shift)


def bitwise_right_shift(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_bitwise_right_shift(input, other)
    return call_out(_op_bitwise_right_shift, (input, other), out)


def bitwise_right_shift_(input, other) -> Any:
    return call_inplace(_op_bitwise_right_shift, (input, other))


_op_maximum = OPS["maximum"]
_fast_maximum = binary(_op_maximum)


def maximum(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_maximum(input, other)
    return call_out(_op_maximum, (input, other), out)


_op_minimum = OPS["minimum"]
_fast_minimum = binary(_op_minimum)


def minimum(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_minimum(input, other)
    return call_out(_op_minimum, (input, other), out)


_op_fmax = OPS["fmax"]
_fast_fmax = binary(_op_fmax)


def fmax(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_fmax(input, other)
    return call_out(_op_fmax, (input, other), out)


_op_fmin = OPS["fmin"]
_fast_fmin = binary(_op_fmin)


def fmin(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_fmin(input, other)
    return call_out(_op_fmin, (input, other), out)


_op_copy = OPS["copy"]


def copy(input, src) -> Any:
    return call(_op_copy, (input, src))


_op_cat = OPS["cat"]


def cat(tensors, dim=0, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        return call(_op_cat, (tensors, dim))
    return call_out(_op_cat, (tensors, dim), out)


_op_stack = OPS["stack"]


def stack(tensors, dim=0, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        return call(_op_stack, (tensors, dim))
    return call_out(_op_stack, (tensors, dim), out)


_op_eq = OPS["eq"]
_fast_eq = binary(_op_eq)


def eq(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_eq(input, other)
    return call_out(_op_eq, (input, other), out)


def eq_(input, other) -> Any:
    return call_inplace(_op_eq, (input, other))


_op_ne = OPS["ne"]
_fast_ne = binary(_op_ne)


def ne(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_ne(input, other)
    return call_out(_op_ne, (input, other), out)


def ne_(input, other) -> Any:
    return call_inplace(_op_ne, (input, other))


_op_lt = OPS["lt"]
_fast_lt = binary(_op_lt)


def lt(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_lt(input, other)
    return call_out(_op_lt, (input, other), out)


def lt_(input, other) -> Any:
    return call_inplace(_op_lt, (input, other))


_op_le = OPS["le"]
_fast_le = binary(_op_le)


def le(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_le(input, other)
    return call_out(_op_le, (input, other), out)


def le_(input, other) -> Any:
    return call_inplace(_op_le, (input, other))


_op_gt = OPS["gt"]
_fast_gt = binary(_op_gt)


def gt(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_gt(input, other)
    return call_out(_op_gt, (input, other), out)


def gt_(input, other) -> Any:
    return call_inplace(_op_gt, (input, other))


_op_ge = OPS["ge"]
_fast_ge = binary(_op_ge)


def ge(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_ge(input, other)
    return call_out(_op_ge, (input, other), out)


def ge_(input, other) -> Any:
    return call_inplace(_op_ge, (input, other))


_op_isnan = OPS["isnan"]
_fast_isnan = unary(_op_isnan)


def isnan(input) -> Any:
    return _fast_isnan(input)


_op_isinf = OPS["isinf"]
_fast_isinf = unary(_op_isinf)


def isinf(input) -> Any:
    return _fast_isinf(input)


_op_isfinite = OPS["isfinite"]
_fast_isfinite = unary(_op_isfinite)


def isfinite(input) -> Any:
    return _fast_isfinite(input)


_op_isposinf = OPS["isposinf"]
_fast_isposinf = unary(_op_isposinf)


def isposinf(input, *, out=None) -> Any:
    if out is None:
        return _fast_isposinf(input)
    return call_out(_op_isposinf, (input,), out)


_op_isneginf = OPS["isneginf"]
_fast_isneginf = unary(_op_isneginf)


def isneginf(input, *, out=None) -> Any:
    if out is None:
        return _fast_isneginf(input)
    return call_out(_op_isneginf, (input,), out)


_op_logical_and = OPS["logical_and"]
_fast_logical_and = binary(_op_logical_and)


def logical_and(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_logical_and(input, other)
    return call_out(_op_logical_and, (input, other), out)


def logical_and_(input, other) -> Any:
    return call_inplace(_op_logical_and, (input, other))


_op_logical_or = OPS["logical_or"]
_fast_logical_or = binary(_op_logical_or)


def logical_or(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_logical_or(input, other)
    return call_out(_op_logical_or, (input, other), out)


def logical_or_(input, other) -> Any:
    return call_inplace(_op_logical_or, (input, other))


_op_logical_xor = OPS["logical_xor"]
_fast_logical_xor = binary(_op_logical_xor)


def logical_xor(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_logical_xor(input, other)
    return call_out(_op_logical_xor, (input, other), out)


def logical_xor_(input, other) -> Any:
    return call_inplace(_op_logical_xor, (input, other))


_op_logical_not = OPS["logical_not"]
_fast_logical_not = unary(_op_logical_not)


def logical_not(input, *, out=None) -> Any:
    if out is None:
        return _fast_logical_not(input)
    return call_out(_op_logical_not, (input,), out)


def logical_not_(input) -> Any:
    return call_inplace(_op_logical_not, (input,))


_op_transpose = OPS["transpose"]


def transpose(input, dim0, dim1) -> Any:
    return call(_op_transpose, (input, dim0, dim1))


_op_t = OPS["t"]


def t(input) -> Any:
    return call(_op_t, (input,))


_op_squeeze = OPS["squeeze"]


def squeeze(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    return call(_op_squeeze, (input, dim))


_op_unsqueeze = OPS["unsqueeze"]


def unsqueeze(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    return call(_op_unsqueeze, (input, dim))


_op_complex = OPS["complex"]
_fast_complex = binary(_op_complex)


def complex(real, imag, *, out=None) -> Any:
    if out is None:
        return _fast_complex(real, imag)
    return call_out(_op_complex, (real, imag), out)


_op_polar = OPS["polar"]
_fast_polar = binary(_op_polar)


def polar(abs, angle, *, out=None) -> Any:
    if out is None:
        return _fast_polar(abs, angle)
    return call_out(_op_polar, (abs, angle), out)


_op_angle = OPS["angle"]
_fast_angle = unary(_op_angle)


def angle(input, *, out=None) -> Any:
    if out is None:
        return _fast_angle(input)
    return call_out(_op_angle, (input,), out)


_op_sgn = OPS["sgn"]
_fast_sgn = unary(_op_sgn)


def sgn(input, *, out=None) -> Any:
    if out is None:
        return _fast_sgn(input)
    return call_out(_op_sgn, (input,), out)


def sgn_(input) -> Any:
    return call_inplace(_op_sgn, (input,))


_op_view_as_real = OPS["view_as_real"]


def view_as_real(input) -> Any:
    return call(_op_view_as_real, (input,))


_op_select = OPS["select"]


def select(input, dim, index) -> Any:
    return call(_op_select, (input, dim, index))


_op_unfold = OPS["unfold"]


def unfold(input, dimension, size, step) -> Any:
    return call(_op_unfold, (input, dimension, size, step))


_op_diagonal = OPS["diagonal"]


def diagonal(input, offset=0, dim1=0, dim2=1) -> Any:
    return call(_op_diagonal, (input, offset, dim1, dim2))


_op_tril = OPS["tril"]


def tril(input, diagonal=0, *, out=None) -> Any:
    if out is None:
        return call(_op_tril, (input, diagonal))
    return call_out(_op_tril, (input, diagonal), out)


def tril_(input, diagonal=0) -> Any:
    return call_inplace(_op_tril, (input, diagonal))


_op_triu = OPS["triu"]


def triu(input, diagonal=0, *, out=None) -> Any:
    if out is None:
        return call(_op_triu, (input, diagonal))
    return call_out(_op_triu, (input, diagonal), out)


def triu_(input, diagonal=0) -> Any:
    return call_inplace(_op_triu, (input, diagonal))


_op_sum = OPS["sum"]


def sum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_sum, (input, dim, keepdim, dtype))
    return call_out(_op_sum, (input, dim, keepdim, dtype), out)


_op_nansum = OPS["nansum"]


def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_nansum, (input, dim, keepdim, dtype))
    return call_out(_op_nansum, (input, dim, keepdim, dtype), out)


_op_mean = OPS["mean"]


def mean(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_mean, (input, dim, keepdim, dtype))
    return call_out(_op_mean, (input, dim, keepdim, dtype), out)


_op_prod = OPS["prod"]


def prod(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_prod, (input, dim, keepdim, dtype))
    return call_out(_op_prod, (input, dim, keepdim, dtype), out)


_op_logsumexp = OPS["logsumexp"]


def logsumexp(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_logsumexp, (input, dim, keepdim))
    return call_out(_op_logsumexp, (input, dim, keepdim), out)


_op_all = OPS["all"]


def all(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_all, (input, dim, keepdim))
    return call_out(_op_all, (input, dim, keepdim), out)


_op_any = OPS["any"]


def any(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_any, (input, dim, keepdim))
    return call_out(_op_any, (input, dim, keepdim), out)


_op_count_nonzero = OPS["count_nonzero"]


def count_nonzero(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    return call(_op_count_nonzero, (input, dim))


_op_exp = OPS["exp"]
_fast_exp = unary(_op_exp)


def exp(input, *, out=None) -> Any:
    if out is None:
        return _fast_exp(input)
    return call_out(_op_exp, (input,), out)


def exp_(input) -> Any:
    return call_inplace(_op_exp, (input,))


_op_exp2 = OPS["exp2"]
_fast_exp2 = unary(_op_exp2)


def exp2(input, *, out=None) -> Any:
    if out is None:
        return _fast_exp2(input)
    return call_out(_op_exp2, (input,), out)


def exp2_(input) -> Any:
    return call_inplace(_op_exp2, (input,))


_op_expm1 = OPS["expm1"]
_fast_expm1 = unary(_op_expm1)


def expm1(input, *, out=None) -> Any:
    if out is None:
        return _fast_expm1(input)
    return call_out(_op_expm1, (input,), out)


def expm1_(input) -> Any:
    return call_inplace(_op_expm1, (input,))


_op_log = OPS["log"]
_fast_log = unary(_op_log)


def log(input, *, out=None) -> Any:
    if out is None:
        return _fast_log(input)
    return call_out(_op_log, (input,), out)


def log_(input) -> Any:
    return call_inplace(_op_log, (input,))


_op_log2 = OPS["log2"]
_fast_log2 = unary(_op_log2)


def log2(input, *, out=None) -> Any:
    if out is None:
        return _fast_log2(input)
    return call_out(_op_log2, (input,), out)


def log2_(input) -> Any:
    return call_inplace(_op_log2, (input,))


_op_log10 = OPS["log10"]
_fast_log10 = unary(_op_log10)


def log10(input, *, out=None) -> Any:
    if out is None:
        return _fast_log10(input)
    return call_out(_op_log10, (input,), out)


def log10_(input) -> Any:
    return call_inplace(_op_log10, (input,))


_op_log1p = OPS["log1p"]
_fast_log1p = unary(_op_log1p)


def log1p(input, *, out=None) -> Any:
    if out is None:
        return _fast_log1p(input)
    return call_out(_op_log1p, (input,), out)


def log1p_(input) -> Any:
    return call_inplace(_op_log1p, (input,))


_op_logaddexp = OPS["logaddexp"]
_fast_logaddexp = binary(_op_logaddexp)


def logaddexp(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_logaddexp(input, other)
    return call_out(_op_logaddexp, (input, other), out)


_op_logaddexp2 = OPS["logaddexp2"]
_fast_logaddexp2 = binary(_op_logaddexp2)


def logaddexp2(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_logaddexp2(input, other)
    return call_out(_op_logaddexp2, (input, other), out)


_op_xlogy = OPS["xlogy"]
_fast_xlogy = binary(_op_xlogy)


def xlogy(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_xlogy(input, other)
    return call_out(_op_xlogy, (input, other), out)


def xlogy_(input, other) -> Any:
    return call_inplace(_op_xlogy, (input, other))


_op_xlog1py = OPS["xlog1py"]
_fast_xlog1py = binary(_op_xlog1py)


def xlog1py(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_xlog1py(input, other)
    return call_out(_op_xlog1py, (input, other), out)


_op_amax = OPS["amax"]


def amax(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_amax, (input, dim, keepdim))
    return call_out(_op_amax, (input, dim, keepdim), out)


_op_amin = OPS["amin"]


def amin(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_amin, (input, dim, keepdim))
    return call_out(_op_amin, (input, dim, keepdim), out)


_op_argmax = OPS["argmax"]


def argmax(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_argmax, (input, dim, keepdim))
    return call_out(_op_argmax, (input, dim, keepdim), out)


_op_argmin = OPS["argmin"]


def argmin(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        return call(_op_argmin, (input, dim, keepdim))
    return call_out(_op_argmin, (input, dim, keepdim), out)


_op_copysign = OPS["copysign"]
_fast_copysign = binary(_op_copysign)


def copysign(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_copysign(input, other)
    return call_out(_op_copysign, (input, other), out)


def copysign_(input, other) -> Any:
    return call_inplace(_op_copysign, (input, other))


_op_heaviside = OPS["heaviside"]
_fast_heaviside = binary(_op_heaviside)


def heaviside(input, values, *, out=None) -> Any:
    if out is None:
        return _fast_heaviside(input, values)
    return call_out(_op_heaviside, (input, values), out)


def heaviside_(input, values) -> Any:
    return call_inplace(_op_heaviside, (input, values))


_op_ldexp = OPS["ldexp"]
_fast_ldexp = binary(_op_ldexp)


def ldexp(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_ldexp(input, other)
    return call_out(_op_ldexp, (input, other), out)


def ldexp_(input, other) -> Any:
    return call_inplace(_op_ldexp, (input, other))


_op_nextafter = OPS["nextafter"]


def nextafter(input, other, *, out=None) -> Any:
    if out is None:
        return call(_op_nextafter, (input, other))
    return call_out(_op_nextafter, (input, other), out)


def nextafter_(input, other) -> Any:
    return call_inplace(_op_nextafter, (input, other))


_op_gather = OPS["gather"]


def gather(input, dim, index, *, sparse_grad=False, out=None) -> Any:
    if out is None:
        return call(_op_gather, (input, dim, index, sparse_grad))
    return call_out(_op_gather, (input, dim, index, sparse_grad), out)


_op_index_select = OPS["index_select"]


def index_select(input, dim, index, *, out=None) -> Any:
    if out is None:
        return call(_op_index_select, (input, dim, index))
    return call_out(_op_index_select, (input, dim, index), out)


_op_index_add = OPS["index_add"]


def index_add(input, dim, index, source, *, alpha=1, out=None) -> Any:
    if out is None:
        return call(_op_index_add, (input, dim, index, source, alpha))
    return call_out(_op_index_add, (input, dim, index, source, alpha), out)


def index_add_(input, dim, index, source, *, alpha=1) -> Any:
    return call_inplace(_op_index_add, (input, dim, index, source, alpha))


_op_index_copy = OPS["index_copy"]


def index_copy(input, dim, index, source, *, out=None) -> Any:
    if out is None:
        return call(_op_index_copy, (input, dim, index, source))
    return call_out(_op_index_copy, (input, dim, index, source), out)


def index_copy_(input, dim, index, source) -> Any:
    return call_inplace(_op_index_copy, (input, dim, index, source))


_op_index_fill = OPS["index_fill"]


def index_fill(input, dim, index, value, *, out=None) -> Any:
    if out is None:
        return call(_op_index_fill, (input, dim, index, value))
    return call_out(_op_index_fill, (input, dim, index, value), out)


def index_fill_(input, dim, index, value) -> Any:
    return call_inplace(_op_index_fill, (input, dim, index, value))


_op_take = OPS["take"]


def take(input, index, *, out=None) -> Any:
    if out is None:
        return call(_op_take, (input, index))
    return call_out(_op_take, (input, index), out)


_op_put = OPS["put"]


def put(input, index, source, accumulate=False) -> Any:
    return call(_op_put, (input, index, source, accumulate))


def put_(input, index, source, accumulate=False) -> Any:
    return call_inplace(_op_put, (input, index, source, accumulate))


_op_sqrt = OPS["sqrt"]
_fast_sqrt = unary(_op_sqrt)


def sqrt(input, *, out=None) -> Any:
    if out is None:
        return _fast_sqrt(input)
    return call_out(_op_sqrt, (input,), out)


def sqrt_(input) -> Any:
    return call_inplace(_op_sqrt, (input,))


_op_rsqrt = OPS["rsqrt"]
_fast_rsqrt = unary(_op_rsqrt)


def rsqrt(input, *, out=None) -> Any:
    if out is None:
        return _fast_rsqrt(input)
    return call_out(_op_rsqrt, (input,), out)


def rsqrt_(input) -> Any:
    return call_inplace(_op_rsqrt, (input,))


_op_reciprocal = OPS["reciprocal"]
_fast_reciprocal = unary(_op_reciprocal)


def reciprocal(input, *, out=None) -> Any:
    if out is None:
        return _fast_reciprocal(input)
    return call_out(_op_reciprocal, (input,), out)


def reciprocal_(input) -> Any:
    return call_inplace(_op_reciprocal, (input,))


_op_square = OPS["square"]
_fast_square = unary(_op_square)


def square(input, *, out=None) -> Any:
    if out is None:
        return _fast_square(input)
    return call_out(_op_square, (input,), out)


def square_(input) -> Any:
    return call_inplace(_op_square, (input,))


_op_roll = OPS["roll"]


def roll(input, shifts, dims=()) -> Any:
    return call(_op_roll, (input, shifts, dims))


_op_constant_pad_nd = OPS["constant_pad_nd"]


def constant_pad_nd(input, pad, value=0, *, out=None) -> Any:
    if out is None:
        return call(_op_constant_pad_nd, (input, pad, value))
    return call_out(_op_constant_pad_nd, (input, pad, value), out)


_op_abs = OPS["abs"]
_fast_abs = unary(_op_abs)


def abs(input, *, out=None) -> Any:
    if out is None:
        return _fast_abs(input)
    return call_out(_op_abs, (input,), out)


_op_sign = OPS["sign"]
_fast_sign = unary(_op_sign)


def sign(input, *, out=None) -> Any:
    if out is None:
        return _fast_sign(input)
    return call_out(_op_sign, (input,), out)


def sign_(input) -> Any:
    return call_inplace(_op_sign, (input,))


_op_signbit = OPS["signbit"]
_fast_signbit = unary(_op_signbit)


def signbit(input, *, out=None) -> Any:
    if out is None:
        return _fast_signbit(input)
    return call_out(_op_signbit, (input,), out)


_op_floor = OPS["floor"]
_fast_floor = unary(_op_floor)


def floor(input, *, out=None) -> Any:
    if out is None:
        return _fast_floor(input)
    return call_out(_op_floor, (input,), out)


def floor_(input) -> Any:
    return call_inplace(_op_floor, (input,))


_op_ceil = OPS["ceil"]
_fast_ceil = unary(_op_ceil)


def ceil(input, *, out=None) -> Any:
    if out is None:
        return _fast_ceil(input)
    return call_out(_op_ceil, (input,), out)


def ceil_(input) -> Any:
    return call_inplace(_op_ceil, (input,))


_op_trunc = OPS["trunc"]
_fast_trunc = unary(_op_trunc)


def trunc(input, *, out=None) -> Any:
    if out is None:
        return _fast_trunc(input)
    return call_out(_op_trunc, (input,), out)


def trunc_(input) -> Any:
    return call_inplace(_op_trunc, (input,))


_op_frac = OPS["frac"]
_fast_frac = unary(_op_frac)


def frac(input, *, out=None) -> Any:
    if out is None:
        return _fast_frac(input)
    return call_out(_op_frac, (input,), out)


def frac_(input) -> Any:
    return call_inplace(_op_frac, (input,))


_op_round = OPS["round"]
_fast_round = unary(_op_round)


def round(input, *, decimals=0, out=None) -> Any:
    if out is None and decimals == 0:
        return _fast_round(input)
    if out is None:
        return call(_op_round, (input, decimals))
    return call_out(_op_round, (input, decimals), out)


def round_(input, *, decimals=0) -> Any:
    return call_inplace(_op_round, (input, decimals))


_op_cumsum = OPS["cumsum"]


def cumsum(input, dim=None, *, dtype=None, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        return call(_op_cumsum, (input, dim, dtype))
    return call_out(_op_cumsum, (input, dim, dtype), out)


def cumsum_(input, dim, *, dtype=None) -> Any:
    return call_inplace(_op_cumsum, (input, dim, dtype))


_op_cumprod = OPS["cumprod"]


def cumprod(input, dim=None, *, dtype=None, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        return call(_op_cumprod, (input, dim, dtype))
    return call_out(_op_cumprod, (input, dim, dtype), out)


def cumprod_(input, dim, *, dtype=None) -> Any:
    return call_inplace(_op_cumprod, (input, dim, dtype))


_op_logcumsumexp = OPS["logcumsumexp"]


def logcumsumexp(input, dim=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        return call(_op_logcumsumexp, (input, dim))
    return call_out(_op_logcumsumexp, (input, dim), out)


_op_scatter_add = OPS["scatter_add"]


def scatter_add(input, dim, index, src, *, out=None) -> Any:
    if out is None:
        return call(_op_scatter_add, (input, dim, index, src))
    return call_out(_op_scatter_add, (input, dim, index, src), out)


def scatter_add_(input, dim, index, src) -> Any:
    return call_inplace(_op_scatter_add, (input, dim, index, src))


_op_select_scatter = OPS["select_scatter"]


def select_scatter(input, src, dim, index, *, out=None) -> Any:
    if out is None:
        return call(_op_select_scatter, (input, src, dim, index))
    return call_out(_op_select_scatter, (input, src, dim, index), out)


_op_slice_scatter = OPS["slice_scatter"]


def slice_scatter(input, src, dim=0, start=None, end=None, step=1, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        return call(_op_slice_scatter, (input, src, dim, start, end, step))
    return call_out(_op_slice_scatter, (input, src, dim, start, end, step), out)


_op_diagonal_scatter = OPS["diagonal_scatter"]


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1, *, out=None) -> Any:
    if out is None:
        return call(_op_diagonal_scatter, (input, src, offset, dim1, dim2))
    return call_out(_op_diagonal_scatter, (input, src, offset, dim1, dim2), out)


_op_erf = OPS["erf"]
_fast_erf = unary(_op_erf)


def erf(input, *, out=None) -> Any:
    if out is None:
        return _fast_erf(input)
    return call_out(_op_erf, (input,), out)


def erf_(input) -> Any:
    return call_inplace(_op_erf, (input,))


_op_erfc = OPS["erfc"]
_fast_erfc = unary(_op_erfc)


def erfc(input, *, out=None) -> Any:
    if out is None:
        return _fast_erfc(input)
    return call_out(_op_erfc, (input,), out)


def erfc_(input) -> Any:
    return call_inplace(_op_erfc, (input,))


_op_erfinv = OPS["erfinv"]
_fast_erfinv = unary(_op_erfinv)


def erfinv(input, *, out=None) -> Any:
    if out is None:
        return _fast_erfinv(input)
    return call_out(_op_erfinv, (input,), out)


def erfinv_(input) -> Any:
    return call_inplace(_op_erfinv, (input,))


_op_erfcx = OPS["erfcx"]
_fast_erfcx = unary(_op_erfcx)


def erfcx(input, *, out=None) -> Any:
    if out is None:
        return _fast_erfcx(input)
    return call_out(_op_erfcx, (input,), out)


_op_ndtr = OPS["ndtr"]
_fast_ndtr = unary(_op_ndtr)


def ndtr(input, *, out=None) -> Any:
    if out is None:
        return _fast_ndtr(input)
    return call_out(_op_ndtr, (input,), out)


_op_log_ndtr = OPS["log_ndtr"]
_fast_log_ndtr = unary(_op_log_ndtr)


def log_ndtr(input, *, out=None) -> Any:
    if out is None:
        return _fast_log_ndtr(input)
    return call_out(_op_log_ndtr, (input,), out)


_op_ndtri = OPS["ndtri"]
_fast_ndtri = unary(_op_ndtri)


def ndtri(input, *, out=None) -> Any:
    if out is None:
        return _fast_ndtri(input)
    return call_out(_op_ndtri, (input,), out)


_op_entr = OPS["entr"]
_fast_entr = unary(_op_entr)


def entr(input, *, out=None) -> Any:
    if out is None:
        return _fast_entr(input)
    return call_out(_op_entr, (input,), out)


_op_sigmoid = OPS["sigmoid"]
_fast_sigmoid = unary(_op_sigmoid)


def sigmoid(input, *, out=None) -> Any:
    if out is None:
        return _fast_sigmoid(input)
    return call_out(_op_sigmoid, (input,), out)


def sigmoid_(input) -> Any:
    return call_inplace(_op_sigmoid, (input,))


_op_logit = OPS["logit"]
_fast_logit = unary(_op_logit)


def logit(input, eps=None, *, out=None) -> Any:
    if out is None and eps == None:
        return _fast_logit(input)
    if out is None:
        return call(_op_logit, (input, eps))
    return call_out(_op_logit, (input, eps), out)


def logit_(input, eps=None) -> Any:
    return call_inplace(_op_logit, (input, eps))


_op_lgamma = OPS["lgamma"]
_fast_lgamma = unary(_op_lgamma)


def lgamma(input, *, out=None) -> Any:
    if out is None:
        return _fast_lgamma(input)
    return call_out(_op_lgamma, (input,), out)


def lgamma_(input) -> Any:
    return call_inplace(_op_lgamma, (input,))


_op_digamma = OPS["digamma"]
_fast_digamma = unary(_op_digamma)


def digamma(input, *, out=None) -> Any:
    if out is None:
        return _fast_digamma(input)
    return call_out(_op_digamma, (input,), out)


def digamma_(input) -> Any:
    return call_inplace(_op_digamma, (input,))


_op_polygamma = OPS["polygamma"]


def polygamma(n, input, *, out=None) -> Any:
    if out is None:
        return call(_op_polygamma, (n, input))
    return call_out(_op_polygamma, (n, input), out)


_op_mvlgamma = OPS["mvlgamma"]


def mvlgamma(input, p, *, out=None) -> Any:
    if out is None:
        return call(_op_mvlgamma, (input, p))
    return call_out(_op_mvlgamma, (input, p), out)


def mvlgamma_(input, p) -> Any:
    return call_inplace(_op_mvlgamma, (input, p))


_op_igamma = OPS["igamma"]
_fast_igamma = binary(_op_igamma)


def igamma(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_igamma(input, other)
    return call_out(_op_igamma, (input, other), out)


def igamma_(input, other) -> Any:
    return call_inplace(_op_igamma, (input, other))


_op_igammac = OPS["igammac"]
_fast_igammac = binary(_op_igammac)


def igammac(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_igammac(input, other)
    return call_out(_op_igammac, (input, other), out)


def igammac_(input, other) -> Any:
    return call_inplace(_op_igammac, (input, other))


_op_zeta = OPS["zeta"]
_fast_zeta = binary(_op_zeta)


def zeta(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_zeta(input, other)
    return call_out(_op_zeta, (input, other), out)


_op_i0 = OPS["i0"]
_fast_i0 = unary(_op_i0)


def i0(input, *, out=None) -> Any:
    if out is None:
        return _fast_i0(input)
    return call_out(_op_i0, (input,), out)


def i0_(input) -> Any:
    return call_inplace(_op_i0, (input,))


_op_i0e = OPS["i0e"]
_fast_i0e = unary(_op_i0e)


def i0e(input, *, out=None) -> Any:
    if out is None:
        return _fast_i0e(input)
    return call_out(_op_i0e, (input,), out)


_op_i1 = OPS["i1"]
_fast_i1 = unary(_op_i1)


def i1(input, *, out=None) -> Any:
    if out is None:
        return _fast_i1(input)
    return call_out(_op_i1, (input,), out)


_op_i1e = OPS["i1e"]
_fast_i1e = unary(_op_i1e)


def i1e(input, *, out=None) -> Any:
    if out is None:
        return _fast_i1e(input)
    return call_out(_op_i1e, (input,), out)


_op_bessel_j0 = OPS["bessel_j0"]
_fast_bessel_j0 = unary(_op_bessel_j0)


def bessel_j0(input, *, out=None) -> Any:
    if out is None:
        return _fast_bessel_j0(input)
    return call_out(_op_bessel_j0, (input,), out)


_op_bessel_j1 = OPS["bessel_j1"]
_fast_bessel_j1 = unary(_op_bessel_j1)


def bessel_j1(input, *, out=None) -> Any:
    if out is None:
        return _fast_bessel_j1(input)
    return call_out(_op_bessel_j1, (input,), out)


_op_bessel_y0 = OPS["bessel_y0"]
_fast_bessel_y0 = unary(_op_bessel_y0)


def bessel_y0(input, *, out=None) -> Any:
    if out is None:
        return _fast_bessel_y0(input)
    return call_out(_op_bessel_y0, (input,), out)


_op_bessel_y1 = OPS["bessel_y1"]
_fast_bessel_y1 = unary(_op_bessel_y1)


def bessel_y1(input, *, out=None) -> Any:
    if out is None:
        return _fast_bessel_y1(input)
    return call_out(_op_bessel_y1, (input,), out)


_op_modified_bessel_i0 = OPS["modified_bessel_i0"]
_fast_modified_bessel_i0 = unary(_op_modified_bessel_i0)


def modified_bessel_i0(input, *, out=None) -> Any:
    if out is None:
        return _fast_modified_bessel_i0(input)
    return call_out(_op_modified_bessel_i0, (input,), out)


_op_modified_bessel_i1 = OPS["modified_bessel_i1"]
_fast_modified_bessel_i1 = unary(_op_modified_bessel_i1)


def modified_bessel_i1(input, *, out=None) -> Any:
    if out is None:
        return _fast_modified_bessel_i1(input)
    return call_out(_op_modified_bessel_i1, (input,), out)


_op_modified_bessel_k0 = OPS["modified_bessel_k0"]
_fast_modified_bessel_k0 = unary(_op_modified_bessel_k0)


def modified_bessel_k0(input, *, out=None) -> Any:
    if out is None:
        return _fast_modified_bessel_k0(input)
    return call_out(_op_modified_bessel_k0, (input,), out)


_op_modified_bessel_k1 = OPS["modified_bessel_k1"]
_fast_modified_bessel_k1 = unary(_op_modified_bessel_k1)


def modified_bessel_k1(input, *, out=None) -> Any:
    if out is None:
        return _fast_modified_bessel_k1(input)
    return call_out(_op_modified_bessel_k1, (input,), out)


_op_scaled_modified_bessel_k0 = OPS["scaled_modified_bessel_k0"]
_fast_scaled_modified_bessel_k0 = unary(_op_scaled_modified_bessel_k0)


def scaled_modified_bessel_k0(x, *, out=None) -> Any:
    if out is None:
        return _fast_scaled_modified_bessel_k0(x)
    return call_out(_op_scaled_modified_bessel_k0, (x,), out)


_op_scaled_modified_bessel_k1 = OPS["scaled_modified_bessel_k1"]
_fast_scaled_modified_bessel_k1 = unary(_op_scaled_modified_bessel_k1)


def scaled_modified_bessel_k1(x, *, out=None) -> Any:
    if out is None:
        return _fast_scaled_modified_bessel_k1(x)
    return call_out(_op_scaled_modified_bessel_k1, (x,), out)


_op_spherical_bessel_j0 = OPS["spherical_bessel_j0"]
_fast_spherical_bessel_j0 = unary(_op_spherical_bessel_j0)


def spherical_bessel_j0(x, *, out=None) -> Any:
    if out is None:
        return _fast_spherical_bessel_j0(x)
    return call_out(_op_spherical_bessel_j0, (x,), out)


_op_airy_ai = OPS["airy_ai"]
_fast_airy_ai = unary(_op_airy_ai)


def airy_ai(x, *, out=None) -> Any:
    if out is None:
        return _fast_airy_ai(x)
    return call_out(_op_airy_ai, (x,), out)


_op_chebyshev_polynomial_t = OPS["chebyshev_polynomial_t"]
_fast_chebyshev_polynomial_t = binary(_op_chebyshev_polynomial_t)


def chebyshev_polynomial_t(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_chebyshev_polynomial_t(x, n)
    return call_out(_op_chebyshev_polynomial_t, (x, n), out)


_op_chebyshev_polynomial_u = OPS["chebyshev_polynomial_u"]
_fast_chebyshev_polynomial_u = binary(_op_chebyshev_polynomial_u)


def chebyshev_polynomial_u(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_chebyshev_polynomial_u(x, n)
    return call_out(_op_chebyshev_polynomial_u, (x, n), out)


_op_chebyshev_polynomial_v = OPS["chebyshev_polynomial_v"]
_fast_chebyshev_polynomial_v = binary(_op_chebyshev_polynomial_v)


def chebyshev_polynomial_v(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_chebyshev_polynomial_v(x, n)
    return call_out(_op_chebyshev_polynomial_v, (x, n), out)


_op_chebyshev_polynomial_w = OPS["chebyshev_polynomial_w"]
_fast_chebyshev_polynomial_w = binary(_op_chebyshev_polynomial_w)


def chebyshev_polynomial_w(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_chebyshev_polynomial_w(x, n)
    return call_out(_op_chebyshev_polynomial_w, (x, n), out)


_op_shifted_chebyshev_polynomial_t = OPS["shifted_chebyshev_polynomial_t"]
_fast_shifted_chebyshev_polynomial_t = binary(_op_shifted_chebyshev_polynomial_t)


def shifted_chebyshev_polynomial_t(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_shifted_chebyshev_polynomial_t(x, n)
    return call_out(_op_shifted_chebyshev_polynomial_t, (x, n), out)


_op_shifted_chebyshev_polynomial_u = OPS["shifted_chebyshev_polynomial_u"]
_fast_shifted_chebyshev_polynomial_u = binary(_op_shifted_chebyshev_polynomial_u)


def shifted_chebyshev_polynomial_u(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_shifted_chebyshev_polynomial_u(x, n)
    return call_out(_op_shifted_chebyshev_polynomial_u, (x, n), out)


_op_shifted_chebyshev_polynomial_v = OPS["shifted_chebyshev_polynomial_v"]
_fast_shifted_chebyshev_polynomial_v = binary(_op_shifted_chebyshev_polynomial_v)


def shifted_chebyshev_polynomial_v(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_shifted_chebyshev_polynomial_v(x, n)
    return call_out(_op_shifted_chebyshev_polynomial_v, (x, n), out)


_op_shifted_chebyshev_polynomial_w = OPS["shifted_chebyshev_polynomial_w"]
_fast_shifted_chebyshev_polynomial_w = binary(_op_shifted_chebyshev_polynomial_w)


def shifted_chebyshev_polynomial_w(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_shifted_chebyshev_polynomial_w(x, n)
    return call_out(_op_shifted_chebyshev_polynomial_w, (x, n), out)


_op_hermite_polynomial_h = OPS["hermite_polynomial_h"]
_fast_hermite_polynomial_h = binary(_op_hermite_polynomial_h)


def hermite_polynomial_h(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_hermite_polynomial_h(x, n)
    return call_out(_op_hermite_polynomial_h, (x, n), out)


_op_hermite_polynomial_he = OPS["hermite_polynomial_he"]
_fast_hermite_polynomial_he = binary(_op_hermite_polynomial_he)


def hermite_polynomial_he(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_hermite_polynomial_he(x, n)
    return call_out(_op_hermite_polynomial_he, (x, n), out)


_op_laguerre_polynomial_l = OPS["laguerre_polynomial_l"]
_fast_laguerre_polynomial_l = binary(_op_laguerre_polynomial_l)


def laguerre_polynomial_l(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_laguerre_polynomial_l(x, n)
    return call_out(_op_laguerre_polynomial_l, (x, n), out)


_op_legendre_polynomial_p = OPS["legendre_polynomial_p"]
_fast_legendre_polynomial_p = binary(_op_legendre_polynomial_p)


def legendre_polynomial_p(x, n, *, out=None) -> Any:
    if out is None:
        return _fast_legendre_polynomial_p(x, n)
    return call_out(_op_legendre_polynomial_p, (x, n), out)


_op_sin = OPS["sin"]
_fast_sin = unary(_op_sin)


def sin(input, *, out=None) -> Any:
    if out is None:
        return _fast_sin(input)
    return call_out(_op_sin, (input,), out)


def sin_(input) -> Any:
    return call_inplace(_op_sin, (input,))


_op_cos = OPS["cos"]
_fast_cos = unary(_op_cos)


def cos(input, *, out=None) -> Any:
    if out is None:
        return _fast_cos(input)
    return call_out(_op_cos, (input,), out)


def cos_(input) -> Any:
    return call_inplace(_op_cos, (input,))


_op_tan = OPS["tan"]
_fast_tan = unary(_op_tan)


def tan(input, *, out=None) -> Any:
    if out is None:
        return _fast_tan(input)
    return call_out(_op_tan, (input,), out)


def tan_(input) -> Any:
    return call_inplace(_op_tan, (input,))


_op_asin = OPS["asin"]
_fast_asin = unary(_op_asin)


def asin(input, *, out=None) -> Any:
    if out is None:
        return _fast_asin(input)
    return call_out(_op_asin, (input,), out)


def asin_(input) -> Any:
    return call_inplace(_op_asin, (input,))


_op_acos = OPS["acos"]
_fast_acos = unary(_op_acos)


def acos(input, *, out=None) -> Any:
    if out is None:
        return _fast_acos(input)
    return call_out(_op_acos, (input,), out)


def acos_(input) -> Any:
    return call_inplace(_op_acos, (input,))


_op_atan = OPS["atan"]
_fast_atan = unary(_op_atan)


def atan(input, *, out=None) -> Any:
    if out is None:
        return _fast_atan(input)
    return call_out(_op_atan, (input,), out)


def atan_(input) -> Any:
    return call_inplace(_op_atan, (input,))


_op_sinh = OPS["sinh"]
_fast_sinh = unary(_op_sinh)


def sinh(input, *, out=None) -> Any:
    if out is None:
        return _fast_sinh(input)
    return call_out(_op_sinh, (input,), out)


def sinh_(input) -> Any:
    return call_inplace(_op_sinh, (input,))


_op_cosh = OPS["cosh"]
_fast_cosh = unary(_op_cosh)


def cosh(input, *, out=None) -> Any:
    if out is None:
        return _fast_cosh(input)
    return call_out(_op_cosh, (input,), out)


def cosh_(input) -> Any:
    return call_inplace(_op_cosh, (input,))


_op_tanh = OPS["tanh"]
_fast_tanh = unary(_op_tanh)


def tanh(input, *, out=None) -> Any:
    if out is None:
        return _fast_tanh(input)
    return call_out(_op_tanh, (input,), out)


def tanh_(input) -> Any:
    return call_inplace(_op_tanh, (input,))


_op_asinh = OPS["asinh"]
_fast_asinh = unary(_op_asinh)


def asinh(input, *, out=None) -> Any:
    if out is None:
        return _fast_asinh(input)
    return call_out(_op_asinh, (input,), out)


def asinh_(input) -> Any:
    return call_inplace(_op_asinh, (input,))


_op_acosh = OPS["acosh"]
_fast_acosh = unary(_op_acosh)


def acosh(input, *, out=None) -> Any:
    if out is None:
        return _fast_acosh(input)
    return call_out(_op_acosh, (input,), out)


def acosh_(input) -> Any:
    return call_inplace(_op_acosh, (input,))


_op_atanh = OPS["atanh"]
_fast_atanh = unary(_op_atanh)


def atanh(input, *, out=None) -> Any:
    if out is None:
        return _fast_atanh(input)
    return call_out(_op_atanh, (input,), out)


def atanh_(input) -> Any:
    return call_inplace(_op_atanh, (input,))


_op_atan2 = OPS["atan2"]
_fast_atan2 = binary(_op_atan2)


def atan2(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_atan2(input, other)
    return call_out(_op_atan2, (input, other), out)


def atan2_(input, other) -> Any:
    return call_inplace(_op_atan2, (input, other))


_op_sinc = OPS["sinc"]
_fast_sinc = unary(_op_sinc)


def sinc(input, *, out=None) -> Any:
    if out is None:
        return _fast_sinc(input)
    return call_out(_op_sinc, (input,), out)


def sinc_(input) -> Any:
    return call_inplace(_op_sinc, (input,))


_op_deg2rad = OPS["deg2rad"]
_fast_deg2rad = unary(_op_deg2rad)


def deg2rad(input, *, out=None) -> Any:
    if out is None:
        return _fast_deg2rad(input)
    return call_out(_op_deg2rad, (input,), out)


def deg2rad_(input) -> Any:
    return call_inplace(_op_deg2rad, (input,))


_op_rad2deg = OPS["rad2deg"]
_fast_rad2deg = unary(_op_rad2deg)


def rad2deg(input, *, out=None) -> Any:
    if out is None:
        return _fast_rad2deg(input)
    return call_out(_op_rad2deg, (input,), out)


def rad2deg_(input) -> Any:
    return call_inplace(_op_rad2deg, (input,))


_c_nn__functional__silu = COMPOSITES["nn.functional.silu"].fn


def nn__functional__silu(input, inplace=False) -> Any:
    try:
        return _c_nn__functional__silu(input, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("silu", error)
        raise


_c_nn__functional__mish = COMPOSITES["nn.functional.mish"].fn


def nn__functional__mish(input, inplace=False) -> Any:
    try:
        return _c_nn__functional__mish(input, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("mish", error)
        raise


_c_nn__functional__glu = COMPOSITES["nn.functional.glu"].fn


def nn__functional__glu(input, dim=-1, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_nn__functional__glu(input, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("glu", error)
        raise


_c_nn__functional__hardsigmoid = COMPOSITES["nn.functional.hardsigmoid"].fn


def nn__functional__hardsigmoid(input, inplace=False) -> Any:
    try:
        return _c_nn__functional__hardsigmoid(input, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("hardsigmoid", error)
        raise


_c_nn__functional__hardswish = COMPOSITES["nn.functional.hardswish"].fn


def nn__functional__hardswish(input, inplace=False) -> Any:
    try:
        return _c_nn__functional__hardswish(input, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("hardswish", error)
        raise


_c_nn__functional__unfold = COMPOSITES["nn.functional.unfold"].fn


def nn__functional__unfold(input, kernel_size, dilation=1, padding=0, stride=1) -> Any:
    try:
        return _c_nn__functional__unfold(input, kernel_size, dilation, padding, stride)
    except (AttributeError, TypeError) as error:
        wrong_argument("unfold", error)
        raise


_c_nn__functional__fold = COMPOSITES["nn.functional.fold"].fn


def nn__functional__fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Any:
    try:
        return _c_nn__functional__fold(input, output_size, kernel_size, dilation, padding, stride)
    except (AttributeError, TypeError) as error:
        wrong_argument("fold", error)
        raise


_c_nn__functional__max_pool1d = COMPOSITES["nn.functional.max_pool1d"].fn


def nn__functional__max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False) -> Any:
    try:
        return _c_nn__functional__max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("max_pool1d", error)
        raise


_c_nn__functional__max_pool2d = COMPOSITES["nn.functional.max_pool2d"].fn


def nn__functional__max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False) -> Any:
    try:
        return _c_nn__functional__max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("max_pool2d", error)
        raise


_c_nn__functional__max_pool3d = COMPOSITES["nn.functional.max_pool3d"].fn


def nn__functional__max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False) -> Any:
    try:
        return _c_nn__functional__max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("max_pool3d", error)
        raise


_c_nn__functional__avg_pool1d = COMPOSITES["nn.functional.avg_pool1d"].fn


def nn__functional__avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True) -> Any:
    try:
        return _c_nn__functional__avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)
    except (AttributeError, TypeError) as error:
        wrong_argument("avg_pool1d", error)
        raise


_c_nn__functional__avg_pool2d = COMPOSITES["nn.functional.avg_pool2d"].fn


def nn__functional__avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_nn__functional__avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        except (AttributeError, TypeError) as error:
            wrong_argument("avg_pool2d", error)
            raise
    return composite_out("nn.functional.avg_pool2d", lambda: _c_nn__functional__avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override), (input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override,), out)


_c_nn__functional__avg_pool3d = COMPOSITES["nn.functional.avg_pool3d"].fn


def nn__functional__avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_nn__functional__avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        except (AttributeError, TypeError) as error:
            wrong_argument("avg_pool3d", error)
            raise
    return composite_out("nn.functional.avg_pool3d", lambda: _c_nn__functional__avg_pool3d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override), (input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override,), out)


_c_nn__functional__lp_pool1d = COMPOSITES["nn.functional.lp_pool1d"].fn


def nn__functional__lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> Any:
    try:
        return _c_nn__functional__lp_pool1d(input, norm_type, kernel_size, stride, ceil_mode)
    except (AttributeError, TypeError) as error:
        wrong_argument("lp_pool1d", error)
        raise


_c_nn__functional__lp_pool2d = COMPOSITES["nn.functional.lp_pool2d"].fn


def nn__functional__lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> Any:
    try:
        return _c_nn__functional__lp_pool2d(input, norm_type, kernel_size, stride, ceil_mode)
    except (AttributeError, TypeError) as error:
        wrong_argument("lp_pool2d", error)
        raise


_c_nn__functional__lp_pool3d = COMPOSITES["nn.functional.lp_pool3d"].fn


def nn__functional__lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> Any:
    try:
        return _c_nn__functional__lp_pool3d(input, norm_type, kernel_size, stride, ceil_mode)
    except (AttributeError, TypeError) as error:
        wrong_argument("lp_pool3d", error)
        raise


_c_nn__functional__max_unpool1d = COMPOSITES["nn.functional.max_unpool1d"].fn


def nn__functional__max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None) -> Any:
    try:
        return _c_nn__functional__max_unpool1d(input, indices, kernel_size, stride, padding, output_size)
    except (AttributeError, TypeError) as error:
        wrong_argument("max_unpool1d", error)
        raise


_c_nn__functional__max_unpool2d = COMPOSITES["nn.functional.max_unpool2d"].fn


def nn__functional__max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None) -> Any:
    try:
        return _c_nn__functional__max_unpool2d(input, indices, kernel_size, stride, padding, output_size)
    except (AttributeError, TypeError) as error:
        wrong_argument("max_unpool2d", error)
        raise


_c_nn__functional__max_unpool3d = COMPOSITES["nn.functional.max_unpool3d"].fn


def nn__functional__max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None) -> Any:
    try:
        return _c_nn__functional__max_unpool3d(input, indices, kernel_size, stride, padding, output_size)
    except (AttributeError, TypeError) as error:
        wrong_argument("max_unpool3d", error)
        raise


_c_nn__functional__adaptive_avg_pool1d = COMPOSITES["nn.functional.adaptive_avg_pool1d"].fn


def nn__functional__adaptive_avg_pool1d(input, output_size) -> Any:
    try:
        return _c_nn__functional__adaptive_avg_pool1d(input, output_size)
    except (AttributeError, TypeError) as error:
        wrong_argument("adaptive_avg_pool1d", error)
        raise


_c_nn__functional__adaptive_avg_pool2d = COMPOSITES["nn.functional.adaptive_avg_pool2d"].fn


def nn__functional__adaptive_avg_pool2d(input, output_size) -> Any:
    try:
        return _c_nn__functional__adaptive_avg_pool2d(input, output_size)
    except (AttributeError, TypeError) as error:
        wrong_argument("adaptive_avg_pool2d", error)
        raise


_c_nn__functional__adaptive_avg_pool3d = COMPOSITES["nn.functional.adaptive_avg_pool3d"].fn


def nn__functional__adaptive_avg_pool3d(input, output_size) -> Any:
    try:
        return _c_nn__functional__adaptive_avg_pool3d(input, output_size)
    except (AttributeError, TypeError) as error:
        wrong_argument("adaptive_avg_pool3d", error)
        raise


_c_nn__functional__adaptive_max_pool1d = COMPOSITES["nn.functional.adaptive_max_pool1d"].fn


def nn__functional__adaptive_max_pool1d(input, output_size, return_indices=False) -> Any:
    try:
        return _c_nn__functional__adaptive_max_pool1d(input, output_size, return_indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("adaptive_max_pool1d", error)
        raise


_c_adaptive_max_pool1d = COMPOSITES["adaptive_max_pool1d"].fn


def adaptive_max_pool1d(input, output_size) -> Any:
    try:
        return _c_adaptive_max_pool1d(input, output_size)
    except (AttributeError, TypeError) as error:
        wrong_argument("adaptive_max_pool1d", error)
        raise


_c_nn__functional__adaptive_max_pool2d = COMPOSITES["nn.functional.adaptive_max_pool2d"].fn


def nn__functional__adaptive_max_pool2d(input, output_size, return_indices=False) -> Any:
    try:
        return _c_nn__functional__adaptive_max_pool2d(input, output_size, return_indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("adaptive_max_pool2d", error)
        raise


_c_nn__functional__adaptive_max_pool3d = COMPOSITES["nn.functional.adaptive_max_pool3d"].fn


def nn__functional__adaptive_max_pool3d(input, output_size, return_indices=False) -> Any:
    try:
        return _c_nn__functional__adaptive_max_pool3d(input, output_size, return_indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("adaptive_max_pool3d", error)
        raise


_c_nn__functional__fractional_max_pool2d = COMPOSITES["nn.functional.fractional_max_pool2d"].fn


def nn__functional__fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None) -> Any:
    try:
        return _c_nn__functional__fractional_max_pool2d(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
    except (AttributeError, TypeError) as error:
        wrong_argument("fractional_max_pool2d", error)
        raise


_c_nn__functional__fractional_max_pool3d = COMPOSITES["nn.functional.fractional_max_pool3d"].fn


def nn__functional__fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None) -> Any:
    try:
        return _c_nn__functional__fractional_max_pool3d(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
    except (AttributeError, TypeError) as error:
        wrong_argument("fractional_max_pool3d", error)
        raise


_c_mm = COMPOSITES["mm"].fn


def mm(input, mat2, *, out=None) -> Any:
    if out is None:
        try:
            return _c_mm(input, mat2)
        except (AttributeError, TypeError) as error:
            wrong_argument("mm", error)
            raise
    return composite_out("mm", lambda: _c_mm(input, mat2), (input, mat2,), out)


_c_bmm = COMPOSITES["bmm"].fn


def bmm(input, mat2, *, out=None) -> Any:
    if out is None:
        try:
            return _c_bmm(input, mat2)
        except (AttributeError, TypeError) as error:
            wrong_argument("bmm", error)
            raise
    return composite_out("bmm", lambda: _c_bmm(input, mat2), (input, mat2,), out)


_c_mv = COMPOSITES["mv"].fn


def mv(input, vec, *, out=None) -> Any:
    if out is None:
        try:
            return _c_mv(input, vec)
        except (AttributeError, TypeError) as error:
            wrong_argument("mv", error)
            raise
    return composite_out("mv", lambda: _c_mv(input, vec), (input, vec,), out)


_c_dot = COMPOSITES["dot"].fn


def dot(input, tensor, *, out=None) -> Any:
    if out is None:
        try:
            return _c_dot(input, tensor)
        except (AttributeError, TypeError) as error:
            wrong_argument("dot", error)
            raise
    return composite_out("dot", lambda: _c_dot(input, tensor), (input, tensor,), out)


_c_vdot = COMPOSITES["vdot"].fn


def vdot(input, other, *, out=None) -> Any:
    if out is None:
        try:
            return _c_vdot(input, other)
        except (AttributeError, TypeError) as error:
            wrong_argument("vdot", error)
            raise
    return composite_out("vdot", lambda: _c_vdot(input, other), (input, other,), out)


_c_inner = COMPOSITES["inner"].fn


def inner(input, other, *, out=None) -> Any:
    if out is None:
        try:
            return _c_inner(input, other)
        except (AttributeError, TypeError) as error:
            wrong_argument("inner", error)
            raise
    return composite_out("inner", lambda: _c_inner(input, other), (input, other,), out)


_c_outer = COMPOSITES["outer"].fn


def outer(input, vec2, *, out=None) -> Any:
    if out is None:
        try:
            return _c_outer(input, vec2)
        except (AttributeError, TypeError) as error:
            wrong_argument("outer", error)
            raise
    return composite_out("outer", lambda: _c_outer(input, vec2), (input, vec2,), out)


_c_kron = COMPOSITES["kron"].fn


def kron(input, other, *, out=None) -> Any:
    if out is None:
        try:
            return _c_kron(input, other)
        except (AttributeError, TypeError) as error:
            wrong_argument("kron", error)
            raise
    return composite_out("kron", lambda: _c_kron(input, other), (input, other,), out)


_c_nn__functional__bilinear = COMPOSITES["nn.functional.bilinear"].fn


def nn__functional__bilinear(input1, input2, weight, bias=None) -> Any:
    try:
        return _c_nn__functional__bilinear(input1, input2, weight, bias)
    except (AttributeError, TypeError) as error:
        wrong_argument("bilinear", error)
        raise


_c_addmm = COMPOSITES["addmm"].fn


def addmm(input, mat1, mat2, *, beta=1, alpha=1, out=None) -> Any:
    if out is None:
        try:
            return _c_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
        except (AttributeError, TypeError) as error:
            wrong_argument("addmm", error)
            raise
    return composite_out("addmm", lambda: _c_addmm(input, mat1, mat2, beta=beta, alpha=alpha), (input, mat1, mat2, beta, alpha,), out)


def addmm_(input, mat1, mat2, *, beta=1, alpha=1) -> Any:
    return composite_inplace("addmm", input, lambda x: _c_addmm(x, mat1, mat2, beta=beta, alpha=alpha))


_c_addmv = COMPOSITES["addmv"].fn


def addmv(input, mat, vec, *, beta=1, alpha=1, out=None) -> Any:
    if out is None:
        try:
            return _c_addmv(input, mat, vec, beta=beta, alpha=alpha)
        except (AttributeError, TypeError) as error:
            wrong_argument("addmv", error)
            raise
    return composite_out("addmv", lambda: _c_addmv(input, mat, vec, beta=beta, alpha=alpha), (input, mat, vec, beta, alpha,), out)


def addmv_(input, mat, vec, *, beta=1, alpha=1) -> Any:
    return composite_inplace("addmv", input, lambda x: _c_addmv(x, mat, vec, beta=beta, alpha=alpha))


_c_baddbmm = COMPOSITES["baddbmm"].fn


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None) -> Any:
    if out is None:
        try:
            return _c_baddbmm(input, batch1, batch2, beta=beta, alpha=alpha)
        except (AttributeError, TypeError) as error:
            wrong_argument("baddbmm", error)
            raise
    return composite_out("baddbmm", lambda: _c_baddbmm(input, batch1, batch2, beta=beta, alpha=alpha), (input, batch1, batch2, beta, alpha,), out)


def baddbmm_(input, batch1, batch2, *, beta=1, alpha=1) -> Any:
    return composite_inplace("baddbmm", input, lambda x: _c_baddbmm(x, batch1, batch2, beta=beta, alpha=alpha))


_c_addbmm = COMPOSITES["addbmm"].fn


def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None) -> Any:
    if out is None:
        try:
            return _c_addbmm(input, batch1, batch2, beta=beta, alpha=alpha)
        except (AttributeError, TypeError) as error:
            wrong_argument("addbmm", error)
            raise
    return composite_out("addbmm", lambda: _c_addbmm(input, batch1, batch2, beta=beta, alpha=alpha), (input, batch1, batch2, beta, alpha,), out)


def addbmm_(input, batch1, batch2, *, beta=1, alpha=1) -> Any:
    return composite_inplace("addbmm", input, lambda x: _c_addbmm(x, batch1, batch2, beta=beta, alpha=alpha))


_c_addr = COMPOSITES["addr"].fn


def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None) -> Any:
    if out is None:
        try:
            return _c_addr(input, vec1, vec2, beta=beta, alpha=alpha)
        except (AttributeError, TypeError) as error:
            wrong_argument("addr", error)
            raise
    return composite_out("addr", lambda: _c_addr(input, vec1, vec2, beta=beta, alpha=alpha), (input, vec1, vec2, beta, alpha,), out)


def addr_(input, vec1, vec2, *, beta=1, alpha=1) -> Any:
    return composite_inplace("addr", input, lambda x: _c_addr(x, vec1, vec2, beta=beta, alpha=alpha))


_c_is_floating_point = COMPOSITES["is_floating_point"].fn


def is_floating_point(input) -> Any:
    try:
        return _c_is_floating_point(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("is_floating_point", error)
        raise


_c_is_complex = COMPOSITES["is_complex"].fn


def is_complex(input) -> Any:
    try:
        return _c_is_complex(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("is_complex", error)
        raise


_c_is_signed = COMPOSITES["is_signed"].fn


def is_signed(input) -> Any:
    try:
        return _c_is_signed(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("is_signed", error)
        raise


_c_is_conj = COMPOSITES["is_conj"].fn


def is_conj(input) -> Any:
    try:
        return _c_is_conj(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("is_conj", error)
        raise


_c_is_neg = COMPOSITES["is_neg"].fn


def is_neg(input) -> Any:
    try:
        return _c_is_neg(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("is_neg", error)
        raise


_c_is_inference = COMPOSITES["is_inference"].fn


def is_inference(input) -> Any:
    try:
        return _c_is_inference(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("is_inference", error)
        raise


_c_is_nonzero = COMPOSITES["is_nonzero"].fn


def is_nonzero(input) -> Any:
    try:
        return _c_is_nonzero(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("is_nonzero", error)
        raise


_c_is_same_size = COMPOSITES["is_same_size"].fn


def is_same_size(input, other) -> Any:
    try:
        return _c_is_same_size(input, other)
    except (AttributeError, TypeError) as error:
        wrong_argument("is_same_size", error)
        raise


_c_numel = COMPOSITES["numel"].fn


def numel(input) -> Any:
    try:
        return _c_numel(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("numel", error)
        raise


_c_result_type = COMPOSITES["result_type"].fn


def result_type(tensor1, tensor2) -> Any:
    try:
        return _c_result_type(tensor1, tensor2)
    except (AttributeError, TypeError) as error:
        wrong_argument("result_type", error)
        raise


_c_rsub = COMPOSITES["rsub"].fn


def rsub(input, other, *, alpha=1) -> Any:
    try:
        return _c_rsub(input, other, alpha=alpha)
    except (AttributeError, TypeError) as error:
        wrong_argument("rsub", error)
        raise


_c_positive = COMPOSITES["positive"].fn


def positive(input) -> Any:
    try:
        return _c_positive(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("positive", error)
        raise


_c_bernoulli = COMPOSITES["bernoulli"].fn


def bernoulli(input, p=None, *, generator=None, out=None) -> Any:
    try:
        return _c_bernoulli(input, p, generator=generator, out=out)
    except (AttributeError, TypeError) as error:
        wrong_argument("bernoulli", error)
        raise


_c_multinomial = COMPOSITES["multinomial"].fn


def multinomial(input, num_samples, replacement=False, *, generator=None, out=None) -> Any:
    try:
        return _c_multinomial(input, num_samples, replacement, generator=generator, out=out)
    except (AttributeError, TypeError) as error:
        wrong_argument("multinomial", error)
        raise


_c_normal = COMPOSITES["normal"].fn


def normal(mean, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Any:
    try:
        return _c_normal(mean, std, size, generator=generator, out=out, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("normal", error)
        raise


_c_poisson = COMPOSITES["poisson"].fn


def poisson(input, generator=None) -> Any:
    try:
        return _c_poisson(input, generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("poisson", error)
        raise


_c_nn__functional__relu = COMPOSITES["nn.functional.relu"].fn


def nn__functional__relu(input, inplace=False) -> Any:
    try:
        return _c_nn__functional__relu(input, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("relu", error)
        raise


_c_nn__functional__hardtanh = COMPOSITES["nn.functional.hardtanh"].fn


def nn__functional__hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False) -> Any:
    try:
        return _c_nn__functional__hardtanh(input, min_val, max_val, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("hardtanh", error)
        raise


_c_nn__functional__relu6 = COMPOSITES["nn.functional.relu6"].fn


def nn__functional__relu6(input, inplace=False) -> Any:
    try:
        return _c_nn__functional__relu6(input, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("relu6", error)
        raise


_c_nn__functional__threshold = COMPOSITES["nn.functional.threshold"].fn


def nn__functional__threshold(input, threshold, value, inplace=False) -> Any:
    try:
        return _c_nn__functional__threshold(input, threshold, value, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("threshold", error)
        raise


_c_nn__functional__leaky_relu = COMPOSITES["nn.functional.leaky_relu"].fn


def nn__functional__leaky_relu(input, negative_slope=0.01, inplace=False) -> Any:
    try:
        return _c_nn__functional__leaky_relu(input, negative_slope, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("leaky_relu", error)
        raise


_c_prelu = COMPOSITES["prelu"].fn


def prelu(input, weight) -> Any:
    try:
        return _c_prelu(input, weight)
    except (AttributeError, TypeError) as error:
        wrong_argument("prelu", error)
        raise


_c_nn__functional__rrelu = COMPOSITES["nn.functional.rrelu"].fn


def nn__functional__rrelu(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False) -> Any:
    try:
        return _c_nn__functional__rrelu(input, lower, upper, training, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("rrelu", error)
        raise


_c_rrelu = COMPOSITES["rrelu"].fn


def rrelu(input, lower=0.125, upper=0.3333333333333333, training=False, generator=None) -> Any:
    try:
        return _c_rrelu(input, lower, upper, training, generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("rrelu", error)
        raise


_c_rrelu_ = COMPOSITES["rrelu_"].fn


def rrelu_(input, lower=0.125, upper=0.3333333333333333, training=False, generator=None) -> Any:
    try:
        return _c_rrelu_(input, lower, upper, training, generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("rrelu_", error)
        raise


_c_nn__functional__elu = COMPOSITES["nn.functional.elu"].fn


def nn__functional__elu(input, alpha=1.0, inplace=False) -> Any:
    try:
        return _c_nn__functional__elu(input, alpha, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("elu", error)
        raise


_c_nn__functional__selu = COMPOSITES["nn.functional.selu"].fn


def nn__functional__selu(input, inplace=False) -> Any:
    try:
        return _c_nn__functional__selu(input, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("selu", error)
        raise


_c_nn__functional__celu = COMPOSITES["nn.functional.celu"].fn


def nn__functional__celu(input, alpha=1.0, inplace=False) -> Any:
    try:
        return _c_nn__functional__celu(input, alpha, inplace)
    except (AttributeError, TypeError) as error:
        wrong_argument("celu", error)
        raise


_c_nn__functional__dropout = COMPOSITES["nn.functional.dropout"].fn


def nn__functional__dropout(input, p=0.5, training=True, inplace=False, *, generator=None) -> Any:
    try:
        return _c_nn__functional__dropout(input, p, training, inplace, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("dropout", error)
        raise


_c_nn__functional__alpha_dropout = COMPOSITES["nn.functional.alpha_dropout"].fn


def nn__functional__alpha_dropout(input, p=0.5, training=False, inplace=False, *, generator=None) -> Any:
    try:
        return _c_nn__functional__alpha_dropout(input, p, training, inplace, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("alpha_dropout", error)
        raise


_c_nn__functional__feature_alpha_dropout = COMPOSITES["nn.functional.feature_alpha_dropout"].fn


def nn__functional__feature_alpha_dropout(input, p=0.5, training=False, inplace=False, *, generator=None) -> Any:
    try:
        return _c_nn__functional__feature_alpha_dropout(input, p, training, inplace, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("feature_alpha_dropout", error)
        raise


_c_nn__functional__dropout1d = COMPOSITES["nn.functional.dropout1d"].fn


def nn__functional__dropout1d(input, p=0.5, training=True, inplace=False, *, generator=None) -> Any:
    try:
        return _c_nn__functional__dropout1d(input, p, training, inplace, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("dropout1d", error)
        raise


_c_nn__functional__dropout2d = COMPOSITES["nn.functional.dropout2d"].fn


def nn__functional__dropout2d(input, p=0.5, training=True, inplace=False, *, generator=None) -> Any:
    try:
        return _c_nn__functional__dropout2d(input, p, training, inplace, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("dropout2d", error)
        raise


_c_nn__functional__dropout3d = COMPOSITES["nn.functional.dropout3d"].fn


def nn__functional__dropout3d(input, p=0.5, training=True, inplace=False, *, generator=None) -> Any:
    try:
        return _c_nn__functional__dropout3d(input, p, training, inplace, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("dropout3d", error)
        raise


_c_dropout = COMPOSITES["dropout"].fn


def dropout(input, p, train) -> Any:
    try:
        return _c_dropout(input, p, train)
    except (AttributeError, TypeError) as error:
        wrong_argument("dropout", error)
        raise


_c_dropout_ = COMPOSITES["dropout_"].fn


def dropout_(input, p, train) -> Any:
    try:
        return _c_dropout_(input, p, train)
    except (AttributeError, TypeError) as error:
        wrong_argument("dropout_", error)
        raise


_c_alpha_dropout = COMPOSITES["alpha_dropout"].fn


def alpha_dropout(input, p, train) -> Any:
    try:
        return _c_alpha_dropout(input, p, train)
    except (AttributeError, TypeError) as error:
        wrong_argument("alpha_dropout", error)
        raise


_c_alpha_dropout_ = COMPOSITES["alpha_dropout_"].fn


def alpha_dropout_(input, p, train) -> Any:
    try:
        return _c_alpha_dropout_(input, p, train)
    except (AttributeError, TypeError) as error:
        wrong_argument("alpha_dropout_", error)
        raise


_c_feature_dropout = COMPOSITES["feature_dropout"].fn


def feature_dropout(input, p, train) -> Any:
    try:
        return _c_feature_dropout(input, p, train)
    except (AttributeError, TypeError) as error:
        wrong_argument("feature_dropout", error)
        raise


_c_feature_dropout_ = COMPOSITES["feature_dropout_"].fn


def feature_dropout_(input, p, train) -> Any:
    try:
        return _c_feature_dropout_(input, p, train)
    except (AttributeError, TypeError) as error:
        wrong_argument("feature_dropout_", error)
        raise


_c_feature_alpha_dropout = COMPOSITES["feature_alpha_dropout"].fn


def feature_alpha_dropout(input, p, train) -> Any:
    try:
        return _c_feature_alpha_dropout(input, p, train)
    except (AttributeError, TypeError) as error:
        wrong_argument("feature_alpha_dropout", error)
        raise


_c_feature_alpha_dropout_ = COMPOSITES["feature_alpha_dropout_"].fn


def feature_alpha_dropout_(input, p, train) -> Any:
    try:
        return _c_feature_alpha_dropout_(input, p, train)
    except (AttributeError, TypeError) as error:
        wrong_argument("feature_alpha_dropout_", error)
        raise


_c_nn__functional__scaled_dot_product_attention = COMPOSITES["nn.functional.scaled_dot_product_attention"].fn


def nn__functional__scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False) -> Any:
    try:
        return _c_nn__functional__scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    except (AttributeError, TypeError) as error:
        wrong_argument("scaled_dot_product_attention", error)
        raise


_c_nn__functional__batch_norm = COMPOSITES["nn.functional.batch_norm"].fn


def nn__functional__batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05) -> Any:
    try:
        return _c_nn__functional__batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    except (AttributeError, TypeError) as error:
        wrong_argument("batch_norm", error)
        raise


_c_batch_norm = COMPOSITES["batch_norm"].fn


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled) -> Any:
    try:
        return _c_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
    except (AttributeError, TypeError) as error:
        wrong_argument("batch_norm", error)
        raise


_c_nn__functional__instance_norm = COMPOSITES["nn.functional.instance_norm"].fn


def nn__functional__instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05) -> Any:
    try:
        return _c_nn__functional__instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
    except (AttributeError, TypeError) as error:
        wrong_argument("instance_norm", error)
        raise


_c_instance_norm = COMPOSITES["instance_norm"].fn


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled) -> Any:
    try:
        return _c_instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled)
    except (AttributeError, TypeError) as error:
        wrong_argument("instance_norm", error)
        raise


_c_nn__functional__mse_loss = COMPOSITES["nn.functional.mse_loss"].fn


def nn__functional__mse_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None) -> Any:
    try:
        return _c_nn__functional__mse_loss(input, target, size_average, reduce, reduction, weight)
    except (AttributeError, TypeError) as error:
        wrong_argument("mse_loss", error)
        raise


_c_nn__functional__l1_loss = COMPOSITES["nn.functional.l1_loss"].fn


def nn__functional__l1_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None) -> Any:
    try:
        return _c_nn__functional__l1_loss(input, target, size_average, reduce, reduction, weight)
    except (AttributeError, TypeError) as error:
        wrong_argument("l1_loss", error)
        raise


_c_nn__functional__smooth_l1_loss = COMPOSITES["nn.functional.smooth_l1_loss"].fn


def nn__functional__smooth_l1_loss(input, target, size_average=None, reduce=None, reduction='mean', beta=1.0) -> Any:
    try:
        return _c_nn__functional__smooth_l1_loss(input, target, size_average, reduce, reduction, beta)
    except (AttributeError, TypeError) as error:
        wrong_argument("smooth_l1_loss", error)
        raise


_c_nn__functional__huber_loss = COMPOSITES["nn.functional.huber_loss"].fn


def nn__functional__huber_loss(input, target, reduction='mean', delta=1.0, weight=None) -> Any:
    try:
        return _c_nn__functional__huber_loss(input, target, reduction, delta, weight)
    except (AttributeError, TypeError) as error:
        wrong_argument("huber_loss", error)
        raise


_c_nn__functional__kl_div = COMPOSITES["nn.functional.kl_div"].fn


def nn__functional__kl_div(input, target, size_average=None, reduce=None, reduction='mean', log_target=False) -> Any:
    try:
        return _c_nn__functional__kl_div(input, target, size_average, reduce, reduction, log_target)
    except (AttributeError, TypeError) as error:
        wrong_argument("kl_div", error)
        raise


_c_nn__functional__poisson_nll_loss = COMPOSITES["nn.functional.poisson_nll_loss"].fn


def nn__functional__poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__poisson_nll_loss(input, target, log_input, full, size_average, eps, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("poisson_nll_loss", error)
        raise


_c_nn__functional__gaussian_nll_loss = COMPOSITES["nn.functional.gaussian_nll_loss"].fn


def nn__functional__gaussian_nll_loss(input, target, var, full=False, eps=1e-06, reduction='mean') -> Any:
    try:
        return _c_nn__functional__gaussian_nll_loss(input, target, var, full, eps, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("gaussian_nll_loss", error)
        raise


_c_nn__functional__binary_cross_entropy = COMPOSITES["nn.functional.binary_cross_entropy"].fn


def nn__functional__binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__binary_cross_entropy(input, target, weight, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("binary_cross_entropy", error)
        raise


_c_nn__functional__binary_cross_entropy_with_logits = COMPOSITES["nn.functional.binary_cross_entropy_with_logits"].fn


def nn__functional__binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None) -> Any:
    try:
        return _c_nn__functional__binary_cross_entropy_with_logits(input, target, weight, size_average, reduce, reduction, pos_weight)
    except (AttributeError, TypeError) as error:
        wrong_argument("binary_cross_entropy_with_logits", error)
        raise


_c_nn__functional__multilabel_soft_margin_loss = COMPOSITES["nn.functional.multilabel_soft_margin_loss"].fn


def nn__functional__multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__multilabel_soft_margin_loss(input, target, weight, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("multilabel_soft_margin_loss", error)
        raise


_c_nn__functional__soft_margin_loss = COMPOSITES["nn.functional.soft_margin_loss"].fn


def nn__functional__soft_margin_loss(input, target, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__soft_margin_loss(input, target, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("soft_margin_loss", error)
        raise


_c_clamp = COMPOSITES["clamp"].fn


def clamp(input, min=None, max=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_clamp(input, min, max)
        except (AttributeError, TypeError) as error:
            wrong_argument("clamp", error)
            raise
    return composite_out("clamp", lambda: _c_clamp(input, min, max), (input, min, max,), out)


_c_clamp_ = COMPOSITES["clamp_"].fn


def clamp_(input, min=None, max=None) -> Any:
    try:
        return _c_clamp_(input, min, max)
    except (AttributeError, TypeError) as error:
        wrong_argument("clamp_", error)
        raise


_c_clamp_min = COMPOSITES["clamp_min"].fn


def clamp_min(input, min, *, out=None) -> Any:
    if out is None:
        try:
            return _c_clamp_min(input, min)
        except (AttributeError, TypeError) as error:
            wrong_argument("clamp_min", error)
            raise
    return composite_out("clamp_min", lambda: _c_clamp_min(input, min), (input, min,), out)


_c_clamp_min_ = COMPOSITES["clamp_min_"].fn


def clamp_min_(input, min) -> Any:
    try:
        return _c_clamp_min_(input, min)
    except (AttributeError, TypeError) as error:
        wrong_argument("clamp_min_", error)
        raise


_c_clamp_max = COMPOSITES["clamp_max"].fn


def clamp_max(input, max, *, out=None) -> Any:
    if out is None:
        try:
            return _c_clamp_max(input, max)
        except (AttributeError, TypeError) as error:
            wrong_argument("clamp_max", error)
            raise
    return composite_out("clamp_max", lambda: _c_clamp_max(input, max), (input, max,), out)


_c_clamp_max_ = COMPOSITES["clamp_max_"].fn


def clamp_max_(input, max) -> Any:
    try:
        return _c_clamp_max_(input, max)
    except (AttributeError, TypeError) as error:
        wrong_argument("clamp_max_", error)
        raise


_c_nan_to_num = COMPOSITES["nan_to_num"].fn


def nan_to_num(input, nan=None, posinf=None, neginf=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_nan_to_num(input, nan, posinf, neginf)
        except (AttributeError, TypeError) as error:
            wrong_argument("nan_to_num", error)
            raise
    return composite_out("nan_to_num", lambda: _c_nan_to_num(input, nan, posinf, neginf), (input, nan, posinf, neginf,), out)


_c_nan_to_num_ = COMPOSITES["nan_to_num_"].fn


def nan_to_num_(input, nan=None, posinf=None, neginf=None) -> Any:
    try:
        return _c_nan_to_num_(input, nan, posinf, neginf)
    except (AttributeError, TypeError) as error:
        wrong_argument("nan_to_num_", error)
        raise


_c_linalg__multi_dot = COMPOSITES["linalg.multi_dot"].fn


def linalg__multi_dot(tensors, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__multi_dot(tensors)
        except (AttributeError, TypeError) as error:
            wrong_argument("multi_dot", error)
            raise
    return composite_out("linalg.multi_dot", lambda: _c_linalg__multi_dot(tensors), (tensors,), out)


_c_chain_matmul = COMPOSITES["chain_matmul"].fn


def chain_matmul(*matrices, out=None) -> Any:
    if out is None:
        return _c_chain_matmul(*matrices)
    return composite_out("chain_matmul", lambda: _c_chain_matmul(*matrices), (matrices,), out)


_c_copy_ = COMPOSITES["copy_"].fn


def copy_(input, src, non_blocking=False) -> Any:
    try:
        return _c_copy_(input, src, non_blocking)
    except (AttributeError, TypeError) as error:
        wrong_argument("copy_", error)
        raise


_c_pin_memory = COMPOSITES["pin_memory"].fn


def pin_memory(input, device=None) -> Any:
    try:
        return _c_pin_memory(input, device)
    except (AttributeError, TypeError) as error:
        wrong_argument("pin_memory", error)
        raise


_c_type_as = COMPOSITES["type_as"].fn


def type_as(input, other) -> Any:
    try:
        return _c_type_as(input, other)
    except (AttributeError, TypeError) as error:
        wrong_argument("type_as", error)
        raise


_c_type = COMPOSITES["type"].fn


def type(input, dtype=None, non_blocking=False) -> Any:
    try:
        return _c_type(input, dtype, non_blocking)
    except (AttributeError, TypeError) as error:
        wrong_argument("type", error)
        raise


_c_hstack = COMPOSITES["hstack"].fn


def hstack(tensors, *, out=None) -> Any:
    if out is None:
        try:
            return _c_hstack(tensors)
        except (AttributeError, TypeError) as error:
            wrong_argument("hstack", error)
            raise
    return composite_out("hstack", lambda: _c_hstack(tensors), (tensors,), out)


_c_vstack = COMPOSITES["vstack"].fn


def vstack(tensors, *, out=None) -> Any:
    if out is None:
        try:
            return _c_vstack(tensors)
        except (AttributeError, TypeError) as error:
            wrong_argument("vstack", error)
            raise
    return composite_out("vstack", lambda: _c_vstack(tensors), (tensors,), out)


_c_dstack = COMPOSITES["dstack"].fn


def dstack(tensors, *, out=None) -> Any:
    if out is None:
        try:
            return _c_dstack(tensors)
        except (AttributeError, TypeError) as error:
            wrong_argument("dstack", error)
            raise
    return composite_out("dstack", lambda: _c_dstack(tensors), (tensors,), out)


_c_column_stack = COMPOSITES["column_stack"].fn


def column_stack(tensors, *, out=None) -> Any:
    if out is None:
        try:
            return _c_column_stack(tensors)
        except (AttributeError, TypeError) as error:
            wrong_argument("column_stack", error)
            raise
    return composite_out("column_stack", lambda: _c_column_stack(tensors), (tensors,), out)


_c_isreal = COMPOSITES["isreal"].fn


def isreal(input) -> Any:
    try:
        return _c_isreal(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("isreal", error)
        raise


_c_isclose = COMPOSITES["isclose"].fn


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> Any:
    try:
        return _c_isclose(input, other, rtol, atol, equal_nan)
    except (AttributeError, TypeError) as error:
        wrong_argument("isclose", error)
        raise


_c_allclose = COMPOSITES["allclose"].fn


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> Any:
    try:
        return _c_allclose(input, other, rtol, atol, equal_nan)
    except (AttributeError, TypeError) as error:
        wrong_argument("allclose", error)
        raise


_c_equal = COMPOSITES["equal"].fn


def equal(input, other) -> Any:
    try:
        return _c_equal(input, other)
    except (AttributeError, TypeError) as error:
        wrong_argument("equal", error)
        raise


_c_isin = COMPOSITES["isin"].fn


def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None) -> Any:
    if out is None:
        try:
            return _c_isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
        except (AttributeError, TypeError) as error:
            wrong_argument("isin", error)
            raise
    return composite_out("isin", lambda: _c_isin(elements, test_elements, assume_unique=assume_unique, invert=invert), (elements, test_elements, assume_unique, invert,), out)


_c_view_as = COMPOSITES["view_as"].fn


def view_as(input, other) -> Any:
    try:
        return _c_view_as(input, other)
    except (AttributeError, TypeError) as error:
        wrong_argument("view_as", error)
        raise


_c_reshape_as = COMPOSITES["reshape_as"].fn


def reshape_as(input, other) -> Any:
    try:
        return _c_reshape_as(input, other)
    except (AttributeError, TypeError) as error:
        wrong_argument("reshape_as", error)
        raise


_c_swapaxes = COMPOSITES["swapaxes"].fn


def swapaxes(input, axis0, axis1) -> Any:
    try:
        return _c_swapaxes(input, axis0, axis1)
    except (AttributeError, TypeError) as error:
        wrong_argument("swapaxes", error)
        raise


_c_movedim = COMPOSITES["movedim"].fn


def movedim(input, source, destination) -> Any:
    try:
        return _c_movedim(input, source, destination)
    except (AttributeError, TypeError) as error:
        wrong_argument("movedim", error)
        raise


_c_flatten = COMPOSITES["flatten"].fn


def flatten(input, start_dim=0, end_dim=-1) -> Any:
    try:
        return _c_flatten(input, start_dim, end_dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("flatten", error)
        raise


_c_unflatten = COMPOSITES["unflatten"].fn


def unflatten(input, dim, sizes) -> Any:
    try:
        return _c_unflatten(input, dim, sizes)
    except (AttributeError, TypeError) as error:
        wrong_argument("unflatten", error)
        raise


_c_ravel = COMPOSITES["ravel"].fn


def ravel(input) -> Any:
    try:
        return _c_ravel(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("ravel", error)
        raise


_c_adjoint = COMPOSITES["adjoint"].fn


def adjoint(input) -> Any:
    try:
        return _c_adjoint(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("adjoint", error)
        raise


_c_conj_physical = COMPOSITES["conj_physical"].fn


def conj_physical(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_conj_physical(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("conj_physical", error)
            raise
    return composite_out("conj_physical", lambda: _c_conj_physical(input), (input,), out)


_c_conj_physical_ = COMPOSITES["conj_physical_"].fn


def conj_physical_(input) -> Any:
    try:
        return _c_conj_physical_(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("conj_physical_", error)
        raise


_c_conj = COMPOSITES["conj"].fn


def conj(input) -> Any:
    try:
        return _c_conj(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("conj", error)
        raise


_c_resolve_conj = COMPOSITES["resolve_conj"].fn


def resolve_conj(input) -> Any:
    try:
        return _c_resolve_conj(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("resolve_conj", error)
        raise


_c_resolve_neg = COMPOSITES["resolve_neg"].fn


def resolve_neg(input) -> Any:
    try:
        return _c_resolve_neg(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("resolve_neg", error)
        raise


_c_real = COMPOSITES["real"].fn


def real(input) -> Any:
    try:
        return _c_real(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("real", error)
        raise


_c_imag = COMPOSITES["imag"].fn


def imag(input) -> Any:
    try:
        return _c_imag(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("imag", error)
        raise


_c_view_as_complex = COMPOSITES["view_as_complex"].fn


def view_as_complex(input) -> Any:
    try:
        return _c_view_as_complex(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("view_as_complex", error)
        raise


_c_nn__functional__conv1d = COMPOSITES["nn.functional.conv1d"].fn


def nn__functional__conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> Any:
    try:
        return _c_nn__functional__conv1d(input, weight, bias, stride, padding, dilation, groups)
    except (AttributeError, TypeError) as error:
        wrong_argument("conv1d", error)
        raise


_c_nn__functional__conv2d = COMPOSITES["nn.functional.conv2d"].fn


def nn__functional__conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> Any:
    try:
        return _c_nn__functional__conv2d(input, weight, bias, stride, padding, dilation, groups)
    except (AttributeError, TypeError) as error:
        wrong_argument("conv2d", error)
        raise


_c_nn__functional__conv3d = COMPOSITES["nn.functional.conv3d"].fn


def nn__functional__conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> Any:
    try:
        return _c_nn__functional__conv3d(input, weight, bias, stride, padding, dilation, groups)
    except (AttributeError, TypeError) as error:
        wrong_argument("conv3d", error)
        raise


_c_nn__functional__conv_transpose1d = COMPOSITES["nn.functional.conv_transpose1d"].fn


def nn__functional__conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1) -> Any:
    try:
        return _c_nn__functional__conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups, dilation)
    except (AttributeError, TypeError) as error:
        wrong_argument("conv_transpose1d", error)
        raise


_c_nn__functional__conv_transpose2d = COMPOSITES["nn.functional.conv_transpose2d"].fn


def nn__functional__conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1) -> Any:
    try:
        return _c_nn__functional__conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)
    except (AttributeError, TypeError) as error:
        wrong_argument("conv_transpose2d", error)
        raise


_c_nn__functional__conv_transpose3d = COMPOSITES["nn.functional.conv_transpose3d"].fn


def nn__functional__conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1) -> Any:
    try:
        return _c_nn__functional__conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups, dilation)
    except (AttributeError, TypeError) as error:
        wrong_argument("conv_transpose3d", error)
        raise


_c_nn__functional__conv_tbc = COMPOSITES["nn.functional.conv_tbc"].fn


def nn__functional__conv_tbc(input, weight, bias, pad=0) -> Any:
    try:
        return _c_nn__functional__conv_tbc(input, weight, bias, pad)
    except (AttributeError, TypeError) as error:
        wrong_argument("conv_tbc", error)
        raise


_c_cov = COMPOSITES["cov"].fn


def cov(input, *, correction=1, fweights=None, aweights=None) -> Any:
    try:
        return _c_cov(input, correction=correction, fweights=fweights, aweights=aweights)
    except (AttributeError, TypeError) as error:
        wrong_argument("cov", error)
        raise


_c_corrcoef = COMPOSITES["corrcoef"].fn


def corrcoef(input) -> Any:
    try:
        return _c_corrcoef(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("corrcoef", error)
        raise


_c_scalar_tensor = COMPOSITES["scalar_tensor"].fn


def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Any:
    try:
        return _c_scalar_tensor(s, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("scalar_tensor", error)
        raise


_c_nn__functional__nll_loss = COMPOSITES["nn.functional.nll_loss"].fn


def nn__functional__nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__nll_loss(input, target, weight, size_average, ignore_index, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("nll_loss", error)
        raise


_c_nn__functional__cross_entropy = COMPOSITES["nn.functional.cross_entropy"].fn


def nn__functional__cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0) -> Any:
    try:
        return _c_nn__functional__cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
    except (AttributeError, TypeError) as error:
        wrong_argument("cross_entropy", error)
        raise


_c_nn__functional__linear_cross_entropy = COMPOSITES["nn.functional.linear_cross_entropy"].fn


def nn__functional__linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction='mean', ignore_index=None, label_smoothing=0.0, options=None) -> Any:
    try:
        return _c_nn__functional__linear_cross_entropy(input, linear_weight, target, linear_bias=linear_bias, weight=weight, reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing, options=options)
    except (AttributeError, TypeError) as error:
        wrong_argument("linear_cross_entropy", error)
        raise


_c_nn__functional__ctc_loss = COMPOSITES["nn.functional.ctc_loss"].fn


def nn__functional__ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False) -> Any:
    try:
        return _c_nn__functional__ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
    except (AttributeError, TypeError) as error:
        wrong_argument("ctc_loss", error)
        raise


_c_narrow = COMPOSITES["narrow"].fn


def narrow(input, dim, start, length) -> Any:
    try:
        return _c_narrow(input, dim, start, length)
    except (AttributeError, TypeError) as error:
        wrong_argument("narrow", error)
        raise


_c_as_strided = COMPOSITES["as_strided"].fn


def as_strided(input, size, stride, storage_offset=None) -> Any:
    try:
        return _c_as_strided(input, size, stride, storage_offset)
    except (AttributeError, TypeError) as error:
        wrong_argument("as_strided", error)
        raise


_c_diag_embed = COMPOSITES["diag_embed"].fn


def diag_embed(input, offset=0, dim1=-2, dim2=-1) -> Any:
    try:
        return _c_diag_embed(input, offset, dim1, dim2)
    except (AttributeError, TypeError) as error:
        wrong_argument("diag_embed", error)
        raise


_c_diag = COMPOSITES["diag"].fn


def diag(input, diagonal=0, *, out=None) -> Any:
    if out is None:
        try:
            return _c_diag(input, diagonal)
        except (AttributeError, TypeError) as error:
            wrong_argument("diag", error)
            raise
    return composite_out("diag", lambda: _c_diag(input, diagonal), (input, diagonal,), out)


_c_diagflat = COMPOSITES["diagflat"].fn


def diagflat(input, offset=0) -> Any:
    try:
        return _c_diagflat(input, offset)
    except (AttributeError, TypeError) as error:
        wrong_argument("diagflat", error)
        raise


_c_trace = COMPOSITES["trace"].fn


def trace(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_trace(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("trace", error)
            raise
    return composite_out("trace", lambda: _c_trace(input), (input,), out)


_c_fill_diagonal_ = COMPOSITES["fill_diagonal_"].fn


def fill_diagonal_(input, fill_value, wrap=False) -> Any:
    try:
        return _c_fill_diagonal_(input, fill_value, wrap)
    except (AttributeError, TypeError) as error:
        wrong_argument("fill_diagonal_", error)
        raise


_c_nn__functional__normalize = COMPOSITES["nn.functional.normalize"].fn


def nn__functional__normalize(input, p=2.0, dim=1, eps=1e-12, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_nn__functional__normalize(input, p, dim, eps)
        except (AttributeError, TypeError) as error:
            wrong_argument("normalize", error)
            raise
    return composite_out("nn.functional.normalize", lambda: _c_nn__functional__normalize(input, p, dim, eps), (input, p, dim, eps,), out)


_c_cosine_similarity = COMPOSITES["cosine_similarity"].fn


def cosine_similarity(x1, x2, dim=1, eps=1e-08, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_cosine_similarity(x1, x2, dim, eps)
    except (AttributeError, TypeError) as error:
        wrong_argument("cosine_similarity", error)
        raise


_c_pairwise_distance = COMPOSITES["pairwise_distance"].fn


def pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False, *, keepdims=None) -> Any:
    if keepdims is not None:
        keepdim = keepdims
    try:
        return _c_pairwise_distance(x1, x2, p, eps, keepdim)
    except (AttributeError, TypeError) as error:
        wrong_argument("pairwise_distance", error)
        raise


_c_pdist = COMPOSITES["pdist"].fn


def pdist(input, p=2.0) -> Any:
    try:
        return _c_pdist(input, p)
    except (AttributeError, TypeError) as error:
        wrong_argument("pdist", error)
        raise


_c_tensordot = COMPOSITES["tensordot"].fn


def tensordot(a, b, dims=2, *, out=None) -> Any:
    if out is None:
        try:
            return _c_tensordot(a, b, dims)
        except (AttributeError, TypeError) as error:
            wrong_argument("tensordot", error)
            raise
    return composite_out("tensordot", lambda: _c_tensordot(a, b, dims), (a, b, dims,), out)


_c_nanmean = COMPOSITES["nanmean"].fn


def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_nanmean(input, dim, keepdim, dtype=dtype)
        except (AttributeError, TypeError) as error:
            wrong_argument("nanmean", error)
            raise
    return composite_out("nanmean", lambda: _c_nanmean(input, dim, keepdim, dtype=dtype), (input, dim, keepdim, dtype,), out)


_c_linalg__vector_norm = COMPOSITES["linalg.vector_norm"].fn


def linalg__vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_linalg__vector_norm(input, ord, dim, keepdim, dtype=dtype)
        except (AttributeError, TypeError) as error:
            wrong_argument("vector_norm", error)
            raise
    return composite_out("linalg.vector_norm", lambda: _c_linalg__vector_norm(input, ord, dim, keepdim, dtype=dtype), (input, ord, dim, keepdim, dtype,), out)


_c_norm = COMPOSITES["norm"].fn


def norm(input, p='fro', dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_norm(input, p, dim, keepdim, dtype=dtype)
        except (AttributeError, TypeError) as error:
            wrong_argument("norm", error)
            raise
    return composite_out("norm", lambda: _c_norm(input, p, dim, keepdim, dtype=dtype), (input, p, dim, keepdim, dtype,), out)


_c_dist = COMPOSITES["dist"].fn


def dist(input, other, p=2) -> Any:
    try:
        return _c_dist(input, other, p)
    except (AttributeError, TypeError) as error:
        wrong_argument("dist", error)
        raise


_c_renorm = COMPOSITES["renorm"].fn


def renorm(input, p, dim, maxnorm, *, out=None) -> Any:
    if out is None:
        try:
            return _c_renorm(input, p, dim, maxnorm)
        except (AttributeError, TypeError) as error:
            wrong_argument("renorm", error)
            raise
    return composite_out("renorm", lambda: _c_renorm(input, p, dim, maxnorm), (input, p, dim, maxnorm,), out)


def renorm_(input, p, dim, maxnorm) -> Any:
    return composite_inplace("renorm", input, lambda x: _c_renorm(x, p, dim, maxnorm))


_c_embedding = COMPOSITES["embedding"].fn


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False) -> Any:
    try:
        return _c_embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    except (AttributeError, TypeError) as error:
        wrong_argument("embedding", error)
        raise


_c_embedding_renorm_ = COMPOSITES["embedding_renorm_"].fn


def embedding_renorm_(input, indices, max_norm, norm_type) -> Any:
    try:
        return _c_embedding_renorm_(input, indices, max_norm, norm_type)
    except (AttributeError, TypeError) as error:
        wrong_argument("embedding_renorm_", error)
        raise


_c_nn__functional__embedding = COMPOSITES["nn.functional.embedding"].fn


def nn__functional__embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False) -> Any:
    try:
        return _c_nn__functional__embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    except (AttributeError, TypeError) as error:
        wrong_argument("embedding", error)
        raise


_c_nn__functional__embedding_bag = COMPOSITES["nn.functional.embedding_bag"].fn


def nn__functional__embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean', sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None) -> Any:
    try:
        return _c_nn__functional__embedding_bag(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)
    except (AttributeError, TypeError) as error:
        wrong_argument("embedding_bag", error)
        raise


_c_aminmax = COMPOSITES["aminmax"].fn


def aminmax(input, *, dim=None, keepdim=False, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_aminmax(input, dim=dim, keepdim=keepdim)
        except (AttributeError, TypeError) as error:
            wrong_argument("aminmax", error)
            raise
    return composite_out("aminmax", lambda: _c_aminmax(input, dim=dim, keepdim=keepdim), (input, dim, keepdim,), out)


_c_max = COMPOSITES["max"].fn


def max(input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_max(input, dim, keepdim, other=other)
        except (AttributeError, TypeError) as error:
            wrong_argument("max", error)
            raise
    return composite_out("max", lambda: _c_max(input, dim, keepdim, other=other), (input, dim, keepdim, other,), out)


_c_min = COMPOSITES["min"].fn


def min(input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_min(input, dim, keepdim, other=other)
        except (AttributeError, TypeError) as error:
            wrong_argument("min", error)
            raise
    return composite_out("min", lambda: _c_min(input, dim, keepdim, other=other), (input, dim, keepdim, other,), out)


_c_fft__fft = COMPOSITES["fft.fft"].fn


def fft__fft(input, n=None, dim=-1, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__fft(input, n, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("fft", error)
            raise
    return composite_out("fft.fft", lambda: _c_fft__fft(input, n, dim, norm), (input, n, dim, norm,), out)


_c_fft__ifft = COMPOSITES["fft.ifft"].fn


def fft__ifft(input, n=None, dim=-1, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__ifft(input, n, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("ifft", error)
            raise
    return composite_out("fft.ifft", lambda: _c_fft__ifft(input, n, dim, norm), (input, n, dim, norm,), out)


_c_fft__rfft = COMPOSITES["fft.rfft"].fn


def fft__rfft(input, n=None, dim=-1, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__rfft(input, n, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("rfft", error)
            raise
    return composite_out("fft.rfft", lambda: _c_fft__rfft(input, n, dim, norm), (input, n, dim, norm,), out)


_c_fft__irfft = COMPOSITES["fft.irfft"].fn


def fft__irfft(input, n=None, dim=-1, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__irfft(input, n, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("irfft", error)
            raise
    return composite_out("fft.irfft", lambda: _c_fft__irfft(input, n, dim, norm), (input, n, dim, norm,), out)


_c_fft__hfft = COMPOSITES["fft.hfft"].fn


def fft__hfft(input, n=None, dim=-1, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__hfft(input, n, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("hfft", error)
            raise
    return composite_out("fft.hfft", lambda: _c_fft__hfft(input, n, dim, norm), (input, n, dim, norm,), out)


_c_fft__ihfft = COMPOSITES["fft.ihfft"].fn


def fft__ihfft(input, n=None, dim=-1, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__ihfft(input, n, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("ihfft", error)
            raise
    return composite_out("fft.ihfft", lambda: _c_fft__ihfft(input, n, dim, norm), (input, n, dim, norm,), out)


_c_fft__fftn = COMPOSITES["fft.fftn"].fn


def fft__fftn(input, s=None, dim=None, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__fftn(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("fftn", error)
            raise
    return composite_out("fft.fftn", lambda: _c_fft__fftn(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__ifftn = COMPOSITES["fft.ifftn"].fn


def fft__ifftn(input, s=None, dim=None, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__ifftn(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("ifftn", error)
            raise
    return composite_out("fft.ifftn", lambda: _c_fft__ifftn(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__rfftn = COMPOSITES["fft.rfftn"].fn


def fft__rfftn(input, s=None, dim=None, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__rfftn(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("rfftn", error)
            raise
    return composite_out("fft.rfftn", lambda: _c_fft__rfftn(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__irfftn = COMPOSITES["fft.irfftn"].fn


def fft__irfftn(input, s=None, dim=None, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__irfftn(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("irfftn", error)
            raise
    return composite_out("fft.irfftn", lambda: _c_fft__irfftn(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__hfftn = COMPOSITES["fft.hfftn"].fn


def fft__hfftn(input, s=None, dim=None, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__hfftn(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("hfftn", error)
            raise
    return composite_out("fft.hfftn", lambda: _c_fft__hfftn(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__ihfftn = COMPOSITES["fft.ihfftn"].fn


def fft__ihfftn(input, s=None, dim=None, norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__ihfftn(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("ihfftn", error)
            raise
    return composite_out("fft.ihfftn", lambda: _c_fft__ihfftn(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__fft2 = COMPOSITES["fft.fft2"].fn


def fft__fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__fft2(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("fft2", error)
            raise
    return composite_out("fft.fft2", lambda: _c_fft__fft2(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__ifft2 = COMPOSITES["fft.ifft2"].fn


def fft__ifft2(input, s=None, dim=(-2, -1), norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__ifft2(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("ifft2", error)
            raise
    return composite_out("fft.ifft2", lambda: _c_fft__ifft2(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__rfft2 = COMPOSITES["fft.rfft2"].fn


def fft__rfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__rfft2(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("rfft2", error)
            raise
    return composite_out("fft.rfft2", lambda: _c_fft__rfft2(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__irfft2 = COMPOSITES["fft.irfft2"].fn


def fft__irfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__irfft2(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("irfft2", error)
            raise
    return composite_out("fft.irfft2", lambda: _c_fft__irfft2(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__hfft2 = COMPOSITES["fft.hfft2"].fn


def fft__hfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__hfft2(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("hfft2", error)
            raise
    return composite_out("fft.hfft2", lambda: _c_fft__hfft2(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__ihfft2 = COMPOSITES["fft.ihfft2"].fn


def fft__ihfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_fft__ihfft2(input, s, dim, norm)
        except (AttributeError, TypeError) as error:
            wrong_argument("ihfft2", error)
            raise
    return composite_out("fft.ihfft2", lambda: _c_fft__ihfft2(input, s, dim, norm), (input, s, dim, norm,), out)


_c_fft__fftshift = COMPOSITES["fft.fftshift"].fn


def fft__fftshift(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_fft__fftshift(input, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("fftshift", error)
        raise


_c_fft__ifftshift = COMPOSITES["fft.ifftshift"].fn


def fft__ifftshift(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_fft__ifftshift(input, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("ifftshift", error)
        raise


_c_fill = COMPOSITES["fill"].fn


def fill(input, value) -> Any:
    try:
        return _c_fill(input, value)
    except (AttributeError, TypeError) as error:
        wrong_argument("fill", error)
        raise


_c_fill_ = COMPOSITES["fill_"].fn


def fill_(input, value) -> Any:
    try:
        return _c_fill_(input, value)
    except (AttributeError, TypeError) as error:
        wrong_argument("fill_", error)
        raise


_c_zero_ = COMPOSITES["zero_"].fn


def zero_(input) -> Any:
    try:
        return _c_zero_(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("zero_", error)
        raise


_c_gradient = COMPOSITES["gradient"].fn


def gradient(input, *, spacing=1, dim=None, edge_order=1, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_gradient(input, spacing=spacing, dim=dim, edge_order=edge_order)
    except (AttributeError, TypeError) as error:
        wrong_argument("gradient", error)
        raise


_c_frexp = COMPOSITES["frexp"].fn


def frexp(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_frexp(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("frexp", error)
            raise
    return composite_out("frexp", lambda: _c_frexp(input), (input,), out)


_c_linalg__cross = COMPOSITES["linalg.cross"].fn


def linalg__cross(input, other, *, dim=-1, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_linalg__cross(input, other, dim=dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("cross", error)
            raise
    return composite_out("linalg.cross", lambda: _c_linalg__cross(input, other, dim=dim), (input, other, dim,), out)


_c_cross = COMPOSITES["cross"].fn


def cross(input, other, dim=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_cross(input, other, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("cross", error)
            raise
    return composite_out("cross", lambda: _c_cross(input, other, dim), (input, other, dim,), out)


_c_cdist = COMPOSITES["cdist"].fn


def cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary') -> Any:
    try:
        return _c_cdist(x1, x2, p, compute_mode)
    except (AttributeError, TypeError) as error:
        wrong_argument("cdist", error)
        raise


_c_nn__functional__grid_sample = COMPOSITES["nn.functional.grid_sample"].fn


def nn__functional__grid_sample(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None) -> Any:
    try:
        return _c_nn__functional__grid_sample(input, grid, mode, padding_mode, align_corners)
    except (AttributeError, TypeError) as error:
        wrong_argument("grid_sample", error)
        raise


_c_nn__functional__affine_grid = COMPOSITES["nn.functional.affine_grid"].fn


def nn__functional__affine_grid(theta, size, align_corners=None) -> Any:
    try:
        return _c_nn__functional__affine_grid(theta, size, align_corners)
    except (AttributeError, TypeError) as error:
        wrong_argument("affine_grid", error)
        raise


_c_nn__functional__group_norm = COMPOSITES["nn.functional.group_norm"].fn


def nn__functional__group_norm(input, num_groups, weight=None, bias=None, eps=1e-05) -> Any:
    try:
        return _c_nn__functional__group_norm(input, num_groups, weight, bias, eps)
    except (AttributeError, TypeError) as error:
        wrong_argument("group_norm", error)
        raise


_c_group_norm = COMPOSITES["group_norm"].fn


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True) -> Any:
    try:
        return _c_group_norm(input, num_groups, weight, bias, eps, cudnn_enabled)
    except (AttributeError, TypeError) as error:
        wrong_argument("group_norm", error)
        raise


_c_take_along_dim = COMPOSITES["take_along_dim"].fn


def take_along_dim(input, indices, dim=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_take_along_dim(input, indices, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("take_along_dim", error)
            raise
    return composite_out("take_along_dim", lambda: _c_take_along_dim(input, indices, dim), (input, indices, dim,), out)


_c_index_reduce = COMPOSITES["index_reduce"].fn


def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None) -> Any:
    if out is None:
        try:
            return _c_index_reduce(input, dim, index, source, reduce, include_self=include_self)
        except (AttributeError, TypeError) as error:
            wrong_argument("index_reduce", error)
            raise
    return composite_out("index_reduce", lambda: _c_index_reduce(input, dim, index, source, reduce, include_self=include_self), (input, dim, index, source, reduce, include_self,), out)


def index_reduce_(input, dim, index, source, reduce, *, include_self=True) -> Any:
    return composite_inplace("index_reduce", input, lambda x: _c_index_reduce(x, dim, index, source, reduce, include_self=include_self))


_c_index_put = COMPOSITES["index_put"].fn


def index_put(input, indices, values, accumulate=False) -> Any:
    try:
        return _c_index_put(input, indices, values, accumulate)
    except (AttributeError, TypeError) as error:
        wrong_argument("index_put", error)
        raise


_c_index_put_ = COMPOSITES["index_put_"].fn


def index_put_(input, indices, values, accumulate=False) -> Any:
    try:
        return _c_index_put_(input, indices, values, accumulate)
    except (AttributeError, TypeError) as error:
        wrong_argument("index_put_", error)
        raise


_c_unravel_index = COMPOSITES["unravel_index"].fn


def unravel_index(indices, shape) -> Any:
    try:
        return _c_unravel_index(indices, shape)
    except (AttributeError, TypeError) as error:
        wrong_argument("unravel_index", error)
        raise


_c_nn__functional__interpolate = COMPOSITES["nn.functional.interpolate"].fn


def nn__functional__interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None, antialias=False) -> Any:
    try:
        return _c_nn__functional__interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    except (AttributeError, TypeError) as error:
        wrong_argument("interpolate", error)
        raise


_c_nn__functional__upsample = COMPOSITES["nn.functional.upsample"].fn


def nn__functional__upsample(input, size=None, scale_factor=None, mode='nearest', align_corners=None) -> Any:
    try:
        return _c_nn__functional__upsample(input, size, scale_factor, mode, align_corners)
    except (AttributeError, TypeError) as error:
        wrong_argument("upsample", error)
        raise


_c_nn__functional__upsample_nearest = COMPOSITES["nn.functional.upsample_nearest"].fn


def nn__functional__upsample_nearest(input, size=None, scale_factor=None) -> Any:
    try:
        return _c_nn__functional__upsample_nearest(input, size, scale_factor)
    except (AttributeError, TypeError) as error:
        wrong_argument("upsample_nearest", error)
        raise


_c_nn__functional__upsample_bilinear = COMPOSITES["nn.functional.upsample_bilinear"].fn


def nn__functional__upsample_bilinear(input, size=None, scale_factor=None) -> Any:
    try:
        return _c_nn__functional__upsample_bilinear(input, size, scale_factor)
    except (AttributeError, TypeError) as error:
        wrong_argument("upsample_bilinear", error)
        raise


_c_new_full = COMPOSITES["new_full"].fn


def new_full(input, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Any:
    try:
        return _c_new_full(input, size, fill_value, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("new_full", error)
        raise


_c_new_empty_strided = COMPOSITES["new_empty_strided"].fn


def new_empty_strided(input, size, stride, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Any:
    try:
        return _c_new_empty_strided(input, size, stride, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("new_empty_strided", error)
        raise


_c_new_tensor = COMPOSITES["new_tensor"].fn


def new_tensor(input, data, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Any:
    try:
        return _c_new_tensor(input, data, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("new_tensor", error)
        raise


_c_linalg__solve_triangular = COMPOSITES["linalg.solve_triangular"].fn


def linalg__solve_triangular(input, B, *, upper, left=True, unitriangular=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__solve_triangular(input, B, upper=upper, left=left, unitriangular=unitriangular)
        except (AttributeError, TypeError) as error:
            wrong_argument("solve_triangular", error)
            raise
    return composite_out("linalg.solve_triangular", lambda: _c_linalg__solve_triangular(input, B, upper=upper, left=left, unitriangular=unitriangular), (input, B, upper, left, unitriangular,), out)


_c_triangular_solve = COMPOSITES["triangular_solve"].fn


def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False, *, out=None) -> Any:
    if out is None:
        try:
            return _c_triangular_solve(input, A, upper, transpose, unitriangular)
        except (AttributeError, TypeError) as error:
            wrong_argument("triangular_solve", error)
            raise
    return composite_out("triangular_solve", lambda: _c_triangular_solve(input, A, upper, transpose, unitriangular), (input, A, upper, transpose, unitriangular,), out)


_c_linalg__cholesky = COMPOSITES["linalg.cholesky"].fn


def linalg__cholesky(input, *, upper=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__cholesky(input, upper=upper)
        except (AttributeError, TypeError) as error:
            wrong_argument("cholesky", error)
            raise
    return composite_out("linalg.cholesky", lambda: _c_linalg__cholesky(input, upper=upper), (input, upper,), out)


_c_linalg__cholesky_ex = COMPOSITES["linalg.cholesky_ex"].fn


def linalg__cholesky_ex(input, *, upper=False, check_errors=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__cholesky_ex(input, upper=upper, check_errors=check_errors)
        except (AttributeError, TypeError) as error:
            wrong_argument("cholesky_ex", error)
            raise
    return composite_out("linalg.cholesky_ex", lambda: _c_linalg__cholesky_ex(input, upper=upper, check_errors=check_errors), (input, upper, check_errors,), out)


_c_cholesky = COMPOSITES["cholesky"].fn


def cholesky(input, upper=False, *, out=None) -> Any:
    if out is None:
        try:
            return _c_cholesky(input, upper)
        except (AttributeError, TypeError) as error:
            wrong_argument("cholesky", error)
            raise
    return composite_out("cholesky", lambda: _c_cholesky(input, upper), (input, upper,), out)


_c_cholesky_inverse = COMPOSITES["cholesky_inverse"].fn


def cholesky_inverse(input, upper=False, *, out=None) -> Any:
    if out is None:
        try:
            return _c_cholesky_inverse(input, upper)
        except (AttributeError, TypeError) as error:
            wrong_argument("cholesky_inverse", error)
            raise
    return composite_out("cholesky_inverse", lambda: _c_cholesky_inverse(input, upper), (input, upper,), out)


_c_cholesky_solve = COMPOSITES["cholesky_solve"].fn


def cholesky_solve(input, input2, upper=False, *, out=None) -> Any:
    if out is None:
        try:
            return _c_cholesky_solve(input, input2, upper)
        except (AttributeError, TypeError) as error:
            wrong_argument("cholesky_solve", error)
            raise
    return composite_out("cholesky_solve", lambda: _c_cholesky_solve(input, input2, upper), (input, input2, upper,), out)


_c_linalg__det = COMPOSITES["linalg.det"].fn


def linalg__det(A, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__det(A)
        except (AttributeError, TypeError) as error:
            wrong_argument("det", error)
            raise
    return composite_out("linalg.det", lambda: _c_linalg__det(A), (A,), out)


_c_det = COMPOSITES["det"].fn


def det(input) -> Any:
    try:
        return _c_det(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("det", error)
        raise


_c_linalg__slogdet = COMPOSITES["linalg.slogdet"].fn


def linalg__slogdet(A, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__slogdet(A)
        except (AttributeError, TypeError) as error:
            wrong_argument("slogdet", error)
            raise
    return composite_out("linalg.slogdet", lambda: _c_linalg__slogdet(A), (A,), out)


_c_slogdet = COMPOSITES["slogdet"].fn


def slogdet(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_slogdet(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("slogdet", error)
            raise
    return composite_out("slogdet", lambda: _c_slogdet(input), (input,), out)


_c_logdet = COMPOSITES["logdet"].fn


def logdet(input) -> Any:
    try:
        return _c_logdet(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("logdet", error)
        raise


_c_linalg__svd = COMPOSITES["linalg.svd"].fn


def linalg__svd(A, full_matrices=True, *, driver=None, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__svd(A, full_matrices, driver=driver)
        except (AttributeError, TypeError) as error:
            wrong_argument("svd", error)
            raise
    return composite_out("linalg.svd", lambda: _c_linalg__svd(A, full_matrices, driver=driver), (A, full_matrices, driver,), out)


_c_linalg__svdvals = COMPOSITES["linalg.svdvals"].fn


def linalg__svdvals(A, *, driver=None, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__svdvals(A, driver=driver)
        except (AttributeError, TypeError) as error:
            wrong_argument("svdvals", error)
            raise
    return composite_out("linalg.svdvals", lambda: _c_linalg__svdvals(A, driver=driver), (A, driver,), out)


_c_svd = COMPOSITES["svd"].fn


def svd(input, some=True, compute_uv=True, *, out=None) -> Any:
    if out is None:
        try:
            return _c_svd(input, some, compute_uv)
        except (AttributeError, TypeError) as error:
            wrong_argument("svd", error)
            raise
    return composite_out("svd", lambda: _c_svd(input, some, compute_uv), (input, some, compute_uv,), out)


_c_linalg__eig = COMPOSITES["linalg.eig"].fn


def linalg__eig(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__eig(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("eig", error)
            raise
    return composite_out("linalg.eig", lambda: _c_linalg__eig(input), (input,), out)


_c_linalg__eigvals = COMPOSITES["linalg.eigvals"].fn


def linalg__eigvals(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__eigvals(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("eigvals", error)
            raise
    return composite_out("linalg.eigvals", lambda: _c_linalg__eigvals(input), (input,), out)


_c_linalg__eigh = COMPOSITES["linalg.eigh"].fn


def linalg__eigh(input, UPLO='L', *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__eigh(input, UPLO)
        except (AttributeError, TypeError) as error:
            wrong_argument("eigh", error)
            raise
    return composite_out("linalg.eigh", lambda: _c_linalg__eigh(input, UPLO), (input, UPLO,), out)


_c_linalg__eigvalsh = COMPOSITES["linalg.eigvalsh"].fn


def linalg__eigvalsh(input, UPLO='L', *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__eigvalsh(input, UPLO)
        except (AttributeError, TypeError) as error:
            wrong_argument("eigvalsh", error)
            raise
    return composite_out("linalg.eigvalsh", lambda: _c_linalg__eigvalsh(input, UPLO), (input, UPLO,), out)


_c_linalg__ldl_factor = COMPOSITES["linalg.ldl_factor"].fn


def linalg__ldl_factor(input, *, hermitian=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__ldl_factor(input, hermitian=hermitian)
        except (AttributeError, TypeError) as error:
            wrong_argument("ldl_factor", error)
            raise
    return composite_out("linalg.ldl_factor", lambda: _c_linalg__ldl_factor(input, hermitian=hermitian), (input, hermitian,), out)


_c_linalg__ldl_factor_ex = COMPOSITES["linalg.ldl_factor_ex"].fn


def linalg__ldl_factor_ex(input, *, hermitian=False, check_errors=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__ldl_factor_ex(input, hermitian=hermitian, check_errors=check_errors)
        except (AttributeError, TypeError) as error:
            wrong_argument("ldl_factor_ex", error)
            raise
    return composite_out("linalg.ldl_factor_ex", lambda: _c_linalg__ldl_factor_ex(input, hermitian=hermitian, check_errors=check_errors), (input, hermitian, check_errors,), out)


_c_linalg__ldl_solve = COMPOSITES["linalg.ldl_solve"].fn


def linalg__ldl_solve(LD, pivots, B, *, hermitian=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__ldl_solve(LD, pivots, B, hermitian=hermitian)
        except (AttributeError, TypeError) as error:
            wrong_argument("ldl_solve", error)
            raise
    return composite_out("linalg.ldl_solve", lambda: _c_linalg__ldl_solve(LD, pivots, B, hermitian=hermitian), (LD, pivots, B, hermitian,), out)


_c_linalg__qr = COMPOSITES["linalg.qr"].fn


def linalg__qr(A, mode='reduced', *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__qr(A, mode)
        except (AttributeError, TypeError) as error:
            wrong_argument("qr", error)
            raise
    return composite_out("linalg.qr", lambda: _c_linalg__qr(A, mode), (A, mode,), out)


_c_qr = COMPOSITES["qr"].fn


def qr(input, some=True, *, out=None) -> Any:
    if out is None:
        try:
            return _c_qr(input, some)
        except (AttributeError, TypeError) as error:
            wrong_argument("qr", error)
            raise
    return composite_out("qr", lambda: _c_qr(input, some), (input, some,), out)


_c_geqrf = COMPOSITES["geqrf"].fn


def geqrf(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_geqrf(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("geqrf", error)
            raise
    return composite_out("geqrf", lambda: _c_geqrf(input), (input,), out)


_c_linalg__householder_product = COMPOSITES["linalg.householder_product"].fn


def linalg__householder_product(input, tau, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__householder_product(input, tau)
        except (AttributeError, TypeError) as error:
            wrong_argument("householder_product", error)
            raise
    return composite_out("linalg.householder_product", lambda: _c_linalg__householder_product(input, tau), (input, tau,), out)


_c_orgqr = COMPOSITES["orgqr"].fn


def orgqr(input, input2, *, out=None) -> Any:
    if out is None:
        try:
            return _c_orgqr(input, input2)
        except (AttributeError, TypeError) as error:
            wrong_argument("orgqr", error)
            raise
    return composite_out("orgqr", lambda: _c_orgqr(input, input2), (input, input2,), out)


_c_ormqr = COMPOSITES["ormqr"].fn


def ormqr(input, input2, input3, left=True, transpose=False, *, out=None) -> Any:
    if out is None:
        try:
            return _c_ormqr(input, input2, input3, left, transpose)
        except (AttributeError, TypeError) as error:
            wrong_argument("ormqr", error)
            raise
    return composite_out("ormqr", lambda: _c_ormqr(input, input2, input3, left, transpose), (input, input2, input3, left, transpose,), out)


_c_svd_lowrank = COMPOSITES["svd_lowrank"].fn


def svd_lowrank(A, q=6, niter=2, M=None) -> Any:
    try:
        return _c_svd_lowrank(A, q, niter, M)
    except (AttributeError, TypeError) as error:
        wrong_argument("svd_lowrank", error)
        raise


_c_pca_lowrank = COMPOSITES["pca_lowrank"].fn


def pca_lowrank(A, q=None, center=True, niter=2) -> Any:
    try:
        return _c_pca_lowrank(A, q, center, niter)
    except (AttributeError, TypeError) as error:
        wrong_argument("pca_lowrank", error)
        raise


_c_linalg__lu_factor = COMPOSITES["linalg.lu_factor"].fn


def linalg__lu_factor(A, *, pivot=True, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__lu_factor(A, pivot=pivot)
        except (AttributeError, TypeError) as error:
            wrong_argument("lu_factor", error)
            raise
    return composite_out("linalg.lu_factor", lambda: _c_linalg__lu_factor(A, pivot=pivot), (A, pivot,), out)


_c_linalg__lu_factor_ex = COMPOSITES["linalg.lu_factor_ex"].fn


def linalg__lu_factor_ex(A, *, pivot=True, check_errors=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__lu_factor_ex(A, pivot=pivot, check_errors=check_errors)
        except (AttributeError, TypeError) as error:
            wrong_argument("lu_factor_ex", error)
            raise
    return composite_out("linalg.lu_factor_ex", lambda: _c_linalg__lu_factor_ex(A, pivot=pivot, check_errors=check_errors), (A, pivot, check_errors,), out)


_c_linalg__lu = COMPOSITES["linalg.lu"].fn


def linalg__lu(A, *, pivot=True, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__lu(A, pivot=pivot)
        except (AttributeError, TypeError) as error:
            wrong_argument("lu", error)
            raise
    return composite_out("linalg.lu", lambda: _c_linalg__lu(A, pivot=pivot), (A, pivot,), out)


_c_lu = COMPOSITES["lu"].fn


def lu(A, pivot=True, get_infos=False, *, out=None) -> Any:
    if out is None:
        try:
            return _c_lu(A, pivot, get_infos)
        except (AttributeError, TypeError) as error:
            wrong_argument("lu", error)
            raise
    return composite_out("lu", lambda: _c_lu(A, pivot, get_infos), (A, pivot, get_infos,), out)


_c_lu_unpack = COMPOSITES["lu_unpack"].fn


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None) -> Any:
    if out is None:
        try:
            return _c_lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots)
        except (AttributeError, TypeError) as error:
            wrong_argument("lu_unpack", error)
            raise
    return composite_out("lu_unpack", lambda: _c_lu_unpack(LU_data, LU_pivots, unpack_data, unpack_pivots), (LU_data, LU_pivots, unpack_data, unpack_pivots,), out)


_c_linalg__lu_solve = COMPOSITES["linalg.lu_solve"].fn


def linalg__lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__lu_solve(LU, pivots, B, left=left, adjoint=adjoint)
        except (AttributeError, TypeError) as error:
            wrong_argument("lu_solve", error)
            raise
    return composite_out("linalg.lu_solve", lambda: _c_linalg__lu_solve(LU, pivots, B, left=left, adjoint=adjoint), (LU, pivots, B, left, adjoint,), out)


_c_lu_solve = COMPOSITES["lu_solve"].fn


def lu_solve(input, LU_data, LU_pivots, *, out=None) -> Any:
    if out is None:
        try:
            return _c_lu_solve(input, LU_data, LU_pivots)
        except (AttributeError, TypeError) as error:
            wrong_argument("lu_solve", error)
            raise
    return composite_out("lu_solve", lambda: _c_lu_solve(input, LU_data, LU_pivots), (input, LU_data, LU_pivots,), out)


_c_linalg__matrix_norm = COMPOSITES["linalg.matrix_norm"].fn


def linalg__matrix_norm(input, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_linalg__matrix_norm(input, ord, dim, keepdim, dtype=dtype)
        except (AttributeError, TypeError) as error:
            wrong_argument("matrix_norm", error)
            raise
    return composite_out("linalg.matrix_norm", lambda: _c_linalg__matrix_norm(input, ord, dim, keepdim, dtype=dtype), (input, ord, dim, keepdim, dtype,), out)


_c_linalg__norm = COMPOSITES["linalg.norm"].fn


def linalg__norm(input, ord=None, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_linalg__norm(input, ord, dim, keepdim, dtype=dtype)
        except (AttributeError, TypeError) as error:
            wrong_argument("norm", error)
            raise
    return composite_out("linalg.norm", lambda: _c_linalg__norm(input, ord, dim, keepdim, dtype=dtype), (input, ord, dim, keepdim, dtype,), out)


_c_linalg__cond = COMPOSITES["linalg.cond"].fn


def linalg__cond(input, p=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__cond(input, p)
        except (AttributeError, TypeError) as error:
            wrong_argument("cond", error)
            raise
    return composite_out("linalg.cond", lambda: _c_linalg__cond(input, p), (input, p,), out)


_c_linalg__matrix_rank = COMPOSITES["linalg.matrix_rank"].fn


def linalg__matrix_rank(input, tol=None, hermitian=False, *, atol=None, rtol=None, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__matrix_rank(input, tol, hermitian, atol=atol, rtol=rtol)
        except (AttributeError, TypeError) as error:
            wrong_argument("matrix_rank", error)
            raise
    return composite_out("linalg.matrix_rank", lambda: _c_linalg__matrix_rank(input, tol, hermitian, atol=atol, rtol=rtol), (input, tol, hermitian, atol, rtol,), out)


_c_linalg__pinv = COMPOSITES["linalg.pinv"].fn


def linalg__pinv(input, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__pinv(input, rcond, hermitian, atol=atol, rtol=rtol)
        except (AttributeError, TypeError) as error:
            wrong_argument("pinv", error)
            raise
    return composite_out("linalg.pinv", lambda: _c_linalg__pinv(input, rcond, hermitian, atol=atol, rtol=rtol), (input, rcond, hermitian, atol, rtol,), out)


_c_pinverse = COMPOSITES["pinverse"].fn


def pinverse(input, rcond=1e-15) -> Any:
    try:
        return _c_pinverse(input, rcond)
    except (AttributeError, TypeError) as error:
        wrong_argument("pinverse", error)
        raise


_c_linalg__lstsq = COMPOSITES["linalg.lstsq"].fn


def linalg__lstsq(input, b, rcond=None, *, driver=None, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__lstsq(input, b, rcond, driver=driver)
        except (AttributeError, TypeError) as error:
            wrong_argument("lstsq", error)
            raise
    return composite_out("linalg.lstsq", lambda: _c_linalg__lstsq(input, b, rcond, driver=driver), (input, b, rcond, driver,), out)


_c_linalg__solve = COMPOSITES["linalg.solve"].fn


def linalg__solve(A, B, *, left=True, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__solve(A, B, left=left)
        except (AttributeError, TypeError) as error:
            wrong_argument("solve", error)
            raise
    return composite_out("linalg.solve", lambda: _c_linalg__solve(A, B, left=left), (A, B, left,), out)


_c_linalg__solve_ex = COMPOSITES["linalg.solve_ex"].fn


def linalg__solve_ex(A, B, *, left=True, check_errors=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__solve_ex(A, B, left=left, check_errors=check_errors)
        except (AttributeError, TypeError) as error:
            wrong_argument("solve_ex", error)
            raise
    return composite_out("linalg.solve_ex", lambda: _c_linalg__solve_ex(A, B, left=left, check_errors=check_errors), (A, B, left, check_errors,), out)


_c_linalg__inv = COMPOSITES["linalg.inv"].fn


def linalg__inv(A, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__inv(A)
        except (AttributeError, TypeError) as error:
            wrong_argument("inv", error)
            raise
    return composite_out("linalg.inv", lambda: _c_linalg__inv(A), (A,), out)


_c_linalg__inv_ex = COMPOSITES["linalg.inv_ex"].fn


def linalg__inv_ex(A, *, check_errors=False, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__inv_ex(A, check_errors=check_errors)
        except (AttributeError, TypeError) as error:
            wrong_argument("inv_ex", error)
            raise
    return composite_out("linalg.inv_ex", lambda: _c_linalg__inv_ex(A, check_errors=check_errors), (A, check_errors,), out)


_c_inverse = COMPOSITES["inverse"].fn


def inverse(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_inverse(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("inverse", error)
            raise
    return composite_out("inverse", lambda: _c_inverse(input), (input,), out)


_c_linalg__tensorsolve = COMPOSITES["linalg.tensorsolve"].fn


def linalg__tensorsolve(input, other, dims=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__tensorsolve(input, other, dims)
        except (AttributeError, TypeError) as error:
            wrong_argument("tensorsolve", error)
            raise
    return composite_out("linalg.tensorsolve", lambda: _c_linalg__tensorsolve(input, other, dims), (input, other, dims,), out)


_c_linalg__tensorinv = COMPOSITES["linalg.tensorinv"].fn


def linalg__tensorinv(input, ind=2, *, out=None) -> Any:
    if out is None:
        try:
            return _c_linalg__tensorinv(input, ind)
        except (AttributeError, TypeError) as error:
            wrong_argument("tensorinv", error)
            raise
    return composite_out("linalg.tensorinv", lambda: _c_linalg__tensorinv(input, ind), (input, ind,), out)


_c_matrix_power = COMPOSITES["matrix_power"].fn


def matrix_power(input, n, *, out=None) -> Any:
    if out is None:
        try:
            return _c_matrix_power(input, n)
        except (AttributeError, TypeError) as error:
            wrong_argument("matrix_power", error)
            raise
    return composite_out("matrix_power", lambda: _c_matrix_power(input, n), (input, n,), out)


_c_matrix_exp = COMPOSITES["matrix_exp"].fn


def matrix_exp(input) -> Any:
    try:
        return _c_matrix_exp(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("matrix_exp", error)
        raise


_c_linalg__vander = COMPOSITES["linalg.vander"].fn


def linalg__vander(x, *, N=None) -> Any:
    try:
        return _c_linalg__vander(x, N=N)
    except (AttributeError, TypeError) as error:
        wrong_argument("vander", error)
        raise


_c_linalg__vecdot = COMPOSITES["linalg.vecdot"].fn


def linalg__vecdot(x, y, *, dim=-1, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_linalg__vecdot(x, y, dim=dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("vecdot", error)
            raise
    return composite_out("linalg.vecdot", lambda: _c_linalg__vecdot(x, y, dim=dim), (x, y, dim,), out)


_c_linalg__diagonal = COMPOSITES["linalg.diagonal"].fn


def linalg__diagonal(A, *, offset=0, dim1=-2, dim2=-1) -> Any:
    try:
        return _c_linalg__diagonal(A, offset=offset, dim1=dim1, dim2=dim2)
    except (AttributeError, TypeError) as error:
        wrong_argument("diagonal", error)
        raise


_c_nn__functional__hinge_embedding_loss = COMPOSITES["nn.functional.hinge_embedding_loss"].fn


def nn__functional__hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__hinge_embedding_loss(input, target, margin, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("hinge_embedding_loss", error)
        raise


_c_nn__functional__margin_ranking_loss = COMPOSITES["nn.functional.margin_ranking_loss"].fn


def nn__functional__margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__margin_ranking_loss(input1, input2, target, margin, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("margin_ranking_loss", error)
        raise


_c_nn__functional__triplet_margin_loss = COMPOSITES["nn.functional.triplet_margin_loss"].fn


def nn__functional__triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("triplet_margin_loss", error)
        raise


_c_nn__functional__triplet_margin_with_distance_loss = COMPOSITES["nn.functional.triplet_margin_with_distance_loss"].fn


def nn__functional__triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction='mean') -> Any:
    try:
        return _c_nn__functional__triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("triplet_margin_with_distance_loss", error)
        raise


_c_nn__functional__cosine_embedding_loss = COMPOSITES["nn.functional.cosine_embedding_loss"].fn


def nn__functional__cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__cosine_embedding_loss(input1, input2, target, margin, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("cosine_embedding_loss", error)
        raise


_c_nn__functional__multi_margin_loss = COMPOSITES["nn.functional.multi_margin_loss"].fn


def nn__functional__multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__multi_margin_loss(input, target, p, margin, weight, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("multi_margin_loss", error)
        raise


_c_nn__functional__multilabel_margin_loss = COMPOSITES["nn.functional.multilabel_margin_loss"].fn


def nn__functional__multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction='mean') -> Any:
    try:
        return _c_nn__functional__multilabel_margin_loss(input, target, size_average, reduce, reduction)
    except (AttributeError, TypeError) as error:
        wrong_argument("multilabel_margin_loss", error)
        raise


_c_masked_select = COMPOSITES["masked_select"].fn


def masked_select(input, mask, *, out=None) -> Any:
    if out is None:
        try:
            return _c_masked_select(input, mask)
        except (AttributeError, TypeError) as error:
            wrong_argument("masked_select", error)
            raise
    return composite_out("masked_select", lambda: _c_masked_select(input, mask), (input, mask,), out)


_c_masked_scatter = COMPOSITES["masked_scatter"].fn


def masked_scatter(input, mask, source) -> Any:
    try:
        return _c_masked_scatter(input, mask, source)
    except (AttributeError, TypeError) as error:
        wrong_argument("masked_scatter", error)
        raise


_c_masked_scatter_ = COMPOSITES["masked_scatter_"].fn


def masked_scatter_(input, mask, source) -> Any:
    try:
        return _c_masked_scatter_(input, mask, source)
    except (AttributeError, TypeError) as error:
        wrong_argument("masked_scatter_", error)
        raise


_c_nonzero = COMPOSITES["nonzero"].fn


def nonzero(input, *, as_tuple=False, out=None) -> Any:
    if out is None:
        try:
            return _c_nonzero(input, as_tuple=as_tuple)
        except (AttributeError, TypeError) as error:
            wrong_argument("nonzero", error)
            raise
    return composite_out("nonzero", lambda: _c_nonzero(input, as_tuple=as_tuple), (input, as_tuple,), out)


_c_argwhere = COMPOSITES["argwhere"].fn


def argwhere(input) -> Any:
    try:
        return _c_argwhere(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("argwhere", error)
        raise


_c_nn__functional__one_hot = COMPOSITES["nn.functional.one_hot"].fn


def nn__functional__one_hot(input, num_classes=-1) -> Any:
    try:
        return _c_nn__functional__one_hot(input, num_classes)
    except (AttributeError, TypeError) as error:
        wrong_argument("one_hot", error)
        raise


_c_addmm_activation = COMPOSITES["addmm_activation"].fn


def addmm_activation(input, mat1, mat2, *, beta=1, alpha=1, use_gelu=False, out=None) -> Any:
    if out is None:
        try:
            return _c_addmm_activation(input, mat1, mat2, beta=beta, alpha=alpha, use_gelu=use_gelu)
        except (AttributeError, TypeError) as error:
            wrong_argument("addmm_activation", error)
            raise
    return composite_out("addmm_activation", lambda: _c_addmm_activation(input, mat1, mat2, beta=beta, alpha=alpha, use_gelu=use_gelu), (input, mat1, mat2, beta, alpha, use_gelu,), out)


_c_scaled_mm = COMPOSITES["scaled_mm"].fn


def scaled_mm(input, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False, *, out=None) -> Any:
    if out is None:
        try:
            return _c_scaled_mm(input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum)
        except (AttributeError, TypeError) as error:
            wrong_argument("scaled_mm", error)
            raise
    return composite_out("scaled_mm", lambda: _c_scaled_mm(input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum), (input, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum,), out)


_c_int_mm = COMPOSITES["int_mm"].fn


def int_mm(input, mat2, *, out=None) -> Any:
    if out is None:
        try:
            return _c_int_mm(input, mat2)
        except (AttributeError, TypeError) as error:
            wrong_argument("int_mm", error)
            raise
    return composite_out("int_mm", lambda: _c_int_mm(input, mat2), (input, mat2,), out)


_c_nn__functional__multi_head_attention_forward = COMPOSITES["nn.functional.multi_head_attention_forward"].fn


def nn__functional__multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False) -> Any:
    try:
        return _c_nn__functional__multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training, key_padding_mask, need_weights, attn_mask, use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v, average_attn_weights, is_causal)
    except (AttributeError, TypeError) as error:
        wrong_argument("multi_head_attention_forward", error)
        raise


_c_nn__functional__layer_norm = COMPOSITES["nn.functional.layer_norm"].fn


def nn__functional__layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05) -> Any:
    try:
        return _c_nn__functional__layer_norm(input, normalized_shape, weight, bias, eps)
    except (AttributeError, TypeError) as error:
        wrong_argument("layer_norm", error)
        raise


_c_layer_norm = COMPOSITES["layer_norm"].fn


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True) -> Any:
    try:
        return _c_layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable)
    except (AttributeError, TypeError) as error:
        wrong_argument("layer_norm", error)
        raise


_c_nn__functional__rms_norm = COMPOSITES["nn.functional.rms_norm"].fn


def nn__functional__rms_norm(input, normalized_shape, weight=None, eps=None) -> Any:
    try:
        return _c_nn__functional__rms_norm(input, normalized_shape, weight, eps)
    except (AttributeError, TypeError) as error:
        wrong_argument("rms_norm", error)
        raise


_c_nn__functional__local_response_norm = COMPOSITES["nn.functional.local_response_norm"].fn


def nn__functional__local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0) -> Any:
    try:
        return _c_nn__functional__local_response_norm(input, size, alpha, beta, k)
    except (AttributeError, TypeError) as error:
        wrong_argument("local_response_norm", error)
        raise


_c_nn__functional__pad = COMPOSITES["nn.functional.pad"].fn


def nn__functional__pad(input, pad, mode='constant', value=None) -> Any:
    try:
        return _c_nn__functional__pad(input, pad, mode, value)
    except (AttributeError, TypeError) as error:
        wrong_argument("pad", error)
        raise


_c_nn__functional__pixel_shuffle = COMPOSITES["nn.functional.pixel_shuffle"].fn


def nn__functional__pixel_shuffle(input, upscale_factor) -> Any:
    try:
        return _c_nn__functional__pixel_shuffle(input, upscale_factor)
    except (AttributeError, TypeError) as error:
        wrong_argument("pixel_shuffle", error)
        raise


_c_nn__functional__pixel_unshuffle = COMPOSITES["nn.functional.pixel_unshuffle"].fn


def nn__functional__pixel_unshuffle(input, downscale_factor) -> Any:
    try:
        return _c_nn__functional__pixel_unshuffle(input, downscale_factor)
    except (AttributeError, TypeError) as error:
        wrong_argument("pixel_unshuffle", error)
        raise


_c_nn__functional__channel_shuffle = COMPOSITES["nn.functional.channel_shuffle"].fn


def nn__functional__channel_shuffle(input, groups) -> Any:
    try:
        return _c_nn__functional__channel_shuffle(input, groups)
    except (AttributeError, TypeError) as error:
        wrong_argument("channel_shuffle", error)
        raise


_c_pow = COMPOSITES["pow"].fn


def pow(input, exponent, *, out=None) -> Any:
    if out is None:
        try:
            return _c_pow(input, exponent)
        except (AttributeError, TypeError) as error:
            wrong_argument("pow", error)
            raise
    return composite_out("pow", lambda: _c_pow(input, exponent), (input, exponent,), out)


_c_pow_ = COMPOSITES["pow_"].fn


def pow_(input, exponent) -> Any:
    try:
        return _c_pow_(input, exponent)
    except (AttributeError, TypeError) as error:
        wrong_argument("pow_", error)
        raise


_c_float_power = COMPOSITES["float_power"].fn


def float_power(input, exponent, *, out=None) -> Any:
    if out is None:
        try:
            return _c_float_power(input, exponent)
        except (AttributeError, TypeError) as error:
            wrong_argument("float_power", error)
            raise
    return composite_out("float_power", lambda: _c_float_power(input, exponent), (input, exponent,), out)


_c_float_power_ = COMPOSITES["float_power_"].fn


def float_power_(input, exponent) -> Any:
    try:
        return _c_float_power_(input, exponent)
    except (AttributeError, TypeError) as error:
        wrong_argument("float_power_", error)
        raise


_c_uniform_ = COMPOSITES["uniform_"].fn


def uniform_(input, low=0.0, to=1.0, *, generator=None, **named) -> Any:
    try:
        return _c_uniform_(input, low, to, generator=generator, **named)
    except (AttributeError, TypeError) as error:
        wrong_argument("uniform_", error)
        raise


_c_normal_ = COMPOSITES["normal_"].fn


def normal_(input, mean=0.0, std=1.0, *, generator=None) -> Any:
    try:
        return _c_normal_(input, mean, std, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("normal_", error)
        raise


_c_log_normal_ = COMPOSITES["log_normal_"].fn


def log_normal_(input, mean=1.0, std=2.0, *, generator=None) -> Any:
    try:
        return _c_log_normal_(input, mean, std, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("log_normal_", error)
        raise


_c_exponential_ = COMPOSITES["exponential_"].fn


def exponential_(input, lambd=1.0, *, generator=None) -> Any:
    try:
        return _c_exponential_(input, lambd, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("exponential_", error)
        raise


_c_cauchy_ = COMPOSITES["cauchy_"].fn


def cauchy_(input, median=0.0, sigma=1.0, *, generator=None) -> Any:
    try:
        return _c_cauchy_(input, median, sigma, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("cauchy_", error)
        raise


_c_geometric_ = COMPOSITES["geometric_"].fn


def geometric_(input, p, *, generator=None) -> Any:
    try:
        return _c_geometric_(input, p, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("geometric_", error)
        raise


_c_bernoulli_ = COMPOSITES["bernoulli_"].fn


def bernoulli_(input, p=0.5, *, generator=None) -> Any:
    try:
        return _c_bernoulli_(input, p, generator=generator)
    except (AttributeError, TypeError) as error:
        wrong_argument("bernoulli_", error)
        raise


_c_combinations = COMPOSITES["combinations"].fn


def combinations(input, r=2, with_replacement=False) -> Any:
    try:
        return _c_combinations(input, r, with_replacement)
    except (AttributeError, TypeError) as error:
        wrong_argument("combinations", error)
        raise


_c_vander = COMPOSITES["vander"].fn


def vander(x, N=None, increasing=False) -> Any:
    try:
        return _c_vander(x, N, increasing)
    except (AttributeError, TypeError) as error:
        wrong_argument("vander", error)
        raise


_c_fliplr = COMPOSITES["fliplr"].fn


def fliplr(input) -> Any:
    try:
        return _c_fliplr(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("fliplr", error)
        raise


_c_flipud = COMPOSITES["flipud"].fn


def flipud(input) -> Any:
    try:
        return _c_flipud(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("flipud", error)
        raise


_c_rot90 = COMPOSITES["rot90"].fn


def rot90(input, k=1, dims=(0, 1)) -> Any:
    try:
        return _c_rot90(input, k, dims)
    except (AttributeError, TypeError) as error:
        wrong_argument("rot90", error)
        raise


_c_expand_as = COMPOSITES["expand_as"].fn


def expand_as(input, other) -> Any:
    try:
        return _c_expand_as(input, other)
    except (AttributeError, TypeError) as error:
        wrong_argument("expand_as", error)
        raise


_c_broadcast_to = COMPOSITES["broadcast_to"].fn


def broadcast_to(input, size) -> Any:
    try:
        return _c_broadcast_to(input, size)
    except (AttributeError, TypeError) as error:
        wrong_argument("broadcast_to", error)
        raise


_c_repeat_interleave = COMPOSITES["repeat_interleave"].fn


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_repeat_interleave(input, repeats, dim, output_size=output_size)
    except (AttributeError, TypeError) as error:
        wrong_argument("repeat_interleave", error)
        raise


_c_nn__functional__rope = COMPOSITES["nn.functional.rope"].fn


def nn__functional__rope(input, cos, sin, *, interleaved=False, offset=0) -> Any:
    try:
        return _c_nn__functional__rope(input, cos, sin, interleaved=interleaved, offset=offset)
    except (AttributeError, TypeError) as error:
        wrong_argument("rope", error)
        raise


_c_abs_ = COMPOSITES["abs_"].fn


def abs_(input) -> Any:
    try:
        return _c_abs_(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("abs_", error)
        raise


_c_cummax = COMPOSITES["cummax"].fn


def cummax(input, dim=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_cummax(input, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("cummax", error)
            raise
    return composite_out("cummax", lambda: _c_cummax(input, dim), (input, dim,), out)


_c_cummin = COMPOSITES["cummin"].fn


def cummin(input, dim=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_cummin(input, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("cummin", error)
            raise
    return composite_out("cummin", lambda: _c_cummin(input, dim), (input, dim,), out)


_c_diff = COMPOSITES["diff"].fn


def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_diff(input, n, dim, prepend, append)
        except (AttributeError, TypeError) as error:
            wrong_argument("diff", error)
            raise
    return composite_out("diff", lambda: _c_diff(input, n, dim, prepend, append), (input, n, dim, prepend, append,), out)


_c_trapezoid = COMPOSITES["trapezoid"].fn


def trapezoid(y, x=None, *, dx=None, dim=-1, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_trapezoid(y, x, dx=dx, dim=dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("trapezoid", error)
        raise


_c_cumulative_trapezoid = COMPOSITES["cumulative_trapezoid"].fn


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_cumulative_trapezoid(y, x, dx=dx, dim=dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("cumulative_trapezoid", error)
        raise


_c_scatter = COMPOSITES["scatter"].fn


def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None) -> Any:
    if out is None:
        try:
            return _c_scatter(input, dim, index, src, value=value, reduce=reduce)
        except (AttributeError, TypeError) as error:
            wrong_argument("scatter", error)
            raise
    return composite_out("scatter", lambda: _c_scatter(input, dim, index, src, value=value, reduce=reduce), (input, dim, index, src, value, reduce,), out)


_c_scatter_ = COMPOSITES["scatter_"].fn


def scatter_(input, dim, index, src=None, *, value=None, reduce=None) -> Any:
    try:
        return _c_scatter_(input, dim, index, src, value=value, reduce=reduce)
    except (AttributeError, TypeError) as error:
        wrong_argument("scatter_", error)
        raise


_c_scatter_reduce = COMPOSITES["scatter_reduce"].fn


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None) -> Any:
    if out is None:
        try:
            return _c_scatter_reduce(input, dim, index, src, reduce, include_self=include_self)
        except (AttributeError, TypeError) as error:
            wrong_argument("scatter_reduce", error)
            raise
    return composite_out("scatter_reduce", lambda: _c_scatter_reduce(input, dim, index, src, reduce, include_self=include_self), (input, dim, index, src, reduce, include_self,), out)


def scatter_reduce_(input, dim, index, src, reduce, *, include_self=True) -> Any:
    return composite_inplace("scatter_reduce", input, lambda x: _c_scatter_reduce(x, dim, index, src, reduce, include_self=include_self))


_c_as_strided_scatter = COMPOSITES["as_strided_scatter"].fn


def as_strided_scatter(input, src, size, stride, storage_offset=None) -> Any:
    try:
        return _c_as_strided_scatter(input, src, size, stride, storage_offset)
    except (AttributeError, TypeError) as error:
        wrong_argument("as_strided_scatter", error)
        raise


_c_searchsorted = COMPOSITES["searchsorted"].fn


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None) -> Any:
    if out is None:
        try:
            return _c_searchsorted(sorted_sequence, input, out_int32=out_int32, right=right, side=side, sorter=sorter)
        except (AttributeError, TypeError) as error:
            wrong_argument("searchsorted", error)
            raise
    return composite_out("searchsorted", lambda: _c_searchsorted(sorted_sequence, input, out_int32=out_int32, right=right, side=side, sorter=sorter), (sorted_sequence, input, out_int32, right, side, sorter,), out)


_c_bucketize = COMPOSITES["bucketize"].fn


def bucketize(input, boundaries, *, out_int32=False, right=False, out=None) -> Any:
    if out is None:
        try:
            return _c_bucketize(input, boundaries, out_int32=out_int32, right=right)
        except (AttributeError, TypeError) as error:
            wrong_argument("bucketize", error)
            raise
    return composite_out("bucketize", lambda: _c_bucketize(input, boundaries, out_int32=out_int32, right=right), (input, boundaries, out_int32, right,), out)


_c_bincount = COMPOSITES["bincount"].fn


def bincount(input, weights=None, minlength=0) -> Any:
    try:
        return _c_bincount(input, weights, minlength)
    except (AttributeError, TypeError) as error:
        wrong_argument("bincount", error)
        raise


_c_histc = COMPOSITES["histc"].fn


def histc(input, bins=100, min=0, max=0, *, out=None) -> Any:
    if out is None:
        try:
            return _c_histc(input, bins, min, max)
        except (AttributeError, TypeError) as error:
            wrong_argument("histc", error)
            raise
    return composite_out("histc", lambda: _c_histc(input, bins, min, max), (input, bins, min, max,), out)


_c_histogram = COMPOSITES["histogram"].fn


def histogram(input, bins, *, range=None, weight=None, density=False, out=None) -> Any:
    if out is None:
        try:
            return _c_histogram(input, bins, range=range, weight=weight, density=density)
        except (AttributeError, TypeError) as error:
            wrong_argument("histogram", error)
            raise
    return composite_out("histogram", lambda: _c_histogram(input, bins, range=range, weight=weight, density=density), (input, bins, range, weight, density,), out)


_c_histogramdd = COMPOSITES["histogramdd"].fn


def histogramdd(input, bins, range=None, weight=None, density=False) -> Any:
    try:
        return _c_histogramdd(input, bins, range, weight, density)
    except (AttributeError, TypeError) as error:
        wrong_argument("histogramdd", error)
        raise


_c_where = COMPOSITES["where"].fn


def where(condition, input=None, other=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_where(condition, input, other)
        except (AttributeError, TypeError) as error:
            wrong_argument("where", error)
            raise
    return composite_out("where", lambda: _c_where(condition, input, other), (condition, input, other,), out)


_c_Tensor__where = COMPOSITES["Tensor.where"].fn


def Tensor__where(input, condition, other) -> Any:
    try:
        return _c_Tensor__where(input, condition, other)
    except (AttributeError, TypeError) as error:
        wrong_argument("where", error)
        raise


_c_masked_fill = COMPOSITES["masked_fill"].fn


def masked_fill(input, mask, value) -> Any:
    try:
        return _c_masked_fill(input, mask, value)
    except (AttributeError, TypeError) as error:
        wrong_argument("masked_fill", error)
        raise


_c_masked_fill_ = COMPOSITES["masked_fill_"].fn


def masked_fill_(input, mask, value) -> Any:
    try:
        return _c_masked_fill_(input, mask, value)
    except (AttributeError, TypeError) as error:
        wrong_argument("masked_fill_", error)
        raise


_c_signal__windows__bartlett = COMPOSITES["signal.windows.bartlett"].fn


def signal__windows__bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__bartlett(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("bartlett", error)
        raise


_c_signal__windows__general_cosine = COMPOSITES["signal.windows.general_cosine"].fn


def signal__windows__general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("general_cosine", error)
        raise


_c_signal__windows__general_hamming = COMPOSITES["signal.windows.general_hamming"].fn


def signal__windows__general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__general_hamming(M, alpha=alpha, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("general_hamming", error)
        raise


_c_signal__windows__hamming = COMPOSITES["signal.windows.hamming"].fn


def signal__windows__hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("hamming", error)
        raise


_c_signal__windows__hann = COMPOSITES["signal.windows.hann"].fn


def signal__windows__hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__hann(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("hann", error)
        raise


_c_signal__windows__blackman = COMPOSITES["signal.windows.blackman"].fn


def signal__windows__blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__blackman(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("blackman", error)
        raise


_c_signal__windows__nuttall = COMPOSITES["signal.windows.nuttall"].fn


def signal__windows__nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__nuttall(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("nuttall", error)
        raise


_c_signal__windows__cosine = COMPOSITES["signal.windows.cosine"].fn


def signal__windows__cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__cosine(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("cosine", error)
        raise


_c_signal__windows__exponential = COMPOSITES["signal.windows.exponential"].fn


def signal__windows__exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__exponential(M, center=center, tau=tau, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("exponential", error)
        raise


_c_signal__windows__gaussian = COMPOSITES["signal.windows.gaussian"].fn


def signal__windows__gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__gaussian(M, std=std, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("gaussian", error)
        raise


_c_signal__windows__kaiser = COMPOSITES["signal.windows.kaiser"].fn


def signal__windows__kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False) -> Any:
    try:
        return _c_signal__windows__kaiser(M, beta=beta, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
    except (AttributeError, TypeError) as error:
        wrong_argument("kaiser", error)
        raise


_c__softmax_composite = COMPOSITES["_softmax_composite"].fn


def _softmax_composite(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    return _c__softmax_composite(input, dim)


_c__log_softmax_composite = COMPOSITES["_log_softmax_composite"].fn


def _log_softmax_composite(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    return _c__log_softmax_composite(input, dim)


_c_softmax = COMPOSITES["softmax"].fn


def softmax(input, dim=None, dtype=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_softmax(input, dim, dtype)
        except (AttributeError, TypeError) as error:
            wrong_argument("softmax", error)
            raise
    return composite_out("softmax", lambda: _c_softmax(input, dim, dtype), (input, dim, dtype,), out)


_c_log_softmax = COMPOSITES["log_softmax"].fn


def log_softmax(input, dim=None, dtype=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_log_softmax(input, dim, dtype)
        except (AttributeError, TypeError) as error:
            wrong_argument("log_softmax", error)
            raise
    return composite_out("log_softmax", lambda: _c_log_softmax(input, dim, dtype), (input, dim, dtype,), out)


_c_nn__functional__softmax = COMPOSITES["nn.functional.softmax"].fn


def nn__functional__softmax(input, dim=None, _stacklevel=3, dtype=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_nn__functional__softmax(input, dim, _stacklevel, dtype)
    except (AttributeError, TypeError) as error:
        wrong_argument("softmax", error)
        raise


_c_nn__functional__log_softmax = COMPOSITES["nn.functional.log_softmax"].fn


def nn__functional__log_softmax(input, dim=None, _stacklevel=3, dtype=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_nn__functional__log_softmax(input, dim, _stacklevel, dtype)
    except (AttributeError, TypeError) as error:
        wrong_argument("log_softmax", error)
        raise


_c_nn__functional__gumbel_softmax = COMPOSITES["nn.functional.gumbel_softmax"].fn


def nn__functional__gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_nn__functional__gumbel_softmax(logits, tau, hard, eps, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("gumbel_softmax", error)
        raise


_c_nn__functional__softmin = COMPOSITES["nn.functional.softmin"].fn


def nn__functional__softmin(input, dim=None, _stacklevel=3, dtype=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_nn__functional__softmin(input, dim, _stacklevel, dtype)
    except (AttributeError, TypeError) as error:
        wrong_argument("softmin", error)
        raise


_c_sort = COMPOSITES["sort"].fn


def sort(input, dim=-1, descending=False, stable=False, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_sort(input, dim, descending, stable)
        except (AttributeError, TypeError) as error:
            wrong_argument("sort", error)
            raise
    return composite_out("sort", lambda: _c_sort(input, dim, descending, stable), (input, dim, descending, stable,), out)


_c_argsort = COMPOSITES["argsort"].fn


def argsort(input, dim=-1, descending=False, stable=False, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_argsort(input, dim, descending, stable)
        except (AttributeError, TypeError) as error:
            wrong_argument("argsort", error)
            raise
    return composite_out("argsort", lambda: _c_argsort(input, dim, descending, stable), (input, dim, descending, stable,), out)


_c_msort = COMPOSITES["msort"].fn


def msort(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_msort(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("msort", error)
            raise
    return composite_out("msort", lambda: _c_msort(input), (input,), out)


_c_topk = COMPOSITES["topk"].fn


def topk(input, k, dim=-1, largest=True, sorted=True, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_topk(input, k, dim, largest, sorted)
        except (AttributeError, TypeError) as error:
            wrong_argument("topk", error)
            raise
    return composite_out("topk", lambda: _c_topk(input, k, dim, largest, sorted), (input, k, dim, largest, sorted,), out)


_c_kthvalue = COMPOSITES["kthvalue"].fn


def kthvalue(input, k, dim=-1, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_kthvalue(input, k, dim, keepdim)
        except (AttributeError, TypeError) as error:
            wrong_argument("kthvalue", error)
            raise
    return composite_out("kthvalue", lambda: _c_kthvalue(input, k, dim, keepdim), (input, k, dim, keepdim,), out)


_c_unique = COMPOSITES["unique"].fn


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_unique(input, sorted, return_inverse, return_counts, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("unique", error)
        raise


_c_unique_consecutive = COMPOSITES["unique_consecutive"].fn


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_unique_consecutive(input, return_inverse, return_counts, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("unique_consecutive", error)
        raise


_c_Tensor__polygamma = COMPOSITES["Tensor.polygamma"].fn


def Tensor__polygamma(input, n) -> Any:
    try:
        return _c_Tensor__polygamma(input, n)
    except (AttributeError, TypeError) as error:
        wrong_argument("polygamma", error)
        raise


def Tensor__polygamma_(input, n) -> Any:
    return composite_inplace("polygamma", input, lambda x: _c_Tensor__polygamma(x, n))


_c_stft = COMPOSITES["stft"].fn


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', normalized=False, onesided=None, return_complex=None, align_to_window=None) -> Any:
    try:
        return _c_stft(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex, align_to_window)
    except (AttributeError, TypeError) as error:
        wrong_argument("stft", error)
        raise


_c_istft = COMPOSITES["istft"].fn


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False) -> Any:
    try:
        return _c_istft(input, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)
    except (AttributeError, TypeError) as error:
        wrong_argument("istft", error)
        raise


_c_split_with_sizes = COMPOSITES["split_with_sizes"].fn


def split_with_sizes(input, split_sizes, dim=0, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_split_with_sizes(input, split_sizes, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("split_with_sizes", error)
        raise


_c_split = COMPOSITES["split"].fn


def split(tensor, split_size_or_sections, dim=0, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_split(tensor, split_size_or_sections, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("split", error)
        raise


_c_Tensor__split = COMPOSITES["Tensor.split"].fn


def Tensor__split(input, split_size, dim=0, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_Tensor__split(input, split_size, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("split", error)
        raise


_c_chunk = COMPOSITES["chunk"].fn


def chunk(input, chunks, dim=0, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_chunk(input, chunks, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("chunk", error)
        raise


_c_unsafe_split = COMPOSITES["unsafe_split"].fn


def unsafe_split(input, split_size, dim=0, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_unsafe_split(input, split_size, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("unsafe_split", error)
        raise


_c_unsafe_split_with_sizes = COMPOSITES["unsafe_split_with_sizes"].fn


def unsafe_split_with_sizes(input, split_sizes, dim=0, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_unsafe_split_with_sizes(input, split_sizes, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("unsafe_split_with_sizes", error)
        raise


_c_unsafe_chunk = COMPOSITES["unsafe_chunk"].fn


def unsafe_chunk(input, chunks, dim=0, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_unsafe_chunk(input, chunks, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("unsafe_chunk", error)
        raise


_c_unbind = COMPOSITES["unbind"].fn


def unbind(input, dim=0, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_unbind(input, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("unbind", error)
        raise


_c_tensor_split = COMPOSITES["tensor_split"].fn


def tensor_split(input, indices_or_sections=None, dim=0, *, sections=None, indices=None, tensor_indices_or_sections=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_tensor_split(input, indices_or_sections, dim, sections=sections, indices=indices, tensor_indices_or_sections=tensor_indices_or_sections)
    except (AttributeError, TypeError) as error:
        wrong_argument("tensor_split", error)
        raise


_c_hsplit = COMPOSITES["hsplit"].fn


def hsplit(input, indices_or_sections=None, *, sections=None, indices=None) -> Any:
    try:
        return _c_hsplit(input, indices_or_sections, sections=sections, indices=indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("hsplit", error)
        raise


_c_vsplit = COMPOSITES["vsplit"].fn


def vsplit(input, indices_or_sections=None, *, sections=None, indices=None) -> Any:
    try:
        return _c_vsplit(input, indices_or_sections, sections=sections, indices=indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("vsplit", error)
        raise


_c_dsplit = COMPOSITES["dsplit"].fn


def dsplit(input, indices_or_sections=None, *, sections=None, indices=None) -> Any:
    try:
        return _c_dsplit(input, indices_or_sections, sections=sections, indices=indices)
    except (AttributeError, TypeError) as error:
        wrong_argument("dsplit", error)
        raise


_c_var = COMPOSITES["var"].fn


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_var(input, dim, unbiased, keepdim, correction=correction)
        except (AttributeError, TypeError) as error:
            wrong_argument("var", error)
            raise
    return composite_out("var", lambda: _c_var(input, dim, unbiased, keepdim, correction=correction), (input, dim, unbiased, keepdim, correction,), out)


_c_std = COMPOSITES["std"].fn


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_std(input, dim, unbiased, keepdim, correction=correction)
        except (AttributeError, TypeError) as error:
            wrong_argument("std", error)
            raise
    return composite_out("std", lambda: _c_std(input, dim, unbiased, keepdim, correction=correction), (input, dim, unbiased, keepdim, correction,), out)


_c_var_mean = COMPOSITES["var_mean"].fn


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    try:
        return _c_var_mean(input, dim, unbiased, keepdim, correction=correction)
    except (AttributeError, TypeError) as error:
        wrong_argument("var_mean", error)
        raise


_c_std_mean = COMPOSITES["std_mean"].fn


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    try:
        return _c_std_mean(input, dim, unbiased, keepdim, correction=correction)
    except (AttributeError, TypeError) as error:
        wrong_argument("std_mean", error)
        raise


_c_median = COMPOSITES["median"].fn


def median(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_median(input, dim, keepdim)
        except (AttributeError, TypeError) as error:
            wrong_argument("median", error)
            raise
    return composite_out("median", lambda: _c_median(input, dim, keepdim), (input, dim, keepdim,), out)


_c_nanmedian = COMPOSITES["nanmedian"].fn


def nanmedian(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_nanmedian(input, dim, keepdim)
        except (AttributeError, TypeError) as error:
            wrong_argument("nanmedian", error)
            raise
    return composite_out("nanmedian", lambda: _c_nanmedian(input, dim, keepdim), (input, dim, keepdim,), out)


_c_mode = COMPOSITES["mode"].fn


def mode(input, dim=-1, keepdim=False, *, out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_mode(input, dim, keepdim)
        except (AttributeError, TypeError) as error:
            wrong_argument("mode", error)
            raise
    return composite_out("mode", lambda: _c_mode(input, dim, keepdim), (input, dim, keepdim,), out)


_c_quantile = COMPOSITES["quantile"].fn


def quantile(input, q, dim=None, keepdim=False, *, interpolation='linear', out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_quantile(input, q, dim, keepdim, interpolation=interpolation)
        except (AttributeError, TypeError) as error:
            wrong_argument("quantile", error)
            raise
    return composite_out("quantile", lambda: _c_quantile(input, q, dim, keepdim, interpolation=interpolation), (input, q, dim, keepdim, interpolation,), out)


_c_nanquantile = COMPOSITES["nanquantile"].fn


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation='linear', out=None, axis=None, keepdims=None) -> Any:
    if axis is not None:
        dim = axis
    if keepdims is not None:
        keepdim = keepdims
    if out is None:
        try:
            return _c_nanquantile(input, q, dim, keepdim, interpolation=interpolation)
        except (AttributeError, TypeError) as error:
            wrong_argument("nanquantile", error)
            raise
    return composite_out("nanquantile", lambda: _c_nanquantile(input, q, dim, keepdim, interpolation=interpolation), (input, q, dim, keepdim, interpolation,), out)


_c_narrow_copy = COMPOSITES["narrow_copy"].fn


def narrow_copy(input, dim, start, length, *, out=None) -> Any:
    if out is None:
        try:
            return _c_narrow_copy(input, dim, start, length)
        except (AttributeError, TypeError) as error:
            wrong_argument("narrow_copy", error)
            raise
    return composite_out("narrow_copy", lambda: _c_narrow_copy(input, dim, start, length), (input, dim, start, length,), out)


_c_view_copy = COMPOSITES["view_copy"].fn


def view_copy(input, size=None, dtype=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_view_copy(input, size, dtype)
        except (AttributeError, TypeError) as error:
            wrong_argument("view_copy", error)
            raise
    return composite_out("view_copy", lambda: _c_view_copy(input, size, dtype), (input, size, dtype,), out)


_c_expand_copy = COMPOSITES["expand_copy"].fn


def expand_copy(input, size, *, implicit=False, out=None) -> Any:
    if out is None:
        try:
            return _c_expand_copy(input, size, implicit=implicit)
        except (AttributeError, TypeError) as error:
            wrong_argument("expand_copy", error)
            raise
    return composite_out("expand_copy", lambda: _c_expand_copy(input, size, implicit=implicit), (input, size, implicit,), out)


_c_permute_copy = COMPOSITES["permute_copy"].fn


def permute_copy(input, dims, *, out=None) -> Any:
    if out is None:
        try:
            return _c_permute_copy(input, dims)
        except (AttributeError, TypeError) as error:
            wrong_argument("permute_copy", error)
            raise
    return composite_out("permute_copy", lambda: _c_permute_copy(input, dims), (input, dims,), out)


_c_transpose_copy = COMPOSITES["transpose_copy"].fn


def transpose_copy(input, dim0, dim1, *, out=None) -> Any:
    if out is None:
        try:
            return _c_transpose_copy(input, dim0, dim1)
        except (AttributeError, TypeError) as error:
            wrong_argument("transpose_copy", error)
            raise
    return composite_out("transpose_copy", lambda: _c_transpose_copy(input, dim0, dim1), (input, dim0, dim1,), out)


_c_t_copy = COMPOSITES["t_copy"].fn


def t_copy(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_t_copy(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("t_copy", error)
            raise
    return composite_out("t_copy", lambda: _c_t_copy(input), (input,), out)


_c_squeeze_copy = COMPOSITES["squeeze_copy"].fn


def squeeze_copy(input, dim=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_squeeze_copy(input, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("squeeze_copy", error)
            raise
    return composite_out("squeeze_copy", lambda: _c_squeeze_copy(input, dim), (input, dim,), out)


_c_unsqueeze_copy = COMPOSITES["unsqueeze_copy"].fn


def unsqueeze_copy(input, dim=None, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_unsqueeze_copy(input, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("unsqueeze_copy", error)
            raise
    return composite_out("unsqueeze_copy", lambda: _c_unsqueeze_copy(input, dim), (input, dim,), out)


_c_select_copy = COMPOSITES["select_copy"].fn


def select_copy(input, dim, index, *, out=None) -> Any:
    if out is None:
        try:
            return _c_select_copy(input, dim, index)
        except (AttributeError, TypeError) as error:
            wrong_argument("select_copy", error)
            raise
    return composite_out("select_copy", lambda: _c_select_copy(input, dim, index), (input, dim, index,), out)


_c_slice_copy = COMPOSITES["slice_copy"].fn


def slice_copy(input, dim=0, start=None, end=None, step=1, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_slice_copy(input, dim, start, end, step)
        except (AttributeError, TypeError) as error:
            wrong_argument("slice_copy", error)
            raise
    return composite_out("slice_copy", lambda: _c_slice_copy(input, dim, start, end, step), (input, dim, start, end, step,), out)


_c_diagonal_copy = COMPOSITES["diagonal_copy"].fn


def diagonal_copy(input, offset=0, dim1=0, dim2=1, *, out=None) -> Any:
    if out is None:
        try:
            return _c_diagonal_copy(input, offset, dim1, dim2)
        except (AttributeError, TypeError) as error:
            wrong_argument("diagonal_copy", error)
            raise
    return composite_out("diagonal_copy", lambda: _c_diagonal_copy(input, offset, dim1, dim2), (input, offset, dim1, dim2,), out)


_c_as_strided_copy = COMPOSITES["as_strided_copy"].fn


def as_strided_copy(input, size, stride, storage_offset=None, *, out=None) -> Any:
    if out is None:
        try:
            return _c_as_strided_copy(input, size, stride, storage_offset)
        except (AttributeError, TypeError) as error:
            wrong_argument("as_strided_copy", error)
            raise
    return composite_out("as_strided_copy", lambda: _c_as_strided_copy(input, size, stride, storage_offset), (input, size, stride, storage_offset,), out)


_c_unfold_copy = COMPOSITES["unfold_copy"].fn


def unfold_copy(input, dimension, size, step, *, out=None) -> Any:
    if out is None:
        try:
            return _c_unfold_copy(input, dimension, size, step)
        except (AttributeError, TypeError) as error:
            wrong_argument("unfold_copy", error)
            raise
    return composite_out("unfold_copy", lambda: _c_unfold_copy(input, dimension, size, step), (input, dimension, size, step,), out)


_c_alias_copy = COMPOSITES["alias_copy"].fn


def alias_copy(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_alias_copy(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("alias_copy", error)
            raise
    return composite_out("alias_copy", lambda: _c_alias_copy(input), (input,), out)


_c_detach_copy = COMPOSITES["detach_copy"].fn


def detach_copy(input, *, out=None) -> Any:
    if out is None:
        try:
            return _c_detach_copy(input)
        except (AttributeError, TypeError) as error:
            wrong_argument("detach_copy", error)
            raise
    return composite_out("detach_copy", lambda: _c_detach_copy(input), (input,), out)


_c_split_copy = COMPOSITES["split_copy"].fn


def split_copy(input, split_size, dim=0, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_split_copy(input, split_size, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("split_copy", error)
            raise
    return composite_out("split_copy", lambda: _c_split_copy(input, split_size, dim), (input, split_size, dim,), out)


_c_split_with_sizes_copy = COMPOSITES["split_with_sizes_copy"].fn


def split_with_sizes_copy(input, split_sizes, dim=0, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_split_with_sizes_copy(input, split_sizes, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("split_with_sizes_copy", error)
            raise
    return composite_out("split_with_sizes_copy", lambda: _c_split_with_sizes_copy(input, split_sizes, dim), (input, split_sizes, dim,), out)


_c_unbind_copy = COMPOSITES["unbind_copy"].fn


def unbind_copy(input, dim=0, *, out=None, axis=None) -> Any:
    if axis is not None:
        dim = axis
    if out is None:
        try:
            return _c_unbind_copy(input, dim)
        except (AttributeError, TypeError) as error:
            wrong_argument("unbind_copy", error)
            raise
    return composite_out("unbind_copy", lambda: _c_unbind_copy(input, dim), (input, dim,), out)


_c_transpose_ = COMPOSITES["transpose_"].fn


def transpose_(input, dim0, dim1) -> Any:
    try:
        return _c_transpose_(input, dim0, dim1)
    except (AttributeError, TypeError) as error:
        wrong_argument("transpose_", error)
        raise


_c_swapaxes_ = COMPOSITES["swapaxes_"].fn


def swapaxes_(input, axis0, axis1) -> Any:
    try:
        return _c_swapaxes_(input, axis0, axis1)
    except (AttributeError, TypeError) as error:
        wrong_argument("swapaxes_", error)
        raise


_c_swapdims_ = COMPOSITES["swapdims_"].fn


def swapdims_(input, dim0, dim1) -> Any:
    try:
        return _c_swapdims_(input, dim0, dim1)
    except (AttributeError, TypeError) as error:
        wrong_argument("swapdims_", error)
        raise


_c_t_ = COMPOSITES["t_"].fn


def t_(input) -> Any:
    try:
        return _c_t_(input)
    except (AttributeError, TypeError) as error:
        wrong_argument("t_", error)
        raise


_c_squeeze_ = COMPOSITES["squeeze_"].fn


def squeeze_(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_squeeze_(input, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("squeeze_", error)
        raise


_c_unsqueeze_ = COMPOSITES["unsqueeze_"].fn


def unsqueeze_(input, dim=None, *, axis=None) -> Any:
    if axis is not None:
        dim = axis
    try:
        return _c_unsqueeze_(input, dim)
    except (AttributeError, TypeError) as error:
        wrong_argument("unsqueeze_", error)
        raise


_c_as_strided_ = COMPOSITES["as_strided_"].fn


def as_strided_(input, size, stride, storage_offset=None) -> Any:
    try:
        return _c_as_strided_(input, size, stride, storage_offset)
    except (AttributeError, TypeError) as error:
        wrong_argument("as_strided_", error)
        raise


_c_resize_as_ = COMPOSITES["resize_as_"].fn


def resize_as_(input, the_template, *, memory_format=None) -> Any:
    try:
        return _c_resize_as_(input, the_template, memory_format=memory_format)
    except (AttributeError, TypeError) as error:
        wrong_argument("resize_as_", error)
        raise
