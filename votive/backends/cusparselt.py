"""`votive.backends.cusparselt`: NVIDIA's cuSPARSELt is not used."""

from __future__ import annotations


def is_available() -> bool:
    """Whether NVIDIA's cuSPARSELt computes: no.

    >>> votive.backends.cusparselt.is_available()
    False
    """
    return False


def version() -> int | None:
    """The version of the library: there is none.

    >>> votive.backends.cusparselt.version()
    """
    return None


def get_max_alg_id() -> int | None:
    """The number of its algorithms: there are none.

    >>> votive.backends.cusparselt.get_max_alg_id()
    """
    return None
