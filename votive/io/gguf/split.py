"""GGUF models in several files: `name-00001-of-00003.gguf` and its siblings, seen as one.

Each part is a GGUF file with tensors of its own; the metadata is that of the first. Knows names of
files and their `split.*` keys.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ...serialization.container import FileFormatError
from ..mapped import Array
from ..source import NestedSource, TensorInfo, WeightSource
from .file import GGUFFile
from .types import TensorType
from .values import Value

_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")


def open(path: str | os.PathLike[str]) -> GGUFFile | GGUFParts:
    """Open a GGUF file; of a model in several files, any part opens all.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/small.gguf"
    >>> votive.io.gguf.write(path, {"w": votive.ones(2)}, {})
    >>> votive.io.gguf.open(path).names()
    ['w']
    """
    file = GGUFFile(path)
    count = file.metadata.get("split.count", 1) if "split.count" in file.header.fields else 1
    if count == 1:
        return file
    return GGUFParts(file, count)


def first_parts(paths: Iterable[Path]) -> list[Path]:
    """The files without those that are later parts of one of them.

    >>> from votive.io.gguf.split import first_parts
    >>> from pathlib import Path
    >>> names = ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "b.gguf"]
    >>> [p.name for p in first_parts(map(Path, names))]
    ['a-00001-of-00002.gguf', 'b.gguf']
    """
    given = list(paths)
    known = {p.name for p in given}

    def later(path: Path) -> bool:
        found = _NAME.fullmatch(path.name)
        if found is None or found[2] == "00001":
            return False
        return f"{found[1]}-00001-of-{found[3]}.gguf" in known

    return [p for p in given if not later(p)]


class GGUFParts(NestedSource[GGUFFile]):
    """All parts of a split GGUF model as one source of weights; see `open`."""

    def __init__(self, file: GGUFFile, count: int) -> None:
        self.path = file.path
        self.files = self._siblings(file, count)
        self.metadata = self.files[0].metadata
        self.entries: dict[str, GGUFFile] = {}
        for part in self.files:
            for name in part.names():
                if name in self.entries:
                    raise FileFormatError(
                        f"{part.path.name}: the tensor {name!r} is in {self.entries[name].path.name} as well."
                    )
                self.entries[name] = part
        total = self.metadata.get("split.tensors.count", len(self.entries))
        if total != len(self.entries):
            raise FileFormatError(
                f"{self.path.name}: the parts should hold {total} tensors together; there are {len(self.entries)}."
            )

    def _siblings(self, file: GGUFFile, count: int) -> list[GGUFFile]:
        found = _NAME.fullmatch(file.path.name)
        if found is None or int(found[3]) != count:
            raise FileFormatError(
                f"{file.path.name}: it is part of {count!r} files, and its name does not say so; "
                "parts are called name-00001-of-00003.gguf."
            )
        paths = [file.path.with_name(f"{found[1]}-{i + 1:05d}-of-{found[3]}.gguf") for i in range(count)]
        # Before any is opened, so that a wrong count costs nothing.
        missing = [p.name for p in paths if not p.is_file()]
        if missing:
            raise FileFormatError(f"{file.path.name}: {len(missing)} of {count} parts are missing: {missing[0]} …")
        file.close()
        parts = [GGUFFile(p) for p in paths]
        for i, part in enumerate(parts):
            if part.metadata.get("split.no") != i or part.metadata.get("split.count") != count:
                raise FileFormatError(
                    f"{part.path.name}: it says that it is part {part.metadata.get('split.no')} "
                    f"of {part.metadata.get('split.count')}, counted from 0."
                )
        return parts

    def typed_metadata(self) -> dict[str, Value]:
        """The values of the first part with their types, but for those about the split."""
        found = self.files[0].typed_metadata()
        return {key: value for key, value in found.items() if not key.startswith("split.")}

    @property
    def tensors(self) -> list[TensorInfo]:
        """Descriptions of all tensors."""
        return [self.info(name) for name in self.names()]

    def _inner(self, name: str) -> tuple[WeightSource, str]:
        return self._entry(name), name

    def raw(self, name: str) -> Array:
        """The bytes of a tensor as they are stored."""
        return self._entry(name).raw(name)

    def stored_type(self, name: str) -> TensorType:
        return self._entry(name).stored_type(name)

    def stored_bytes(self, name: str) -> Array:
        return self._entry(name).stored_bytes(name)

    def close(self) -> None:
        for part in self.files:
            part.close()
