"""Sampling at arbitrary positions: grid_sample, and affine_grid, which makes such positions.

Knows shapes and gradients, not how they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, fail
from ..core.layout import Spec
from ..core.mode import mode as modes
from .fold import NN
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Context, Sequence, Tensor


def _grad_sample(c: Context, g: Tensor) -> tuple[Any, Any]:
    if modes.grad:
        return F._grid_sample_backward_composite(g, c.input, c.grid, c.mode, c.padding, c.align)
    return F._grid_sample_backward(
        F.contiguous(g), c.input, c.grid, c.mode, c.padding, c.align, c.needs("input"), c.needs("grid")
    )


structured(
    "_grid_sample(Tensor input, Tensor grid, str mode, str padding, bool align)",
    batch="fold",
    infer=lambda x, grid, *how: x.like((*x.shape[:2], *grid.shape[1:-1])),
    grad=_grad_sample,
    doc="The input at positions in -1..1, with what lies outside as the padding says.",
)

structured(
    "_grid_sample_backward(Tensor grad, Tensor input, Tensor grid, str mode, str padding, "
    "bool align, bool by_input, bool by_grid)",
    infer=lambda g, x, grid, mode, padding, align, by_input, by_grid: (
        x.like(x.shape if by_input else (0,)),
        grid.like(grid.shape if by_grid else (0,)),
    ),
    differentiable=False,  # with a graph being made, the composite runs instead
    n_out=2,
    doc="The gradients of grid_sample by input and grid; empty where they are not asked for.",
)


def _check(op: str, x: Tensor, grid: Tensor, mode: str) -> None:
    if not x.dtype.is_floating_point or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, op, f"not implemented for {x.dtype}; it takes floats.")
    if grid.dtype is not x.dtype:
        fail(DtypeError, op, f"grid must have the dtype of input, {x.dtype}, got {grid.dtype}.")
    shape, wanted = tuple(x.shape), tuple(grid.shape)
    if x.ndim not in (4, 5) or grid.ndim != x.ndim:
        fail(RuntimeError, op, f"input and grid must both be 4-d or 5-d, got {shape}, {wanted}.")
    if shape[0] != wanted[0] or wanted[-1] != x.ndim - 2:
        fail(
            RuntimeError,
            op,
            f"an input of shape {shape} needs a grid of shape ({shape[0]}, ..., {x.ndim - 2}), got {wanted}.",
        )
    if 0 in shape[2:]:
        fail(RuntimeError, op, f"only batch and channels may be empty, got shape {shape}.")
    if mode == "bicubic" and x.ndim == 5:
        fail(RuntimeError, op, "mode 'bicubic' takes 4-d inputs only.")


@composite(namespaces=NN, method=False, autocast={"cpu": "float32", "cuda": "widest"})
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Values of `input` (N, C, H, W) at the positions of `grid` (N, H', W', 2); or in 3-d.

    A position (x, y) is (-1, -1) at the upper left corner and (1, 1) at the lower right one. Modes:
    bilinear, nearest, bicubic; outside the input: zeros, border, reflection.

    >>> image = votive.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> votive.nn.functional.grid_sample(image, votive.zeros(1, 1, 1, 2))
    tensor([[[[1.5000]]]])
    """
    op = "grid_sample"
    if mode not in ("bilinear", "nearest", "bicubic"):
        fail(ValueError, op, f"mode must be bilinear, nearest or bicubic, got {mode!r}.")
    if padding_mode not in ("zeros", "border", "reflection"):
        fail(ValueError, op, f"padding_mode must be zeros, border or reflection, got {padding_mode!r}.")
    _check(op, input, grid, mode)
    return F._grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def _dims(size: Sequence[int]) -> int:
    return len(size) - 2


def _infer_grid(theta: Spec, size: Sequence[int], align: bool) -> Spec:
    return theta.like((size[0], *size[2:], _dims(size)))


structured(
    "_affine_grid(Tensor theta, int[] size, bool align)",
    infer=_infer_grid,
    grad={"theta": lambda c, g: F._affine_grid_transpose(F.contiguous(g), c.size, c.align)},
    doc="`theta[n] @ (x, y, 1)` for the centre of each element of `size`, in -1..1.",
)

structured(
    "_affine_grid_transpose(Tensor grad, int[] size, bool align)",
    infer=lambda g, size, align: g.like((size[0], _dims(size), _dims(size) + 1)),
    grad={"grad": lambda c, g: F._affine_grid(g, c.size, c.align)},
    doc="The transpose of `_affine_grid`: what each number of theta receives.",
)


@composite(namespaces=NN, method=False)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid that samples an output of `size` (N, C, H, W) through affine maps `theta` (N, 2, 3).

    >>> theta = votive.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.5]]])
    >>> votive.nn.functional.affine_grid(theta, (1, 1, 1, 2))
    tensor([[[[-0.5000,  0.5000],
              [ 0.5000,  0.5000]]]])
    """
    op = "affine_grid"
    size = tuple(int(s) for s in size)
    if not theta.dtype.is_floating_point:
        fail(ValueError, op, f"theta must be floating-point, got {theta.dtype}.")
    if len(size) not in (4, 5):
        fail(UnsupportedError, op, f"size must have 4 or 5 elements, got {size}.")
    n = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape)[1:] != (n, n + 1):
        fail(ValueError, op, f"theta must have shape (N, {n}, {n + 1}) for size {size}, got {tuple(theta.shape)}.")
    if min(size) <= 0:
        fail(ValueError, op, f"sizes must be positive, got {size}.")
    if theta.shape[0] != size[0]:
        fail(RuntimeError, op, f"theta has {theta.shape[0]} maps for a batch of {size[0]}.")
    return F._affine_grid(theta, size, bool(align_corners))
