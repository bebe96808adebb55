"""Making a module without filling its parameters."""

from __future__ import annotations

import inspect
from typing import Any

from .. import init
from ..module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """A module whose start values are left undefined, for those who load or set them anyway.

    Its constructor must take `device` and fill parameters by functions of `nn.init` only.

    >>> votive.nn.utils.skip_init(votive.nn.Linear, 2, 3).weight.shape
    votive.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with init.skipped():
        return module_cls(*args, **kwargs)
