"""What to say of a model that is not here, or is of another kind than is needed. Knows no command.

Names of models are paths, bundled names and repository ids; kinds are told in words, not classes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..core.similar import did_you_mean
from .auto import _family, families
from .checkpoint import bundled, download, is_repo_id
from .config import StrPath

# What a family is for, by the first of its uses that is listed here.
_KINDS = {
    "speech": "a speech recogniser",
    "vision2seq": "a reader of lines of text in pictures",
    "image": "an image classifier",
    "zero_shot_image": "a comparer of pictures with texts",
    "seq2seq": "a text-to-text model",  # whose decoder may stand alone, too
    "causal": "a text generator",
    "encoder": "an encoder",
    "masked": "an encoder",
    "classify": "an encoder",
}


def kind_of(config: dict[str, Any]) -> str:
    """What the model of a configuration is, in words.

    >>> from votive.models.missing import kind_of
    >>> kind_of({"model_type": "qwen3"}), kind_of({"model_type": "bert"})
    ('a text generator', 'an encoder')
    """
    uses = uses_of(config)
    words = next((kind for use, kind in _KINDS.items() if use in uses), None)
    return words or f"a model of the kind {config.get('model_type')!r}"


def uses_of(config: dict[str, Any]) -> set[str]:
    """What the model of a configuration can do; nothing where its family is not known."""
    kind = config.get("model_type")
    return set(_family(kind)[1]) if kind in families() else set()


def downloaded() -> list[str]:
    """The repository ids of models that were downloaded before."""
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    found = [p.name.removeprefix("models--") for p in cache.glob("models--*--*")]
    return sorted(name.replace("--", "/", 1) for name in found)


def located(name: StrPath, *, offline: bool = False) -> Path:
    """The folder or file of a model; a repository is downloaded unless `offline`.

    >>> from votive.models.missing import located
    >>> located("tails")
    Traceback (most recent call last):
    FileNotFoundError: there is no model 'tails': no file or folder here has this name...
    """
    from .checkpoint import BUNDLED

    text, path = str(name), Path(name).expanduser()
    if path.exists():
        return path
    if text in bundled():
        return BUNDLED / text
    # With its parent at hand, a missing path is more likely a slip than a repository.
    as_path = path.is_absolute() or (path.parent != Path() and path.parent.is_dir())
    if as_path:
        raise FileNotFoundError(not_here(text))
    if not is_repo_id(text):
        raise FileNotFoundError(
            f"there is no model {text!r}: {not_here(text)} Repositories are named OWNER/NAME, such as Qwen/Qwen3-0.6B."
        )
    return _from_hub(text, offline)


def not_here(name: str) -> str:
    """That there is no such file, folder or bundled model, and what may have been meant.

    >>> from votive.models.missing import not_here
    >>> not_here("no such folder/x")
    "the folder 'no such folder' does not exist."
    """
    path = Path(name).expanduser()
    if path.parent == Path():
        known = [*bundled(), *(p.name for p in _entries(Path()))]
        known += [n.split("/")[1] for n in downloaded()]
        others = f" With votive comes: {', '.join(bundled()) or 'none'}."
        return f"no file or folder here has this name.{did_you_mean(name, known) or others}"
    if not path.parent.is_dir():
        return f"the folder {str(path.parent)!r} does not exist."
    near = did_you_mean(path.name, [p.name for p in _entries(path.parent)])
    return f"there is no file or folder {name!r}.{near}"


def _entries(folder: Path) -> list[Path]:
    """What in a folder may be a model."""
    try:
        return [p for p in list(folder.iterdir())[:10_000] if not p.name.startswith(".")]
    except OSError:
        return []


def _from_hub(name: str, offline: bool) -> Path:
    forbidden = "--offline" if offline else ""
    if not offline and os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        forbidden = "the environment variable HF_HUB_OFFLINE"
    try:
        return download(name, None, bool(forbidden))
    except OSError as e:
        here = [*bundled(), *downloaded()]
        if forbidden:
            raise FileNotFoundError(
                f"{name!r} was never downloaded to this machine, and {forbidden} forbids to "
                f"download it now. On this machine are: {', '.join(here) or 'none'}. Or copy the "
                "model's folder from another machine and give its path."
            ) from e
        hint = did_you_mean(name, here)
        raise OSError(f"{e}{hint}") from e
