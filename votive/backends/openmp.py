"""`votive.backends.openmp`: votive has its own pool of threads; see `votive.set_num_threads`."""

from __future__ import annotations


def is_available() -> bool:
    """Whether threads come from OpenMP: no, from votive's own pool, which reads `OMP_NUM_THREADS` like it.

    >>> votive.backends.openmp.is_available()
    False
    """
    return False
