"""Sparse tensors from their parts: `sparse_coo_tensor` and the compressed layouts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core import memory_format as formats
from ..core.memory_format import layout as Layout
from ..core.memory_format import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..ops.registry import F
from ..tensor import Tensor
from .indices import as_index
from .invariants import check_compressed, check_coo, wanted
from .tensor import BLOCKED, BY_ROWS, CompressedTensor, CooTensor, SparseTensor, compressed_tensor, coo

if TYPE_CHECKING:
    from ..core.device import DeviceLike
    from ..core.dtype import dtype as Dtype


def _as_values(values: Any, dtype: Any, device: Any) -> Tensor:
    made = values if isinstance(values, Tensor) else F.tensor(values)
    if dtype is not None or device is not None:
        made = made.to(device=device if device is not None else made.device, dtype=dtype or made.dtype)
    return made


def _finish(made: SparseTensor, pin_memory: bool, requires_grad: bool) -> Any:
    if pin_memory:
        raise NotImplementedError("pin_memory: not implemented for sparse tensors; pin indices and values.")
    if requires_grad:
        made.requires_grad_(True)
    return made


def sparse_coo_tensor(
    indices: Any,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """A sparse tensor in coordinate format: column `k` of `indices` says where `values[k]` stands.

    >>> votive.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 4)).to_dense()
    tensor([[0., 0., 3., 0.],
            [4., 0., 5., 0.]])
    """
    if values is None:
        size = tuple(int(n) for n in (size if size is not None else indices))
        at = F.zeros((len(size), 0), dtype=dt.int64, device=device)
        held = F.zeros((0,), dtype=dtype, device=device)
        return _finish(CooTensor.make(at, held, size, True), pin_memory, requires_grad)
    held = _as_values(values, dtype, device)
    at = as_index(indices, held.device)
    if at.dtype.is_inexact or at.dtype is dt.bool_:
        raise RuntimeError(f"indices must be an int64 tensor, got {at.dtype}.")
    at = at.to(dt.int64)
    if held.ndim == 0:
        held = held.expand(1 if at.ndim < 2 else at.shape[1])
    deep = wanted(check_invariants)
    if size is None:
        size = _inferred(at, held)
        deep = True
    size = tuple(int(n) for n in size)
    check_coo(at, held, size, deep=check_invariants is not False)
    at = at.detach()
    if is_coalesced and deep and at.shape[1] > 1:
        from .indices import ravel

        flat = ravel(at, size[: at.shape[0]])
        if bool((flat[1:] <= flat[:-1]).any()):
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    made = coo(at, held, size, bool(is_coalesced))
    if requires_grad and held._rg:
        made = made.detach()
    return _finish(made, pin_memory, requires_grad)


def _inferred(at: Tensor, held: Tensor) -> tuple[int, ...]:
    if at.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(at.shape)}")
    if at.shape[1] == 0:
        raise_on = at.shape[0]
        sizes: tuple[int, ...] = (0,) * raise_on
    else:
        if bool((at < 0).any()):
            raise RuntimeError(f"found negative index {int(at.min().item())} for dim 0")
        sizes = tuple(int(n) + 1 for n in at.amax(1).tolist()) if at.shape[0] else ()
    return (*sizes, *held.shape[1:])


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """A sparse tensor of one of the compressed layouts: CSR, CSC, BSR or BSC.

    >>> parts = ([0, 1, 2], [1, 0], [1.0, 2.0])
    >>> votive.sparse_compressed_tensor(*parts, (2, 2), layout=votive.sparse_csr).to_dense()
    tensor([[0., 1.],
            [2., 0.]])
    """
    layouts = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
    if layout not in layouts:
        raise RuntimeError(
            f"sparse_compressed_tensor: layout must be SparseCsr, SparseCsc, SparseBsr or SparseBsc, got {layout}."
        )
    held = _as_values(values, dtype, device)
    starts, plain = as_index(compressed_indices, held.device), as_index(plain_indices, held.device)
    if size is None:
        size = _inferred_compressed(layout, starts, plain, held)
    size = tuple(int(n) for n in size)
    check_compressed(layout, starts, plain, held, size, deep=wanted(check_invariants))
    made = compressed_tensor(layout, starts.detach(), plain.detach(), held, size)
    if requires_grad and held._rg:
        made = made.detach()
    return _finish(made, pin_memory, requires_grad)


def _inferred_compressed(layout: Layout, starts: Tensor, plain: Tensor, held: Tensor) -> tuple[int, ...]:
    batch = starts.ndim - 1
    inner = 2 if layout in BLOCKED else 0
    block = tuple(held.shape[batch + 1 : batch + 1 + inner]) or (1, 1)
    major = starts.shape[-1] - 1
    minor = int(plain.max().item()) + 1 if plain.numel() else 0
    rows, columns = (major, minor) if layout in BY_ROWS else (minor, major)
    more = tuple(held.shape[batch + 1 + inner :])
    return (*starts.shape[:-1], rows * block[0], columns * block[1], *more)


def _named(layout: Layout, first: str, second: str, what: str, example: str) -> Callable[..., Any]:
    """The constructor of one compressed layout."""

    def make(*args: Any, **kwargs: Any) -> Any:
        names = (first, second, "values", "size")
        if len(args) > len(names):
            raise TypeError(f"{layout.name}_tensor() takes at most 4 positional arguments, got {len(args)}")
        given: dict[str, Any] = dict(zip(names, args, strict=False))
        for name in names:
            if name in kwargs:
                if name in given:
                    raise TypeError(f"{layout.name}_tensor() got multiple values for argument {name!r}")
                given[name] = kwargs.pop(name)
        absent = [n for n in names[:3] if n not in given]
        if absent:
            raise TypeError(f"{layout.name}_tensor() missing required arguments: {', '.join(absent)}")
        kwargs.pop("layout", None)
        parts = (given[first], given[second], given["values"], given.get("size"))
        return sparse_compressed_tensor(*parts, layout=layout, **kwargs)

    make.__name__ = make.__qualname__ = f"{layout.name}_tensor"
    make.__doc__ = f"A sparse tensor in {what} format, of `{first}`, `{second}`, `values` and `size`.\n\n{example}"
    return make


_EXAMPLE = """>>> votive.sparse_{}_tensor([0, 1, 2], [0, 1], {}, (2, 2)).to_dense()
tensor([[1., 0.],
        [0., 2.]])
"""

sparse_csr_tensor = _named(
    sparse_csr, "crow_indices", "col_indices", "compressed sparse row", _EXAMPLE.format("csr", "[1.0, 2.0]")
)
sparse_csc_tensor = _named(
    sparse_csc, "ccol_indices", "row_indices", "compressed sparse column", _EXAMPLE.format("csc", "[1.0, 2.0]")
)
sparse_bsr_tensor = _named(
    sparse_bsr,
    "crow_indices",
    "col_indices",
    "block compressed sparse row",
    _EXAMPLE.format("bsr", "[[[1.0]], [[2.0]]]"),
)
sparse_bsc_tensor = _named(
    sparse_bsc,
    "ccol_indices",
    "row_indices",
    "block compressed sparse column",
    _EXAMPLE.format("bsc", "[[[1.0]], [[2.0]]]"),
)


def rebuild_coo(indices: Tensor, values: Tensor, shape: Any, coalesced: bool, requires_grad: bool) -> CooTensor:
    """Unpickle a COO tensor."""
    out = CooTensor.make(indices, values, shape, coalesced)
    out._rg = requires_grad
    return out


def rebuild_compressed(
    name: str, starts: Tensor, plain: Tensor, values: Tensor, shape: Any, requires_grad: bool
) -> CompressedTensor:
    """Unpickle a compressed tensor."""
    out = CompressedTensor.make(getattr(formats, name), starts, plain, values, shape)
    out._rg = requires_grad
    return out


def empty_like(
    x: SparseTensor, size: tuple[int, ...] | None = None, dtype: Dtype | None = None, device: DeviceLike | None = None
) -> Any:
    """A sparse tensor of the same layout without elements."""
    size = tuple(x.shape) if size is None else tuple(size)
    held = x._held.new_zeros((0, *x._held.shape[1:]), dtype=dtype, device=device) if isinstance(x, CooTensor) else None
    if isinstance(x, CooTensor):
        assert held is not None
        at = F.zeros((x.sparse_dim(), 0), dtype=dt.int64, device=held.device)
        held = held.reshape(0, *size[x.sparse_dim() :])
        return CooTensor.make(at, held, size, True)
    assert isinstance(x, CompressedTensor)
    lead = tuple(size[: x._batch])
    starts = F.zeros(x._starts.shape, dtype=x._starts.dtype, device=device or x.device)
    plain = F.zeros((*lead, 0), dtype=x._plain.dtype, device=device or x.device)
    inner = x._held.shape[x._batch + 1 :]
    values = x._held.new_zeros((*lead, 0, *inner), dtype=dtype, device=device)
    assert math.prod(values.shape) == 0
    return CompressedTensor.make(x._layout, starts, plain, values, size)
