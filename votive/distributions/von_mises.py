"""The normal distribution of angles."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import special
from ..autograd import no_grad
from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .parameters import ParameterLike, broadcast_all


class VonMises(Distribution):
    """Angles around `loc` with density proportional to `exp(concentration cos(x - loc))`.

    >>> votive.distributions.VonMises(votive.tensor([1.0]), votive.tensor([4.0])).log_prob(votive.tensor([1.0]))
    tensor([-0.2628])
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: ParameterLike, concentration: ParameterLike, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        k = self.concentration
        # log I0(k) = log(exp(-k) I0(k)) + k, which does not overflow.
        return k * (F.cos(value - self.loc) - 1) - math.log(2 * math.pi) - F.log(special.i0e(k))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Best and Fisher 1979: candidates from a wrapped Cauchy distribution, until each is accepted."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            k = self.concentration.to(dt.float64)
            tau = 1 + F.sqrt(1 + 4 * k**2)
            rho = (tau - F.sqrt(2 * tau)) / (2 * k)
            # For small k the fraction rounds to 0 / 0; its Taylor series is 1 / k + k.
            r = F.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * F.where(rho == 0, 1.0, rho)))
            k, r = k.expand(shape), r.expand(shape)
            angle, done = F.zeros(shape, dtype=dt.float64, device=k.device), F.zeros(shape, dtype=dt.bool_)
            done = done.to(k.device)
            while not bool(done.all()):
                u1, u2, u3 = F.rand((3, *shape), dtype=dt.float64, device=k.device).unbind()
                z = F.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = (c * (2 - c) - u2 > 0) | (F.log(c / u2) + 1 - c >= 0)
                found = F.sign(u3 - 0.5) * F.acos(F.clamp(f, -1, 1))
                angle = F.where(accept & ~done, found, angle)
                done = done | accept
            turned = (angle + math.pi + self.loc.to(dt.float64)) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)
