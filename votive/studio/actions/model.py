"""Actions about the model: what it is, which there are, loading another one."""

from __future__ import annotations

from typing import Annotated, Any

from ..arguments import Bounds
from ..jobs import Job
from ..shelf import memory
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
    """The models that can be loaded, how large they are, the folders they lie in, and the memory there is."""
    now = job.workspace.loading.name if job.workspace.loading is not None else None
    library = job.workspace.library
    models = [{**n, "current": n["name"] == now} for n in library.names()]
    return {"models": models, "folders": [str(f) for f in library.shelf.folders], "memory": memory()}


@action("model.locate", needs_model=False, computes=False)
def locate(
    job: Job, path: Annotated[str, Bounds(0, 4000)] = "", size: Annotated[int, Bounds(0, 2**53)] | None = None
) -> dict[str, Any]:
    """The name of a model that is told by its path, or of a dropped file by its name and size."""
    library = job.workspace.library
    if size is None:
        return {"name": library.allow(path)}
    found = library.shelf.dropped(path, size)
    if found is None:
        where = ", ".join(map(str, library.shelf.folders)) or "none"
        raise FileNotFoundError(
            f"A browser does not tell where {path!r:.100} lies, and it is not in the folders that this studio may read "
            f"({where}). Paste its path, or start the studio with --models FOLDER."
        )
    return {"name": library.allow(str(found))}


@action("model.download", needs_model=False, computes=False)
def download(job: Job, name: Annotated[str, Bounds(1, 200)]) -> dict[str, Any]:
    """Fetch a repository from the hub; it can be loaded then."""
    return {"name": job.workspace.library.fetch(name, job.progress)}


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
