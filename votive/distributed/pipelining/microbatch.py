"""Batches cut into microbatches, and results put together again. Knows tensors, not stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ops.registry import F
from ...tensor import Tensor


class TensorChunkSpec:
    """A tensor is cut along a dimension.

    >>> from votive.distributed.pipelining import TensorChunkSpec
    >>> TensorChunkSpec(0)
    TensorChunkSpec(0)
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """A spec for each of the positional arguments."""
        return tuple(TensorChunkSpec(dim) for dim in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """A spec for each of the named arguments."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class Replicate:
    """A value is given to every microbatch as it is.

    >>> from votive.distributed.pipelining import Replicate, split_args_kwargs_into_chunks
    >>> split_args_kwargs_into_chunks((votive.ones(2),), None, 2, (Replicate(),))[0][1][0].shape
    votive.Size([2])
    """

    def __repr__(self) -> str:
        return "Replicate()"


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Sequence[Any] | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """Arguments of a whole batch as those of `chunks` microbatches: tensors along dimension 0, unless a spec says so.

    >>> from votive.distributed.pipelining import split_args_kwargs_into_chunks
    >>> args, kwargs = split_args_kwargs_into_chunks((votive.arange(4),), {"scale": 2.0}, 2)
    >>> [a[0].tolist() for a in args], kwargs
    ([[0, 1], [2, 3]], [{'scale': 2.0}, {'scale': 2.0}])
    """
    kwargs = kwargs or {}
    if args_chunk_spec is None:
        args_chunk_spec = [None] * len(args)
    if len(args_chunk_spec) != len(args):
        raise ValueError(f"args_chunk_spec has {len(args_chunk_spec)} specs for {len(args)} positional arguments.")
    specs = kwargs_chunk_spec or {}
    unknown = [name for name in specs if name not in kwargs]
    if unknown and kwargs:
        raise ValueError(f"kwargs_chunk_spec names {unknown[0]!r}, which is not among the arguments {list(kwargs)}.")
    columns = [
        _split(f"argument {i}", value, spec, chunks)
        for i, (value, spec) in enumerate(zip(args, args_chunk_spec, strict=True))
    ]
    named = {name: _split(f"argument {name}", value, specs.get(name), chunks) for name, value in kwargs.items()}
    return (
        [tuple(column[i] for column in columns) for i in range(chunks)],
        [{name: column[i] for name, column in named.items()} for i in range(chunks)],
    )


def _split(what: str, value: Any, spec: Any, chunks: int) -> list[Any]:
    """A value as each microbatch gets it; containers are split member by member, with one spec or theirs."""
    if isinstance(spec, Replicate):
        return [value] * chunks
    if isinstance(value, Tensor):
        return _cut(what, value, _dim(what, spec), chunks)
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Tensor, list, tuple, dict)) for v in value):
        specs = spec if isinstance(spec, (list, tuple)) else [spec] * len(value)
        if len(specs) != len(value):
            raise ValueError(f"{what} has {len(value)} members, and its chunk spec {len(specs)}.")
        rows = [_split(what, v, s, chunks) for v, s in zip(value, specs, strict=True)]
        return [type(value)(row[i] for row in rows) for i in range(chunks)]
    if isinstance(value, dict):
        specs_of = spec if isinstance(spec, dict) else dict.fromkeys(value, spec)
        table = {k: _split(f"{what}[{k!r}]", v, specs_of.get(k), chunks) for k, v in value.items()}
        return [{k: column[i] for k, column in table.items()} for i in range(chunks)]
    return [value] * chunks


def _dim(what: str, spec: Any) -> int:
    if spec is None:
        return 0
    if not isinstance(spec, TensorChunkSpec):
        raise TypeError(f"{what}: a chunk spec is a TensorChunkSpec or Replicate, got {type(spec).__name__}.")
    return spec.split_dim


def _cut(what: str, t: Tensor, dim: int, chunks: int) -> list[Tensor]:
    if not t.dim():
        raise ValueError(f"{what} is a tensor without dimensions, which cannot be cut; give it the spec Replicate().")
    size = t.shape[dim]
    if size < chunks:
        raise ValueError(
            f"{what} has {size} rows along dimension {dim}, which are too few for {chunks} microbatches; give larger "
            "batches, or fewer microbatches to the schedule."
        )
    found: list[Tensor] = list(F.tensor_split(t, chunks, dim))
    return found


def merge_chunks(chunks: Sequence[Any], chunk_spec: Any = None) -> Any:
    """Results of microbatches as that of the whole batch: tensors along dimension 0, unless a spec says so.

    >>> from votive.distributed.pipelining import merge_chunks
    >>> merge_chunks([votive.zeros(1), votive.ones(2)])
    tensor([0., 1., 1.])
    """
    if not chunks:
        raise ValueError("merge_chunks: there is no result of any microbatch.")
    first = chunks[0]
    if isinstance(chunk_spec, Replicate):
        return first
    if isinstance(first, Tensor):
        if not first.dim():
            if chunk_spec is not None:
                raise ValueError("merge_chunks: tensors without dimensions can only be stacked; give no spec.")
            return F.stack(list(chunks))
        return F.cat(list(chunks), _dim("merge_chunks", chunk_spec))
    if isinstance(first, (list, tuple)):
        specs = chunk_spec if isinstance(chunk_spec, (list, tuple)) else [chunk_spec] * len(first)
        return type(first)(merge_chunks([c[i] for c in chunks], specs[i]) for i in range(len(first)))
    if isinstance(first, dict):
        specs_of = chunk_spec if isinstance(chunk_spec, dict) else dict.fromkeys(first, chunk_spec)
        return {k: merge_chunks([c[k] for c in chunks], specs_of.get(k)) for k in first}
    return first
