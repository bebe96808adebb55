// Special functions, scalar, and their tiles.
#include "vt/special.h"

#include <functional>
#include <vector>

#include "vt/elementwise.h"
#include "vt/primitives.h"

namespace vt {

namespace {

constexpr double SQRT_HALF = 0.70710678118654752440, SQRT_TWO = 1.41421356237309504880;
constexpr double SQRT_PI = 1.77245385090551602730, EULER_GAMMA = 0.57721566490153286061;

// B(2), B(4), ..., B(24): DLMF table 24.2.1.
constexpr double BERNOULLI[] = {1.0 / 6,      -1.0 / 30,     1.0 / 42,        -1.0 / 30,
                                5.0 / 66,     -691.0 / 2730, 7.0 / 6,         -3617.0 / 510,
                                43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};
constexpr int BERNOULLIS = 12;

double polynomial(const std::vector<double>& c, double x) {
  double y = c.back();
  for (size_t k = c.size() - 1; k-- > 0;) y = y * x + c[k];
  return y;
}

// Coefficients of the Chebyshev interpolant of f on [-1, 1], DLMF 3.11.10.
std::vector<double> chebyshev(const std::function<double(double)>& f, int terms) {
  std::vector<double> values(terms), c(terms);
  for (int j = 0; j < terms; ++j) values[j] = f(std::cos(PI<double> * (2 * j + 1) / (2 * terms)));
  for (int k = 0; k < terms; ++k) {
    long double sum = 0;
    for (int j = 0; j < terms; ++j) sum += values[j] * std::cos(PI<double> * k * (2 * j + 1) / (2 * terms));
    c[k] = double(sum * (k == 0 ? 1 : 2) / terms);
  }
  return c;
}
// The series at t, DLMF 3.11.15.
double clenshaw(const std::vector<double>& c, double t) {
  double b = c.back(), after = 0;
  for (size_t k = c.size() - 1; k-- > 1;) {
    const double next = 2 * t * b - after + c[k];
    after = b;
    b = next;
  }
  return t * b - after + c[0];
}

// --- gamma ----------------------------------------------------------------------------------------

// The sum of (q + k)^-s for s > 1, q > 0: ten terms, then Euler-Maclaurin (DLMF 25.11.5).
double zeta_positive(double s, double q) {
  double total = 0;
  for (int k = 0; k < 10; ++k) total += std::pow(q + k, -s);
  const double w = q + 10;
  const double integral = std::pow(w, 1 - s), power = integral / w;
  total += integral / (s - 1) + 0.5 * power;
  // Beyond 1e10 the power is zero already; the cap keeps the rising factorial from overflowing.
  s = s < 1e10 ? s : 1e10;
  double factor = power * s / w, factorial = 1;
  for (int k = 1; k <= BERNOULLIS; ++k) {
    factorial *= (2.0 * k - 1) * (2.0 * k);
    total += BERNOULLI[k - 1] / factorial * factor;
    factor *= (s + (2 * k - 1)) / w * ((s + 2 * k) / w);
  }
  return total;
}

// psi(2 + z) for |z| <= 1/2, by the values of zeta (DLMF 5.7.4).
double digamma_near_2(double z) {
  static const std::vector<double> series = [] {
    std::vector<double> c{1 - EULER_GAMMA};
    for (int k = 2; k < 30; ++k) c.push_back((k % 2 == 0 ? 1 : -1) * zeta_positive(k, 2));
    return c;
  }();
  return polynomial(series, z);
}
double digamma_large(double x) {
  const double v = 1 / (x * x);
  double sum = 0;
  for (int k = BERNOULLIS; k >= 1; --k) sum = sum * v - BERNOULLI[k - 1] / (2 * k);
  return std::log(x) - 0.5 / x + v * sum;
}
// For |x| <= 1/2; the sign of a zero chooses the side of the pole.
double digamma_small(double x) { return digamma_near_2(x) - 1 / (1 + x) - 1 / x; }
double digamma_positive(double x) {
  if (x < 0.5) return digamma_small(x);
  if (x < 1.5) return digamma_near_2(x - 1) - 1 / x;
  if (x <= 2.5) return digamma_near_2(x - 2);
  if (!(x < 10)) return digamma_large(x);
  double y = digamma_large(x + 8);
  for (int k = 0; k < 8; ++k) y -= 1 / (x + k);
  return y;
}
double trigamma_positive(double x) {
  const auto large = [](double x) {
    const double v = 1 / x;
    double sum = 0;
    for (int k = BERNOULLIS; k >= 1; --k) sum = sum * (v * v) + BERNOULLI[k - 1];
    return v + v * v * (0.5 + v * sum);
  };
  if (!(x < 10)) return large(x);
  double y = large(x + 10);
  for (int k = 9; k >= 0; --k) y += 1 / ((x + k) * (x + k));
  return y;
}
double trigamma(double x) {
  if (!(x < 0)) return trigamma_positive(x);
  const double sine = PI<double> / std::sin(PI<double> * (x - std::nearbyint(x)));
  return sine * sine - trigamma_positive(1 - x);
}

// --- error function ---------------------------------------------------------------------------------

double erfcx_positive(double x) {
  if (x < 0.5) return std::exp(x * x) * vt::erfc(x);
  if (x < 27) return erfc_shape(x) / (1 + 2 * x);
  if (x > 1e8) return 1 / (SQRT_PI * x);
  const double v = 0.5 / (x * x);  // DLMF 7.12.1
  return (1 - v * (1 - 3 * v * (1 - 5 * v * (1 - 7 * v)))) / (SQRT_PI * x);
}
// erfinv(x) / x at x = sqrt(1 - exp(-w)): Newton on log erfc, where every tail is well scaled.
double erfinv_over_x(double w) {
  const double x = std::sqrt(-std::expm1(-w));
  const double log_q = -w - std::log1p(x);
  double y = w > 4 ? std::sqrt(w - std::log(w) / 2) : x;
  for (int i = 0; i < 12; ++i) {
    const double scaled = erfcx_positive(y);
    const double log_erfc = y < 0.5 ? std::log1p(-std::erf(y)) : std::log(scaled) - y * y;
    y += (log_erfc - log_q) * SQRT_PI / 2 * scaled;
  }
  return y / x;
}
// w = -log(1 - x^2) is split here, and ends at log(2^1074), the smallest double.
constexpr double SPLIT = 6.25, MOST = 745.2;
// For x in [0, 1) given with q = 1 - x, the one exact where the other is not.
double erfinv_positive(double x, double q) {
  static const double low = 1 / std::sqrt(MOST), high = 1 / std::sqrt(SPLIT);
  static const std::vector<double> centre =
      chebyshev([](double t) { return erfinv_over_x(SPLIT * (t + 1) / 2); }, 26);
  static const std::vector<double> tail = chebyshev(
      [](double t) {
        const double v = low + (high - low) * (t + 1) / 2;
        return erfinv_over_x(1 / (v * v)) * v;
      },
      44);
  const double w = -std::log(q) - std::log1p(x);
  if (w < SPLIT) return x * clenshaw(centre, w * (2 / SPLIT) - 1);
  const double root = std::sqrt(w);
  return x * root * clenshaw(tail, (2 / root - (high + low)) / (high - low));
}

// --- modified Bessel functions of the first kind --------------------------------------------------------

constexpr double BESSEL_START = 8;
// sqrt(2 pi x) exp(-x) I(x) from DLMF 10.32.3, whose periodic integrand the trapezoid rule suits.
double bessel_scaled(int order, double x) {
  const int count = int(std::ceil(6 * std::sqrt(x))) + 30;
  long double total = 0;
  for (int k = 0; k <= count; ++k) {
    const double angle = k * (PI<double> / count), s = std::sin(angle / 2);
    const double value = (order == 1 ? std::cos(angle) : 1.0) * std::exp(-2 * x * s * s);
    total += (k == 0 || k == count) ? value / 2 : value;
  }
  return std::sqrt(2 * PI<double> * x) * double(total) / count;
}
template <int order> double bessel_i_scaled(double x) {
  if (x < BESSEL_START) {
    const double half = x / 2, square = half * half;
    double term = order == 1 ? half : 1.0, sum = 0;
    for (int k = 1; k <= 32; ++k) {
      sum += term;
      term *= square / (double(k) * (k + order));
    }
    return std::exp(-x) * sum;
  }
  static const std::vector<double> fit =
      chebyshev([](double t) { return bessel_scaled(order, 2 * BESSEL_START / (1 + t)); }, 28);
  return clenshaw(fit, 2 * BESSEL_START / x - 1) / (std::sqrt(2 * PI<double>) * std::sqrt(x));
}
// In two halves: the product may be finite where exp(x) is not.
double exp_times(double x, double value) {
  const double half = std::exp(x / 2);
  return half * value * half;
}

}  // namespace

double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {
  if (std::abs(x) <= 0.5) return digamma_small(x);
  if (!(x < -0.5)) return digamma_positive(x);
  // x less its nearest integer is exact, so the cotangent keeps its relative accuracy.
  const double r = x - std::nearbyint(x);
  if (r == 0) return NOT_A_NUMBER<double>;
  return digamma_positive(1 - x) - PI<double> / std::tan(PI<double> * r);
}

double zeta(double s, double q) {
  if (s == 1 || (q <= 0 && q == std::floor(q) && !(s < 1))) return INF<double>;
  if (!(s > 1 && q < INF<double>)) return NOT_A_NUMBER<double>;
  if (q > 0) return zeta_positive(s, q);
  if (!(q < 0 && s == std::floor(s))) return NOT_A_NUMBER<double>;
  // The terms left of zero are a difference of their own; for odd s those near it cancel first.
  const double size = -q, sign = std::fmod(s, 2) == 1 ? -1 : 1;
  const double near = zeta_positive(s, std::ceil(size) - size) + sign * zeta_positive(s, size - std::floor(size));
  return near - sign * zeta_positive(s, size + 1);
}

double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  double mantissa = 1;
  int exponent = 0;
  for (int k = 2; k <= int(n); ++k) {
    int e;
    mantissa = std::frexp(mantissa * k, &e);
    exponent += e;
  }
  return std::ldexp((std::fmod(n, 2) == 0 ? -mantissa : mantissa) * zeta(n + 1, x), exponent);
}

double erfcx(double x) {
  if (!(x < 0)) return erfcx_positive(x);
  if (x < -27) return INF<double>;
  const double high = rounded(x * x), low = lost(x, x, high);
  return 2 * (std::exp(high) * (1 + low)) - erfcx_positive(-x);
}

double erfinv(double x) {
  const double size = std::abs(x);
  if (size < 1) return std::copysign(erfinv_positive(size, 1 - size), x);
  return size == 1 ? std::copysign(INF<double>, x) : NOT_A_NUMBER<double>;
}

double ndtri(double p) {
  if (p == 0) return -INF<double>;
  if (p == 1) return INF<double>;
  if (!(p > 0 && p < 1)) return NOT_A_NUMBER<double>;
  if (p < 0.25) return -SQRT_TWO * erfinv_positive(1 - 2 * p, 2 * p);
  if (p > 0.75) return SQRT_TWO * erfinv_positive(2 * p - 1, 2 - 2 * p);
  return SQRT_TWO * erfinv(2 * p - 1);
}

double log_ndtr(double x) {
  if (x < -1) return std::log(0.5 * erfcx_positive(-x * SQRT_HALF)) - 0.5 * x * x;
  if (x >= 1) return std::log1p(-0.5 * vt::erfc(x * SQRT_HALF));
  return std::log(0.5 + 0.5 * vt::erf(x * SQRT_HALF));
}

double i0(double x) { return exp_times(std::abs(x), bessel_i_scaled<0>(std::abs(x))); }
double i0e(double x) { return bessel_i_scaled<0>(std::abs(x)); }
double i1(double x) {
  const double y = exp_times(std::abs(x), bessel_i_scaled<1>(std::abs(x)));
  return x < 0 ? -y : y;
}
double i1e(double x) {
  const double y = bessel_i_scaled<1>(std::abs(x));
  return x < 0 ? -y : y;
}

namespace {

template <class T, auto f> void add_one(const char* name) {
  add_tile(name, dtype_of<T>, [](void* out, const void* const* in, int64_t n) {
    const T* a = static_cast<const T*>(in[0]);
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = T(f(double(a[i])));
  });
}
template <class T, auto f> void add_two(const char* name) {
  add_tile(name, dtype_of<T>, [](void* out, const void* const* in, int64_t n) {
    const T* a = static_cast<const T*>(in[0]);
    const T* b = static_cast<const T*>(in[1]);
    for (int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = T(f(double(a[i]), double(b[i])));
  });
}

template <class T> void add_special() {
  add_one<T, lgamma>("lgamma");
  add_one<T, digamma>("digamma");
  add_one<T, erfcx>("erfcx");
  add_one<T, erfinv>("erfinv");
  add_one<T, ndtri>("ndtri");
  add_one<T, log_ndtr>("log_ndtr");
  add_one<T, i0>("i0");
  add_one<T, i0e>("i0e");
  add_one<T, i1>("i1");
  add_one<T, i1e>("i1e");
  add_two<T, polygamma>("polygamma");
  add_two<T, zeta>("zeta");
}

struct All {
  All() {
    add_special<float>();
    add_special<double>();
  }
} all;

}  // namespace

}  // namespace vt
