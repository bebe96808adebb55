"""The optional packages behind files and soxr, imported when first needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def _package(name: str, op: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{op}: needs the package {name}; install it with `pip install 'votive[audio]'`.") from error


def soundfile(op: str) -> ModuleType:
    """The package soundfile, for the function named `op`."""
    return _package("soundfile", op)


def soxr(op: str) -> ModuleType:
    """The package soxr, for the function named `op`."""
    return _package("soxr", op)
