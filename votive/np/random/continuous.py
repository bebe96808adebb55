"""Continuous distributions; samples carry gradients to parameters wherever they are transformed noise."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core.device import get_default_device
from ...ops.registry import F
from ..array import wrap
from ..convert import Tensor, cast, to_tensor
from ..layout import shape_of
from .draws import Draws, check, drawn, parameters


def _shape(size: Any, out: Any) -> tuple[int, ...]:
    if out is not None:
        return tuple(out.shape)
    return () if size is None else shape_of(size)


def _float(dtype: Any) -> Any:
    d = numpy.dtype(dtype)
    if d.name not in ("float32", "float64"):
        raise TypeError(f"Unsupported dtype {d!r} for random")
    return d


class Continuous(Draws):
    """Methods of `Generator` that give real numbers."""

    def random(self, size: Any = None, dtype: Any = numpy.float64, out: Any = None) -> Any:
        """Uniform numbers in [0, 1)."""
        return drawn(self._uniform(_shape(size, out), get_default_device(), _float(dtype)), out)

    def standard_normal(self, size: Any = None, dtype: Any = numpy.float64, out: Any = None) -> Any:
        """Normal numbers of mean 0 and variance 1."""
        return drawn(self._normal(_shape(size, out), get_default_device(), _float(dtype)), out)

    def standard_exponential(
        self, size: Any = None, dtype: Any = numpy.float64, method: str = "zig", out: Any = None
    ) -> Any:
        """Exponential numbers of mean 1."""
        if method not in ("zig", "inv"):
            raise ValueError(f"standard_exponential: method must be 'zig' or 'inv', got {method!r}.")
        value = -F.log(self._open(_shape(size, out), get_default_device()))
        return drawn(cast(value, _float(dtype)), out)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = numpy.float64, out: Any = None) -> Any:
        """Gamma numbers of scale 1."""
        _, _, (a,) = parameters(size, shape)
        check("gamma", F.ge(a, 0), "shape < 0")
        return drawn(cast(self._gamma_or_zero(a), _float(dtype)), out)

    def _gamma_or_zero(self, a: Tensor) -> Tensor:
        zero = F.eq(a, 0)
        return F.where(zero, F.zeros_like(a), self._gamma(F.where(zero, F.ones_like(a), a)))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Uniform numbers between bounds."""
        shape, device, (a, b) = parameters(size, low, high)
        check("uniform", F.isfinite(b - a), "high - low range exceeds valid bounds")
        return drawn(a + (b - a) * self._uniform(shape, device))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Normal numbers."""
        shape, device, (m, s) = parameters(size, loc, scale)
        check("normal", F.ge(s, 0), "scale < 0")
        return drawn(m + s * self._normal(shape, device))

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        """Numbers whose logarithm is normal."""
        return drawn(F.exp(to_tensor(self.normal(mean, sigma, size))))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponential numbers of mean `scale`."""
        shape, device, (s,) = parameters(size, scale)
        check("exponential", F.ge(s, 0), "scale < 0")
        return drawn(-s * F.log(self._open(shape, device)))

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Gamma numbers."""
        _, _, (a, s) = parameters(size, shape, scale)
        check("gamma", F.ge(a, 0) & F.ge(s, 0), "shape < 0 or scale < 0")
        return drawn(self._gamma_or_zero(a) * s)

    def beta(self, a: Any, b: Any, size: Any = None) -> Any:
        """Beta numbers."""
        _, _, (p, q) = parameters(size, a, b)
        check("beta", F.gt(p, 0) & F.gt(q, 0), "a <= 0 or b <= 0")
        x, y = self._gamma(p), self._gamma(q)
        return drawn(x / (x + y))

    def chisquare(self, df: Any, size: Any = None) -> Any:
        """Sums of squares of normal numbers."""
        _, _, (k,) = parameters(size, df)
        check("chisquare", F.gt(k, 0), "df <= 0")
        return drawn(2.0 * self._gamma(k / 2))

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Any:
        """Sums of squares of normal numbers whose means are not zero."""
        _, device, (k, n) = parameters(size, df, nonc)
        check("noncentral_chisquare", F.gt(k, 0) & F.ge(n, 0), "df <= 0 or nonc < 0")
        mixed = F.poisson((n / 2).contiguous(), generator=self._source(device))
        return drawn(2.0 * self._gamma(k / 2 + mixed))

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Any:
        """Ratios of two chi-square numbers."""
        _, _, (a, b) = parameters(size, dfnum, dfden)
        check("f", F.gt(a, 0) & F.gt(b, 0), "dfnum <= 0 or dfden <= 0")
        return drawn((self._gamma(a / 2) / a) / (self._gamma(b / 2) / b))

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Any:
        """Ratios of a noncentral and a central chi-square number."""
        shape, _, (a, b, n) = parameters(size, dfnum, dfden, nonc)
        top = to_tensor(self.noncentral_chisquare(wrap(a), wrap(n), shape))
        check("noncentral_f", F.gt(b, 0), "dfden <= 0")
        return drawn((top / a) / (2.0 * self._gamma(b / 2) / b))

    def standard_cauchy(self, size: Any = None) -> Any:
        """Cauchy numbers."""
        u = self._uniform(_shape(size, None), get_default_device())
        return drawn(F.tan(math.pi * (u - 0.5)))

    def standard_t(self, df: Any, size: Any = None) -> Any:
        """Student's t."""
        shape, device, (k,) = parameters(size, df)
        check("standard_t", F.gt(k, 0), "df <= 0")
        return drawn(self._normal(shape, device) * F.sqrt(k / 2 / self._gamma(k / 2)))

    def pareto(self, a: Any, size: Any = None) -> Any:
        """Pareto II (Lomax) numbers."""
        shape, device, (p,) = parameters(size, a)
        check("pareto", F.gt(p, 0), "a <= 0")
        return drawn(F.expm1(-F.log(self._open(shape, device)) / p))

    def power(self, a: Any, size: Any = None) -> Any:
        """Numbers in [0, 1] with density `a x^(a-1)`."""
        shape, device, (p,) = parameters(size, a)
        check("power", F.gt(p, 0), "a <= 0")
        return drawn(F.pow(self._open(shape, device), 1.0 / p))

    def weibull(self, a: Any, size: Any = None) -> Any:
        """Weibull numbers."""
        shape, device, (p,) = parameters(size, a)
        check("weibull", F.ge(p, 0), "a < 0")
        return drawn(F.pow(-F.log(self._open(shape, device)), 1.0 / p))

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Rayleigh numbers."""
        shape, device, (s,) = parameters(size, scale)
        check("rayleigh", F.ge(s, 0), "scale < 0")
        return drawn(s * F.sqrt(-2.0 * F.log(self._open(shape, device))))

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Laplace numbers."""
        shape, device, (m, s) = parameters(size, loc, scale)
        check("laplace", F.ge(s, 0), "scale < 0")
        u = self._open(shape, device)
        return drawn(m + s * F.where(F.lt(u, 0.5), F.log(2 * u), -F.log(2 - 2 * u + 5e-324)))

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Logistic numbers."""
        shape, device, (m, s) = parameters(size, loc, scale)
        check("logistic", F.ge(s, 0), "scale < 0")
        u = F.clamp(self._open(shape, device), max=1 - 2.0**-53)
        return drawn(m + s * (F.log(u) - F.log1p(-u)))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Gumbel numbers."""
        shape, device, (m, s) = parameters(size, loc, scale)
        check("gumbel", F.ge(s, 0), "scale < 0")
        u = F.clamp(self._open(shape, device), max=1 - 2.0**-53)
        return drawn(m - s * F.log(-F.log(u)))

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
        """Numbers with a triangle as density."""
        shape, device, (a, m, b) = parameters(size, left, mode, right)
        check("triangular", F.le(a, m) & F.le(m, b) & F.lt(a, b), "left > mode, mode > right or left == right")
        u = self._uniform(shape, device)
        low = a + F.sqrt(u * (b - a) * (m - a))
        high = b - F.sqrt((1 - u) * (b - a) * (b - m))
        return drawn(F.where(F.le(u, (m - a) / (b - a)), low, high))

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Any:
        """Inverse Gaussian numbers (Michael, Schucany and Haas 1976)."""
        shape, device, (m, s) = parameters(size, mean, scale)
        check("wald", F.gt(m, 0) & F.gt(s, 0), "mean <= 0 or scale <= 0")
        y = m * self._normal(shape, device) ** 2
        x = m + m / (2 * s) * (y - F.sqrt(y * (4 * s + y)))
        return drawn(F.where(F.le(self._uniform(shape, device), m / (m + x)), x, m * m / x))

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Any:
        """Angles around `mu` (Best and Fisher 1979)."""
        shape, device, (m, k) = parameters(size, mu, kappa)
        check("vonmises", F.ge(k, 0), "kappa < 0")
        safe = F.clamp(k, min=1e-8)
        tau = 1 + F.sqrt(1 + 4 * safe * safe)
        rho = (tau - F.sqrt(2 * tau)) / (2 * safe)
        r = (1 + rho * rho) / (2 * rho)
        angle = math.pi * (2 * self._uniform(shape, device) - 1)  # what kappa near 0 gives
        waiting = F.ge(k, 1e-8)
        while bool(waiting.any()):
            z = F.cos(math.pi * self._uniform(shape, device))
            w = (1 + r * z) / (r + z)
            c = safe * (r - w)
            u = self._open(shape, device)
            good = F.gt(c * (2 - c) - u, 0) | F.ge(F.log(c / u) + 1 - c, 0)
            sign = F.where(F.lt(self._uniform(shape, device), 0.5), -1.0, 1.0)
            angle = F.where(waiting & good, sign * F.acos(F.clamp(w, -1, 1)), angle)
            waiting = waiting & ~good
        return drawn(F.remainder(angle + m + math.pi, 2 * math.pi) - math.pi)

    def dirichlet(self, alpha: Any, size: Any = None) -> Any:
        """Points of the simplex."""
        a = cast(to_tensor(alpha), "float64")
        check("dirichlet", F.ge(a, 0), "alpha < 0")
        shape = () if size is None else shape_of(size)
        g = self._gamma_or_zero(a.expand((*shape, *a.shape)))
        return drawn(g / g.sum(-1, keepdim=True))

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> Any:
        """Normal vectors with a covariance."""
        m, c = cast(to_tensor(mean), "float64"), cast(to_tensor(cov), "float64")
        if m.ndim != 1 or c.ndim != 2 or c.shape[0] != c.shape[1] or c.shape[0] != m.shape[0]:
            raise ValueError("mean and cov must have same length, and cov must be 2 dimensional and square")
        if method not in ("svd", "eigh", "cholesky"):
            raise ValueError("method must be one of {'eigh', 'svd', 'cholesky'}")
        from ... import linalg as L

        if method == "cholesky":
            root = L.cholesky(c)
        else:
            values, vectors = L.eigh(c)
            if check_valid != "ignore" and bool(F.lt(values, -tol * values.abs().max()).any()):
                if check_valid == "raise":
                    raise ValueError("covariance is not symmetric positive-semidefinite.")
                import warnings

                warnings.warn("covariance is not symmetric positive-semidefinite.", RuntimeWarning, stacklevel=2)
            root = vectors * F.sqrt(F.clamp(values, min=0))
        shape = () if size is None else shape_of(size)
        noise = self._normal((*shape, int(m.shape[0])), m.device)
        return drawn(m + F.matmul(noise, root.t()))
