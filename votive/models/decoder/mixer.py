"""What mixers that keep states in place of keys share. Knows no layer."""

from __future__ import annotations

from votive import nn

from ...tensor import Tensor
from ..attention import AttentionMask, Weights
from ..config import Config
from .attention import Rotate


class StateMixer(nn.Module):
    """A mixer of positions that is called as attention is, whose states a cache keeps.

    >>> votive.models.decoder.mixer.StateMixer().keeps_state
    True
    """

    keeps_state = True

    def start_values(self, config: Config) -> None:
        """Start values of its own parameters, where they are not those of products."""

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        """What is added to the stream; `weights` stays as it is: there are none."""
        raise NotImplementedError(f"{type(self).__name__} says nothing of how it mixes positions.")


class Started(nn.Module):
    """A module with start values of its own.

    >>> isinstance(votive.models.decoder.mixer.Started(), votive.nn.Module)
    True
    """

    def start_values(self, config: Config) -> None:
        """Start values of its own parameters."""
