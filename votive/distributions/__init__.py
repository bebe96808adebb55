"""`votive.distributions`: probability distributions with samples, densities and divergences."""

from . import constraints, transforms
from . import kl_between as kl_between  # fills the table of divergences
from .categorical import Categorical, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough
from .combined import Independent, MixtureSameFamily
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Normal, Uniform
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, ExponentialFamily
from .gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from .kl import kl_divergence, register_kl
from .multivariate_normal import MultivariateNormal
from .transformed import HalfCauchy, HalfNormal, LogNormal, TransformedDistribution
from .transforms import *  # noqa: F403

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution",
    "Exponential", "ExponentialFamily", "Gamma", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
    "Independent", "Laplace", "LogNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Poisson", "StudentT", "TransformedDistribution", "Uniform", "constraints", "kl_divergence",
    "register_kl", "transforms", *transforms.__all__,
]  # fmt: skip
