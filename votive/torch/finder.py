"""The import hook: finds `torch`, `torchvision`, `torchaudio` and what lies below, and answers for their metadata."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .alias import Alias
from .paths import exists, has_module, overlay
from .refusals import refusal
from .version import VERSION

ROOTS = {"torch": VERSION, "torchvision": "0.28.0", "torchaudio": "2.11.0"}


class Loader(importlib.abc.Loader):
    """Makes the module objects; what they show is looked up when they are asked."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Alias(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass

    def get_source(self, name: str) -> None:
        return None

    def is_package(self, name: str) -> bool:
        return True


class _Metadata(importlib.metadata.Distribution):
    """The metadata of a package that is not installed, but stands for one."""

    def __init__(self, name: str, version: str) -> None:
        self._name, self._version = name, version

    def read_text(self, filename: str) -> str | None:
        if filename in ("METADATA", "PKG-INFO"):
            return f"Metadata-Version: 2.1\nName: {self._name}\nVersion: {self._version}\n"
        return f"{self._name}\n" if filename == "top_level.txt" else None

    def locate_file(self, path: Any) -> Any:
        import pathlib

        return pathlib.Path(__file__).parent / path


class Finder(importlib.metadata.DistributionFinder):
    """Stands first among the finders while the alias is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in ROOTS:
            return None
        if not exists(fullname):
            refused = refusal(fullname)
            # An ImportError that is none of "not found" reaches a program that writes `from torch.a import b`.
            if refused is not None and not refused.stub:
                raise ImportError(refused.text(fullname), name=fullname)
            return None
        front = overlay(fullname)
        file = getattr(sys.modules.get(front), "__file__", None)
        if file is None and has_module(front):
            found = importlib.util.find_spec(front)
            file = found.origin if found is not None else None
        spec = importlib.machinery.ModuleSpec(fullname, Loader(), origin=file or __file__, is_package=True)
        # No folder is searched: this finder answers for all that lies below.
        spec.submodule_search_locations = []
        spec.has_location = True
        return spec

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterable[importlib.metadata.Distribution]:
        wanted = None if context is None else context.name
        for name, version in ROOTS.items():
            if wanted is None or wanted.lower() == name:
                yield _Metadata(name, version)

    def invalidate_caches(self) -> None:
        pass


_FINDER = Finder()


def _ours() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in ROOTS]


def installed() -> bool:
    """Whether `import torch` leads to votive now.

    >>> votive.torch.installed()
    False
    """
    return _FINDER in sys.meta_path


def install() -> None:
    """Let `import torch`, `torchvision` and `torchaudio` lead to votive from now on.

    >>> votive.torch.install()
    >>> import torch
    >>> torch.Tensor is votive.Tensor
    True
    >>> votive.torch.uninstall()
    """
    if installed():
        return
    others = sorted(name for name in _ours() if "." not in name and sys.modules[name] is not None)
    if others:
        raise RuntimeError(
            f"{' and '.join(others)} {'is' if len(others) == 1 else 'are'} imported already, and a program cannot have "
            "both: call votive.torch.install() before anything imports it, or start with python -m votive.torch."
        )
    from . import spelling

    sys.meta_path.insert(0, _FINDER)
    spelling.enter()


def uninstall() -> None:
    """Take the alias away: `import torch` finds what it found before. What a program already imported keeps working."""
    if not installed():
        return
    from . import spelling

    sys.meta_path.remove(_FINDER)
    spelling.leave()
    for name in _ours():
        if isinstance(sys.modules[name], Alias):
            del sys.modules[name]


@contextmanager
def as_torch() -> Iterator[None]:
    """Let `import torch` lead to votive inside a `with` block.

    >>> with votive.torch.as_torch():
    ...     import torch
    ...     y = torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
    >>> y
    tensor([0., 2.])
    """
    before = installed()
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()
