"""The paths under which torch keeps its modules, for programs that import from there."""

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
