"""Random inputs for measurements: parameters drawn from distributions, tensors whose sizes they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import votive

from .....core import dtype as dt
from .....tensor import Tensor

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]
_LARGEST = 1 << 62


class ParameterAlias:
    """Among the values of a parameter: the value of another one."""

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number, or something from a table, drawn anew for each input.

    `distribution` is "uniform" or "loguniform" from `minval` to `maxval`, or a table {value: probability}. `strict`
    asks that the value fits the type of the bounds; without it whole bounds round.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | dict[Any, float] | None = None,
        strict: bool = False,
    ) -> None:
        self._name, self.strict = name, strict
        if distribution is None:
            raise ValueError("Must specify distribution.")
        if isinstance(distribution, dict):
            if minval is not None or maxval is not None:
                raise ValueError("Bounds and a table of values exclude each other.")
            total = sum(distribution.values())
            if abs(total - 1) > 1e-6 or min(distribution.values()) < 0:
                raise ValueError(f"Probabilities must not be negative and add up to 1, got {distribution}.")
        elif distribution in ("uniform", "loguniform"):
            if minval is None or maxval is None or minval > maxval or (distribution == "loguniform" and minval <= 0):
                raise ValueError(f"{distribution} needs bounds in order, got {minval} and {maxval}.")
        else:
            raise ValueError(f"Unknown distribution: {distribution!r}")
        self._minval, self._maxval, self._distribution = minval, maxval, distribution

    @property
    def name(self) -> str:
        """How it is called."""
        return self._name

    def sample(self, state: np.random.RandomState) -> Any:
        """One value."""
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            weights = np.array(list(self._distribution.values()))
            return values[int(state.choice(len(values), p=weights / weights.sum()))]
        low, high = self._minval, self._maxval
        assert low is not None
        assert high is not None
        if self._distribution == "uniform":
            if isinstance(low, int) and isinstance(high, int):
                return int(state.randint(low, high + 1))
            return float(state.uniform(low, high))
        drawn = math.exp(state.uniform(math.log(low), math.log(high)))
        if isinstance(low, int) and isinstance(high, int):
            return min(max(round(drawn), low), high)
        return drawn


class FuzzedTensor:
    """A tensor whose sizes and steps are parameters or numbers; sometimes it is not contiguous."""

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        steps: tuple[str | int, ...] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: dt.dtype = dt.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        self._name, self._size, self._steps = name, size, steps
        self._contiguous, self._min, self._max = probability_contiguous, min_elements, max_elements
        self._bytes, self._dims, self._roll = max_allocation_bytes, dim_parameter, roll_parameter
        self._dtype, self._cuda = dtype, cuda
        self._make = self.default_tensor_constructor if tensor_constructor is None else tensor_constructor

    @property
    def name(self) -> str:
        """How it is called."""
        return self._name

    @staticmethod
    def default_tensor_constructor(size: tuple[int, ...], dtype: dt.dtype, **kwargs: Any) -> Tensor:
        """Normal numbers, or whole numbers from 1 to 126. Parameters that only others need are left aside."""
        device = kwargs.get("device", "cpu")
        if dtype.is_floating_point or dtype.is_complex:
            return votive.rand(size, dtype=dtype, device=device)
        return votive.randint(1, 127, size, dtype=dtype, device=device)

    def _shape(self, params: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        dim = len(self._size) if self._dims is None else params[self._dims]
        size = tuple(int(params[s] if isinstance(s, str) else s) for s in self._size)[:dim]
        steps = tuple(int(params[s] if isinstance(s, str) else s) for s in self._steps or ())[:dim]
        steps += (1,) * (dim - len(steps))
        return size, steps, tuple(a * b for a, b in zip(size, steps, strict=True))

    def satisfies_constraints(self, params: dict[str, Any]) -> bool:
        """Whether a tensor of these parameters has a size that was asked for."""
        size, _, allocated = self._shape(params)
        count = math.prod(size)
        room = math.prod(allocated) * self._dtype.itemsize
        low, high = self._min or 0, _LARGEST if self._max is None else self._max
        return low <= count <= high and room <= (_LARGEST if self._bytes is None else self._bytes)

    def _sample(self, params: dict[str, Any], state: np.random.RandomState) -> tuple[Tensor, dict[str, Any]]:
        size, steps, allocated = self._shape(params)
        given = {**params, "device": "cuda" if self._cuda else "cpu"}
        raw = self._make(size=allocated, dtype=self._dtype, **given)
        order = np.arange(len(size))
        if len(size) > 1 and state.rand() > self._contiguous:
            order = np.arange(len(size))[::-1] if len(size) == 2 else state.permutation(order)
            raw = raw.permute(*[int(d) for d in order]).contiguous().permute(*[int(d) for d in np.argsort(order)])
        tensor = raw[tuple(slice(0, n * s, s) for n, s in zip(size, steps, strict=True))]
        about = {
            "numel": int(tensor.numel()), "shape": tuple(tensor.shape), "steps": steps, "strides": tensor.stride(),
            "order": tuple(int(d) for d in order), "is_contiguous": tensor.is_contiguous(), "dtype": self._dtype,
        }  # fmt: skip
        return tensor, about


class Fuzzer:
    """Draws parameters until they fit all constraints, and makes the tensors."""

    def __init__(
        self,
        parameters: Iterable[FuzzedParameter | list[FuzzedParameter]],
        tensors: Iterable[Any],
        constraints: list[Callable[..., bool]] | None = None,
        seed: int | None = None,
    ) -> None:
        self._seed = int(np.random.RandomState().randint(0, (1 << 32) - 1, dtype=np.int64)) if seed is None else seed
        self._parameters: list[FuzzedParameter] = _flat(parameters)
        self._tensors: list[Any] = _flat(tensors)
        self._constraints = constraints or []
        names = [x.name for x in (*self._parameters, *self._tensors)]
        repeated = sorted({n for n in names if names.count(n) > 1})
        if repeated:
            raise ValueError(f"Parameters and tensors share names: {repeated}")
        self._rejections = self._generated = 0

    def take(self, n: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
        """`n` inputs: tensors by name, what they are like, parameters. The same seed gives the same ones."""
        state = np.random.RandomState(self._seed)
        for _ in range(n):
            params = self._drawn(state)
            made = {t.name: t._sample(params, state) for t in self._tensors}
            told = {name: about for name, (_, about) in made.items()}
            yield {name: tensor for name, (tensor, _) in made.items()}, told, params

    @property
    def rejection_rate(self) -> float:
        """The share of draws that did not fit."""
        return self._rejections / self._generated if self._generated else 0.0

    def _drawn(self, state: np.random.RandomState) -> dict[str, Any]:
        candidate: dict[str, Any] = {}
        for _ in range(1000):
            candidate = self._resolved({p.name: p.sample(state) for p in self._parameters})
            self._generated += 1
            fits = all(f(**candidate) for f in self._constraints)
            if fits and all(t.satisfies_constraints(candidate) for t in self._tensors):
                return candidate
            self._rejections += 1
        raise ValueError("Failed to generate a set of valid parameters.")

    @staticmethod
    def _resolved(params: dict[str, Any]) -> dict[str, Any]:
        found = dict(params)
        for name in params:
            seen: set[str] = set()
            while isinstance(found[name], ParameterAlias):
                target = found[name].alias_to
                if target in seen or target not in params:
                    raise ValueError(f"The alias of {name} leads nowhere: {target}.")
                seen.add(target)
                found[name] = params[target]
        return found


def _flat(values: Iterable[Any]) -> list[Any]:
    nested = (v if isinstance(v, (list, tuple)) else [v] for v in values)
    return [x for group in nested for x in group]
