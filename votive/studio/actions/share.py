"""The action that gives a session as one page, which needs no server."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ..arguments import Bounds
from ..jobs import Job
from . import action


@action("share.page", computes=False)  # each view that it holds takes its own turn
def page(job: Job, view: Annotated[str, Bounds(1, 40)] = "session") -> Any:
    """The session as a page of HTML with all its views inside, as bytes."""
    from ..html_export import save_html

    workspace = job.workspace
    job.progress(0, 1, "writing the page")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.html"
        save_html(workspace.session, path, view)
        made = path.read_bytes()
    job.progress(1, 1)
    workspace.log(job, f"votive.studio.save_html(session, 'session.html', {view!r})")
    return {"name": "session.html", "bytes": len(made)}, {"page": np.frombuffer(made, np.uint8)}
