"""The paths under which torch keeps its modules, for programs that import from there."""

from importlib import import_module as _import_module
from typing import Any as _Any

from ...core.words import words as _words
from . import container as container
from . import lazy as lazy
from . import module as module
from .container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .module import Module

__all__ = [
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
    "container",
    "lazy",
    "module",
]
_PATHS = _words(
    "activation adaptive batchnorm channelshuffle conv distance dropout flatten fold instancenorm linear loss "
    "normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils"
)


def __getattr__(name: str) -> _Any:
    if name in _PATHS:
        return _import_module(f"{__name__}.{name}")
    found = getattr(_import_module("votive.nn"), name, None)
    if isinstance(found, type) and issubclass(found, Module):
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
