"""Integers, counts, and choices from what is there."""

from __future__ import annotations

from typing import Any

import numpy

from ...core import dtype as dt
from ...core.device import get_default_device
from ...ops.registry import F
from ..array import ndarray, wrap
from ..convert import Tensor, cast, detached, place_of, result, to_tensor
from ..element_types import as_dtype
from ..layout import axis_of, shape_of
from .draws import Draws, check, counted, parameters


class Discrete(Draws):
    """Methods of `Generator` that give integers, or choose and shuffle."""

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = numpy.int64, endpoint: bool = False
    ) -> Any:
        """Integers from `low` up to `high`, which `endpoint` includes.

        >>> int(votive.np.random.default_rng(0).integers(1))
        0
        """
        if high is None:
            low, high = 0, low
        d = as_dtype(dtype)
        device = place_of(low, high)
        a, b = (numpy.asarray(detached(v) if isinstance(v, ndarray) else v).astype(object) for v in (low, high))
        b = b if endpoint else numpy.asarray(b - 1, object)
        info = numpy.iinfo(d) if d.kind in "iu" else None
        if info is None and d.kind != "b":
            raise TypeError(f"Unsupported dtype {d!r} for integers")
        least, most = (int(info.min), int(info.max)) if info is not None else (0, 1)
        if numpy.any(a > b):
            raise ValueError("low >= high" if not endpoint else "low > high")
        if numpy.any(a < least) or numpy.any(b > most):
            raise ValueError(f"low or high is out of bounds for {d.name}")
        shape = numpy.broadcast_shapes(a.shape, b.shape) if size is None else shape_of(size)
        return result(cast(self._between(a, b, tuple(shape), device), d))

    def _between(self, a: Any, b: Any, shape: tuple[int, ...], device: Any) -> Tensor:
        source = self._source(device)
        if a.ndim == 0 and b.ndim == 0 and int(a) > -(2**62) and int(b) < 2**62:
            return F.randint(int(a), int(b) + 1, shape, device=device, generator=source)
        # Bounds that differ, or exceed 63 bits: exact integers by NumPy's generator, seeded from this stream.
        unsigned = bool(numpy.any(b > numpy.iinfo(numpy.int64).max))
        kind = numpy.uint64 if unsigned else numpy.int64
        found = self._host().integers(a.astype(kind), b.astype(kind), shape, kind, endpoint=True)
        return to_tensor(numpy.asarray(found), device=device)

    def bytes(self, length: int) -> bytes:
        """Random bytes."""
        return detached(self.integers(0, 256, length, numpy.uint8)).tobytes()

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Poisson counts."""
        _, device, (m,) = parameters(size, lam)
        check("poisson", F.ge(m, 0), "lam < 0 or lam contains NaNs")
        return counted(F.poisson(m.detach().contiguous(), generator=self._source(device)))

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """How many of `n` trials succeed."""
        _, device, (count, prob) = parameters(size, n, p)
        check("binomial", F.ge(count, 0) & F.ge(prob, 0) & F.le(prob, 1), "n < 0, p < 0, p > 1 or p contains NaNs")
        source = self._source(device)
        return counted(F.binomial(count.detach().contiguous(), prob.detach().contiguous(), generator=source))

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Failures before `n` successes."""
        _, device, (count, prob) = parameters(size, n, p)
        check("negative_binomial", F.gt(count, 0) & F.gt(prob, 0) & F.le(prob, 1), "n <= 0, p <= 0, p > 1 or p is NaN")
        rate = self._gamma(count.detach()) * (1 - prob.detach()) / prob.detach()
        return counted(F.poisson(rate.contiguous(), generator=self._source(device)))

    def geometric(self, p: Any, size: Any = None) -> Any:
        """Trials up to the first success."""
        shape, device, (prob,) = parameters(size, p)
        check("geometric", F.gt(prob, 0) & F.le(prob, 1), "p <= 0, p > 1 or p contains NaNs")
        u = self._open(shape, device)
        return counted(F.clamp(F.ceil(F.log(u) / F.log1p(-prob.detach())), min=1))

    def logseries(self, p: Any, size: Any = None) -> Any:
        """Counts of the logarithmic series (Kemp 1981)."""
        shape, device, (prob,) = parameters(size, p)
        check("logseries", F.ge(prob, 0) & F.lt(prob, 1), "p < 0, p >= 1 or p is NaN")
        prob = prob.detach()
        v, u = self._open(shape, device), self._open(shape, device)
        q = -F.expm1(F.log1p(-prob) * u)
        large = F.floor(1 + F.log(v) / F.log(q))
        value = F.where(F.le(v, q * q), large, F.where(F.ge(v, q), F.ones_like(v), F.full_like(v, 2.0)))
        return counted(F.where(F.ge(v, prob), F.ones_like(v), value))

    def _by_numpy(self, name: str, *args: Any) -> Any:
        found = getattr(self._host(), name)(*[detached(a) if isinstance(a, ndarray) else a for a in args])
        return result(to_tensor(numpy.asarray(found)))

    def zipf(self, a: Any, size: Any = None) -> Any:
        """Counts of Zipf's law."""
        return self._by_numpy("zipf", a, size)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Any:
        """Good ones among drawn ones."""
        return self._by_numpy("hypergeometric", ngood, nbad, nsample, size)

    def multivariate_hypergeometric(
        self, colors: Any, nsample: int, size: Any = None, method: str = "marginals"
    ) -> Any:
        """Colors among drawn ones."""
        return self._by_numpy("multivariate_hypergeometric", colors, nsample, size, method)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """How often each of several results occurs: binomial counts, one after the other."""
        p = cast(to_tensor(pvals), "float64").detach()
        trials = cast(to_tensor(n, device=p.device), "float64")
        if bool(F.lt(p, 0).any()) or bool(F.gt(p, 1).any()):
            raise ValueError("pvals < 0, pvals > 1 or pvals contains NaNs")
        if bool(F.gt(p[..., :-1].sum(-1), 1 + 1e-12).any()):
            raise ValueError("sum(pvals[:-1]) > 1.0")
        common = numpy.broadcast_shapes(tuple(trials.shape), tuple(p.shape[:-1]))
        shape = common if size is None else shape_of(size)
        left, rest = trials.expand(shape), F.ones(shape, dtype=dt.float64, device=p.device)
        source, out = self._source(p.device), []
        k = int(p.shape[-1])
        for i in range(k - 1):
            q = F.clamp(p[..., i].expand(shape) / F.clamp(rest, min=1e-300), 0, 1)
            drawn = F.binomial(left.contiguous(), q.contiguous(), generator=source)
            out.append(drawn)
            left, rest = left - drawn, rest - p[..., i]
        return counted(F.stack([*out, left], -1))

    # --- choosing -----------------------------------------------------------------------------------

    def permutation(self, x: Any, axis: int = 0) -> ndarray:
        """A shuffled range, or a shuffled copy.

        >>> sorted(votive.np.random.default_rng(0).permutation(3).tolist())
        [0, 1, 2]
        """
        if hasattr(x, "__index__") and not getattr(x, "ndim", 0):
            device = get_default_device()
            return wrap(F.randperm(int(x), device=device, generator=self._source(device)))
        t = to_tensor(x)
        dim = axis_of(axis, t.ndim)
        order = F.randperm(int(t.shape[dim]), device=t.device, generator=self._source(t.device))
        return wrap(F.index_select(t, dim, order))

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle in place along an axis."""
        if isinstance(x, list):
            order = self.permutation(len(x)).tolist()
            x[:] = [x[i] for i in order]
            return
        if not isinstance(x, ndarray):
            raise TypeError(f"shuffle: a votive.np array or a list is changed in place, got {type(x).__name__}.")
        x.tensor.copy_(self.permutation(x, axis).tensor)

    def permuted(self, x: Any, *, axis: Any = None, out: Any = None) -> Any:
        """Each line along an axis shuffled by itself."""
        t = to_tensor(x)
        lines, dim = (t.reshape(-1), 0) if axis is None else (t, axis_of(axis, t.ndim))
        order = F.argsort(self._uniform(tuple(lines.shape), t.device), dim)
        value = F.take_along_dim(lines, order, dim).reshape(t.shape)
        if out is None:
            return wrap(value)
        out[...] = wrap(value)
        return out

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        """Elements chosen at random, by weights where `p` is given.

        >>> int(votive.np.random.default_rng(0).choice([7]))
        7
        """
        single = hasattr(a, "__index__") and not getattr(a, "ndim", 0)
        t = F.arange(int(a)) if single else to_tensor(a)
        dim = axis_of(axis, t.ndim)
        n = int(t.shape[dim])
        shape = () if size is None else shape_of(size)
        count = int(numpy.prod(shape, dtype=int))
        if n == 0 and count:
            raise ValueError("a cannot be empty unless no samples are taken")
        if not replace and count > n:
            raise ValueError("Cannot take a larger sample than population when replace is False")
        if p is not None:
            weights = cast(to_tensor(p, device=t.device), "float64").detach()
            if weights.ndim != 1 or weights.shape[0] != n:
                raise ValueError("a and p must have same size")
            if bool(F.lt(weights, 0).any()) or abs(float(weights.sum().item()) - 1) > 1e-8:
                raise ValueError(
                    "probabilities are not non-negative"
                    if bool(F.lt(weights, 0).any())
                    else "Probabilities do not sum to 1."
                )
            if not replace and int(F.ne(weights, 0).sum().item()) < count:
                raise ValueError("Fewer non-zero entries in p than size")
            index = self._weighted(weights, count, replace)
        elif replace:
            index = F.randint(0, max(n, 1), (count,), device=t.device, generator=self._source(t.device))
        else:
            index = F.randperm(n, device=t.device, generator=self._source(t.device))[:count]
        found = F.index_select(t, dim, index)
        found = found.reshape((*t.shape[:dim], *shape, *t.shape[dim + 1 :]))
        return result(found)

    def _weighted(self, weights: Tensor, count: int, replace: bool) -> Tensor:
        if not count:
            return F.zeros((0,), dtype=dt.int64, device=weights.device)
        if replace:
            edges = F.cumsum(weights, 0)
            u = self._uniform((count,), weights.device) * edges[-1]
            return F.clamp(F.searchsorted(edges, u, right=True), max=int(weights.shape[0]) - 1)
        return F.multinomial(weights, count, False, generator=self._source(weights.device))
