"""Values of a model on disk, shuffled and in batches, in bounded memory. Knows files and addresses, no model class.

A folder has `manifest.json` and one safetensors file per shard, each written whole or not at all. Which rows are in
which shard follows from the manifest, so writing goes on after a kill where it was, and the shards are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import votive

from ...io.safetensors import SafetensorsFile, save_file
from ...nn import Module
from ...serialization import FileFormatError
from ...serialization.atomic import clear_unfinished, replacing
from ...tensor import Tensor
from ...train.progress import Display, Pace, Report, display
from .. import values
from ..capture import capture
from ..session_file import model_hash

_MANIFEST, _VERSION = "manifest.json", 1
DTYPES = {"bfloat16": votive.bfloat16, "float16": votive.float16, "float32": votive.float32}
# Of a manifest, which anybody may have written.
_MOST = 1 << 48


class Rows:
    """Rows in memory that can be shuffled again and again: what a store gives, for what fits.

    Several tensors are read together, such as what a transcoder reads and what it shall give.

    >>> rows = votive.glass.features.Rows(votive.arange(4.0).reshape(4, 1))
    >>> [len(x) for x, in rows.epoch(3)], len(rows)
    ([3, 1], 4)
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors or any(len(t) != len(tensors[0]) for t in tensors):
            raise ValueError(f"Rows: tensors of the same length, got {[tuple(t.shape) for t in tensors]}.")
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def _sizes(self, epoch: int, *, seed: int = 0, shuffle: bool = True) -> list[tuple[list[int], int]]:
        """The parts that are in memory one after another: which shards, and how many rows."""
        return [([0], len(self))]

    def _part(self, shards: list[int]) -> list[Tensor]:
        """The rows of some shards."""
        return list(self.tensors)

    def epoch(
        self, batch_size: int, *, epoch: int = 0, seed: int = 0, shuffle: bool = True, start: int = 0
    ) -> Iterator[tuple[Tensor, ...]]:
        """All rows once, in batches; the order follows from `seed` and `epoch`, and `start` leaves batches out."""
        if batch_size < 1:
            raise ValueError(f"Rows: batch_size must be at least 1, got {batch_size}.")
        for number, (shards, rows) in enumerate(self._sizes(epoch, seed=seed, shuffle=shuffle)):
            count = -(-rows // batch_size)
            if start >= count:
                start -= count
                continue
            found = self._part(shards)
            order = np.random.default_rng((seed, epoch, number)).permutation(rows) if shuffle else np.arange(rows)
            for i in range(start, count):
                index = votive.from_numpy(order[i * batch_size : (i + 1) * batch_size])
                yield tuple(t.index_select(0, index) for t in found)
            start = 0

    def batches(self, batch_size: int, *, seed: int = 0, start: int = 0) -> Iterator[tuple[Tensor, ...]]:
        """Batches without end, epoch after epoch, from the one with number `start` on."""
        epoch = 0
        if not len(self):
            raise ValueError("Rows: there are none.")
        while True:
            count = sum(-(-rows // batch_size) for _, rows in self._sizes(epoch, seed=seed))
            if start < count:
                yield from self.epoch(batch_size, epoch=epoch, seed=seed, start=start)
                start = count
            start -= count
            epoch += 1


class ActivationStore(Rows):
    """The values that `collect` has written; give it to a trainer.

    `buffer` is how many shards are in memory at a time: rows are shuffled among these, and shards at random.

    >>> import tempfile
    >>> net = votive.nn.Sequential(votive.nn.Embedding(9, 4), votive.nn.Linear(4, 4))
    >>> store = votive.glass.features.collect(net, votive.zeros(6, 5, dtype=votive.int64), "1", tempfile.mkdtemp())
    >>> len(store), store.sites, store.widths
    (30, ('1',), (4,))
    """

    def __init__(self, folder: str | os.PathLike[str], *, buffer: int = 4) -> None:
        if buffer < 1:
            raise ValueError(f"ActivationStore: buffer must be at least 1, got {buffer}.")
        self.folder, self.buffer = Path(folder), buffer
        m = self.manifest = read_manifest(self.folder)
        self.sites, self.widths = tuple(m["sites"]), tuple(m["widths"])
        self.counts = shard_rows(m)
        missing = [i for i in range(len(self.counts)) if not shard_path(self.folder, i).is_file()]
        if missing:
            raise FileNotFoundError(
                f"ActivationStore: {len(missing)} of {len(self.counts)} shards in {self.folder} are not there yet; "
                "call collect() as before, and it goes on."
            )

    def __len__(self) -> int:
        return sum(self.counts)

    def _sizes(self, epoch: int, *, seed: int = 0, shuffle: bool = True) -> list[tuple[list[int], int]]:
        order = list(range(len(self.counts)))
        if shuffle:
            order = np.random.default_rng((seed, epoch)).permutation(len(order)).tolist()
        groups = [order[i : i + self.buffer] for i in range(0, len(order), self.buffer)]
        return [(g, sum(self.counts[i] for i in g)) for g in groups]

    def _part(self, shards: list[int]) -> list[Tensor]:
        found = [self.shard(i) for i in shards]
        return [votive.cat(t) if len(t) > 1 else t[0] for t in zip(*found, strict=True)]

    def shard(self, number: int) -> list[Tensor]:
        """The rows of one shard, a tensor per site."""
        path = shard_path(self.folder, number)
        dtype = DTYPES[self.manifest["dtype"]]
        with SafetensorsFile(path) as file:
            for i, width in enumerate(self.widths):
                there = file.info(str(i)) if str(i) in file.names() else None
                if there is None or there.shape != (self.counts[number], width) or there.dtype is not dtype:
                    raise FileFormatError(
                        f"ActivationStore: {path} should hold {self.counts[number]} rows of {width} numbers at "
                        f"{self.sites[i]!r}; it was damaged or is of another store."
                    )
            return [file.tensor(str(i)).clone() for i in range(len(self.widths))]

    def place(self, row: int) -> tuple[int, int]:
        """Which window a row is from and at which position, when rows are not shuffled."""
        per = self.manifest["context"] - self.manifest["skip"]
        return row // per, row % per + self.manifest["skip"]


def collect(
    model: Module,
    tokens: Any,
    sites: str | Sequence[str],
    folder: str | os.PathLike[str],
    *,
    context: int = 128,
    batch_size: int = 16,
    shard_rows: int = 1 << 16,
    skip: int = 0,
    dtype: votive.dtype = votive.bfloat16,
    limit: int | None = None,
    progress: bool | Display | None = False,
) -> ActivationStore:
    """Write what a model has at `sites` for every position of a text; goes on where it was killed.

    `tokens` are windows (number, positions), or ids in a row, such as a `TokenFile` or several of them, which are cut
    into windows of `context`; what is left of each is left out. `skip` leaves out the first positions of windows,
    `limit` ends after so many windows. Sites are addresses, `:in` for what is read there; their
    rows are written side by side. Memory holds a shard of `shard_rows` rows, whatever the text's length.

    >>> import tempfile
    >>> net = votive.nn.Sequential(votive.nn.Embedding(9, 4), votive.nn.Linear(4, 2))
    >>> ids = votive.arange(9).repeat(3)
    >>> store = votive.glass.features.collect(net, ids, ["1:in", "1"], tempfile.mkdtemp(), context=9, skip=1)
    >>> [tuple(t.shape) for t in store.shard(0)]
    [(24, 4), (24, 2)]
    """
    wanted = (sites,) if isinstance(sites, str) else tuple(sites)
    name = str(dtype).removeprefix("votive.")
    if name not in DTYPES:
        raise ValueError(f"collect: dtype must be one of {', '.join(DTYPES)}, got {dtype}.")
    windows = Windows(tokens, context, limit)
    if not 0 <= skip < windows.context or not wanted:
        raise ValueError(
            f"collect: skip must be in 0..{windows.context - 1} and a site be given, got {skip}, {wanted}."
        )
    if batch_size < 1 or shard_rows < 1:
        raise ValueError(f"collect: batch_size and shard_rows must be above 0, got {batch_size}, {shard_rows}.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    clear_unfinished(folder)
    first = _values(model, windows.batch(0, 1), wanted, skip, dtype)
    per = windows.context - skip
    manifest = {
        "version": _VERSION,
        "sites": list(wanted),
        "widths": [int(t.shape[-1]) for t in first],
        "dtype": name,
        "context": windows.context,
        "skip": skip,
        "windows": len(windows),
        "shard_windows": max(1, -(-shard_rows // per // batch_size)) * batch_size,
        "tokens": windows.fingerprint(),
        "model": model_hash(model),
    }
    _begin(folder, manifest)
    _write(model, windows, wanted, folder, manifest, batch_size, dtype, display(progress))
    return ActivationStore(folder)


def _begin(folder: Path, manifest: dict[str, Any]) -> None:
    if (folder / _MANIFEST).is_file():
        there = read_manifest(folder)
        changed = sorted(k for k in manifest if manifest[k] != there.get(k))
        if changed:
            raise ValueError(
                f"collect: {folder} holds values made from something else ({', '.join(changed)} differ); give another "
                "folder, or remove it."
            )
        return
    with replacing(folder / _MANIFEST) as f:
        f.write(json.dumps(manifest, indent=1).encode())


def _write(
    model: Module,
    windows: Windows,
    sites: tuple[str, ...],
    folder: Path,
    manifest: dict[str, Any],
    batch_size: int,
    dtype: votive.dtype,
    shown: Display,
) -> None:
    counts, per = shard_rows(manifest), manifest["shard_windows"]
    missing = [i for i in range(len(counts)) if not shard_path(folder, i).is_file()]
    pace = Pace()
    shown.start(len(counts), len(counts) - len(missing))
    for done, number in enumerate(missing, len(counts) - len(missing) + 1):
        end = min((number + 1) * per, len(windows))
        parts: list[list[Tensor]] = []
        for start in range(number * per, end, batch_size):
            batch = windows.batch(start, min(start + batch_size, end))
            parts.append(_values(model, batch, sites, manifest["skip"], dtype))
        tensors = {str(i): votive.cat(list(t)) for i, t in enumerate(zip(*parts, strict=True))}
        save_file(tensors, shard_path(folder, number), {"shard": str(number)})
        pace.count(counts[number])
        pace.lap()
        left = (pace.step_seconds or 0.0) * (len(counts) - done)
        shown.update(Report(done, len(counts), 0, 0.0, 0.0, pace.rate, "rows", left, None))
    shown.stop()


def _values(model: Module, ids: Tensor, sites: tuple[str, ...], skip: int, dtype: votive.dtype) -> list[Tensor]:
    """The values of a batch at sites, rows of all positions."""
    device = next((p.device for p in model.parameters()), ids.device)
    # One capture each: what goes into a module and what comes out bear the same address.
    with ExitStack() as stack:
        stack.enter_context(votive.no_grad())
        seen = [stack.enter_context(capture(model, site)) for site in sites]
        model(ids.to(device))
    found = []
    for site, kept_there in zip(sites, seen, strict=True):
        if len(kept_there) != 1:
            raise ValueError(f"collect: {site!r} means {len(kept_there)} values; name one.")
        value = values.first(kept_there[next(iter(kept_there))])
        if value is None or value.dim() != 3 or tuple(value.shape[:2]) != tuple(ids.shape):
            shape = None if value is None else tuple(value.shape)
            raise ValueError(
                f"collect: {site!r} must be (samples, positions, features) of {tuple(ids.shape)}, is {shape}."
            )
        kept = value[:, skip:].flatten(0, 1).detach().to(device="cpu", dtype=dtype)
        if bool((kept.isinf() & value[:, skip:].flatten(0, 1).isfinite().to("cpu")).any()):
            raise OverflowError(f"collect: a value at {site!r} does not fit into {dtype}; use dtype=votive.float32.")
        found.append(kept)
    return found


class Windows:
    """A text, or several, as windows of the same length. Reads only what is asked for."""

    def __init__(self, tokens: Any, context: int, limit: int | None) -> None:
        several = isinstance(tokens, (list, tuple)) and len(tokens) > 0 and not isinstance(tokens[0], (int, np.integer))
        self.parts = [_ids(t) for t in (tokens if several else [tokens])]
        whole = [p for p in self.parts if p.ndim == 2]
        if whole and (len(whole) != len(self.parts) or len({p.shape[1] for p in whole}) > 1):
            raise ValueError("collect: give windows of one length, or ids in a row.")
        self.context = int(whole[0].shape[1]) if whole else context
        if self.context < 1:
            raise ValueError(f"collect: context must be at least 1, got {self.context}.")
        self.counts = [len(p) if p.ndim == 2 else len(p) // self.context for p in self.parts]
        self.count = sum(self.counts) if limit is None else min(limit, sum(self.counts))
        if self.count < 1:
            raise ValueError(f"collect: the text has no window of {self.context} tokens.")

    def __len__(self) -> int:
        return self.count

    def batch(self, start: int, end: int) -> Tensor:
        """Windows `start` to `end` as one tensor."""
        return votive.from_numpy(np.stack([self._window(i) for i in range(start, min(end, self.count))]))

    def _window(self, number: int) -> np.ndarray[Any, Any]:
        for part, count in zip(self.parts, self.counts, strict=True):
            if number < count:
                row = part[number] if part.ndim == 2 else part[number * self.context : (number + 1) * self.context]
                return np.asarray(row).astype(np.int64)
            number -= count
        raise IndexError(number)

    def fingerprint(self) -> str:
        """What tells this text from others."""
        found = hashlib.sha256(str((self.context, self.count)).encode())
        for part in self.parts:
            for start in range(0, len(part), 1 << 20):
                found.update(np.ascontiguousarray(part[start : start + (1 << 20)]).astype("<i8").tobytes())
        return found.hexdigest()


def _ids(tokens: Any) -> np.ndarray[Any, Any]:
    """A text's tokens as an array."""
    found = tokens.array if hasattr(tokens, "array") else tokens
    found = found.detach().cpu().numpy() if isinstance(found, Tensor) else np.asarray(found)
    if found.ndim not in (1, 2) or found.dtype.kind not in "iu":
        raise TypeError(f"collect: tokens must be integers, in rows or windows; got {found.dtype}, {found.shape}.")
    return found


# --- the manifest -------------------------------------------------------------------------------


def shard_path(folder: Path, number: int) -> Path:
    """The file of a shard."""
    return folder / f"shard-{number:06d}.safetensors"


def shard_rows(manifest: dict[str, Any]) -> list[int]:
    """How many rows each shard has."""
    per, left, counts = manifest["shard_windows"], manifest["windows"], []
    while left > 0:
        counts.append(min(per, left) * (manifest["context"] - manifest["skip"]))
        left -= per
    return counts


def read_manifest(folder: Path) -> dict[str, Any]:
    """A manifest that makes sense, or a FileFormatError."""
    path = folder / _MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"ActivationStore: there is no {_MANIFEST} in {folder}; collect() writes one.")
    if path.stat().st_size > 1 << 20:
        raise FileFormatError(f"ActivationStore: {path} is too long for a manifest.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as e:
        raise FileFormatError(f"ActivationStore: {path} is no JSON: {e}.") from None
    problem = _problem(found)
    if problem:
        raise FileFormatError(f"ActivationStore: {path}: {problem}.")
    return dict(found)


def _problem(m: Any) -> str:
    if not isinstance(m, dict) or m.get("version") != _VERSION:
        return f"no manifest of version {_VERSION}"
    for name in ("context", "windows", "shard_windows", "skip"):
        if type(m.get(name)) is not int or not (0 if name == "skip" else 1) <= m[name] < _MOST:
            return f"{name} is {m.get(name)!r}"
    sites, widths = m.get("sites"), m.get("widths")
    if not isinstance(sites, list) or not sites or not all(isinstance(s, str) for s in sites):
        return "sites are no list of names"
    if not isinstance(widths, list) or len(widths) != len(sites) or not all(type(w) is int and w > 0 for w in widths):
        return "widths are not one size per site"
    if m["skip"] >= m["context"] or m["windows"] // m["shard_windows"] > 1_000_000:
        return "its sizes make no sense"
    return "" if m.get("dtype") in DTYPES else f"dtype is {m.get('dtype')!r}"
