"""What the functions that all ranks call have in common: who calls, which rank is meant, what must agree."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..tensor import Tensor
from .buffers import agreement
from .check import Call, line_of_caller
from .group import ProcessGroup
from .world import is_member, needed

F = TypeVar("F", bound=Callable[..., Any])


def of_members(fn: F) -> F:
    """Ranks that are not in the group are told so, and do nothing.

    >>> votive.distributed.calls.of_members(votive.distributed.barrier).__name__
    'barrier'
    """
    at = list(inspect.signature(fn).parameters).index("group")

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        needed()
        if not is_member(args[at] if at < len(args) else kwargs.get("group")):
            warnings.warn(f"Running {fn.__name__} on a rank that does not belong to the given group.", stacklevel=2)
            return None
        return fn(*args, **kwargs)

    return call  # type: ignore[return-value]


def described(op: str, tensors: Sequence[Tensor], *more: Any) -> tuple[Call, int]:
    """A call with these tensors, and its bytes."""
    agrees, shown, nbytes = agreement(tensors, *more)
    return Call(op, agrees, shown, line_of_caller()), nbytes


def root_of(group: ProcessGroup, given: int | None, in_group: int | None, name: str, default: int | None = 0) -> int:
    """The rank in the group that `src=`, `dst=` or their `group_` form means."""
    if given is not None and in_group is not None:
        raise ValueError(f"Can't specify both {name} and group_{name}.")
    if in_group is not None:
        if not 0 <= in_group < group.size():
            raise ValueError(f"group_{name}={in_group} is not among the group's ranks 0..{group.size() - 1}.")
        return in_group
    if given is None:
        if default is None:
            raise ValueError(f"Must specify {name} or group_{name}.")
        given = group.global_rank(default)
    return group.group_rank(int(given), name)


def check_same(what: str, tensors: Sequence[Tensor], like: Tensor) -> None:
    """Raise unless tensors have the type and the count of another."""
    for t in tensors:
        if t.dtype != like.dtype:
            raise ValueError(f"{what}: tensors must have one type, got {like.dtype} and {t.dtype}.")
        if t.numel() != like.numel():
            raise ValueError(f"{what}: tensors must have one size, got {tuple(like.shape)} and {tuple(t.shape)}.")
