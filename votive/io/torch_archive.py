"""Where things lie in torch's checkpoints, new and old. Knows the two layouts, builds no tensor.

New files are zip archives with `data.pkl` and one member per storage; older ones a sequence of
pickles followed by the storages. What may stand in the pickles is told by `torch_parts.py`.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..serialization.container import FileFormatError
from . import torch_parts as parts
from .mapped import MappedFile
from .pickle_machine import Machine
from .pickle_stack import UnsafeFileError
from .zip_records import records

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


class Checkpoint:
    """The parsed file: an object made of plain values and references, and where storages lie."""

    def __init__(self, path: str | os.PathLike[str] | None, file: IO[bytes]) -> None:
        self.label = f"load: {Path(path).name if path is not None else 'the file'}"
        self.swap = False
        self.jit = False
        self.mapped = None if path is None else MappedFile(path)
        self.whole = b"" if path is not None else file.read()
        self.size = self.mapped.size if self.mapped else len(self.whole)
        self.where: dict[str, tuple[int, int]] = {}
        try:
            head = self.read(0, min(512, self.size))
            if head[:4] == b"PK\x03\x04":
                self.root = self._zip(file if path is not None else io.BytesIO(self.whole))
            elif head[257:262] == b"ustar" or head[:10] == b"sys_info\0\0":
                raise FileFormatError("a tar archive of torch before 0.1.10; load it with torch and save it again.")
            else:
                self.root = self._legacy()
        except UnsafeFileError as e:
            raise UnsafeFileError(f"{self.label}: {e}") from None
        except FileFormatError as e:
            raise FileFormatError(f"{self.label}: {e}") from None

    def view(self, begin: int, nbytes: int) -> np.ndarray[Any, Any]:
        """Bytes of the file, not to be written to."""
        if self.mapped is not None:
            return self.mapped.peek(begin, nbytes)
        return np.frombuffer(self.whole, np.uint8, nbytes, begin)

    def read(self, begin: int, nbytes: int) -> bytes:
        return self.view(begin, nbytes).tobytes() if nbytes else b""

    # --- the two layouts ------------------------------------------------------------------------

    def _zip(self, file: IO[bytes]) -> Any:
        found = records(file, "zip")
        tops = [n for n in found if n.endswith("/data.pkl") and n.count("/") == 1]
        if len(tops) != 1:
            raise FileFormatError("a zip archive without data.pkl; it is not a torch checkpoint.")
        top = tops[0][: -len("data.pkl")]
        for name, r in found.items():
            if not r.plain and (name == tops[0] or name.startswith(f"{top}data/")):
                raise FileFormatError(
                    f"{name!r} is compressed, which torch never does; unpack it and pack it without compression."
                )
            if name.startswith(f"{top}data/"):
                self.where[name[len(top) + 5 :]] = (r.begin, r.size)
        order = found.get(f"{top}byteorder")
        if order is not None:
            told = self.read(order.begin, min(order.size, 16)) if order.plain else b""
            if told not in (b"little", b"big"):
                raise FileFormatError(f"its byte order {told!r} is unknown.")
            self.swap = told == b"big"
        self.jit = f"{top}constants.pkl" in found
        record = found[tops[0]]
        data = self.read(record.begin, record.size)
        return Machine(data, 0, self._find, self._storage).run()

    def _legacy(self) -> Any:
        data = self.whole if self.mapped is None else self.mapped.buffer()
        start = Machine(data, 0, self._find)
        magic = start.run()
        if type(magic) is not int or magic != _MAGIC:
            raise FileFormatError("a pickle, but not one of torch; only torch's are read.")
        at = start.at
        told = []
        for _ in range(2):
            machine = Machine(data, at, self._find)
            told.append(machine.run())
            at = machine.at
        protocol, system = told
        if protocol != _PROTOCOL:
            raise FileFormatError(f"protocol {protocol!r} is unknown; {_PROTOCOL} is read.")
        if not isinstance(system, dict):
            raise FileFormatError("the description of the system is damaged.")
        self.swap = system.get("little_endian", True) is False
        seen: dict[str, parts.StorageRef] = {}

        def storage(identity: object) -> parts.StorageRef:
            ref = parts.storage(identity)
            assert isinstance(identity, tuple)  # or it would have been refused
            seen.setdefault(ref.key, parts.storage((*identity[:5], None)))
            return ref

        machine = Machine(data, at, self._find, storage)
        root = machine.run()
        machine = Machine(data, machine.at, self._find)
        keys = machine.run()
        at = machine.at
        if not isinstance(keys, list):
            raise FileFormatError("the list of storages is damaged.")
        for k in map(str, keys):
            if k not in seen or k in self.where:
                raise FileFormatError(f"storage {k!r} is listed and never used, or listed twice.")
            if at + 8 > self.size:
                raise FileFormatError("cut off before the last storage.")
            count = int.from_bytes(self.read(at, 8), "big" if self.swap else "little")
            if count != seen[k].numel:
                raise FileFormatError(f"storage {k!r} has two different sizes.")
            self.where[k] = (at + 8, seen[k].nbytes)
            at += 8 + seen[k].nbytes
        if at > self.size:
            raise FileFormatError("cut off before the end of its storages.")
        return root

    def _find(self, module: str, name: str) -> Any:
        return parts.find(module, name, self.jit)

    def _storage(self, identity: object) -> parts.StorageRef:
        ref = parts.storage(identity)
        if ref.key not in self.where:
            raise FileFormatError(f"storage {ref.key!r} is missing in the archive.")
        if self.where[ref.key][1] < ref.nbytes:
            raise FileFormatError(f"storage {ref.key!r} is shorter than the file says.")
        return ref
