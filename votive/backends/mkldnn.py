"""`votive.backends.mkldnn`: oneDNN is not used, votive's CPU kernels are its own. Its switches are kept for programs
that set them, and there is nothing they could change.
"""

from __future__ import annotations

import contextlib
from typing import Any

from . import switches
from .switches import PRECISIONS, Precision, Switch

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
conv, matmul, rnn = Precision(), Precision(), Precision()


def is_available() -> bool:
    """Whether oneDNN computes: no, the CPU kernels are votive's own.

    >>> votive.backends.mkldnn.is_available()
    False
    """
    return False


def is_acl_available() -> bool:
    """Whether the Arm Compute Library computes: no.

    >>> votive.backends.mkldnn.is_acl_available()
    False
    """
    return False


class verbose:
    """oneDNN's report of its kernels, which is empty because none runs. `votive.explain` says what does.

    >>> with votive.backends.mkldnn.verbose(votive.backends.mkldnn.VERBOSE_ON):
    ...     pass
    """

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
) -> tuple[Any, ...]:
    """Set several switches and return what they were.

    >>> votive.backends.mkldnn.set_flags(_enabled=True)
    (True, False, None, 'none')
    """
    given = {"enabled": _enabled, "deterministic": _deterministic, "allow_tf32": _allow_tf32}
    return switches.put(__name__, {**given, "fp32_precision": _fp32_precision})


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> contextlib.AbstractContextManager[None]:
    """Set the switches for a block.

    >>> with votive.backends.mkldnn.flags(enabled=False):
    ...     votive.backends.mkldnn.enabled
    False
    """
    given = {"enabled": enabled, "deterministic": deterministic, "allow_tf32": allow_tf32}
    return switches.switched(__name__, {**given, "fp32_precision": fp32_precision})


switches.install(
    __name__,
    {
        "enabled": Switch(True, (bool,)),
        "deterministic": Switch(False, (bool,)),
        "allow_tf32": Switch(None, (bool, type(None))),
        "fp32_precision": Switch("none", PRECISIONS),
    },
)
