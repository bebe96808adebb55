"""Views and rearrangements: what changes is the shape, not the values."""

from __future__ import annotations

from typing import Any

from ..core.errors import ShapeError, fail
from ..core.layout import Spec, broadcast_strides, infer_size, view_strides, wrap_dim
from ..core.memory_format import contiguous_format
from .registry import F, composite, view


def _infer_view(x: Spec, size: tuple[int, ...]) -> tuple[Spec, int]:
    shape = infer_size("view", size, x.numel)
    strides = view_strides(x.shape, x.strides, shape)
    if strides is None:
        fail(
            RuntimeError, "view",
            f"size {shape} is not compatible with input of shape {x.shape} and strides {x.strides}; "
            "use .reshape() instead.",
        )  # fmt: skip
    return x.like(shape, strides=strides), 0


view(
    "_view(Tensor input, int[] size)",
    infer=_infer_view,
    grad={"input": lambda c, g: F.reshape(g, c.shape("input"))},
    method=False, namespaces=(),
    doc="The same memory in another shape.",
)  # fmt: skip


def shape_args(size: tuple[Any, ...]) -> tuple[int, ...]:
    """`f(2, 3)` and `f((2, 3))` mean the same."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        return tuple(size[0])
    return tuple(size)


@composite
def reshape(input: Any, *shape: Any) -> Any:
    """The same values in another shape; a view when the layout allows, else a copy.

    >>> votive.reshape(votive.tensor([1, 2, 3, 4]), (2, 2))
    tensor([[1, 2],
            [3, 4]])
    """
    size = infer_size("reshape", shape_args(shape), input._spec.numel)
    if view_strides(input._spec.shape, input._spec.strides, size) is None:
        input = F.clone(input, memory_format=contiguous_format)
    return F._view(input, size)


def _infer_expand(x: Spec, size: tuple[int, ...]) -> tuple[Spec, int]:
    lead = len(size) - x.ndim
    if lead < 0:
        fail(
            RuntimeError, "expand",
            f"the number of sizes {size} must be at least the number of dimensions {x.ndim}.",
        )  # fmt: skip
    shape = []
    for i, want in enumerate(size):
        have = x.shape[i - lead] if i >= lead else None
        if want == -1:
            if have is None:
                fail(RuntimeError, "expand", f"-1 is not allowed in a leading dimension of {size}.")
            want = have
        elif have is not None and have not in (1, want):
            fail(
                ShapeError, "expand",
                f"size {want} must match the existing size {have} at dimension {i}; "
                f"asked {size}, shape {x.shape}.",
            )  # fmt: skip
        shape.append(want)
    return x.like(tuple(shape), strides=broadcast_strides(x.shape, x.strides, tuple(shape))), 0


view(
    "_expand(Tensor input, int[] size)",
    infer=_infer_expand,
    grad={"input": lambda c, g: F._reduce_to(g, c.shape("input"))},
    method=False, namespaces=(),
    doc="Dimensions of size 1 stretched without copying.",
)  # fmt: skip


@composite(namespaces=())
def expand(input: Any, *size: Any, implicit: bool = False) -> Any:
    """Stretch dimensions of size 1 without copying; -1 keeps a size.

    >>> votive.tensor([[1], [2]]).expand(2, 2)
    tensor([[1, 1],
            [2, 2]])
    """
    return F._expand(input, shape_args(size))


def _infer_transpose(x: Spec, dim0: int, dim1: int) -> tuple[Spec, int]:
    if x.ndim == 0:
        return x, 0
    shape, strides = list(x.shape), list(x.strides)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    return x.like(tuple(shape), strides=tuple(strides)), 0


view(
    "transpose(Tensor input, int dim0, int dim1)",
    canon=lambda x, dim0, dim1: (
        x,
        wrap_dim("transpose", dim0, x.ndim, x.shape),
        wrap_dim("transpose", dim1, x.ndim, x.shape),
    ),
    infer=_infer_transpose,
    grad={"input": lambda c, g: g.transpose(c.dim0, c.dim1)},
    aliases=("swapaxes", "swapdims"),
    doc="""Exchange two dimensions.

    >>> votive.transpose(votive.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """,
)


def _canon_unsqueeze(x: Spec, dim: int) -> tuple[Spec, int]:
    return x, wrap_dim("unsqueeze", dim, x.ndim + 1)


def _infer_unsqueeze(x: Spec, dim: int) -> tuple[Spec, int]:
    stride = x.shape[dim] * x.strides[dim] if dim < x.ndim else 1
    return x.like(
        (*x.shape[:dim], 1, *x.shape[dim:]),
        strides=(*x.strides[:dim], stride, *x.strides[dim:]),
    ), 0


view(
    "unsqueeze(Tensor input, int dim)",
    canon=_canon_unsqueeze,
    infer=_infer_unsqueeze,
    grad={"input": lambda c, g: g.squeeze(c.dim)},
    inplace=True,
    doc="""Insert a dimension of size 1.

    >>> votive.unsqueeze(votive.tensor([1, 2]), 0)
    tensor([[1, 2]])
    """,
)
