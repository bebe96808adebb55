"""The studio: a local web page for everything the glass engine does. On top of all; imported last.

`votive studio` is the same from a terminal.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["save_html", "serve", "widget"]


def __getattr__(name: str) -> Any:
    if name in ("save_html", "widget"):
        from . import widgets

        return getattr(widgets, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def serve(
    model: Any = None, *, host: str = "127.0.0.1", port: int = 0, open_browser: bool = True,
    folder: Any = None, tokenizer: Any = None, token: str | None = None,
) -> None:  # fmt: skip
    """Serve the studio's page until Ctrl-C; prints its address, which holds a secret token.

    `model` is a name, a path, or a model in memory, which needs its `tokenizer`. `folder` is where
    sessions are kept. Other machines can connect only if `host` is said; they need the address.

    >>> from votive import studio
    >>> studio.serve(3)
    Traceback (most recent call last):
    TypeError: studio.serve: model must be a name, a path or a model, got int.
    """
    from .models import Loaded
    from .serving import Studio

    if isinstance(model, _module()):
        if tokenizer is None:
            raise TypeError("studio.serve: a model in memory needs tokenizer=.")
        model = Loaded(getattr(model, "name_or_path", "") or type(model).__name__, model, tokenizer)
    elif model is not None and not hasattr(model, "__fspath__") and not isinstance(model, str):
        raise TypeError(
            f"studio.serve: model must be a name, a path or a model, got {type(model).__name__}."
        )
    studio = Studio(model, host=host, port=port, folder=folder, token=token)
    studio.shelf.want()  # it is loaded while the page opens
    print(f"votive studio: {studio.url}\nCtrl-C ends it.", file=sys.stderr, flush=True)
    if open_browser:
        import threading
        import webbrowser

        threading.Timer(0.2, webbrowser.open, (studio.url,)).start()
    studio.run()


def _module() -> Any:
    from ..nn import Module

    return Module
