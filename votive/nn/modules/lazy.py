"""Lazy modules, under the path where torch keeps them."""

from ..lazy import LazyModuleMixin

__all__ = ["LazyModuleMixin"]
