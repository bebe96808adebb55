"""The studio: a local web page for everything the glass engine does. On top of all; imported last.

`votive studio` is the same from a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..nn import Module


__all__ = ["save_html", "serve", "widget"]


def __getattr__(name: str) -> Any:
    if name == "save_html":
        from .html_export import save_html

        return save_html
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def widget(thing: object, view: str | None = None) -> Any:
    """A result, or a view of a session, in a notebook; needs the package anywidget.

    >>> from votive import glass, studio
    >>> from votive.studio import demo
    >>> session = glass.Session(demo.model(), demo.tokenizer(), "Once upon a time")
    >>> studio.widget(session, "no such view")
    Traceback (most recent call last):
    ValueError: studio: there is no view 'no such view'; there are lens, attention, ...
    """
    from ..glass.display import Displayable
    from ..glass.session import Session
    from .html_export import view_path

    if view is not None:
        if not isinstance(thing, Session):
            raise TypeError(f"studio.widget: a {type(thing).__name__} has no views, got {view!r}.")
        view_path(view)
    if not isinstance(thing, Displayable):
        raise TypeError(f"studio.widget: there are no pictures of a {type(thing).__name__}.")
    try:
        import anywidget  # noqa: F401
    except ImportError:
        raise ImportError(
            "studio.widget: pip install anywidget to see views in notebooks; save_html and save_svg need nothing."
        ) from None
    from .widgets import ResultWidget, SessionWidget

    if isinstance(thing, Session):
        return SessionWidget(thing, view or "session")
    return ResultWidget(thing)


def serve(
    model: Any = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = True,
    folder: str | os.PathLike[str] | None = None,
    tokenizer: Any = None,
    token: str | None = None,
    autosave: bool = True,
    models: Iterable[str | os.PathLike[str]] | None = None,
    device: str | None = None,
) -> None:
    """Serve the studio's page until Ctrl-C; prints its address, which holds a secret token.

    `model` is a name, a path, or a model in memory, which needs its `tokenizer`. `folder` is where
    sessions are kept; with `autosave` those that were not saved, too, so that they can be
    recovered after a crash. Models in the folders `models` (by default those that Hugging Face has
    downloaded) can be chosen on the page; no other files can. Other machines can connect only if
    `host` is said, and need the address. Models that are loaded by name or path compute on `device`.

    >>> from votive import studio
    >>> studio.serve(3)
    Traceback (most recent call last):
    TypeError: studio.serve: model must be a name, a path or a model, got int.
    """
    from .server import Studio

    if isinstance(model, _module()):
        if tokenizer is None:
            raise TypeError("studio.serve: a model in memory needs tokenizer=.")
        name = getattr(model, "name_or_path", "") or type(model).__name__
        model = _held(name, model, tokenizer)
    elif model is not None and not hasattr(model, "__fspath__") and not isinstance(model, str):
        raise TypeError(f"studio.serve: model must be a name, a path or a model, got {type(model).__name__}.")
    if device is not None:
        _reached(device)
    where = None if folder is None else Path(folder)
    if where is not None:
        where.mkdir(parents=True, exist_ok=True)  # an error now, not at the first save
    studio = Studio(model, host=host, port=port, folder=where, token=token, autosave=autosave, models=models)
    studio.library.device = device
    try:
        studio.library.check()
    except BaseException:
        studio.close()
        raise
    studio.library.request()  # it is loaded while the page opens
    print(f"votive studio: {studio.url}\nPress Ctrl-C to stop.", file=sys.stderr, flush=True)
    if open_browser:
        import threading
        import webbrowser

        threading.Timer(0.2, webbrowser.open, (studio.url,)).start()
    studio.run()


def _reached(device: str) -> None:
    """Raise, before the page opens, where a device is not there."""
    from ..ops.registry import F

    F.zeros((1,), device=device)


def _held(name: str, model: Module, tokenizer: Any) -> Any:
    from .models import Loaded
    from .speech_models import SpeechModel, is_whisper

    kind = SpeechModel if is_whisper(model.config.to_dict()) else Loaded
    return kind(name, model, tokenizer)


def _module() -> Any:
    from ..nn import Module

    return Module
