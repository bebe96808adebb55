// Scalar functions without branches: loops of them become vector code on every level.
//
// Errors in units in the last place stay below (tests/native/test_math.py holds them to this):
//
//              float   double                    float   double
//   exp         1.1     1.0        sin, cos       1.6     1.0
//   exp2        1.0     1.0        tan            3.5     2.5
//   expm1       1.7     1.9        asin           1.7     1.7
//   log         1.0     1.0        acos           1.2     1.3
//   log2        1.1     0.8        atan           2.0     2.0
//   log10       1.1     0.8        atan2          2.4     2.4
//   log1p       1.5     1.5        sinh           1.8     1.8
//   sigmoid     2.3     2.4        cosh, tanh     1.6     1.6
//   erf         2.8     1.8        asinh          2.0     2.0
//   erfc        4.0     4.0        acosh, atanh   2.5     2.5
//   pow         0.6     1.0        hypot          0.6     1.4
//
// Without fused multiply-add (baseline): exp2 and pow 1.1, log2 2.0 and log10 1.7 in float.
//
// sin, cos and tan leave arguments beyond TRIG_LIMIT to the C library, by a branch that keeps a loop
// from becoming vector code; sin_near, cos_near and tan_near are for arguments known to be smaller.
// Polynomials are minimax fits over the interval named beside them, constant term first.
#pragma once
#include "math/erf.h"
#include "math/exponential.h"
#include "math/hyperbolic.h"
#include "math/logarithm.h"
#include "math/parts.h"
#include "math/power.h"
#include "math/trigonometric.h"
