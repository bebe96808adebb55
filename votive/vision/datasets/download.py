"""Files fetched when asked for, checked and unpacked. Knows addresses, no data set."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from pathlib import Path

_PART = 1 << 20
_TIMEOUT = 60


def md5_of(path: str | Path) -> str:
    """The MD5 checksum of a file."""
    sum_ = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as file:
        while part := file.read(_PART):
            sum_.update(part)
    return sum_.hexdigest()


def intact(path: str | Path, md5: str | None = None) -> bool:
    """Whether the file is there and has this checksum; None asks for none."""
    return Path(path).is_file() and (md5 is None or md5_of(path) == md5)


def _fetch(url: str, target: Path) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "votive"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer, open(target, "wb") as file:
        shutil.copyfileobj(answer, file, _PART)


def download(name: str, urls: Sequence[str], target: str | Path, md5: str | None = None) -> None:
    """Fetch a file from the first address that gives it whole; one that is there and right stays.

    It gets its name only when it is complete, so that a broken download leaves nothing behind.
    """
    target = Path(target)
    if intact(target, md5):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    errors = []
    for url in urls:
        handle, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
        try:
            _fetch(url, Path(partial))
            if md5 is not None and (found := md5_of(partial)) != md5:
                errors.append(f"{url}: its checksum is {found}, not {md5}")
                continue
            os.replace(partial, target)
            return
        except (urllib.error.URLError, OSError, ValueError) as e:
            errors.append(f"{url}: {e}")
        finally:
            Path(partial).unlink(missing_ok=True)
    tried = "\n  ".join(errors)
    raise RuntimeError(
        f"{name}: {target.name} could not be downloaded. Tried\n  {tried}\n"
        f"Put the file into {target.parent} yourself and leave download out."
    )


def unpack(archive: str | Path, folder: str | Path) -> None:
    """Unpack a tar or zip file; entries that would leave the folder are refused."""
    archive, folder = Path(archive), Path(folder)
    if tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        return
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)
        return
    raise RuntimeError(f"unpack: {archive} is neither a tar nor a zip file.")
