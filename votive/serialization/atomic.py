"""Files that appear under their name only when they are complete. Knows files, not contents."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ..core.errors import size_text

# What `replacing` calls a file that is not finished; whoever owns a folder may clear old ones.
SUFFIX = ".tmp"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends without an error.

    It is written beside the old one, forced to disk, and renamed: after a crash at any moment
    either the old file or the complete new one is there. When the disk takes no more, the error
    says which file, how much of it was written, and what is there now.

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
        try:
            f = open(temporary, "xb")  # noqa: SIM115 - closed below, where an error is worded
        except OSError as e:
            raise OSError(e.errno, e.strerror, str(target)) from None
        with _closing(f):
            yield f
            settle(f)
        os.replace(temporary, target)
    except BaseException as e:
        written = temporary.stat().st_size if temporary.exists() else 0
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(e, OSError) and _is_full(e):
            raise _full(e, target, written) from None
        raise
    sync_folder(target.parent)


@contextlib.contextmanager
def _closing(f: IO[bytes]) -> Iterator[None]:
    """Close a file at the end; what could not be written before is not tried again."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            f.close()
        raise
    f.close()


def settle(f: IO[bytes]) -> None:
    """Force what was written to disk, where it may turn out that there is no room."""
    f.flush()
    os.fsync(f.fileno())


def _is_full(e: OSError) -> bool:
    """Whether writing itself failed. NumPy's error for that has neither a number nor a name."""
    if e.errno is None:
        return "requested and" in str(e) and "written" in str(e)
    return e.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) and e.filename is None


def _full(e: OSError, target: Path, written: int) -> OSError:
    why = e.strerror or os.strerror(errno.ENOSPC)
    with contextlib.suppress(OSError):
        why += f" ({size_text(shutil.disk_usage(target.parent).free)} are free)"
    kept = "the file that was there is unchanged" if target.exists() else "nothing of it is left"
    text = f"{why}; writing stopped after {size_text(written)}, and {kept}"
    return OSError(e.errno or errno.ENOSPC, text, str(target))


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
