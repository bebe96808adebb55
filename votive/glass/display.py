"""What shows itself in notebooks, and elsewhere as a canvas or a picture. Draws nothing.

Each such object has pictures by name, each of one or more figures. Which they are is said in
`pictures.py` and `text_pictures.py`; what draws them in notebooks and pages is the studio.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import votive

from ..serialization.atomic import replacing
from .canvas import Canvas, stacked

Pictures = Mapping[str, Callable[[], Sequence[Any]]]
# Bytes of a picture in a notebook; above it a grid of pixels is smaller than shapes.
_SHAPES = 1 << 16


class Displayable:
    """An object with pictures, which notebooks show by themselves.

    >>> found = votive.glass.statistics(votive.arange(6.0))
    >>> list(found.pictures()), "<svg" in found._repr_mimebundle_()["text/html"]
    (['statistics'], False)
    """

    def pictures(self) -> Pictures:
        """What can be seen of it: functions by name, each of which gives figures."""
        from .pictures import pictures_of

        return pictures_of(self)

    def figures(self, picture: str | None = None) -> list[Any]:
        """The figures of one picture; without a name those of the first."""
        known = self.pictures()
        name = next(iter(known)) if picture is None else picture
        if name not in known:
            some = ", ".join(map(repr, list(known)[:8]))
            raise ValueError(
                f"{type(self).__name__}: there is no picture {name!r}; there are {some}"
                f"{', …' if len(known) > 8 else ''}."
            )
        return list(known[name]())

    def save_svg(self, path: str | os.PathLike[str], picture: str | None = None) -> None:
        """Write a picture as an SVG document; needs no notebook.

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     votive.glass.statistics(votive.ones(3)).save_svg(f"{folder}/ones.svg")
        ...     Path(folder, "ones.svg").read_text()[:4]
        '<svg'
        """
        text = stacked([f.canvas() for f in self.figures(picture)]).svg()
        with replacing(os.fspath(path)) as f:
            f.write(text.encode())

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write all pictures as one canvas that needs neither a notebook nor a network."""
        votive.studio.save_html(self, path)

    def widget(self) -> Any:
        """All pictures in a notebook, to zoom and choose; needs the package anywidget."""
        return votive.studio.widget(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """For notebooks: a widget where one can be had, and always what needs none."""
        found: dict[str, Any] = {"text/plain": _text(self), "text/html": static_html(self)}
        if live():
            try:
                found |= _widget_view(self.widget())
            except Exception as e:  # what needs no widget is shown all the same, and why
                found["text/html"] += f"<p><small>No widget: {escape(str(e))}</small></p>"
        return found

    def _display_(self) -> Any:
        """For marimo, which shows a widget by itself."""
        if _has("anywidget"):
            return self.widget()
        import marimo  # type: ignore[import-not-found]  # where it is missing, nobody calls this

        return marimo.Html(static_html(self))


def live() -> bool:
    """Whether widgets can be had: a notebook with a kernel, anywidget, and VOTIVE_WIDGETS not 0."""
    if os.environ.get("VOTIVE_WIDGETS") == "0" or "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None and _has("anywidget")


def _has(name: str) -> bool:
    from importlib.util import find_spec

    return find_spec(name) is not None


def _widget_view(widget: Any) -> dict[str, Any]:
    made = widget._repr_mimebundle_()
    data = made[0] if isinstance(made, tuple) else made
    return {k: v for k, v in (data or {}).items() if "widget-view" in k}


def _text(thing: object) -> str:
    text = str(thing) if type(thing).__str__ is not object.__str__ else repr(thing)
    return text if len(text) <= 10_000 else f"{text[:9_999]}…"


def static_html(thing: Displayable) -> str:
    """The first picture, in a form that notebooks show without running anything."""
    parts = [as_html(f) for f in thing.figures()]
    others = list(thing.pictures())[1:]
    if others:
        some = escape(", ".join(others[:6]) + (", …" if len(others) > 6 else ""))
        parts.append(f"<p><small>More pictures, with save_svg and save_html: {some}</small></p>")
    return f'<div style="max-width: 100%; overflow-x: auto">{"".join(parts)}</div>'


def as_html(figure: Any) -> str:
    """A figure as an image, or as a table where it is one.

    An image, because notebooks that are not trusted leave out shapes, but show images.
    """
    if hasattr(figure, "html"):
        return str(figure.html())
    canvas: Canvas = figure.canvas()
    shapes = canvas.svg().encode()
    kind, data = "svg+xml", shapes
    if len(shapes) > _SHAPES:
        kind, data = "png", canvas.png()
    encoded = base64.b64encode(data).decode()
    name = escape(getattr(figure, "title", "") or type(figure).__name__, quote=True)
    return f'<p><img alt="{name}" src="data:image/{kind};base64,{encoded}"></p>'
