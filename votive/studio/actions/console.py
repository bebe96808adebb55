"""Actions about the console: what was done, as Python."""

from __future__ import annotations

from typing import Any

from ..jobs import Job
from . import action


@action("console.log", needs_model=False, computes=False)
def log(job: Job) -> dict[str, Any]:
    """The lines so far."""
    return {"lines": list(job.workspace.lines)}
