"""`votive.distributions`: probability distributions with samples, densities and divergences."""

from . import constraints, transforms
from . import kl_between as kl_between  # fills the table of divergences
from . import kl_powers as kl_powers
from .categorical import Categorical, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough
from .combined import Independent, MixtureSameFamily
from .constraint_registry import biject_to, transform_to
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Normal, Uniform
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, ExponentialFamily
from .gamma import Beta, Chi2, Dirichlet, Gamma, StudentT
from .kl import kl_divergence, register_kl
from .matrices import LKJCholesky, LowRankMultivariateNormal, Wishart
from .multivariate_normal import MultivariateNormal
from .negative_binomial import NegativeBinomial
from .powers import FisherSnedecor, GeneralizedPareto, InverseGamma, Kumaraswamy, Pareto, Weibull
from .relaxed import ContinuousBernoulli, LogisticNormal, RelaxedBernoulli, RelaxedOneHotCategorical
from .transformed import HalfCauchy, HalfNormal, LogNormal, TransformedDistribution
from .transforms import *  # noqa: F403
from .von_mises import VonMises

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution",
    "Exponential", "ExponentialFamily", "Gamma", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
    "Independent", "Laplace", "LogNormal", "MixtureSameFamily", "Multinomial",
    "MultivariateNormal", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough",
    "Poisson", "StudentT", "TransformedDistribution", "Uniform", "constraints", "kl_divergence",
    "ContinuousBernoulli", "FisherSnedecor", "GeneralizedPareto", "InverseGamma", "Kumaraswamy",
    "LKJCholesky", "LogisticNormal", "LowRankMultivariateNormal", "NegativeBinomial", "Pareto",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "VonMises", "Weibull", "Wishart", "biject_to",
    "register_kl", "transform_to", "transforms", *transforms.__all__,
]  # fmt: skip
