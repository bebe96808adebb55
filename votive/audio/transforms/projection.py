"""Spectra times a bank of filters. Knows matrices, not what the filters are for."""

from __future__ import annotations

import numpy as np

import votive

from ...tensor import Tensor

_GROUPS = 8
# Multiplications below which one product is faster than several.
_WORTH = 1 << 20


def project(specgram: Tensor, matrix: Tensor) -> Tensor:
    """(..., frequency, frame) times (frequency, filter): (..., filter, frame)."""
    return votive.matmul(specgram.transpose(-1, -2), matrix).transpose(-1, -2)


class BandedProjection:
    """`project` for filters that are zero nearly everywhere.

    Neighbouring filters are multiplied together, with those frequencies alone that one of them
    hears: a quarter of the work or less for mel filters, at the same result.

    >>> from votive.audio.transforms.projection import BandedProjection
    >>> BandedProjection()(votive.ones(3, 2), votive.eye(3)).shape
    votive.Size([3, 2])
    """

    def __init__(self) -> None:
        self._seen: tuple[Tensor, int] | None = None
        self._parts: list[tuple[int, int, Tensor]] = []

    def __call__(self, specgram: Tensor, bank: Tensor) -> Tensor:
        recorded = votive.is_grad_enabled() and (specgram.requires_grad or bank.requires_grad)
        # Slices of a recorded spectrogram would send back a whole gradient each.
        if recorded or specgram.numel() * bank.shape[-1] < _WORTH:
            return project(specgram, bank)
        frames = specgram.transpose(-1, -2)
        products = [frames[..., low:high] @ part for low, high, part in self._of(bank)]
        return votive.cat(products, -1).transpose(-1, -2)

    def _of(self, bank: Tensor) -> list[tuple[int, int, Tensor]]:
        """First and last frequency of each group of filters, and its part of the bank."""
        if self._seen is None or self._seen[0] is not bank or self._seen[1] != bank._version:
            size = -(-bank.shape[1] // _GROUPS)
            heard = (bank != 0).cpu().numpy()
            self._parts = []
            for first in range(0, bank.shape[1], size):
                rows = np.flatnonzero(heard[:, first : first + size].any(1))
                low, high = (int(rows[0]), int(rows[-1]) + 1) if rows.size else (0, 1)
                self._parts.append((low, high, bank[low:high, first : first + size].contiguous()))
            self._seen = bank, bank._version
        return self._parts
