"""What outlives a session: contents by their digest, so that nobody sends them twice, and tensors saved by name.

Files in one folder of the server, shared by its processes. No name of a client becomes the name of a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ...backends.remote import wire
from ...core.errors import OutOfMemoryError, size_text

SMALLEST = 64 << 10
LISTED = 8192  # contents that a client is told of


class Store:
    """A folder of contents and saved tensors, each kind within a limit of bytes."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        self.contents_folder, self.saved_folder = folder / "contents", folder / "saved"
        for each in (self.contents_folder, self.saved_folder):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)

    # --- contents -----------------------------------------------------------------------------

    def contents(self) -> list[str]:
        """The digests of what is here, in hexadecimal digits."""
        return sorted(e.name for e in os.scandir(self.contents_folder) if len(e.name) == 64)[:LISTED]

    def arriving(self, digest: bytes, nbytes: int) -> Arriving | None:
        """What takes the bytes of a content as they come; None where they are not kept."""
        if digest == wire.NO_DIGEST or nbytes < SMALLEST or (self.contents_folder / digest.hex()).exists():
            return None
        if _used(self.contents_folder) + nbytes > self.limit:
            return None
        try:
            return Arriving(self.contents_folder, digest, nbytes)
        except OSError:  # a full disk costs the next client time, nothing else
            return None

    def content(self, digest: bytes, nbytes: int) -> np.ndarray[Any, Any]:
        """The bytes of a digest. Whoever writes into them has a copy of the pages."""
        try:
            with open(self.contents_folder / digest.hex(), "rb") as file:
                if os.fstat(file.fileno()).st_size != nbytes or not nbytes:
                    raise FileNotFoundError
                mapped = mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_COPY)
        except FileNotFoundError:
            raise RuntimeError("the server no longer has these weights; send them again with .to().") from None
        return np.frombuffer(mapped, np.uint8)

    def forget_contents(self) -> None:
        """Drop the oldest contents until half of the limit is free."""
        files = sorted((e.stat().st_mtime, e.stat().st_size, e.path) for e in os.scandir(self.contents_folder))
        used = sum(size for _, size, _ in files)
        for _, size, path in files:
            if used <= self.limit // 2:
                return
            Path(path).unlink(missing_ok=True)
            used -= size

    # --- saved tensors ------------------------------------------------------------------------

    def save(self, name: str, array: np.ndarray[Any, Any], dtype: str) -> None:
        """Keep an array under a name, in place of what had it."""
        path = self._path(name)
        before = path.stat().st_size if path.exists() else 0
        if _used(self.saved_folder) - before + array.nbytes > self.limit:
            raise OutOfMemoryError(
                f"remote.save: {name!r} takes {size_text(array.nbytes)}, more than is left of the "
                f"{size_text(self.limit)} that the server keeps; delete others with votive.remote.delete()."
            )
        head = json.dumps({"name": name, "dtype": dtype, "shape": array.shape}).encode()
        handle, temporary = tempfile.mkstemp(dir=self.saved_folder)
        with os.fdopen(handle, "wb") as file:
            file.write(wire.COUNT.pack(len(head)) + head)
            file.write(array.reshape(-1).view(np.uint8).data)
        os.replace(temporary, path)

    def load(self, name: str) -> tuple[str, tuple[int, ...], np.ndarray[Any, Any]]:
        """(dtype, shape, bytes) of what was saved."""
        try:
            with open(self._path(name), "rb") as file:
                head = _head(file)
                raw = np.frombuffer(file.read(), np.uint8)
        except FileNotFoundError:
            raise KeyError(f"nothing was saved as {name!r} on the server.") from None
        shape = tuple(head["shape"])
        count = math.prod(shape) * wire.dtype_named(head["dtype"]).itemsize
        if raw.nbytes != count:
            raise RuntimeError(f"what was saved as {name!r} is damaged.")
        return head["dtype"], shape, raw

    def names(self) -> list[str]:
        """What can be loaded."""
        found = []
        for entry in os.scandir(self.saved_folder):
            if len(entry.name) == 64:
                with open(entry.path, "rb") as file:
                    found.append(_head(file)["name"])
        return sorted(found)

    def delete(self, name: str) -> dict[str, bool]:
        """Forget what was saved under a name; says whether there was something."""
        path = self._path(name)
        there = path.exists()
        path.unlink(missing_ok=True)
        return {"deleted": there}

    def _path(self, name: str) -> Path:
        return self.saved_folder / hashlib.sha256(name.encode()).hexdigest()


class Arriving:
    """A content on its way: it is kept when all of it came in order and its digest is what was said."""

    file: Any = None

    def __init__(self, folder: Path, digest: bytes, nbytes: int) -> None:
        self.digest, self.nbytes, self.folder = digest, nbytes, folder
        self.at, self.hash = 0, hashlib.sha256()
        handle, self.path = tempfile.mkstemp(dir=folder)
        self.file = os.fdopen(handle, "wb")

    def add(self, at: int, part: np.ndarray[Any, Any]) -> bool:
        """Take the next bytes; says whether more are wanted."""
        if at != self.at:
            self.drop()
            return False
        self.hash.update(part.data)
        self.at += part.nbytes
        try:
            self.file.write(part.data)
            if self.at < self.nbytes:
                return True
            self.file.close()
            if self.hash.digest() == self.digest:
                os.replace(self.path, self.folder / self.digest.hex())
                return False
        except OSError:  # as of a full disk
            pass
        self.drop()
        return False

    def drop(self) -> None:
        """Forget what came."""
        with contextlib.suppress(OSError):
            self.file.close()
        Path(self.path).unlink(missing_ok=True)

    def __del__(self) -> None:
        if self.file is not None and not self.file.closed:
            self.drop()


def _used(folder: Path) -> int:
    return sum(e.stat().st_size for e in os.scandir(folder))


def _head(file: Any) -> dict[str, Any]:
    (length,) = wire.COUNT.unpack(file.read(4))
    head: dict[str, Any] = json.loads(file.read(length))
    return head
