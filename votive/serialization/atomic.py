"""Files that appear under their name only when they are complete. Knows files, not contents."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

# What `replacing` calls a file that is not finished; whoever owns a folder may clear old ones.
SUFFIX = ".tmp"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends without an error.

    It is written beside the old one, forced to disk, and renamed: after a crash at any moment
    either the old file or the complete new one is there.

    >>> import tempfile, pathlib
    >>> from votive.serialization.atomic import replacing
    >>> path = pathlib.Path(tempfile.mkdtemp(), "note")
    >>> with replacing(path) as f:
    ...     _ = f.write(b"hello")
    >>> path.read_text()
    'hello'
    """
    # Through a link, its target is replaced and the link stays.
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe or a device cannot be replaced
        with open(target, "wb") as f:
            yield f
        return
    temporary = target.with_name(f".{target.name}.{os.urandom(6).hex()}{SUFFIX}")
    try:
        with open(temporary, "xb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Force renames in a folder to disk, where the system can."""
    with contextlib.suppress(OSError):
        fd: Any = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def clear_unfinished(folder: Path) -> None:
    """Remove what writers that were killed have left in a folder.

    >>> import tempfile, pathlib
    >>> from votive.serialization.atomic import clear_unfinished
    >>> clear_unfinished(pathlib.Path(tempfile.mkdtemp()))
    """
    for path in folder.glob(f".*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
