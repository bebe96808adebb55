"""Views and results in notebooks, through anywidget: the same modules draw here and on the page.

In a notebook they ask the kernel. Imported only where anywidget is.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from ..glass.debugger import Debugger
from . import protocol, results
from .bundle import styles
from .html_export import RESULT, save_html, script, view_path
from .notebook_backend import ResultBackend, SessionBackend

if TYPE_CHECKING:
    from ..glass.display import Displayable
    from ..glass.session import Session


_TAIL = """
export default {
  render({ model, el }) {
    return modules["notebook.js"].%s({ model, el, render: modules["%s"].render });
  },
};
"""


class _Widget(anywidget.AnyWidget):
    """A widget whose messages are requests."""

    _css = styles()
    answers: Any = None

    def _begin(self, shown: Any, answers: SessionBackend | ResultBackend) -> None:
        self.shown, self.answers = shown, answers
        self.on_msg(self._asked)

    def _asked(self, _: object, said: object, buffers: object) -> None:
        if not isinstance(said, dict) or not isinstance(said.get("do"), str):
            return
        given = said.get("args")
        header, blobs = self.answers.answer(said["do"], given if isinstance(given, dict) else {})
        entries = [
            {"name": n, "dtype": protocol._TYPES[b.dtype.name], "shape": list(b.shape)} for n, b in blobs.items()
        ]
        reply = {"id": said.get("id"), **header, "blobs": entries}
        self.send(reply, buffers=[b.tobytes() for b in blobs.values()])


class ResultWidget(_Widget):
    """The pictures of a result; the first is there from the beginning, others are asked for."""

    _esm = script(RESULT) + _TAIL % ("mountResult", RESULT)
    result = traitlets.Dict().tag(sync=True)

    def __init__(self, thing: Displayable) -> None:
        super().__init__(result=results.result_json(thing))
        self._begin(thing, ResultBackend(thing))
        if isinstance(thing, Debugger):
            _after_cells(self)

    def refresh(self) -> None:
        """Show the result as it is now."""
        self.result = results.result_json(self.shown)

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write it as a page that needs no kernel."""
        save_html(self.shown, path)


class SessionWidget(_Widget):
    """A view of a session; it follows what cells do to the session."""

    view = traitlets.Unicode().tag(sync=True)

    def __init__(self, session: Session, view: str) -> None:
        path = view_path(view)
        super().__init__(view=view, _esm=script(path) + _TAIL % ("mountView", path))
        self._begin(session, SessionBackend(session))
        _after_cells(self)

    def refresh(self) -> None:
        """Show the session as it is now."""
        self.send({"event": "changed"})

    def save_html(self, path: str | os.PathLike[str], **args: Any) -> None:
        """Write it as a page that needs no kernel."""
        save_html(self.shown, path, self.view, **args)


def _after_cells(widget: Any) -> None:
    """Refresh a widget after each cell, as long as it is there."""
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return
    known = weakref.ref(widget)

    def ran(*_: object) -> None:
        found = known()
        if found is None or found.comm is None:
            with contextlib.suppress(ValueError):
                shell.events.unregister("post_run_cell", ran)
        else:
            found.refresh()

    shell.events.register("post_run_cell", ran)
