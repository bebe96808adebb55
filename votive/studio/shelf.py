"""The models in folders that were allowed at the start: found, measured, and told apart from all other files.

Whatever a page asks for is looked up here by its name or path; nothing outside of the folders is opened, and links
that lead out of them are not followed. Loads nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# How deep folders are searched, and how many models and files are told of.
_DEEPEST, _MOST, _FILES = 3, 500, 20_000
_WEIGHTS = (".safetensors", ".gguf", ".bin", ".pth", ".pt")
_ALONE = (".gguf", ".pth")


class Outside(ValueError):
    """A path that this studio may not read."""


@dataclass(frozen=True)
class Found:
    """A model in an allowed folder: its name, where it lies, and how many bytes its weights have."""

    name: str
    place: Path
    root: Path
    bytes: int
    kind: str


def hub_cache() -> Path:
    """Where Hugging Face keeps what was downloaded.

    >>> from votive.studio.shelf import hub_cache
    >>> hub_cache().is_absolute()
    True
    """
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser().absolute()


class Shelf:
    """Models in some folders.

    >>> import tempfile
    >>> from votive.studio.shelf import Shelf
    >>> list(Shelf([tempfile.mkdtemp()]).models())
    []
    """

    def __init__(self, folders: Iterable[str | os.PathLike[str]] | None = None) -> None:
        given = [hub_cache()] if folders is None else [Path(f).expanduser() for f in folders]
        if folders is not None:
            for folder in given:
                if not folder.is_dir():
                    raise NotADirectoryError(f"--models: {str(folder)!r} is not a folder.")
        self.folders = [f.absolute() for f in given]

    def models(self) -> Iterator[Found]:
        """What there is, each folder by name."""
        seen: set[Path] = set()
        count = 0
        for root in self.folders:
            for found in _models(root):
                place = found.place.resolve()
                if place in seen:
                    continue
                seen.add(place)
                yield found
                count += 1
                if count >= _MOST:
                    return

    def named(self, name: str) -> Found | None:
        """The model of a name that `models` told."""
        return next((m for m in self.models() if m.name == name), None)

    def dropped(self, name: str, size: int) -> Path | None:
        """A file that a browser knows by its name and size only; None where none or several fit."""
        if not name or "/" in name or "\\" in name:
            return None
        fits = [p for root in self.folders for p in _files(root) if p.name == name and _size(p) == size]
        alike = {p.resolve(): p for p in fits}
        return next(iter(alike.values())) if len(alike) == 1 else None

    def path(self, text: str) -> Path:
        """A path that was typed or dropped, if it lies in an allowed folder."""
        from urllib.parse import unquote, urlparse

        if text.startswith("file://"):
            text = unquote(urlparse(text).path)
        path = Path(text.strip()).expanduser()
        where = ", ".join(map(str, self.folders)) or "none"
        if not path.is_absolute():
            raise Outside(f"{text!r:.200} is not a whole path; give one from the root, such as {where}/model.gguf.")
        real = path.resolve()
        if not any(real.is_relative_to(f.resolve()) for f in self.folders):
            raise Outside(
                f"{text!r:.200} lies outside the folders that this studio may read ({where}). Start it with "
                f"--models FOLDER to allow another one, or with the model itself: votive studio {text:.200}"
            )
        if not real.exists():
            raise FileNotFoundError(f"There is no file or folder {text!r:.200}.")
        if real.is_dir():
            # A repository of the cache, in place of one of its versions.
            place = _repository(path) or path
            if not any(_closed(place, f) for f in self.folders):
                raise Outside(f"{text!r:.200} holds links that lead out of the folders that this studio may read.")
            return place
        if real.suffix == ".safetensors" and (path.parent / "config.json").is_file():
            return path.parent
        elif real.suffix == ".safetensors":
            raise FileNotFoundError(f"{path.name} holds weights, but there is no config.json beside it.")
        return path


def memory() -> dict[str, int] | None:
    """Bytes of memory in all and available now; None where nothing tells."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines if line.endswith("kB")}
        return {"total": found["MemTotal"], "available": found["MemAvailable"]}
    except (OSError, KeyError, ValueError, IndexError):
        return None


def weight_bytes(place: Path) -> int:
    """The bytes of the weights of a model: of a file, or of those in a folder that are used.

    >>> from votive.models.checkpoint import BUNDLED
    >>> from votive.studio.shelf import weight_bytes
    >>> weight_bytes(BUNDLED / "tales") > 1_000_000
    True
    """
    if place.is_file():
        return _size(place)
    files = [p for p in sorted(place.iterdir()) if p.suffix in _WEIGHTS] if place.is_dir() else []
    # Where there are several formats, one of them is read.
    for suffix in _WEIGHTS:
        own = [p for p in files if p.suffix == suffix]
        if own:
            return sum(map(_size, own))
    return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _kind(folder: Path) -> str:
    try:
        with open(folder / "config.json", "rb") as f:
            said = json.loads(f.read(1 << 20))
        return str(said.get("model_type", "") or "")[:40]
    except (OSError, ValueError, AttributeError):
        return ""


def _inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve().is_relative_to(root.resolve())
    except OSError:
        return False


def _closed(place: Path, root: Path) -> bool:
    """Whether nothing in a model's folder leads out of the allowed one."""
    try:
        return all(_inside(p, root) for p in place.iterdir())
    except OSError:
        return False


def _models(root: Path) -> Iterator[Found]:
    budget = [_FILES]
    yield from _below(root, root, 0, budget)


def _below(folder: Path, root: Path, depth: int, budget: list[int]) -> Iterator[Found]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        budget[0] -= 1
        if budget[0] < 0:
            return
        if path.name.startswith(".") or not _inside(path, root):
            continue
        if path.is_dir():
            repository = _repository(path)
            place = path if repository is None else repository
            if repository is not None and not _inside(repository, root):
                continue
            if (place / "config.json").is_file() and weight_bytes(place):
                if not _closed(place, root):
                    continue
                name = _repository_name(path) if repository is not None else str(path.relative_to(root))
                yield Found(name, place, root, weight_bytes(place), _kind(place))
            elif repository is not None and any(place.glob("*.gguf")) and _closed(place, root):
                yield from (
                    Found(f"{_repository_name(path)}/{p.name}", p, root, _size(p), "gguf")
                    for p in sorted(place.glob("*.gguf"))
                )
            elif depth < _DEEPEST and repository is None:
                yield from _below(path, root, depth + 1, budget)
        elif path.suffix in _ALONE:
            yield Found(str(path.relative_to(root)), path, root, _size(path), path.suffix[1:])


def _files(root: Path, depth: int = 0) -> Iterator[Path]:
    """Files of weights below a folder."""
    try:
        entries = sorted(root.iterdir())
    except OSError:
        return
    for path in entries[:2000]:
        if path.is_dir() and not path.is_symlink() and depth <= _DEEPEST + 1:
            yield from _files(path, depth + 1)
        elif path.suffix in _WEIGHTS and path.is_file():
            yield path


def _repository(path: Path) -> Path | None:
    """The newest version of a repository in the hub's cache; None where a folder is none."""
    if not path.name.startswith("models--") or not (path / "snapshots").is_dir():
        return None
    versions = sorted((path / "snapshots").iterdir(), key=lambda p: p.stat().st_mtime)
    main = path / "refs" / "main"
    if main.is_file():
        wanted = path / "snapshots" / main.read_text(encoding="utf-8", errors="replace").strip()[:100]
        if wanted.is_dir():
            return wanted
    return versions[-1] if versions else None


def _repository_name(path: Path) -> str:
    return path.name.removeprefix("models--").replace("--", "/", 1)
