"""Containers, under the path where torch keeps them."""

from ..containers import Container, ModuleDict, ModuleList, Sequential
from ..parameter_containers import ParameterDict, ParameterList

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
