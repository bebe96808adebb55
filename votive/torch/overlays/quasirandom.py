"""`torch.quasirandom`: Sobol's sequence, points that fill a cube evenly."""

from __future__ import annotations

from functools import cache

import numpy as np

import votive

from ...core import dtype as dt
from ...core.rng import Generator
from ...tensor import Tensor
from ..sobol_numbers import ROWS

__all__ = ["SobolEngine"]


@cache
def _directions(dimension: int, bits: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """For each dimension and bit the number that is added without carry (Bratley and Fox, ACM TOMS 14, 1988)."""
    found = np.zeros((dimension, bits), np.int64)
    found[0] = 1
    for d, (polynomial, *first) in enumerate(ROWS[: dimension - 1], 1):
        degree = len(first)
        row = list(first)
        for i in range(degree, bits):
            new = row[i - degree]
            for k in range(degree):
                if polynomial >> k & 1:
                    new ^= row[i - degree + k] << (degree - k)
            row.append(new)
        found[d] = row[:bits]
    return found << np.arange(bits - 1, -1, -1)


class SobolEngine:
    """Points of Sobol's sequence in `dimension` dimensions, scrambled if asked for.

    Scrambled points differ from torch's for the same seed, since the random stream is votive's. torch goes to 21,201
    dimensions; the table here ends at `MAXDIM`.
    """

    MAXBIT = 30
    MAXDIM = len(ROWS) + 1

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._state = _directions(dimension, self.MAXBIT)
        self._shift = np.zeros(dimension, np.int64)
        if scramble:
            self._scramble()
        self.num_generated = 0

    def _scramble(self) -> None:
        """Multiply by random matrices with ones on the diagonal, then add random digits (Matousek 1998)."""
        generator = Generator()
        generator.manual_seed(self.seed if self.seed is not None else int(votive.randint(1 << 62, ()).item()))
        bits = self.MAXBIT
        digits = votive.randint(2, (self.dimension, bits + 1, bits), generator=generator).numpy()
        weights = 1 << np.arange(bits - 1, -1, -1, dtype=np.int64)
        self._shift = digits[:, bits] @ weights
        lower = np.tril(digits[:, :bits], -1) + np.eye(bits, dtype=np.int64)
        columns = self._state[:, :, None] >> np.arange(bits - 1, -1, -1) & 1  # (dimension, number, digit)
        self._state = np.einsum("dij,dnj->dni", lower, columns) % 2 @ weights

    def _points(self, start: int, n: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        index = np.arange(start, start + n, dtype=np.int64)
        gray = index ^ index >> 1
        found = np.broadcast_to(self._shift, (n, self.dimension)).copy()
        for bit in range(self.MAXBIT):
            found ^= np.where(gray[:, None] >> bit & 1, self._state[:, bit], 0)
        return found

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dt.dtype | None = None) -> Tensor:
        """The next `n` points, (n, dimension)."""
        if self.num_generated + n > 1 << self.MAXBIT:
            raise ValueError(f"SobolEngine: the sequence ends after {1 << self.MAXBIT} points.")
        kind = votive.get_default_dtype() if dtype is None else dtype
        numbers = self._points(self.num_generated, n) / float(1 << self.MAXBIT)
        self.num_generated += n
        result = votive.from_numpy(numbers).to(kind)
        if out is None:
            return result
        out.resize_(result.shape)
        return out.copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dt.dtype | None = None) -> Tensor:
        """The next `2**m` points; all together must be a power of two, where the sequence is balanced."""
        n, total = 1 << m, self.num_generated + (1 << m)
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points "
                f"have been previously generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do "
                "this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out `n` points."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"] + (["scramble=True"] if self.scramble else [])
        parts += [] if self.seed is None else [f"seed={self.seed}"]
        return f"{type(self).__name__}({', '.join(parts)})"
