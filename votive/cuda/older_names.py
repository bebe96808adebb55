"""Names that torch keeps for older programs: they warn and do what their successors do."""

from __future__ import annotations

import warnings

from ..core.device import DeviceLike
from . import memory


def _renamed(name: str, newer: str) -> None:
    warnings.warn(f"votive.cuda.{name} has been renamed to votive.cuda.{newer}.", FutureWarning, stacklevel=3)


def memory_cached(device: DeviceLike = None) -> int:
    """`memory_reserved`.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     votive.cuda.memory_cached() == votive.cuda.memory_reserved()
    True
    """
    _renamed("memory_cached", "memory_reserved")
    return memory.memory_reserved(device)


def max_memory_cached(device: DeviceLike = None) -> int:
    """`max_memory_reserved`.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     votive.cuda.max_memory_cached() == votive.cuda.max_memory_reserved()
    True
    """
    _renamed("max_memory_cached", "max_memory_reserved")
    return memory.max_memory_reserved(device)


def reset_max_memory_allocated(device: DeviceLike = None) -> None:
    """`reset_peak_memory_stats`, which lets all peaks begin anew.

    >>> import warnings
    >>> if votive.cuda.is_available():
    ...     with warnings.catch_warnings():
    ...         warnings.simplefilter("ignore")
    ...         votive.cuda.reset_max_memory_allocated()
    """
    _renamed("reset_max_memory_allocated", "reset_peak_memory_stats")
    memory.reset_peak_memory_stats(device)


def reset_max_memory_cached(device: DeviceLike = None) -> None:
    """`reset_peak_memory_stats`, which lets all peaks begin anew.

    >>> import warnings
    >>> if votive.cuda.is_available():
    ...     with warnings.catch_warnings():
    ...         warnings.simplefilter("ignore")
    ...         votive.cuda.reset_max_memory_cached()
    """
    _renamed("reset_max_memory_cached", "reset_peak_memory_stats")
    memory.reset_peak_memory_stats(device)
