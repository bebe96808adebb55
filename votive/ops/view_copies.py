"""Copying twins of the view operators: `permute_copy` and kin, never sharing memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import ShapeError, fail
from ..core.memory_format import contiguous_format
from .registry import F, composite
from .shape import view_
from .sizes import ints
from .strided import narrowed

if TYPE_CHECKING:
    from .types import Sequence, Tensor, dtype


def _fresh(result: Tensor | Sequence[Tensor]) -> Any:
    if isinstance(result, tuple):
        return tuple([F.clone(r, memory_format=contiguous_format) for r in result])
    return F.clone(result, memory_format=contiguous_format)


@composite(out=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of `length` elements from `start` on along a dimension.

    >>> votive.narrow_copy(votive.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    if dim >= max(input.ndim, 1):
        # torch raises RuntimeError for this one, IndexError for negative ones and in `narrow`.
        fail(ShapeError, "narrow_copy", f"dim={dim} is out of range for {input.ndim} dimensions.")
    return _fresh(F._slice(input, *narrowed("narrow_copy", input, dim, start, length), 1))


@composite(method=False, out=True)
def view_copy(input: Tensor, size: Sequence[int] | None = None, dtype: dtype | None = None) -> Tensor:
    """A copy in another shape, or of its bytes read as another dtype.

    >>> votive.view_copy(votive.tensor([1, 2]), (2, 1)).shape
    votive.Size([2, 1])
    """
    return _fresh(view_(input, dtype=dtype) if size is None else view_(input, size))


@composite(method=False, out=True)
def expand_copy(input: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """A copy with dimensions of size 1 stretched.

    >>> votive.expand_copy(votive.tensor([1]), (2,))
    tensor([1, 1])
    """
    return _fresh(F._expand(input, ints("expand_copy", "size", size)))


@composite(method=False, out=True)
def permute_copy(input: Tensor, dims: Sequence[int]) -> Tensor:
    """A copy with dimensions in another order.

    >>> votive.permute_copy(votive.zeros(2, 3), (1, 0)).shape
    votive.Size([3, 2])
    """
    return _fresh(F._permute(input, ints("permute_copy", "dims", dims)))


@composite(method=False, out=True)
def transpose_copy(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A copy with two dimensions exchanged.

    >>> votive.transpose_copy(votive.zeros(2, 3), 0, 1).shape
    votive.Size([3, 2])
    """
    return _fresh(F.transpose(input, dim0, dim1))


@composite(method=False, out=True)
def t_copy(input: Tensor) -> Tensor:
    """A copy of the transposed matrix.

    >>> votive.t_copy(votive.zeros(2, 3)).shape
    votive.Size([3, 2])
    """
    return _fresh(F.t(input))


@composite(method=False, out=True)
def squeeze_copy(input: Tensor, dim: int | None = None) -> Tensor:
    """A copy without dimensions of size 1.

    >>> votive.squeeze_copy(votive.zeros(1, 2)).shape
    votive.Size([2])
    """
    return _fresh(F.squeeze(input, dim))


@composite(method=False, out=True)
def unsqueeze_copy(input: Tensor, dim: int) -> Tensor:
    """A copy with a new dimension of size 1.

    >>> votive.unsqueeze_copy(votive.zeros(2), 0).shape
    votive.Size([1, 2])
    """
    return _fresh(F.unsqueeze(input, dim))


@composite(method=False, out=True)
def select_copy(input: Tensor, dim: int, index: int) -> Tensor:
    """A copy of one slice along a dimension.

    >>> votive.select_copy(votive.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """
    return _fresh(F.select(input, dim, index))


@composite(method=False, out=True)
def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A copy of a range along a dimension.

    >>> votive.slice_copy(votive.tensor([1, 2, 3]), 0, 1)
    tensor([2, 3])
    """
    return _fresh(F._slice(input, dim, start, end, step))


@composite(method=False, out=True)
def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of a diagonal.

    >>> votive.diagonal_copy(votive.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return _fresh(F.diagonal(input, offset, dim1, dim2))


@composite(method=False, out=True)
def as_strided_copy(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of a window on the memory of `input`.

    >>> votive.as_strided_copy(votive.tensor([1, 2, 3]), (2, 2), (1, 1))
    tensor([[1, 2],
            [2, 3]])
    """
    return _fresh(F.as_strided(input, size, stride, storage_offset))


@composite(method=False, out=True)
def unfold_copy(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A copy of the windows along a dimension.

    >>> votive.unfold_copy(votive.tensor([1, 2, 3]), 0, 2, 1)
    tensor([[1, 2],
            [2, 3]])
    """
    return _fresh(F.unfold(input, dimension, size, step))


@composite(method=False, out=True)
def alias_copy(input: Tensor) -> Tensor:
    """A copy of the whole tensor.

    >>> votive.alias_copy(votive.tensor([1, 2]))
    tensor([1, 2])
    """
    return F.clone(input)


@composite(method=False, out=True)
def detach_copy(input: Tensor) -> Tensor:
    """A copy without history.

    >>> votive.detach_copy(votive.tensor([1, 2]))
    tensor([1, 2])
    """
    return F.clone(input.detach())


@composite(method=False, out=True)
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> tuple[Any, ...]:
    """Copies of pieces of one size.

    >>> votive.split_copy(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    return _fresh(F.split(input, split_size, dim))


@composite(method=False, out=True)
def split_with_sizes_copy(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """Copies of pieces of given sizes.

    >>> votive.split_with_sizes_copy(votive.tensor([1, 2, 3]), (1, 2))
    (tensor([1]), tensor([2, 3]))
    """
    return _fresh(F.split_with_sizes(input, split_sizes, dim))


@composite(method=False, out=True)
def unbind_copy(input: Tensor, dim: int = 0) -> tuple[Any, ...]:
    """Copies of the slices along a dimension.

    >>> votive.unbind_copy(votive.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    return _fresh(F.unbind(input, dim))
