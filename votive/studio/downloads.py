"""Downloading a model by its repository id, with progress. Knows no pages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from ..models.checkpoint import _WANTED, download, is_repo_id
from .shelf import hub_cache

# What errors say where there is no network.
_AWAY = ("ConnectError", "Name or service", "Max retries", "timed out", "resolve", "offline")


def fetched(name: str, tell: Callable[[float, float, str], None]) -> Path:
    """The folder of a repository; `tell(done, total, text)` is called a few times a second and may raise to give up.

    What was begun goes on in the background when nobody waits for it any more, and is there the next time.

    >>> from votive.studio.downloads import fetched
    >>> fetched("no id", print)
    Traceback (most recent call last):
    ValueError: "no id" is not the name of a repository; these are OWNER/NAME, such as Qwen/Qwen3-0.6B.
    """
    if not is_repo_id(name):
        raise ValueError(
            f'"{name:.100}" is not the name of a repository; these are OWNER/NAME, such as Qwen/Qwen3-0.6B.'
        )
    found: list[Path] = []
    errors: list[BaseException] = []
    total = [0.0]
    over = threading.Event()

    def work() -> None:
        try:
            total[0] = _size(name)
            found.append(download(name))
        except BaseException as e:  # told to whoever waits
            errors.append(e)
        finally:
            over.set()

    folder = hub_cache() / f"models--{name.replace('/', '--')}" / "blobs"
    threading.Thread(target=work, name=f"downloading {name}", daemon=True).start()
    tell(0.0, 0.0, f"asking for {name}")
    while not over.wait(0.2):
        tell(float(_held(folder)), max(total[0], 1.0), f"downloading {name}")
    if errors:
        raise _plain(name, errors[0])
    return found[0]


def _size(name: str) -> float:
    """The bytes that will be fetched; 0 where that is not told."""
    from fnmatch import fnmatch

    try:
        import huggingface_hub as hub

        files = hub.HfApi().model_info(name, files_metadata=True, timeout=10).siblings or []
    except Exception:  # the download itself tells what is wrong
        return 0.0
    return float(sum(f.size or 0 for f in files if any(fnmatch(f.rfilename, p) for p in _WANTED)))


def _held(folder: Path) -> int:
    try:
        return sum(p.stat().st_size for p in folder.iterdir())
    except OSError:
        return 0


def _plain(name: str, error: BaseException) -> OSError:
    """What went wrong, in words for the page."""
    text = str(error)
    if any(
        sign in text for sign in ("ConnectError", "Name or service", "Max retries", "timed out", "resolve", "offline")
    ):
        return OSError(
            f"{name} could not be downloaded: there is no network here, or the hub cannot be reached. Copy the model's "
            "folder from another machine into one of the folders above."
        )
    if "401" in text or "404" in text or "Repository Not Found" in text or "gated" in text.lower():
        return OSError(f"{name} could not be downloaded: the hub has no such repository, or it needs an account.")
    return OSError(text or f"{name} could not be downloaded.")
