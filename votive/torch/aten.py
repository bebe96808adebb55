"""Functions at the top of torch that are neither layers nor losses: hashes, copies of views."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Sequence
from typing import Any

import votive

from ..core import dtype as dt
from ..tensor import Tensor


def detach(input: Tensor) -> Tensor:
    """The same memory without history."""
    return input.detach()


def detach_(input: Tensor) -> Tensor:
    """Forget the history in place."""
    return input.detach_()


def get_device(input: Tensor) -> int:
    """The number of the GPU that a tensor lies on, -1 on the CPU."""
    return input.get_device()


def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is spread over processes: never."""
    return False


def range(start: float = 0, end: float | None = None, step: float = 1, **options: Any) -> Tensor:
    """Numbers from `start` to `end`, which is included; `arange` leaves it out."""
    if end is None:
        start, end = 0, start
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError("range: the bounds and the sign of the step do not fit together.")
    count = int((end - start) / step) + 1
    kind = options.pop("dtype", None) or votive.get_default_dtype()
    wide = dt.int64 if not kind.is_inexact else dt.float64
    return (votive.arange(count, dtype=wide, **options) * step + start).to(kind)


def hash_tensor(
    input: Tensor, dim: int | Sequence[int] = (), *, keepdim: bool = False, mode: int = 0, out: Tensor | None = None
) -> Tensor:
    """The exclusive or of all elements' bits, floating-point ones as float64, others as int64."""
    if mode != 0:
        raise RuntimeError(f"hash_tensor: the only mode is 0, got {mode}.")
    if input.dtype.is_complex:
        raise NotImplementedError("hash_tensor: complex numbers have no hash; hash view_as_real(x).")
    import numpy as np

    wide = input.detach().to(dt.float64 if input.dtype.is_floating_point else dt.int64).contiguous()
    bits = wide.view(dt.int64).cpu().numpy()
    dims = (dim,) if isinstance(dim, int) else tuple(dim) or tuple(int(d) for d in np.arange(input.ndim))
    reduce: Any = np.bitwise_xor.reduce
    found = reduce(bits, axis=dims, keepdims=keepdim) if dims else bits
    made = votive.tensor(np.asarray(found).view(np.uint64), device=input.device)
    return made if out is None else out.resize_(made.shape).copy_(made)


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` indices of elements that are not zero, with rows of `fill_value` where there are fewer."""
    found = input.nonzero()[:size]
    rest = found.new_full((size - len(found), found.shape[1]), fill_value)
    return votive.cat([found, rest])


def frobenius_norm(input: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """The root of the sum of squares over some dimensions."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    return votive.linalg.vector_norm(input, 2, dims or None, keepdim=keepdim)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    if dim is None and input.ndim != 2:
        raise RuntimeError(f"nuclear_norm: expected a tensor with 2 dimensions, but got {input.ndim}.")
    return votive.linalg.matrix_norm(input, "nuc", (0, 1) if dim is None else tuple(dim), keepdim=keepdim)


def view_as_real_copy(input: Tensor) -> Tensor:
    """A copy of a complex tensor as pairs of real numbers."""
    return votive.view_as_real(input).clone()


def view_as_complex_copy(input: Tensor) -> Tensor:
    """A copy of pairs of real numbers as complex ones."""
    return votive.view_as_complex(input).clone()


def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The whole tensor that `input` is a slice of, as a view of the same memory with the shape of `src`."""
    if step != 1:
        raise NotImplementedError(f"slice_inverse: the step must be 1, got {step}.")
    begin = 0 if start is None else start
    if end is not None and input.shape[dim] != len(builtins.range(*slice(begin, end).indices(src.shape[dim]))):
        raise RuntimeError(f"slice_inverse: the input is no slice {begin}:{end} of {tuple(src.shape)}.")
    offset = input.storage_offset() - begin * src.stride(dim)
    return input.as_strided(src.shape, src.stride(), offset)


def from_file(
    filename: str | os.PathLike[str],
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dt.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor whose memory is a file: written through where `shared`, a private copy otherwise."""
    import numpy as np

    kind = dtype or votive.get_default_dtype()
    count = size or 0
    if shared:
        with open(filename, "ab") as file:
            file.truncate(max(os.path.getsize(filename), count * kind.itemsize))
    if pin_memory or layout not in (None, votive.strided) or (device is not None and str(device) != "cpu"):
        raise NotImplementedError("from_file: a file is plain memory of the CPU; copy the tensor elsewhere.")
    raw = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(count * kind.itemsize,))
    return votive.from_numpy(raw).view(kind)


def indices_copy(input: Tensor) -> Tensor:
    """A copy of a COO tensor's indices."""
    return input.indices().clone()


def values_copy(input: Tensor) -> Tensor:
    """A copy of a sparse tensor's values."""
    return input.values().clone()


def crow_indices_copy(input: Tensor) -> Tensor:
    """A copy of where rows begin in a CSR tensor."""
    return input.crow_indices().clone()


def col_indices_copy(input: Tensor) -> Tensor:
    """A copy of a CSR tensor's columns."""
    return input.col_indices().clone()


def ccol_indices_copy(input: Tensor) -> Tensor:
    """A copy of where columns begin in a CSC tensor."""
    return input.ccol_indices().clone()


def row_indices_copy(input: Tensor) -> Tensor:
    """A copy of a CSC tensor's rows."""
    return input.row_indices().clone()


def resize_as_sparse_(input: Tensor, the_template: Tensor) -> Tensor:
    """Give a sparse tensor the sizes of another."""
    return input.resize_as_sparse_(the_template)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[..., None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The largest or smallest eigenvalues of a symmetric matrix, and their vectors, by a full decomposition: guesses,
    preconditioners and tolerances are of no use to it.
    """
    if tracker is not None:
        raise NotImplementedError("lobpcg: there are no iterations here that a tracker could watch.")
    count = (1 if X is None else X.shape[-1]) if k is None else k
    if A.shape[-1] < 3 * (n or count):
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={A.shape[-1]}) is smaller than 3 x the "
            f"number of requested eigenpairs (={n or count})"
        )
    dense = A.to_dense() if A.is_sparse else A
    if B is None:
        values, vectors = votive.linalg.eigh(dense)
    else:
        half = votive.linalg.cholesky(B.to_dense() if B.is_sparse else B)
        left = votive.linalg.solve_triangular(half, dense, upper=False)
        inner = votive.linalg.solve_triangular(half, left.mT, upper=False)
        values, inner_vectors = votive.linalg.eigh(inner)
        vectors = votive.linalg.solve_triangular(half.mT, inner_vectors, upper=True)
    if largest is None or largest:
        return values[..., -count:].flip(-1), vectors[..., -count:].flip(-1)
    return values[..., :count], vectors[..., :count]


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule over a tensor's memory."""
    return tensor.__dlpack__()


def cond(
    pred: bool | int | float | Tensor,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """One of two functions, by a condition that is looked at."""
    return true_fn(*operands) if bool(pred) else false_fn(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]) -> Any:
    """Repeat a function on what it returns, as long as a condition holds."""
    values = tuple(carried_inputs)
    while bool(cond_fn(*values)):
        made = body_fn(*values)
        values = tuple(made) if isinstance(made, tuple | list) else (made,)
    return values
