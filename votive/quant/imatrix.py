"""Importance matrices: how much the columns of weights matter, by llama.cpp's names of them or a model's.

A matrix has sums of squared inputs for each column of a weight, and how many inputs there were; for experts, stacked in
one tensor, both for each expert. Knows names of weights, no files and no model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .grid import Array
from .recipes import gguf_name

# Sums of squares, and how often they were added to: an array where there are experts.
Count = int | Array
Entry = tuple[Array, Count]
# A weight of one expert: the module that holds all of them, its number, what follows.
_EXPERT = re.compile(r"(.*\.)experts\.(\d+)\.(.*)")


class ImportanceMatrix(dict[str, Entry]):
    """Names of weights, llama.cpp's or a model's, to (sums of squared inputs, count of inputs).

    Sums are (columns,); those of stacked experts (experts, columns) with a count for each. `datasets`, `chunk_count`
    and `chunk_size` (inputs of a chunk) tell what it was made from.

    >>> votive.quant.ImportanceMatrix({"blk.0.ffn_up.weight": ([4.0, 8.0], 2)}).chunk_count
    1
    """

    def __init__(
        self,
        entries: Mapping[str, Any] | None = None,
        *,
        datasets: Sequence[str] = (),
        chunk_count: int = 1,
        chunk_size: int | None = None,
    ) -> None:
        super().__init__()
        for name, entry in (entries or {}).items():
            self[name] = checked(name, entry)
        most = max((int(np.max(count)) for _, count in self.values()), default=1)
        self.datasets, self.chunk_count = list(datasets), int(chunk_count)
        self.chunk_size = max(1, most // max(1, self.chunk_count)) if chunk_size is None else int(chunk_size)


def checked(name: str, given: Any) -> Entry:
    """Sums and counts as arrays; bare sums count as one input."""
    sums, count = given if isinstance(given, tuple) else (given, 1)
    values = np.asarray(sums, np.float32)
    if values.ndim not in (1, 2) or not values.size:
        raise ValueError(f"imatrix: {name!r} must have the shape (columns,) or (experts, columns), got {values.shape}.")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"imatrix: sums of squares of {name!r} must be finite and not negative.")
    counts = np.asarray(count, np.float64).reshape(-1)
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts > 2.0**53).any():
        raise ValueError(f"imatrix: counts of {name!r} must be whole numbers, not negative.")
    if values.ndim == 1 and counts.size == 1:
        return values, int(counts[0])
    if values.ndim == 1 or counts.size not in (1, len(values)):
        raise ValueError(f"imatrix: {name!r} has {counts.size} counts for sums of the shape {values.shape}.")
    return values, np.broadcast_to(counts, len(values)).astype(np.int64)


def means(entry: Entry) -> Array:
    """The mean squares of an entry; 1 where nothing was ever fed, so that all columns count alike."""
    sums, count = entry
    counts = np.asarray(count, np.float32)
    counts = counts[:, None] if counts.ndim else counts
    # Without a count the sums are what is known.
    means = np.where(counts > 0, sums / np.maximum(counts, 1), 1 if sums.ndim == 2 else sums)
    return np.asarray(means, np.float32)


def columns_of(imatrix: Mapping[str, Any], names: Iterable[str], shape: tuple[int, ...]) -> Array | None:
    """The importance of the columns of a weight of this shape, under the first of the names that is there.

    (columns,), or (experts, columns) for stacked experts; None where no name is there. Names of one expert's weight
    find its row of the experts' entry.
    """
    for name in names:
        for key, expert in keys(name):
            if key not in imatrix:
                continue
            found = means(checked(key, imatrix[key]))
            columns = shape[-1]
            if found.ndim == 1 and found.size != columns and found.size % columns == 0:
                # Older files do not tell where one expert ends.
                if expert is not None or len(shape) == 3:
                    found = found.reshape(-1, columns)
            if expert is not None and found.ndim == 2 and expert < len(found):
                found = found[expert]
            wanted = ((columns,), (shape[0], columns)) if len(shape) == 3 else ((columns,),)
            if found.shape not in wanted:
                raise ValueError(
                    f"imatrix: {key!r} has {' x '.join(map(str, found.shape))} columns, the weight {columns}"
                    f"{f' in each of {shape[0]} matrices' if len(shape) == 3 else ''}."
                )
            return _positive(found)
    return None


def by_all_names(imatrix: Mapping[str, Any]) -> dict[str, Entry]:
    """The entries under their names and under llama.cpp's, those of single experts stacked as its files have them.

    A name of llama.cpp's that several weights resemble is left out, as it would give one the importance of another.

    >>> from votive.quant.imatrix import by_all_names
    >>> sorted(by_all_names({"layers.0.mlp.up_proj.weight": ([4.0, 8.0], 2)}))
    ['blk.0.ffn_up.weight', 'layers.0.mlp.up_proj.weight']
    """
    found = {name: checked(name, entry) for name, entry in imatrix.items()}
    claims: dict[str, list[Entry]] = {}
    experts: dict[str, dict[int, Entry]] = {}
    for name, entry in found.items():
        for key, expert in keys(name)[1:]:
            if key.endswith(".other.weight") or key in found:
                continue
            if expert is None:
                claims.setdefault(key, []).append(entry)
            else:
                experts.setdefault(key, {})[expert] = entry
    alike = {key: entries[0] for key, entries in claims.items() if len(entries) == 1}
    return {**{key: _stacked(entries) for key, entries in experts.items()}, **alike, **found}


def _stacked(entries: Mapping[int, Entry]) -> Entry:
    """One entry for all experts; one that was never fed counts nothing."""
    columns = {sums.shape[-1] for sums, _ in entries.values()}
    if len(columns) != 1:
        raise ValueError(f"imatrix: experts of one layer have {sorted(columns)} columns.")
    sums = np.zeros((max(entries) + 1, columns.pop()), np.float32)
    counts = np.zeros(len(sums), np.int64)
    for expert, (values, count) in entries.items():
        sums[expert], counts[expert] = values, count
    return sums, counts


def _positive(found: Array) -> Array:
    """Matrices whose columns all count nothing are fitted as if all counted alike."""
    return np.where(found.any(axis=-1, keepdims=True), found, np.float32(1))


def keys(name: str) -> list[tuple[str, int | None]]:
    """What an entry may be called: as asked, or as llama.cpp calls the weight, perhaps among stacked experts."""
    keys: list[tuple[str, int | None]] = [(name, None)]
    module = name.removesuffix(".weight")
    like = gguf_name(module)
    expert = _EXPERT.fullmatch(module)
    if ".shared_expert" in module and like.startswith("blk."):
        keys.append((f"{like.removesuffix('.weight')}_shexp.weight", None))
    elif expert is not None and like.startswith("blk."):
        number = int(expert[2])
        keys.append((f"{like.removesuffix('.weight')}_exps.weight", number))
        keys.append((f"{like.removesuffix('.weight')}.{number}.weight", None))
    elif not name.startswith("blk."):
        keys.append((like, None))
    return keys


def chooser(imatrix: Mapping[str, Any]) -> Callable[[str, tuple[int, ...]], Array | None]:
    """A function for `votive.io.gguf.write(importance=...)`: the columns' importance by name and shape of a tensor."""
    return lambda name, shape: columns_of(imatrix, [name], shape) if len(shape) in (2, 3) else None
