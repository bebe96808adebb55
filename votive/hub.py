"""`votive.hub`: models from folders with a `hubconf.py`. The names are torch's.

Folders on this machine are used as they are, and so are repositories that lie in the hub's folder already. Nothing is
fetched from GitHub: that would run a stranger's code. Only `download_url_to_file` and `load_state_dict_from_url`, which
name a file, use the network.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlparse

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_dir: str | None = None


def get_dir() -> str:
    """The folder of repositories and weights: what `set_dir` named, or `hub` in `$TORCH_HOME` or in the user's cache of
    torch, so that files that are there already are found.

    >>> isinstance(votive.hub.get_dir(), str)
    True
    """
    if _dir is not None:
        return _dir
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    home = os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Use another folder.

    >>> votive.hub.set_dir(votive.hub.get_dir())
    """
    global _dir
    _dir = os.path.expanduser(d)


def _folder(repo: str, source: str) -> Path:
    """The folder of a repository that is on this machine."""
    if source == "local":
        return Path(repo)
    if source != "github":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    name, _, branch = repo.partition(":")
    if name.count("/") != 1:
        raise ValueError(f'hub: a repository is named "owner/name" or "owner/name:branch", got {repo!r}.')
    hub = Path(get_dir())
    for known in (branch,) if branch else ("main", "master"):
        folder = hub / f"{name.replace('/', '_')}_{known.replace('/', '_')}"
        if folder.is_dir():
            return folder
    raise RuntimeError(
        f"hub: {repo} is not in {hub}, and votive fetches no code from the network. Clone it "
        f'(git clone https://github.com/{name}) and use hub.load("path/to/{name.split("/")[1]}", …, source="local").'
    )


def _hubconf(folder: Path) -> ModuleType:
    """The module `hubconf.py` of a folder, which may import what lies beside it."""
    path = folder / "hubconf.py"
    if not path.is_file():
        raise FileNotFoundError(f"hub: {folder} has no hubconf.py.")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"hub: {path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    needed = getattr(module, "dependencies", None)
    missing = [name for name in needed or [] if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, name: Any) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if found is None or not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
    source: str | None = None,
) -> Any:
    """The names of the models of a repository that is in the hub's folder, or of a folder with `source="local"`.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def tiny(): return 1")
    >>> votive.hub.list(folder, source="local")
    ['tiny']
    """
    module = _hubconf(_folder(github, source or "github"))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    source: str | None = None,
) -> str | None:
    """The docstring of a model of a repository.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def tiny():\\n    'A tiny model.'")
    >>> votive.hub.help(folder, "tiny", source="local")
    'A tiny model.'
    """
    doc: str | None = _entry(_hubconf(_folder(github, source or "github")), model).__doc__
    return doc


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function of a folder's `hubconf.py`: `source="local"` for a path, or a repository in the hub's folder.

    >>> import pathlib, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = pathlib.Path(folder, "hubconf.py").write_text("def tiny(n, scale=1): return n * scale")
    >>> votive.hub.load(folder, "tiny", 2, source="local", scale=3)
    6
    """
    source = source.lower()
    return _entry(_hubconf(_folder(repo_or_dir, source)), model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file. It gets its name only when it is complete and its SHA-256 begins with `hash_prefix`.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a").write_text("text")
    >>> votive.hub.download_url_to_file((folder / "a").as_uri(), str(folder / "b"), progress=False)
    >>> (folder / "b").read_text()
    'text'
    """
    dst = os.path.expanduser(dst)
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(dst) or ".", prefix=f".{os.path.basename(dst)}.")
    checksum = hashlib.sha256()
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "votive"})
        with urllib.request.urlopen(request) as answer, os.fdopen(handle, "wb") as file:
            whole, done = answer.headers.get("Content-Length"), 0
            while part := answer.read(1 << 17):
                file.write(part)
                checksum.update(part)
                done += len(part)
                if progress and whole:
                    sys.stderr.write(f"\r{os.path.basename(dst)}: {100 * done / int(whole):.1f}%")
        if progress and whole:
            sys.stderr.write("\n")
        found = checksum.hexdigest()
        if hash_prefix is not None and not found.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        os.replace(partial, dst)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """The tensors of a file that is in `model_dir` (the hub's "checkpoints") already, or is fetched into it.

    With `check_hash`, the name ends in `-<first digits of its SHA-256>`. Nothing in a file can run code.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> votive.save({"w": votive.ones(1)}, folder / "a.safetensors")
    >>> votive.hub.load_state_dict_from_url("https://example.org/a.safetensors", model_dir=str(folder))
    {'w': tensor([1.])}
    """
    from .serialization import load as read

    folder = model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        digits = Path(name).stem.rpartition("-")[2] if check_hash and "-" in name else None
        if progress:
            sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        download_url_to_file(url, path, digits, progress)
    return read(path, map_location=map_location, weights_only=weights_only)
