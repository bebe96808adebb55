"""Actions about the model: what it is, which there are, loading another one."""

from __future__ import annotations

from typing import Annotated, Any

from ..arguments import Within
from ..jobs import Job
from . import action


@action("model.info", computes=False)
def info(job: Job) -> dict[str, Any]:
    """Name, sizes, parts and modules of the room's model."""
    return job.room.loaded.info()


@action("model.list", needs_model=False, computes=False)
def listed(job: Job) -> dict[str, Any]:
    """The models that can be loaded."""
    now = job.room.loading.name if job.room.loading is not None else None
    names = job.room.shelf.names()
    return {"models": [{**n, "current": n["name"] == now} for n in names]}


@action("model.load", needs_model=False, computes=False, changes=True)
def load(job: Job, name: Annotated[str, Within(1, 300)]) -> dict[str, Any]:
    """Take another model; the session, which is about the old one, ends."""
    room = job.room
    wanted = room.shelf.want(name)
    wanted.wait(lambda loading: job.progress(loading.done, loading.total, loading.text))
    if room.loading is None or room.loading is not wanted:
        room.session = None
        room.loading = wanted
        for line in wanted.loaded.lines() if wanted.loaded is not None else ():
            room.log(job, line)
    return room.loaded.info()
