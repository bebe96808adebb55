"""`votive.backends.mps`: there is no backend for Apple's GPUs."""

from __future__ import annotations

import platform


def is_built() -> bool:
    """Whether votive was built with a backend for Apple's GPUs: no.

    >>> votive.backends.mps.is_built()
    False
    """
    return False


def is_available() -> bool:
    """Whether tensors can be placed on "mps": no.

    >>> votive.backends.mps.is_available()
    False
    """
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether this is at least that version of macOS.

    >>> votive.backends.mps.is_macos_or_newer(99, 0)
    False
    """
    found = platform.mac_ver()[0].split(".")
    return bool(found[0]) and tuple(int(n) for n in (*found, "0")[:2]) >= (major, minor)


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether this is macOS 13 or later.

    >>> votive.backends.mps.is_macos13_or_newer(99)
    False
    """
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """The name of Apple's GPU: there is no backend that could ask for it."""
    raise RuntimeError("votive has no backend for Apple's GPUs; use device 'cpu' or 'cuda'.")


def get_core_count() -> int:
    """The number of cores of Apple's GPU: there is no backend that could ask for it."""
    raise RuntimeError("votive has no backend for Apple's GPUs; use device 'cpu' or 'cuda'.")
