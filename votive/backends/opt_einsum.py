"""`votive.backends.opt_einsum`: `votive.einsum` finds the order of its products itself, by their sizes, and needs no
package. The switches are kept for programs that set them.
"""

from __future__ import annotations

import contextlib
from typing import Any

from . import switches
from .switches import Switch

STRATEGIES = (
    *("auto", "auto-hq", "greedy", "optimal", "dp"),
    *("branch-1", "branch-2", "branch-all", "random-greedy", "random-greedy-128"),
)


def is_available() -> bool:
    """Whether the package opt_einsum chooses the order of products: no, `votive.einsum` does.

    >>> votive.backends.opt_einsum.is_available()
    False
    """
    return False


def get_opt_einsum() -> None:
    """The package in use: none.

    >>> votive.backends.opt_einsum.get_opt_einsum()
    """
    return None


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[Any, ...]:
    """Set both switches and return what they were.

    >>> votive.backends.opt_einsum.set_flags()
    (False, None)
    """
    return switches.put(__name__, {"enabled": _enabled, "strategy": _strategy})


def flags(enabled: bool | None = None, strategy: str | None = None) -> contextlib.AbstractContextManager[None]:
    """Set the switches for a block.

    >>> with votive.backends.opt_einsum.flags(strategy="greedy"):
    ...     votive.backends.opt_einsum.strategy
    'greedy'
    """
    return switches.switched(__name__, {"enabled": enabled, "strategy": strategy})


switches.install(__name__, {"enabled": Switch(False, (bool,)), "strategy": Switch(None, (*STRATEGIES, type(None)))})
