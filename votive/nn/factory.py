"""Arguments that tell a module where and how to make its tensors."""

from __future__ import annotations

from typing import Any, TypedDict

from ..core import dtype as dt
from ..core.device import DeviceLike

_NAMES = ("device", "dtype", "memory_format")


class FactoryKwargs(TypedDict):
    """Where the tensors of a layer are made, and of which type.

    >>> from votive.nn.factory import FactoryKwargs
    >>> votive.zeros(2, **FactoryKwargs(device="cpu", dtype=votive.int8))
    tensor([0, 0], dtype=votive.int8)
    """

    device: DeviceLike
    dtype: dt.dtype | None


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments for making tensors, given directly or in a `factory_kwargs` dictionary.

    >>> votive.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": votive.float16}})
    {'dtype': votive.float16, 'device': 'cpu'}
    """
    given = kwargs or {}
    unknown = sorted(set(given) - {*_NAMES, "factory_kwargs"})
    if unknown:
        raise TypeError(f"unexpected kwargs {', '.join(unknown)}; known: {', '.join(_NAMES)}.")
    nested = given.get("factory_kwargs", {})
    direct = {name: given[name] for name in _NAMES if name in given}
    for name in nested.keys() & direct.keys():
        raise TypeError(f"{name} is given twice, directly and in factory_kwargs.")
    return {**nested, **direct}
