"""Tensor methods that overwrite a tensor with samples. Reads arguments; `random.py` draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .random import draw, integer
from .registry import composite

if TYPE_CHECKING:
    from .types import Generator, Operand, Tensor


def _start(op: str, given: float, named: dict[str, Any]) -> Any:
    """The argument called `from`, a word Python reserves: by position or `**{"from": 1}`."""
    value = named.pop("from", given)
    if named:
        raise TypeError(f"{op}: unexpected argument {next(iter(named))!r}.")
    return value


@composite(namespaces=())
def uniform_(
    input: Tensor, low: float = 0.0, to: float = 1.0, *, generator: Generator | None = None, **named: Any
) -> Tensor:
    """Overwrite this tensor with uniform random numbers of [low, to).

    >>> _ = votive.manual_seed(0)
    >>> votive.zeros(2).uniform_(1, 2)
    tensor([1.3990, 1.8805])
    """
    return draw("uniform", input, generator, _start("uniform_", low, named), to, fresh=False)


@composite(namespaces=())
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite this tensor with normal random numbers.

    >>> votive.zeros(2).normal_(3, 0)
    tensor([3., 3.])
    """
    return draw("normal", input, generator, mean, std, fresh=False)


@composite(namespaces=())
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite this tensor with exponentials of normal numbers with `mean` and `std`.

    >>> bool((votive.zeros(9).log_normal_() > 0).all())
    True
    """
    return draw("log_normal", input, generator, mean, std, fresh=False)


@composite(namespaces=())
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite this tensor with exponential random numbers of rate `lambd`.

    >>> bool((votive.zeros(9).exponential_() > 0).all())
    True
    """
    return draw("exponential", input, generator, lambd, fresh=False)


@composite(namespaces=())
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrite this tensor with Cauchy random numbers around `median`.

    >>> votive.zeros(3).cauchy_().shape
    votive.Size([3])
    """
    return draw("cauchy", input, generator, median, sigma, fresh=False)


@composite(namespaces=())
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Overwrite this tensor with the number of trials up to the first success of probability `p`.

    >>> bool((votive.zeros(9).geometric_(0.5) >= 1).all())
    True
    """
    return draw("geometric", input, generator, p, fresh=False)


@composite(namespaces=())
def bernoulli_(input: Tensor, p: Operand = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Overwrite this tensor with ones (probability p, a number or a tensor) and zeros.

    >>> votive.zeros(2).bernoulli_(votive.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    return draw("bernoulli", input, generator, p, fresh=False)


@composite(namespaces=())
def random_(
    input: Tensor, *args: int, to: int | None = None, generator: Generator | None = None, **named: Any
) -> Tensor:
    """Overwrite this tensor with random integers: of [0, to), of [from, to), or of all that fit.

    >>> _ = votive.manual_seed(0)
    >>> votive.zeros(3).random_(10)
    tensor([8., 6., 3.])
    """
    if len(args) + (to is not None) > 2:
        raise TypeError(f"random_: takes (to) or (from, to), got {len(args)} positions and to.")
    low: Any = _start("random_", 0, named)
    if len(args) == 2:
        low, to = args
    elif len(args) == 1:
        low, to = (low, args[0]) if to is None else (args[0], to)
    high = None if to is None else integer("random_", "to", to)
    return draw("random", input, generator, integer("random_", "from", low), high, fresh=False)
