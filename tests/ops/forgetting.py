"""Takes operators that a test declared out of the tables again."""

from __future__ import annotations

from votive.backends.base import TABLE
from votive.ops.registry import OPS


def forget(name: str) -> None:
    """Remove an operator and its kernels, so that tests which look at all of them do not see it."""
    del OPS[name]
    for key in [k for k in TABLE if k[0] == name]:
        del TABLE[key]
