"""`votive.backends.mkl`: MKL is not used; matrix products are votive's own kernels (see `votive.config.show()`)."""

from __future__ import annotations

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Whether MKL computes: no.

    >>> votive.backends.mkl.is_available()
    False
    """
    return False


class verbose:
    """MKL's report of its kernels, which is empty because none runs. `votive.explain` says what does.

    >>> with votive.backends.mkl.verbose(votive.backends.mkl.VERBOSE_ON):
    ...     pass
    """

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc: object) -> None:
        return None
