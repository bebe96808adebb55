"""What lies at a path: weights, tokens, a configuration, a tokenizer, or a model's folder.

Knows files and who reads them; prints nothing.
"""

from __future__ import annotations

import fnmatch
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.similar import did_you_mean

_TOKENS = b"VOTK"
_LARGEST_JSON = 256 << 20


@dataclass
class Found:
    """One or several of: a weight source, a token file, a configuration, a tokenizer's facts."""

    path: Path
    kind: str
    source: Any = None
    tokens: Any = None
    config: dict[str, Any] | None = None
    tokenizer: dict[str, Any] | None = None
    content: Any = None
    files: list[Path] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """The size of all files."""
        return sum(p.stat().st_size for p in self.files)


def _wrong(text: str) -> Exception:
    """The error of a file that is not what it should be; its class is a framework away."""
    from ..serialization.container import FileFormatError

    return FileFormatError(text)


def check_files(paths: Sequence[str]) -> None:
    """Raise for the first file that is not there, before any work is done."""
    for path in paths:
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: there is no such file.")


def read_text(path: str) -> str:
    """The text in a file, which must be UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(f"{path}: this is not UTF-8 text, at byte {error.start}; convert it first.") from error


def read_stdin() -> str:
    """All that is piped in; nothing where the input was closed."""
    if sys.stdin is None or sys.stdin.closed:
        return ""
    try:
        return checked_text(sys.stdin.read(), "what is piped in")
    except UnicodeDecodeError as error:
        raise _wrong(f"what is piped in is not UTF-8 text, at byte {error.start}; convert it first.") from error


def checked_text(text: str, what: str) -> str:
    """The text; bytes that were no text when they were read are an error here.

    >>> from votive.cli.inputs import checked_text
    >>> checked_text("once", "the prompt")
    'once'
    """
    for at, sign in enumerate(text):
        if "\ud800" <= sign <= "\udfff":  # so Python keeps a byte that it cannot read
            raise _wrong(f"{what} is not UTF-8 text, at character {at}; convert it first.")
    return text


def open_path(path: str) -> Found:
    """Look at a file or folder without reading more than its header.

    A name that is neither may be that of a bundled model.
    """
    from ..models.checkpoint import BUNDLED

    p = Path(path).expanduser()
    if not p.exists() and (BUNDLED / path / "config.json").is_file():
        p = BUNDLED / path
    if p.is_dir():
        return _folder(p)
    if not p.exists():
        from ..models.missing import not_here

        raise FileNotFoundError(f"{path}: {not_here(path)}")
    return _file(p)


def _folder(folder: Path) -> Found:
    from ..io import open_weights

    config = _json(folder / "config.json")
    tokenizer = _tokenizer(folder / "tokenizer.json")
    try:
        source = open_weights(folder)
    except FileNotFoundError:
        if config is None and tokenizer is None:
            raise
        source = None
    kind = _kind(source) if source is not None else "folder"
    files = _files(source) or [p for p in sorted(folder.iterdir()) if p.is_file()]
    return Found(folder, kind, source, config=config, tokenizer=tokenizer, files=files)


def _file(path: Path) -> Found:
    from ..data.tokens import TokenFile
    from ..io import open_weights

    with open(path, "rb") as f:
        head = f.read(64)
    if head[:4] == _TOKENS:
        return Found(path, "tokens", tokens=TokenFile(path), files=[path])
    if path.name.endswith(".index.json"):
        source = open_weights(path)
        return Found(path, _kind(source), source, files=_files(source))
    if head.lstrip()[:1] == b"{":
        content = _json(path)
        assert content is not None
        if "model" in content and "added_tokens" in content:
            return Found(path, "tokenizer", tokenizer=_tokenizer(path), files=[path])
        config = content if "model_type" in content else None
        return Found(path, "config" if config else "json", config=config, content=content, files=[path])
    source = open_weights(path)
    return Found(path, _kind(source), source, files=_files(source) or [path])


def _kind(source: Any) -> str:
    """The name of a source's format."""
    name = type(source).__name__.removesuffix("File").removesuffix("Source").lower()
    if name == "sharded":
        whole = any(f.endswith(".safetensors") for f in source.entries.values())
        return f"{'safetensors' if whole else 'torch'} (sharded)"
    return name


def _files(source: Any) -> list[Path]:
    if source is None:
        return []
    index = getattr(source, "index", None)
    if index is not None:  # without opening every shard
        return [index, *sorted({index.parent / f for f in source.entries.values()})]
    found = {source.info(n).file for n in source.names()}
    return sorted(p for p in found if p is not None)


def _json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    if path.stat().st_size > _LARGEST_JSON:
        raise _wrong(f"{path.name}: {path.stat().st_size:,} bytes of JSON are too many.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as e:
        raise _wrong(f"{path.name} is not valid JSON: {e}") from None
    if not isinstance(found, dict):
        raise _wrong(f"{path.name} holds a {type(found).__name__}, not an object.")
    return found


def _tokenizer(path: Path) -> dict[str, Any] | None:
    """What a tokenizer.json says of itself."""
    content = _json(path)
    if content is None:
        return None
    model = content.get("model") or {}
    vocabulary = model.get("vocab") or ()
    added = content.get("added_tokens") or []
    ids = {t.get("id") for t in added}
    inside = len(vocabulary)
    return {
        "type": model.get("type"),
        "vocab_size": inside + sum(1 for i in ids if i is not None and i >= inside),
        "merges": len(model.get("merges") or ()),
        "special_tokens": [t.get("content") for t in added if t.get("special")],
    }


def matching_names(names: Sequence[str], patterns: Sequence[str] | None) -> list[str]:
    """The names that match one of the patterns; a pattern that matches none is an error.

    >>> from votive.cli.inputs import matching_names
    >>> matching_names(["layers.0.w", "layers.1.w", "head"], ["layers.*"])
    ['layers.0.w', 'layers.1.w']
    """
    if not patterns:
        return list(names)
    picked: set[str] = set()
    for pattern in patterns:
        # A part of a name is enough: 'mlp' means '*mlp*' where no sign of a pattern is in it.
        plain = not any(c in pattern for c in "*?[")
        found = [n for n in names if fnmatch.fnmatchcase(n, pattern)]
        if not found and plain:
            found = [n for n in names if pattern in n]
        if not found:
            raise ValueError(f"no tensor matches {pattern!r} among {len(names)}.{did_you_mean(pattern, names)}")
        picked.update(found)
    return [n for n in names if n in picked]
