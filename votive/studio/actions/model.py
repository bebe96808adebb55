"""Actions about the model: what it is, which there are, loading another one."""

from __future__ import annotations

from typing import Annotated, Any

from ..arguments import Bounds
from ..jobs import Job
from . import action


@action("model.info", computes=False)
def info(job: Job) -> dict[str, Any]:
    """Name, sizes, parts and modules of the workspace's model."""
    loaded = job.workspace.loaded
    if getattr(loaded, "described", True):
        return loaded.info()
    with job.turn():  # it is run once, to see in which order its modules are
        return loaded.info()


@action("model.list", needs_model=False, computes=False)
def listed(job: Job) -> dict[str, Any]:
    """The models that can be loaded."""
    now = job.workspace.loading.name if job.workspace.loading is not None else None
    names = job.workspace.library.names()
    return {"models": [{**n, "current": n["name"] == now} for n in names]}


@action("model.load", needs_model=False, computes=False, changes=True)
def load(job: Job, name: Annotated[str, Bounds(1, 300)]) -> dict[str, Any]:
    """Take another model; the session, which is about the old one, ends."""
    workspace = job.workspace
    wanted = workspace.library.request(name)
    wanted.wait(lambda loading: job.progress(loading.done, loading.total, loading.text))
    if workspace.loading is None or workspace.loading is not wanted:
        workspace.session = None
        workspace.loading = wanted
        for line in wanted.loaded.lines() if wanted.loaded is not None else ():
            workspace.log(job, line)
    return workspace.loaded.info()
