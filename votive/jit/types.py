"""Whether a value has a type with parameters, such as `list[int]`, which Python's own `isinstance` does not take."""

from __future__ import annotations

import builtins
import types
import typing
from typing import Any


def isinstance(obj: object, target_type: Any) -> bool:
    """Whether a value, and what it contains, has a type, or one of several: `List[int]`, `Dict[str, Tensor]`, …

    >>> votive.jit.isinstance([1, 2], list[int]), votive.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, one) for one in target_type)
    if target_type is Any:
        return True
    if target_type is None:
        return obj is None
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, type(None) if one is None else one) for one in inner)
    if not builtins.isinstance(obj, origin):
        return False
    if not inner:
        return True
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(isinstance(x, inner[0]) for x in obj)
        return len(obj) == len(inner) and all(isinstance(x, t) for x, t in zip(obj, inner, strict=True))
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    return all(isinstance(x, inner[0]) for x in obj)
