"""`context_parallel`: one text over several ranks, whose attention goes around in a ring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....autograd.modes import no_grad
from ....ops.registry import COMPOSITES, F
from ....overrides import TorchFunctionMode
from ....tensor import Tensor
from ...collectives import all_gather_into_tensor
from ...device_mesh import DeviceMesh
from ...ring_attention import ring_attention

_ATTENTION = "nn.functional.scaled_dot_product_attention"


class _Ring(TorchFunctionMode):
    """Sends attention around the ranks of a mesh."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        self.group = mesh.get_group()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not COMPOSITES[_ATTENTION]:
            return func(*args, **(kwargs or {}))
        return self.attend(*args, **(kwargs or {}))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if attn_mask is not None:
            raise NotImplementedError(
                "context_parallel: attn_mask is not supported: no rank sees all keys; use is_causal=True, or no mask."
            )
        if dropout_p:
            raise NotImplementedError("context_parallel: dropout of attention is not supported; use dropout_p=0.")
        if not enable_gqa and key.shape[1] != query.shape[1]:
            raise ValueError(f"{key.shape[1]} key heads for {query.shape[1]} query heads need enable_gqa=True.")
        return ring_attention(query, key, value, self.group, is_causal=is_causal, scale=scale)


def order(length: int, ranks: int) -> list[int]:
    """Positions in the order in which ranks hold them: each one piece from the front, then one from the end.

    >>> from votive.distributed.tensor.experimental.context_parallel import order
    >>> order(8, 2)
    [0, 1, 6, 7, 2, 3, 4, 5]
    """
    if ranks == 1:
        return list(range(length))
    if length % (2 * ranks):
        raise ValueError(
            f"context_parallel: {length} positions on {ranks} ranks; their number must be a multiple of {2 * ranks}, "
            "since each rank holds a piece from the front and one from the end. Pad the text."
        )
    each = length // (2 * ranks)
    found: list[int] = []
    for r in range(ranks):
        for piece in (r, 2 * ranks - 1 - r):
            found += range(piece * each, (piece + 1) * each)
    return found


def _one(mesh: DeviceMesh) -> DeviceMesh:
    if mesh.ndim != 1:
        raise ValueError(f'context_parallel takes a mesh of one dimension, got {mesh.ndim}; pass mesh["cp"].')
    return mesh


@contextmanager
def context_parallel(
    mesh: DeviceMesh,
    *,
    buffers: Sequence[Tensor] | None = None,
    buffer_seq_dims: Sequence[int] | None = None,
    no_restore_buffers: set[Tensor] | None = None,
) -> Iterator[None]:
    """Inside of the block, `buffers` hold this rank's positions (along `buffer_seq_dims`), and
    `scaled_dot_product_attention` sees those of all ranks. Give all that depends on positions: tokens, labels, position
    ids. Behind the block buffers are whole again, apart from `no_restore_buffers`.

    >>> from votive.distributed.tensor.experimental import context_parallel
    >>> def attend():
    ...     votive.manual_seed(0)
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     x = votive.randn(1, 2, 8, 4)
    ...     whole = votive.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    ...     with context_parallel(mesh, buffers=[x, whole], buffer_seq_dims=[2, 2]):
    ...         part = votive.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    ...         return tuple(part.shape), votive.allclose(part, whole, atol=1e-6)
    >>> votive.distributed.simulate(attend, 2)
    [((1, 2, 4, 4), True), ((1, 2, 4, 4), True)]
    """
    given, dims = list(buffers or ()), list(buffer_seq_dims or ())
    if len(given) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    kept = {id(b) for b in no_restore_buffers or ()}
    if not kept <= {id(b) for b in given}:
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    ranks, me = _one(mesh).size(), mesh.get_local_rank()
    lengths = {b.shape[d] for b, d in zip(given, dims, strict=True)}
    if len(lengths) > 1:
        raise ValueError(f"context_parallel: buffers have {sorted(lengths)} positions; they must have equally many.")
    for b in given:
        if b.requires_grad:
            raise ValueError("context_parallel: buffers may not require grad; make them inside, or detach() them.")
    whole = [b.clone() for b in given]
    if given:
        (length,) = lengths
        mine = F.tensor(order(length, ranks)).chunk(ranks)[me]
        with no_grad():
            for b, d, full in zip(given, dims, whole, strict=True):
                part = full.index_select(d, mine.to(full.device))
                b.resize_(part.shape)
                b.copy_(part)
    try:
        with _Ring(mesh):
            yield
    finally:
        with no_grad():
            for b, full in zip(given, whole, strict=True):
                if id(b) not in kept:
                    b.resize_(full.shape)
                    b.copy_(full)


@no_grad()
def context_parallel_unshard(
    mesh: DeviceMesh, buffers: Sequence[Tensor], seq_dims: Sequence[int], load_balancer: None = None
) -> list[Tensor]:
    """What ranks computed for their positions, put together in the order of the text.

    >>> from votive.distributed.tensor.experimental import context_parallel, context_parallel_unshard
    >>> def back():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     x = votive.arange(8)
    ...     with context_parallel(mesh, buffers=[x], buffer_seq_dims=[0]):
    ...         return x.tolist(), context_parallel_unshard(mesh, [x * 2], [0])[0].tolist()
    >>> votive.distributed.simulate(back, 2)[1]
    ([2, 3, 4, 5], [0, 2, 4, 6, 8, 10, 12, 14])
    """
    if load_balancer is not None:
        raise NotImplementedError("context_parallel_unshard: load_balancer is not supported; leave it out.")
    ranks, found = _one(mesh).size(), []
    for b, d in zip(buffers, seq_dims, strict=True):
        front = b.movedim(d, 0).contiguous()
        every = front.new_empty((ranks * front.shape[0], *front.shape[1:]))
        all_gather_into_tensor(every, front, mesh.get_group())
        places = F.tensor(order(every.shape[0], ranks)).argsort().to(every.device)
        found.append(every.index_select(0, places).movedim(0, d).contiguous())
    return found
