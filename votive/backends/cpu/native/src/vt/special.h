// Special functions in double: long enough that a call per element does not matter. A float result
// is the double one rounded. Algorithms, borders and special values are those of the reference.
#pragma once

namespace vt {

double lgamma(double x);
double digamma(double x);
double polygamma(double n, double x);
double zeta(double s, double q);
double erfcx(double x);
double erfinv(double x);
double ndtri(double p);
double log_ndtr(double x);
double i0(double x);
double i0e(double x);
double i1(double x);
double i1e(double x);

}  // namespace vt
