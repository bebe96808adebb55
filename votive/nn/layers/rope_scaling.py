"""Frequencies of rotary embeddings and their stretching to longer texts. NumPy only; no tensors.

Each rule takes the width, the base and the length trained for, and gives the frequency of each pair
of features and a factor for the attention. The keys of a rule are those of model configurations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np

Rule = Callable[..., tuple[np.ndarray, float]]


def plain(dim: int, base: float, kind: Any) -> np.ndarray:
    """`base ** (-2 i / dim)`: Su et al. 2021, arXiv:2104.09864, section 3.2.2."""
    exponents = np.arange(0, dim, 2, dtype=kind) / kind(dim)
    return (1 / np.power(kind(base), exponents)).astype(kind)


def default(dim: int, base: float, trained: int, length: int, kind: Any) -> Any:
    """No stretching."""
    return plain(dim, base, kind), 1.0


def linear(dim: int, base: float, trained: int, length: int, kind: Any, *, factor: float) -> Any:
    """All positions divided by `factor`: Chen et al. 2023, arXiv:2306.15595."""
    return plain(dim, base, kind) / kind(factor), 1.0


def dynamic(dim: int, base: float, trained: int, length: int, kind: Any, *, factor: float) -> Any:
    """A larger base once a text is longer than those trained on ("dynamic NTK", bloc97 2023)."""
    stretch = factor * max(length, trained) / trained - (factor - 1)
    return plain(dim, base * stretch ** (dim / (dim - 2)), kind), 1.0


def llama3(
    dim: int,
    base: float,
    trained: int,
    length: int,
    kind: Any,
    *,
    factor: float,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
    original_max_position_embeddings: int | None = None,
) -> Any:
    """Slow turns divided by `factor`, fast ones kept, a ramp between: as in Llama 3.1."""
    original = original_max_position_embeddings or trained
    if low_freq_factor >= high_freq_factor:
        raise ValueError(
            "RotaryEmbedding: low_freq_factor must be below high_freq_factor, "
            f"got {low_freq_factor} and {high_freq_factor}."
        )
    frequencies = plain(dim, base, kind)
    turns = original * frequencies / (2 * math.pi)  # within the length trained for
    kept = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor)
    kept = np.clip(kept, 0, 1)
    return ((1 - kept) * frequencies / factor + kept * frequencies).astype(kind), 1.0


def yarn(
    dim: int,
    base: float,
    trained: int,
    length: int,
    kind: Any,
    *,
    factor: float,
    original_max_position_embeddings: int | None = None,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    attention_factor: float | None = None,
    mscale: float | None = None,
    mscale_all_dim: float | None = None,
    truncate: bool = True,
) -> Any:
    """Like llama3 with the ramp over pairs: Peng et al. 2023, arXiv:2309.00071, section 3.2."""
    original = original_max_position_embeddings or trained

    def pair_turning(turns: float) -> float:
        """Which pair turns so many times within the length trained for."""
        return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair_turning(beta_fast), pair_turning(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    # A ramp of no width would divide by zero.
    width = (high - low) or 0.001
    stretched = np.clip((np.arange(dim // 2, dtype=kind) - low) / width, 0, 1)
    frequencies = plain(dim, base, kind)
    frequencies = frequencies / factor * stretched + frequencies * (1 - stretched)
    if attention_factor is None:
        if mscale and mscale_all_dim:
            attention_factor = _warmth(factor, mscale) / _warmth(factor, mscale_all_dim)
        else:
            attention_factor = _warmth(factor, 1.0)
    return frequencies.astype(kind), attention_factor


def longrope(
    dim: int,
    base: float,
    trained: int,
    length: int,
    kind: Any,
    *,
    short_factor: Any,
    long_factor: Any,
    original_max_position_embeddings: int | None = None,
    factor: float | None = None,
    attention_factor: float | None = None,
    short_mscale: float | None = None,
    long_mscale: float | None = None,
) -> Any:
    """A divisor for each pair, others beyond the original length: arXiv:2402.13753.

    With the two `mscale`s, as Phi-3.5's mixtures have them, it is the factor of the attention that changes there
    instead.
    """
    original = original_max_position_embeddings or trained
    far = length > original
    if short_mscale is not None and long_mscale is not None:
        attention_factor, far = long_mscale if far else short_mscale, False
    divisors = np.asarray(long_factor if far else short_factor, kind)
    if divisors.shape != (dim // 2,):
        raise ValueError(
            f"RotaryEmbedding: longrope needs {dim // 2} factors, one for each pair of features, "
            f"got {divisors.shape[0] if divisors.ndim else divisors}."
        )
    if attention_factor is None:
        stretch = trained / original if factor is None else factor
        warm = math.sqrt(1 + math.log(stretch) / math.log(original)) if stretch > 1 else 1.0
        attention_factor = warm
    return (plain(dim, base, kind) / divisors).astype(kind), attention_factor


# Options that may be absent and are then said to be None.
_MAYBE = ("original_max_position_embeddings", "attention_factor", "mscale", "mscale_all_dim")


def check_options(op: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that is no number to stretch by, with its name.

    >>> from votive.nn.layers.rope_scaling import check_options
    >>> check_options("RotaryEmbedding", {"factor": -1.0})
    Traceback (most recent call last):
    ValueError: RotaryEmbedding: factor must be a finite number above 0, got -1.0.
    """
    kind = options.get("rope_type", options.get("type"))
    for name, value in options.items():
        if name in ("rope_type", "type", "truncate", "finetuned"):
            continue
        if value is None and (name in _MAYBE or (name == "factor" and kind == "longrope")):
            continue
        several = name in ("short_factor", "long_factor")
        if several and not isinstance(value, list | tuple | np.ndarray):
            raise ValueError(f"{op}: {name} must be a list of numbers, got {value!r}.")
        for number in value if several else [value]:
            real = isinstance(number, Real) and not isinstance(number, bool)
            least = 0 if name.startswith("mscale") else np.nextafter(0, 1)
            if not real or not least <= number < math.inf:
                above = "of 0 or more" if name.startswith("mscale") else "above 0"
                raise ValueError(f"{op}: {name} must be a finite number {above}, got {number!r}.")


def _warmth(factor: float, weight: float) -> float:
    """`0.1 ln(factor) + 1`, the fit of equation 22 of the same paper."""
    return 0.1 * weight * math.log(factor) + 1 if factor > 1 else 1.0


RULES: dict[str, Rule] = {
    "default": default,
    "linear": linear,
    "dynamic": dynamic,
    "llama3": llama3,
    "yarn": yarn,
    "longrope": longrope,
}
