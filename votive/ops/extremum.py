"""Smallest and largest: min, max, amin, amax, argmin, argmax. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DimError, fail
from ..core.layout import Spec, reduced_shape, wrap_dim, wrap_dims
from .reduction import keep_dims, refuse, unreduce
from .registry import F, Op, composite, structured
from .results import named, results

if TYPE_CHECKING:
    from .types import Callable, Ints, Operand, Tensor


def no_identity(op: str, x: Spec, dims: tuple[int, ...], everything: bool = False) -> None:
    """Raise where a result would have nothing to choose from."""
    if everything and x.numel == 0:
        fail(RuntimeError, op, f"shape {x.shape} holds no elements; pass a dim of size > 0.")
    for d in dims:
        if x.ndim and x.shape[d] == 0:
            fail(DimError, op, f"dim {d} of shape {x.shape} has size 0: nothing to choose.")


def spread(g: Tensor, input: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """A gradient shared evenly by all elements that equal the result."""
    result = keep_dims(out, dims, keepdim)
    # Where the result is NaN nothing equals it: then the NaN elements are the ones it came from.
    nan = F.logical_and(F.isnan(input), F.isnan(result))
    chosen = F.logical_or(input == result, nan)
    share = chosen.to(g.dtype) / F.sum(chosen, dims, True)
    return unreduce(g, input.shape, dims, keepdim) * share


def place(g: Tensor, shape: tuple[int, ...], dim: int, keepdim: bool, index: Tensor) -> Tensor:
    """A gradient put back where an index along `dim` says that its value came from."""
    if not shape:
        return g
    index = index.detach()  # a saved result counts as part of the graph, but an index has no gradient
    if not keepdim:
        g, index = g.unsqueeze(dim), index.unsqueeze(dim)
    zeros = F.zeros(shape, dtype=g.dtype, device=g.device)
    return F.scatter_add(zeros, dim, index, g)


def _canon_extreme(op: str) -> Callable[..., Any]:
    def canon(x: Spec, dim: Ints, keepdim: bool) -> tuple[Any, ...]:
        refuse(op, x, *dt.BAREBONES, kinds="c")
        dims = wrap_dims(op, dim, x.ndim)
        no_identity(op, x, dims, everything=not dim and dim != 0)
        return x, dims, keepdim

    return canon


def _infer_extreme(x: Spec, dim: tuple[int, ...], keepdim: bool) -> Spec:
    return x.like(reduced_shape(x.shape, dim, keepdim))


_AMAX = structured(
    "amax(Tensor input, int[]? dim=(), bool keepdim=False)",
    placement="reduces by max",
    batch="dims",
    canon=_canon_extreme("amax"),
    infer=_infer_extreme,
    grad={"input": lambda c, g: spread(g, c.input, c.out, c.dim, c.keepdim)},
    doc="""The largest value over all or some dimensions; its gradient is shared by equal elements.

    >>> votive.amax(votive.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([5, 7])
    """,
    out_exact_dtype=True,
)

_AMIN = structured(
    "amin(Tensor input, int[]? dim=(), bool keepdim=False)",
    placement="reduces by min",
    batch="dims",
    canon=_canon_extreme("amin"),
    infer=_infer_extreme,
    grad={"input": lambda c, g: spread(g, c.input, c.out, c.dim, c.keepdim)},
    doc="""The smallest value over all or some dimensions; its gradient is shared by equal elements.

    >>> votive.amin(votive.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([1, 2])
    """,
    out_exact_dtype=True,
)


@composite(out=True, out_exact_dtype=True)
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest value, over all dimensions or one.

    >>> votive.aminmax(votive.tensor([3, 1, 2]))
    votive.return_types.aminmax(
    min=tensor(1),
    max=tensor(3))
    """
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"aminmax: argument 'dim' must be int, got {type(dim).__name__}.")
    over = () if dim is None else (dim,)
    found = F.amin(input, over, keepdim), F.amax(input, over, keepdim)
    return results("aminmax", "min", "max")(*found)


def _canon_pick(op: str) -> Callable[..., Any]:
    def canon(x: Spec, dim: int, keepdim: bool) -> tuple[Any, ...]:
        refuse(op, x, *dt.BAREBONES, kinds="c")
        where = wrap_dim(op, dim, x.ndim, x.shape)
        no_identity(op, x, (where,))
        return x, where, keepdim

    return canon


def infer_pick(x: Spec, dim: int, keepdim: bool) -> tuple[Spec, Spec]:
    """One element chosen along `dim`: its value and its index."""
    shape = reduced_shape(x.shape, (dim,), keepdim)
    return x.like(shape), x.like(shape, dtype=dt.int64)


structured(
    "_max_dim(Tensor input, int dim, bool keepdim)",
    placement="reduces",
    batch="dims",
    canon=_canon_pick("max"),
    infer=infer_pick,
    n_out=2,
    grad={"input": lambda c, g, _: place(g, c.shape("input"), c.dim, c.keepdim, c.out1)},
    doc="The largest value along one dimension and the index of its first occurrence.",
)

structured(
    "_min_dim(Tensor input, int dim, bool keepdim)",
    placement="reduces",
    batch="dims",
    canon=_canon_pick("min"),
    infer=infer_pick,
    n_out=2,
    grad={"input": lambda c, g, _: place(g, c.shape("input"), c.dim, c.keepdim, c.out1)},
    doc="The smallest value along one dimension and the index of its first occurrence.",
)


_FOUND = {name: results(name, "values", "indices") for name in ("max", "min")}


def _overloads(name: str, input: Tensor, dim: Operand | None, keepdim: bool, other: Tensor | None) -> Any:
    """torch's three forms: of all elements, along a dim with indices, of two tensors."""
    if dim.__class__ is int and other is None:
        return named(_FOUND[name], getattr(F, f"_{name}_dim")(input, dim, keepdim))
    if hasattr(dim, "_spec") and other is None:
        dim, other = None, dim
    if other is not None:
        if dim is not None or keepdim:
            raise TypeError(f"{name}: takes either another tensor or a dim, got both.")
        return getattr(F, f"{name}imum")(input, other)
    if dim is not None:
        return _FOUND[name](*getattr(F, f"_{name}_dim")(input, dim, keepdim))
    if keepdim:
        raise TypeError(f"{name}: keepdim needs a dim.")
    if input._spec.numel == 0:
        no_identity(name, input._spec, (), everything=True)
    return getattr(F, f"a{name}")(input, (), False)


@composite(out=True)
def max(input: Tensor, dim: Operand | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The largest element; with a dim also where it is; with a tensor the elementwise larger.

    >>> votive.max(votive.tensor([[1, 5], [7, 2]]), dim=1)
    votive.return_types.max(
    values=tensor([5, 7]),
    indices=tensor([1, 0]))
    """
    if dim is None and other is None and not keepdim and input._spec.numel:
        return Op.apply(_AMAX, (input, (), False))
    return _overloads("max", input, dim, keepdim, other)


@composite(out=True)
def min(input: Tensor, dim: Operand | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
    """The smallest element; with a dim also where it is; with a tensor the elementwise smaller.

    >>> votive.min(votive.tensor([[1, 5], [7, 2]]), dim=1)
    votive.return_types.min(
    values=tensor([1, 2]),
    indices=tensor([0, 1]))
    """
    if dim is None and other is None and not keepdim and input._spec.numel:
        return Op.apply(_AMIN, (input, (), False))
    return _overloads("min", input, dim, keepdim, other)


def _canon_arg(op: str) -> Callable[..., Any]:
    def canon(x: Spec, dim: int | None, keepdim: bool) -> tuple[Any, ...]:
        refuse(op, x, *dt.BAREBONES, kinds="bc")
        if dim is None:
            if x.numel == 0:
                fail(DimError, op, f"a tensor of shape {x.shape} holds no elements to choose from.")
            return x, None, keepdim
        where = wrap_dim(op, dim, x.ndim, x.shape)
        no_identity(op, x, (where,))
        return x, where, keepdim

    return canon


def _infer_arg(x: Spec, dim: int | None, keepdim: bool) -> Spec:
    dims = tuple(range(x.ndim)) if dim is None else (dim,)
    return x.like(reduced_shape(x.shape, dims, keepdim), dtype=dt.int64)


structured(
    "argmax(Tensor input, int? dim=None, bool keepdim=False)",
    placement="reduces",
    batch="dims",
    canon=_canon_arg("argmax"),
    infer=_infer_arg,
    differentiable=False,
    doc="""The index of the (first) largest element along a dim, or in the flat tensor.

    >>> votive.argmax(votive.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([1, 0])
    """,
    out_exact_dtype=True,
)

structured(
    "argmin(Tensor input, int? dim=None, bool keepdim=False)",
    placement="reduces",
    batch="dims",
    canon=_canon_arg("argmin"),
    infer=_infer_arg,
    differentiable=False,
    doc="""The index of the (first) smallest element along a dim, or in the flat tensor.

    >>> votive.argmin(votive.tensor([[1, 5], [7, 2]]), dim=1)
    tensor([0, 1])
    """,
    out_exact_dtype=True,
)
