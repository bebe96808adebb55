"""A normal distribution for each number of a latent, and noise from generators. Knows no model."""

from __future__ import annotations

import math

import votive

from ...tensor import Tensor

Generators = votive.Generator | list[votive.Generator] | None


def randn(
    shape: tuple[int, ...],
    generator: Generators = None,
    device: votive.device | str | None = None,
    dtype: votive.dtype | None = None,
) -> Tensor:
    """Normal noise; a list of generators draws each sample of the batch from its own.

    Numbers of a generator of the CPU are drawn there and then moved, so that a seed means the same on every device.

    >>> from votive.models.diffusion.gaussian import randn
    >>> seeds = [votive.Generator().manual_seed(i) for i in (1, 2)]
    >>> randn((2, 3), seeds).shape
    votive.Size([2, 3])
    """
    target = votive.device(device) if device is not None else votive.device("cpu")
    if isinstance(generator, list | tuple):
        if len(generator) not in (1, shape[0]):
            raise ValueError(f"generator: {len(generator)} generators came for {shape[0]} samples; give one for each.")
        if len(generator) == 1:
            generator = generator[0]
    if isinstance(generator, list | tuple):
        return votive.cat([randn((1, *shape[1:]), g, device, dtype) for g in generator])
    place = target if generator is None else generator.device
    if place.type != target.type and place.type != "cpu":
        raise ValueError(f"generator: one of {place} cannot draw for {target}; use one of the CPU.")
    return votive.randn(shape, generator=generator, dtype=dtype, device=place).to(target)


class DiagonalGaussianDistribution:
    """Means and log-variances that an encoder gives, side by side in (batch, 2 * channels, height, width).

    >>> from votive.models.diffusion import DiagonalGaussianDistribution
    >>> found = DiagonalGaussianDistribution(votive.zeros(2, 4, 1, 1))
    >>> found.sample().shape, found.kl()
    (votive.Size([2, 2, 1, 1]), tensor([0., 0.]))
    """

    def __init__(self, parameters: Tensor, deterministic: bool = False) -> None:
        self.parameters, self.deterministic = parameters, deterministic
        self.mean, logvar = parameters.chunk(2, dim=1)
        self.logvar = logvar.clamp(-30.0, 20.0)
        self.std, self.var = (0.5 * self.logvar).exp(), self.logvar.exp()
        if deterministic:
            self.std = self.var = votive.zeros_like(self.mean)

    def sample(self, generator: Generators = None) -> Tensor:
        """A draw."""
        p = self.parameters
        return self.mean + self.std * randn(tuple(self.mean.shape), generator, p.device, p.dtype)

    def mode(self) -> Tensor:
        """The likeliest latent: the mean."""
        return self.mean

    def kl(self, other: DiagonalGaussianDistribution | None = None) -> Tensor:
        """The Kullback-Leibler divergence from another, or from the standard normal, for each sample."""
        if self.deterministic:
            return votive.tensor([0.0])
        if other is None:
            return 0.5 * (self.mean.square() + self.var - 1.0 - self.logvar).sum([1, 2, 3])
        apart = (self.mean - other.mean).square() / other.var + self.var / other.var
        return 0.5 * (apart - 1.0 - self.logvar + other.logvar).sum([1, 2, 3])

    def nll(self, sample: Tensor, dims: tuple[int, ...] = (1, 2, 3)) -> Tensor:
        """Minus the log-density of a sample."""
        if self.deterministic:
            return votive.tensor([0.0])
        terms = math.log(2.0 * math.pi) + self.logvar + (sample - self.mean).square() / self.var
        return 0.5 * terms.sum(list(dims))
