"""`votive.np`: NumPy's functions, names and rules over votive's tensors, on any device and differentiable.

It is also a namespace of the array-API standard 2024.12.
"""

from __future__ import annotations

import math as _math
from importlib import import_module as _import_module
from types import ModuleType as _Module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import numpy as _numpy

from . import emath as emath
from . import fft as fft
from . import index_tricks as _index_tricks
from . import lib as lib
from . import linalg as linalg
from . import methods as _methods
from . import products as _products
from . import random as random
from . import settings as _settings
from . import ufunc_table as _ufunc_table
from .array import ndarray as ndarray
from .refusals import refuse as _refuse
from .standard import __array_api_version__ as __array_api_version__
from .standard import __array_namespace_info__ as __array_namespace_info__
from .ufunc import ufunc as ufunc

_MODULES = (
    "bits comparing creation element_types functional histograms index_tricks interpolation iterating joining "
    "manipulation nan_functions polynomials products quantiles ranges reductions scans searching sets settings "
    "statistics storing windows"
)


def _public(module: _Module) -> dict[str, _Any]:
    """Functions and classes that a module defines, and other names for them."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
    }


_found: dict[str, _Any] = {}
for _module in _MODULES.split():
    _found |= _public(_import_module(f"{__name__}.{_module}"))
globals().update({k: v for k, v in _found.items() if k not in _settings.INTERNAL})
globals().update(_ufunc_table.UFUNCS)
globals().update(_settings.TYPES)
globals().update(_index_tricks.OBJECTS)
ndindex = _numpy.ndindex
_ufunc_table.finish(_products.matmul)
_methods.install()

e, pi, inf, nan, euler_gamma = _math.e, _math.pi, _math.inf, _math.nan, 0.5772156649015329
newaxis = None
exceptions = _numpy.exceptions
True_, False_ = _numpy.True_, _numpy.False_
__version__ = _numpy.__version__

if _TYPE_CHECKING:

    def __getattr__(name: str) -> _Any: ...

else:

    def __getattr__(name: str) -> _Any:
        if name == "testing":  # NumPy's checks take arrays of votive as they are
            return _import_module("numpy.testing")
        return _refuse(name)
