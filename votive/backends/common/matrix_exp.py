"""The Padé approximant of the exponential, which matrices are put into."""

from __future__ import annotations

import math

# Its degree, and the 1-norm up to which it is exact to rounding in float64.
# Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), table 2.3.
DEGREE = 13
LIMIT = 5.371920351148152
# Of its numerator, lowest power first; the denominator is the numerator at -A.
WEIGHTS = tuple(
    math.factorial(2 * DEGREE - j) // (math.factorial(DEGREE - j) * math.factorial(j)) for j in range(DEGREE + 1)
)
