"""Rows of a table by index: embedding and its limit on norms. Knows shapes and gradients only."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec
from ..core.mode import mode
from .registry import F, composite, structured
from .untracked import untracked
from .vector_norm import RENORM_EPS

if TYPE_CHECKING:
    from .types import Context, Tensor

NN = ("nn.functional",)
NO_ROW = -1  # a padding index that no row has


def check_indices(op: str, name: str, indices: Spec) -> None:
    """Indexes of rows are int64 or int32, even if there are none."""
    if indices.dtype not in (dt.int64, dt.int32):
        fail(DtypeError, op, f"{name} must be int64 or int32, got {indices.dtype}; use .long().")


def _infer(weight: Spec, indices: Spec, padding_idx: int, scale_grad_by_freq: bool) -> Spec:
    if weight.ndim != 2:
        fail(ShapeError, "embedding", f"weight must be (rows, features), got {weight.shape}.")
    check_indices("embedding", "input", indices)
    return weight.like((*indices.shape, weight.shape[1]))


def _again(c: Context, h: Tensor) -> Tensor:
    """What each copy gives to a row's gradient. Frequencies are left out, as in torch."""
    rows = F._embedding(h, c.indices, NO_ROW, False)
    if c.padding_idx < 0:
        return rows
    return F.where((c.indices == c.padding_idx).unsqueeze(-1), 0, rows)


structured(
    "_embedding(Tensor weight, Tensor indices, int padding_idx, bool scale_grad_by_freq)",
    placement="embedding",
    infer=_infer,
    grad={
        "weight": lambda c, g: F._embedding_backward(
            g, c.indices, c.shape("weight")[0], c.padding_idx, c.scale_grad_by_freq
        )
    },
    doc="`weight[indices]`.",
    skips_elements=True,
)

structured(
    "_embedding_backward(Tensor grad, Tensor indices, int rows, int padding_idx, bool scale_grad_by_freq)",
    infer=lambda g, indices, rows, padding_idx, by_frequency: g.like((rows, g.shape[-1])),
    grad={"grad": _again},
    doc="For each row the sum, or mean, of what its copies receive; nothing for the padding row.",
)


def with_sparse_gradient(op: str, scale_grad_by_freq: bool) -> Any:
    """The module that gives rows a sparse gradient; it lies above this one, and few programs need it."""
    if scale_grad_by_freq:
        fail(RuntimeError, op, "scale_grad_by_freq is not supported with sparse gradients.")
    return import_module("votive.sparse.rows")


@composite(name="embedding", method=False)
def torch_embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of `weight` that `indices` name; a negative `padding_idx` means that there is none.

    >>> votive.embedding(votive.tensor([[1.0], [2.0]]), votive.tensor([1, 0, 1]))
    tensor([[2.],
            [1.],
            [2.]])
    """
    if sparse and weight._rg and mode.grad:
        check_indices("embedding", "input", indices._spec)
        return with_sparse_gradient("embedding", scale_grad_by_freq).rows(weight, indices, padding_idx)
    return F._embedding(weight, indices, padding_idx, scale_grad_by_freq)


@composite(name="embedding_renorm_", method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shrink, in place, the named rows whose norm is above `max_norm` to that norm.

    >>> table = votive.tensor([[3.0, 4.0], [6.0, 8.0]])
    >>> votive.embedding_renorm_(table, votive.tensor([0]), 1.0, 2.0)
    tensor([[0.6000, 0.8000],
            [6.0000, 8.0000]])
    """
    check_indices("embedding_renorm_", "indices", indices._spec)
    at = indices.reshape(-1)
    rows = F.index_select(input, 0, at)
    norm = F._vector_norm(rows, norm_type, 1, True).double()
    scale = F.where(norm > max_norm, max_norm / (norm + RENORM_EPS), 1)
    # An index may come twice: both times the same row is written.
    return input.index_copy_(0, at, rows * scale.to(rows.dtype))


def padding_row(op: str, padding_idx: int | None, weight: Tensor, kind: type[Exception]) -> int:
    """The padding index counted from the front."""
    if padding_idx is None:
        return NO_ROW
    if weight.ndim != 2:
        fail(RuntimeError, op, f"weight must be (rows, features), got {tuple(weight.shape)}.")
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        fail(kind, op, f"padding_idx={padding_idx} is out of range for {rows} rows.")
    return padding_idx % rows


@composite(namespaces=NN, method=False)
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` that `input` names.

    Row `padding_idx` receives no gradient. With `max_norm`, rows that are used and longer are first
    shrunk in place. `scale_grad_by_freq` divides a row's gradient by how often it is used; with `sparse` the gradient
    is a sparse tensor of the rows that were used.

    >>> weight = votive.tensor([[1.0, 1.5], [2.0, 2.5]])
    >>> votive.nn.functional.embedding(votive.tensor([1, 0]), weight)
    tensor([[2.0000, 2.5000],
            [1.0000, 1.5000]])
    """
    # torch states this one as an assertion.
    row = padding_row("embedding", padding_idx, weight, AssertionError)
    if max_norm is not None:
        with untracked():
            embedding_renorm_(weight, input, max_norm, norm_type)
    return torch_embedding(weight, input, row, scale_grad_by_freq, sparse)
