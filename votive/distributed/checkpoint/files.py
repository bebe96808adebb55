"""A folder of safetensors files, one from each rank, and an index that says where which rows of which tensor are.

Whoever reads needs nothing of the ranks that wrote: rows are taken from where they are. A folder appears as a whole or
not at all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...autograd.modes import no_grad
from ...core import dtype as dt
from ...core.similar import similar
from ...io import safetensors
from ...ops.registry import F
from ...serialization.atomic import replacing, sync_folder
from ...tensor import Tensor
from ..errors import DistError
from ..fsdp.sharding import sharding_of
from ..group import ProcessGroup
from ..objects import all_gather_object
from ..tensor.stored import as_rows, filled, is_spread, spread_groups, whole_shape
from ..world import group_of, is_initialized
from .leaves import decoded, encoded, leaves, replace

INDEX = "index.json"
FORMAT = "votive sharded checkpoint 1"


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str],
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Write a state to a folder; every rank calls it and writes what it alone holds. All must see the same disk.

    >>> import tempfile
    >>> from votive.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save({"w": votive.arange(3.0), "step": 5}, checkpoint_id=f"{folder}/a", no_dist=True)
    ...     state = {"w": votive.zeros(3), "step": 0}
    ...     checkpoint.load(state, checkpoint_id=f"{folder}/a", no_dist=True)
    >>> state
    {'w': tensor([0., 1., 2.]), 'step': 5}
    """
    group = group_for(process_group, no_dist)
    writing = Writing(state_dict, Path(checkpoint_id), group)
    try:
        for step in writing.steps:
            told(group, step)
    except BaseException:
        writing.abandon()
        raise


class Writing:
    """A checkpoint on its way to disk: who writes what is agreed on when it is made, by all ranks."""

    def __init__(self, state: dict[str, Any], target: Path, group: ProcessGroup | None) -> None:
        self.rank = 0 if group is None else group.rank()
        self.target, self.begun = target, target.with_name(target.name + ".writing")
        given = leaves(state)
        if group is None:
            _refuse_parts(given)
        values = {name: as_rows(value) for name, value in given.items()}
        mine = {name: _described(t) for name, t in values.items() if isinstance(t, Tensor)}
        self.plans = told(
            group, lambda: (mine, {n: encoded(n, v) for n, v in values.items() if not isinstance(v, Tensor)})
        )
        self.writers = _assigned([plan for plan, _ in self.plans])
        self.names = [f"part-{r:05}-of-{len(self.plans):05}.safetensors" for r in range(len(self.plans))]
        self.own: dict[str, Tensor] = {}
        seen: set[int] = set()
        for (name, key), r in self.writers.items():
            if r == self.rank:
                memory = id(values[name]._storage.root)
                # A file keeps no two names of one memory, such as weights that are tied.
                self.own[key] = values[name].detach().clone() if memory in seen else values[name].detach()
                seen.add(memory)

    @no_grad()
    def snapshot(self) -> None:
        """Keep what tensors hold now, in main memory: they may be written from here on."""
        self.own = {key: t.to("cpu", copy=True) for key, t in self.own.items()}

    @property
    def steps(self) -> tuple[Callable[[], None], ...]:
        """What all ranks do, one after the other, once all have done the one before."""
        return self.prepare, self.write, self.finish

    def abandon(self) -> None:
        """Give back the room of a checkpoint that failed; the one before it stays."""
        if self.rank == 0:
            shutil.rmtree(self.begun, ignore_errors=True)

    def prepare(self) -> None:
        """Make room for the files."""
        if self.rank == 0:
            shutil.rmtree(self.begun, ignore_errors=True)
            self.begun.mkdir(parents=True)

    def write(self) -> None:
        """Write this rank's file."""
        if self.own:
            safetensors.save_file(self.own, self.begun / self.names[self.rank])

    def finish(self) -> None:
        """Let the checkpoint appear, once all have written."""
        if self.rank == 0:
            with replacing(self.begun / INDEX) as file:
                file.write(json.dumps(_index(self.plans, self.writers, self.names), indent=1).encode())
            _swap(self.begun, self.target)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str],
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Read a folder into a state that is there: tensors are written in place, each rank's with its own rows.

    >>> import tempfile
    >>> from votive.distributed import checkpoint, fsdp
    >>> def train(folder):
    ...     model = fsdp.fully_shard(votive.nn.Linear(2, 4))
    ...     checkpoint.save({"model": model.state_dict()}, checkpoint_id=folder)
    ...     return model.weight.full_tensor().sum().item()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = votive.distributed.simulate(train, 2, f"{folder}/a")[0]
    ...     alone = votive.nn.Linear(2, 4)
    ...     checkpoint.load({"model": alone.state_dict()}, checkpoint_id=f"{folder}/a", no_dist=True)
    >>> alone.weight.sum().item() == written
    True
    """
    group = group_for(process_group, no_dist)
    told(group, lambda: _read(state_dict, Path(checkpoint_id)))


def group_for(group: ProcessGroup | None, alone: bool) -> ProcessGroup | None:
    return None if alone or (group is None and not is_initialized()) else group_of(group)


def told(group: ProcessGroup | None, do: Any) -> list[Any]:
    """What each rank gives; an error on one of them is raised on all, so that nobody waits for it."""
    if group is None:
        return [do()]
    try:
        mine: tuple[Any, str | None] = (do(), None)
        error: Exception | None = None
    except Exception as e:
        mine, error = (None, f"{type(e).__name__}: {e}"), e
    found: list[Any] = [None] * group.size()
    all_gather_object(found, mine, group)
    if error is not None:
        raise error
    for r, (_, wrong) in enumerate(found):
        if wrong is not None:
            raise DistError(f"checkpoint: rank {group.global_rank(r)} has failed with {wrong}")
    return [value for value, _ in found]


# --- writing ----------------------------------------------------------------------------------


def _refuse_parts(values: dict[str, Any]) -> None:
    """Raise where a process that writes alone has parts of a tensor only."""
    for name, value in values.items():
        if is_spread(value) and any(g.size() > 1 for g in spread_groups(value)):
            raise ValueError(
                f"checkpoint.save: {name} lies on several ranks, of which each would write its part alone; leave out "
                "no_dist=True, or save its full_tensor()."
            )


def _described(t: Tensor) -> tuple[tuple[int, ...], str, int, int, int]:
    """(whole shape, type, first row, end of rows, bytes); a whole tensor has the rows -1."""
    spread = sharding_of(t)
    kind = str(t.dtype).rpartition(".")[2]
    if spread is None:
        return tuple(t.shape), kind, -1, -1, t.nbytes
    rows = spread.place()
    return spread.shape, kind, rows.start, rows.stop, t.nbytes


def _assigned(plans: Sequence[dict[str, Any]]) -> dict[tuple[str, str], int]:
    """Who writes what, (name, name in its file): of those who hold the same, who has least to write."""
    holders: dict[tuple[str, int], tuple[list[int], int]] = {}
    for r, plan in enumerate(plans):
        for name, (shape, kind, start, stop, nbytes) in plan.items():
            first = next(p[name] for p in plans if name in p)
            if first[:2] != (shape, kind) or (first[2] < 0) != (start < 0):
                raise ValueError(
                    f"checkpoint.save: {name} is {kind} {shape} on rank {r} and {first[1]} {first[0]} before."
                )
            if start < 0 or stop > start:
                holders.setdefault((name, start), ([], nbytes))[0].append(r)
    written = [0] * len(plans)
    found: dict[tuple[str, str], int] = {}
    for (name, start), (ranks, nbytes) in holders.items():
        r = min(ranks, key=lambda one: written[one])
        written[r] += nbytes
        found[name, name if start < 0 else f"{name}@{start}"] = r
    return found


def _index(plans: Sequence[Any], writers: dict[tuple[str, str], int], names: Sequence[str]) -> dict[str, Any]:
    tensors: dict[str, Any] = {}
    for (name, key), r in writers.items():
        shape, kind, start, stop, _ = plans[r][0][name]
        entry = tensors.setdefault(name, {"shape": list(shape), "dtype": kind, "parts": []})
        entry["parts"].append([start, stop, names[r], key])
    # Tensors without any number are on no rank.
    for plan, _ in plans:
        for name, (shape, kind, *_) in plan.items():
            tensors.setdefault(name, {"shape": list(shape), "dtype": kind, "parts": []})
    # Of what several ranks have, the first one's counts.
    values = {name: value for _, own in reversed(plans) for name, value in own.items()}
    return {"format": FORMAT, "ranks": len(plans), "tensors": tensors, "values": values}


def _swap(begun: Path, target: Path) -> None:
    """Put the new folder where the old one is."""
    old = target.with_name(target.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    begun.rename(target)
    sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


# --- reading ----------------------------------------------------------------------------------


def opened_index(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Where a checkpoint is, and what is in it."""
    if not folder.exists():
        # A process that was killed between two renames has left the old one beside it.
        old = folder.with_name(folder.name + ".old")
        folder = old if (old / INDEX).exists() else folder
    if not (folder / INDEX).exists():
        raise FileNotFoundError(f"checkpoint.load: there is no {INDEX} in {folder}; it is written by checkpoint.save.")
    index: dict[str, Any] = json.loads((folder / INDEX).read_text())
    if index.get("format") != FORMAT:
        raise ValueError(f"checkpoint.load: {folder / INDEX} has the format {index.get('format')!r}, not {FORMAT!r}.")
    return folder, index


def read_whole(folder: Path, name: str) -> Tensor:
    """One tensor of a checkpoint, of whatever shape, in main memory."""
    folder, index = opened_index(folder)
    if name not in index["tensors"]:
        raise KeyError(f"{name} is not in the checkpoint {folder}.")
    entry = index["tensors"][name]
    found = F.empty(entry["shape"], dtype=getattr(dt, entry["dtype"]))
    files: dict[str, safetensors.SafetensorsFile] = {}
    try:
        _fill(found, entry, folder, files)
    finally:
        for file in files.values():
            file.close()
    return found


def _read(state: dict[str, Any], folder: Path) -> None:
    folder, index = opened_index(folder)
    files: dict[str, safetensors.SafetensorsFile] = {}
    # Everything is checked before the first number is written.
    for name, value in leaves(state).items():
        _check(name, value, index)

    def found(name: str, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return decoded(index["values"][name])
        filled(value, lambda t: _fill(t, index["tensors"][name], folder, files))
        return value

    try:
        replace(state, found)
    finally:
        for file in files.values():
            file.close()


def _check(name: str, value: Any, index: dict[str, Any]) -> None:
    known = index["tensors"] if isinstance(value, Tensor) else index["values"]
    if name not in known:
        near = similar(name, list(known))
        hint = f"; did you mean {near[0]}?" if near else "."
        raise KeyError(f"checkpoint.load: {name} is not in the checkpoint{hint}")
    if not isinstance(value, Tensor):
        return
    shape = whole_shape(value)
    entry = known[name]
    if tuple(entry["shape"]) != shape:
        raise ValueError(f"checkpoint.load: {name} has the shape {tuple(entry['shape'])} there and {shape} here.")
    kind = str(value.dtype).rpartition(".")[2]
    if kind != entry["dtype"]:
        raise ValueError(
            f"checkpoint.load: {name} is {entry['dtype']} there and {kind} here; convert the module first."
        )


@no_grad()
def _fill(t: Tensor, entry: dict[str, Any], folder: Path, files: dict[str, Any]) -> None:
    def opened(file: str) -> safetensors.SafetensorsFile:
        if file not in files:
            files[file] = safetensors.SafetensorsFile(folder / file)
        return files[file]

    spread = sharding_of(t)
    rows = slice(0, t.shape[0] if t.dim() else 1) if spread is None else spread.place()
    for start, stop, file, key in entry["parts"]:
        if start < 0 and spread is None:
            t.copy_(opened(file).tensor(key))
            continue
        first, last = (0, entry["shape"][0]) if start < 0 else (start, stop)
        a, b = max(first, rows.start), min(last, rows.stop)
        if a < b:
            t[a - rows.start : b - rows.start].copy_(opened(file).slice(key, slice(a - first, b - first)))
