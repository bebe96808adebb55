"""Random numbers with NumPy's interface, from votive's Philox streams; the numbers differ from NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as _numpy

from .continuous import Continuous as _Continuous
from .discrete import Discrete as _Discrete

SeedSequence = _numpy.random.SeedSequence


class Philox:
    """The bit generator of votive: a counter and a key (Salmon et al. 2011)."""

    def __init__(self, seed: Any = None, counter: Any = None, key: Any = None) -> None:
        if counter is not None or key is not None:
            raise NotImplementedError("Philox: give a seed; counter and key belong to NumPy's own generator.")
        self.seed = seed


class Generator(_Continuous, _Discrete):
    """A source of random numbers with all of NumPy's distributions.

    >>> votive.np.random.default_rng(1).normal(size=3).shape
    (3,)
    """

    def __init__(self, bit_generator: Any = None) -> None:
        super().__init__(bit_generator.seed if isinstance(bit_generator, Philox) else bit_generator)

    def __repr__(self) -> str:
        return "Generator(Philox)"

    @property
    def bit_generator(self) -> Philox:
        return Philox(self._seed)

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators with streams of their own."""
        first = self._children
        self._children += n_children
        return [Generator([self._seed, i]) for i in range(first, self._children)]


def default_rng(seed: Any = None) -> Generator:
    """A new generator; the same numbers for the same seed.

    >>> a, b = (votive.np.random.default_rng(7).random() for _ in range(2))
    >>> bool(a == b)
    True
    """
    return seed if isinstance(seed, Generator) else Generator(seed)


class RandomState(Generator):
    """The older interface: `rand`, `randn`, `randint` beside the distributions."""

    def seed(self, seed: Any = None) -> None:
        """Start again from a seed."""
        self.__init__(seed)  # type: ignore[misc]

    def rand(self, *args: int) -> Any:
        """Uniform numbers in [0, 1) of a shape."""
        return self.random(args or None)

    def randn(self, *args: int) -> Any:
        """Normal numbers of a shape."""
        return self.standard_normal(args or None)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        """Integers from `low` up to `high`."""
        return self.integers(low, high, size, dtype)

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> Any:
        """Integers from `low` to `high`, both included."""
        return self.integers(1 if high is None else low, low if high is None else high, size, endpoint=True)

    def random_sample(self, size: Any = None) -> Any:
        """Uniform numbers in [0, 1)."""
        return self.random(size)

    ranf = sample = random_sample

    def get_state(self, legacy: bool = True) -> dict[str, Any]:
        """The position of the stream."""
        return {
            "bit_generator": "Philox",
            "seed": self._seed,
            "streams": {str(d): bytes(s.get_state().tolist()) for d, s in self._sources.items()},
        }

    def set_state(self, state: Any) -> None:
        """Go to a position that `get_state` gave."""
        if not isinstance(state, dict) or state.get("bit_generator") != "Philox":
            raise ValueError("set_state: only states of votive.np.random.get_state are known.")
        from ...core.device import resolve

        self._seed, self._sources = state["seed"], {}
        for name, words in state["streams"].items():
            self._source(resolve(name)).set_state(words)


_GLOBAL = RandomState()
_NAMES = (
    "beta binomial bytes chisquare choice dirichlet exponential f gamma geometric get_state gumbel hypergeometric "
    "laplace logistic lognormal logseries multinomial multivariate_normal negative_binomial noncentral_chisquare "
    "noncentral_f normal pareto permutation poisson power rand randint randn random random_integers random_sample "
    "ranf rayleigh sample seed set_state shuffle standard_cauchy standard_exponential standard_gamma "
    "standard_normal standard_t triangular uniform vonmises wald weibull zipf"
)
for _name in _NAMES.split():
    globals()[_name] = getattr(_GLOBAL, _name)

_REFUSED = ("MT19937", "PCG64", "PCG64DXSM", "SFC64", "BitGenerator")


def __getattr__(name: str) -> Any:
    if name in _REFUSED:
        raise AttributeError(
            f"votive.np.random has no {name!r}: numbers come from votive's Philox; use default_rng(seed)."
        )
    raise AttributeError(f"module 'votive.np.random' has no attribute {name!r}")
