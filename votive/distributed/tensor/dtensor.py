"""DTensor: a tensor that lies on a mesh of ranks, in shards, whole, or as parts of a sum.

Gradients pass through two links, out of the whole into what this rank holds and back: `entered` and `left`. Each knows
how the gradient behind it lies: that of a shard is a shard, that of parts of a sum is the whole on each rank, and that
of a whole is parts of a sum, or a whole where all ranks compute the same.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

from ...autograd.function import Function
from ...core.device import device as Device
from ...core.dtype import dtype as Dtype
from ...core.mode import mode
from ...dispatch.wrapped import OwnSpec
from ...ops.operator import Composite, Operator
from ...surface.wrapped import Rule, Wrapped
from ...tensor import Tensor
from ..device_mesh import DeviceMesh, current_mesh
from .placement_types import Partial, Placement, Placements, Replicate, Shard, checked
from .redistribution import moved
from .shards import Box, local_box, place_of, whole_shape


class DTensor(Wrapped):
    """A tensor on a mesh of ranks, each of which holds a part; operators compute on the parts.

    >>> from votive.distributed.tensor import DTensor, Shard
    >>> def total():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     x = DTensor.from_local(votive.full((1, 2), float(mesh.get_rank())), mesh, [Shard(0)])
    ...     return tuple(x.shape), x.sum().placements, x.sum().full_tensor().item()
    >>> votive.distributed.simulate(total, 2)[0]
    ((2, 2), (Partial(sum),), 2.0)
    """

    _kind = "distributed"
    _advice = "use .to_local() for this rank's part, or .full_tensor() for the whole."
    _precedence = 5
    _rules: ClassVar[dict[str, Rule]] = {}
    _held: Tensor
    _mesh: DeviceMesh
    _placements: Placements
    _viewed: Any = None  # the tensor that this is a view of
    _seen_as: Any = None  # the views of this tensor

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "DTensor: made by DTensor.from_local, distribute_tensor, or zeros and kin of distributed.tensor."
        )

    def _parts(self) -> tuple[Tensor, ...]:
        return (self._held,)

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from .calls import call

        return call(name, op, args, kwargs)

    # --- what it is -------------------------------------------------------------------------------

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of ranks."""
        return self._mesh

    @property
    def placements(self) -> Placements:
        """How it lies on each dimension of the mesh."""
        return self._placements

    @property
    def _local_tensor(self) -> Tensor:
        return self._held

    @property
    def box(self) -> Box:
        """The sizes of this rank's part, and where it begins in the whole."""
        return local_box(self._spec.shape, self._mesh, self._placements)

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The tensor of which each rank gives its part. `shape` is needed where parts differ in size."""
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                f"the local_tensor argument only accepts votive.Tensor but got {type(local_tensor)} value."
            )
        mesh = device_mesh or current_mesh()
        lies = checked(placements, mesh.ndim, local_tensor.ndim, "from_local")
        if (shape is None) != (stride is None) and shape is None:
            raise RuntimeError("Found shape:None, stride:given. Please pass both shape and stride at the same time.")
        place_of(mesh)
        local = local_tensor
        if not local.is_meta and local.device.type != mesh.device_type:
            local = local.to(mesh.device_type)
        whole = whole_shape(local.shape, mesh, lies) if shape is None else tuple(int(n) for n in shape)
        if shape is not None and local_box(whole, mesh, lies)[0] != tuple(local.shape):
            raise RuntimeError(
                f"from_local: of the shape {whole}, {lies} gives this rank {local_box(whole, mesh, lies)[0]}, but the "
                f"local tensor has the shape {tuple(local.shape)}."
            )
        if run_check:
            local = _agreed(local, mesh, lies, shape is None)
        wanted = None if grad_placements is None else checked(grad_placements, mesh.ndim, local.ndim, "from_local")
        behind = tuple(Replicate() if isinstance(p, Partial) else p for p in lies) if wanted is None else wanted
        return left(local, mesh, lies, whole, behind)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part, as a plain tensor over the same memory."""
        if grad_placements is None:
            # The gradient of parts is the whole on each rank; that of a whole is a whole.
            behind = tuple(Replicate() if isinstance(p, Partial) else p for p in self._placements)
        else:
            behind = checked(grad_placements, self._mesh.ndim, self.ndim, "to_local")
        return entered(self, self._placements, behind)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Dtype | None = None,
        backward_dtype: Dtype | None = None,
    ) -> DTensor:
        """The same tensor lying otherwise on the mesh; all its ranks call it. Messages are sent before it returns."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != self._mesh:
            raise NotImplementedError("redistribute: moving to another mesh is not supported; use full_tensor() there.")
        target = checked(placements, self._mesh.ndim, self.ndim, "redistribute")
        if any(isinstance(t, Partial) and t != p for t, p in zip(target, self._placements, strict=True)):
            raise RuntimeError("Can not redistribute to Partial, redistributing to Partial is for internal use only!")
        x: Any = self if forward_dtype is None else self.to(forward_dtype)
        if not (x._rg and mode.grad):
            return wrap(moved(x._held, x._spec.shape, x._mesh, x._placements, target), x._mesh, target, x._spec.shape)
        made: DTensor = _Redistributed.apply(x, target, backward_dtype)
        return made

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole on each rank; all ranks of the mesh call it. Its gradient is taken to be the same on all."""
        whole = self.redistribute(placements=[Replicate()] * self._mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    # --- as other tensors -------------------------------------------------------------------------

    def detach(self) -> Any:
        return wrap(self._held.detach(), self._mesh, self._placements, self._spec.shape)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return bool(self._spec.contiguous)

    def stride(self, dim: int | None = None) -> Any:
        return self._spec.strides if dim is None else self._spec.strides[dim]

    def storage_offset(self) -> int:
        return 0

    def item(self) -> Any:
        return self.detach().full_tensor().item()

    def tolist(self) -> Any:
        return self.detach().full_tensor().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(f"numpy: not supported for distributed tensors; {self._advice}")

    def __bool__(self) -> bool:
        return bool(self.detach().full_tensor())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return int(self._spec.shape[0])

    def __hash__(self) -> int:
        return id(self)

    def _become(self, other: Any) -> Any:
        raise NotImplementedError  # see calls.write

    @property
    def data(self) -> Any:
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, DTensor):
            raise RuntimeError(f"data: a distributed tensor takes one of its own kind, got {type(value).__name__}.")
        self._held, self._mesh, self._placements, self._spec = value._held, value._mesh, value._placements, value._spec

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if self.grad_fn is not None:
                raise RuntimeError("only Tensors created explicitly by the user support the deepcopy protocol.")
            out = wrap(self._held.clone(), self._mesh, self._placements, self._spec.shape)
            out._rg, memo[id(self)] = self._rg, out
            out.__dict__.update({k: v for k, v in self.__dict__.items() if k == "_is_param"})
            if self._grad is not None:
                out._grad = self._grad.clone()
        return memo[id(self)]

    def __copy__(self) -> Any:
        out = wrap(self._held, self._mesh, self._placements, self._spec.shape)
        out._rg = self._rg
        out.__dict__.update({k: v for k, v in self.__dict__.items() if k == "_is_param"})
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            "a DTensor belongs to its process; save it with votive.distributed.checkpoint, or its full_tensor()."
        )

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        text = f"DTensor(local_tensor={self._held}, device_mesh={self._mesh}, placements={self._placements})"
        return f"Parameter containing:\n{text}" if self.__dict__.get("_is_param") else text


def wrap(local: Tensor, mesh: DeviceMesh, placements: Placements, shape: Sequence[int]) -> Any:
    """A distributed tensor over this rank's part, without history."""
    out: DTensor = object.__new__(DTensor)
    whole = tuple(shape)
    dtype: Dtype = local.dtype
    device: Device = local.device
    out._begin(whole, dtype, device)
    order = sorted(range(len(whole)), key=lambda d: -local._spec.strides[d])
    if order != sorted(order) and local.numel():
        # Dimensions lie in memory as those of the part do.
        strides, step = [1] * len(whole), 1
        for d in reversed(order):
            strides[d], step = step, step * max(whole[d], 1)
        out._spec = OwnSpec(whole, dtype, device, tuple(strides))
    out._held, out._mesh, out._placements = local, mesh, placements
    return out


def remember_view(view: DTensor, base: DTensor) -> None:
    """Note that two tensors share memory: neither may then be written in place while gradients are recorded."""
    view._viewed = base
    if base._seen_as is None:
        base._seen_as = weakref.WeakSet()
    base._seen_as.add(view)


def _agreed(local: Tensor, mesh: DeviceMesh, placements: Placements, even: bool) -> Tensor:
    """What is whole on several ranks as the first of them has it; an error where shapes differ."""
    from ..collectives import broadcast
    from ..objects import all_gather_object

    mine = (tuple(local.shape), str(local.dtype))
    for i, p in enumerate(placements):
        group = mesh.get_group(i)
        found: list[Any] = [None] * mesh.size(i)
        all_gather_object(found, mine, group)
        if any(one != mine for one in found) and (even or not isinstance(p, Shard)):
            raise ValueError(f"from_local: ranks have different tensors: {found}; pass shape= and stride=.")
        if isinstance(p, Replicate):
            local = local.clone()
            broadcast(local.detach(), group.ranks[0], group)
    return local


# --- the two links --------------------------------------------------------------------------------


class _Entered(Function):
    @staticmethod
    def forward(ctx: Any, x: DTensor, target: Placements, behind: Placements) -> Tensor:
        ctx.of = (x._mesh, tuple(x._spec.shape), target, behind, x._placements)
        ctx.leaf = x._edge is None
        return moved(x._held, x._spec.shape, x._mesh, x._placements, target).detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        mesh, shape, target, behind, placements = ctx.of
        grad = left(_fitted(g, shape, mesh, behind), mesh, behind, shape, target)
        # What a parameter keeps lies as the parameter does.
        if ctx.leaf and not any(isinstance(p, Partial) for p in placements):
            grad = grad.redistribute(placements=placements)
        return grad, None, None


def _fitted(g: Tensor, shape: tuple[int, ...], mesh: DeviceMesh, lies: Placements) -> Tensor:
    if tuple(g.shape) != local_box(shape, mesh, lies)[0]:
        raise RuntimeError(
            f"a gradient of shape {tuple(g.shape)} cannot lie as {lies} of {shape}; pass grad_placements= "
            "to to_local()."
        )
    return g


class _Left(Function):
    @staticmethod
    def forward(
        ctx: Any, local: Tensor, mesh: DeviceMesh, placements: Placements, shape: tuple[int, ...], behind: Placements
    ) -> Any:
        ctx.of, ctx.mesh = (placements, behind), mesh
        return wrap(local.detach(), mesh, placements, shape)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        placements, behind = ctx.of
        if not isinstance(g, DTensor):
            if g._spec.numel != 1:
                raise RuntimeError("the gradient of a DTensor must be one, too; use ones_like() of the output.")
            whole: Placements = (Replicate(),) * ctx.mesh.ndim
            g = left(g, ctx.mesh, whole, g._spec.shape, whole)
        local = entered(g, behind, placements)
        for i, p in enumerate(placements):
            if isinstance(p, Partial) and p.reduce_op == "avg":
                local = local / g._mesh.size(i)
            elif isinstance(p, Partial) and p.reduce_op != "sum":
                raise RuntimeError(f"the gradient through {p!r} is not defined; redistribute before, or detach().")
        return local, None, None, None, None


class _Redistributed(Function):
    @staticmethod
    def forward(ctx: Any, x: DTensor, target: Placements, backward_dtype: Dtype | None) -> Any:
        ctx.placements, ctx.dtypes, ctx.leaf = x._placements, (x.dtype, backward_dtype), x._edge is None
        for p, t in zip(x._placements, target, strict=True):
            if isinstance(p, Partial) and p.reduce_op not in ("sum", "avg") and p != t:
                raise RuntimeError(f"redistribute: there is no gradient through {p!r}; detach() the tensor first.")
        local = moved(x._held, x._spec.shape, x._mesh, x._placements, target)
        return wrap(local.detach(), x._mesh, target, x._spec.shape)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        # A sum's parts have the gradient of the sum: no rank is asked for anything before it is needed.
        wanted = tuple(Replicate() if isinstance(p, Partial) else p for p in ctx.placements)
        dtype, between = ctx.dtypes
        if between is not None:
            g = g.to(between)
        g = g.redistribute(placements=wanted)
        return g if g.dtype == dtype else g.to(dtype), None, None


def entered(x: DTensor, target: Placements, behind: Placements) -> Tensor:
    """This rank's part under placements, whose gradient lies as `behind`; with the history of the whole."""
    if x._rg and mode.grad:
        made: Tensor = _Entered.apply(x, target, behind)
        return made
    return moved(x._held, x._spec.shape, x._mesh, x._placements, target).detach()


def left(local: Tensor, mesh: DeviceMesh, placements: Placements, shape: Sequence[int], behind: Placements) -> Any:
    """The whole of parts with their history, to which the gradient comes as `behind`."""
    if local._rg and mode.grad:
        return _Left.apply(local, mesh, placements, tuple(shape), behind)
    return wrap(local.detach(), mesh, placements, shape)


def warn_single(t: Tensor) -> None:
    """Say that a tensor of one number was taken to be the same on all ranks."""
    if t.ndim == 1:
        warnings.warn(
            "Found a non-scalar tensor with numel=1 and ndim!=0, we are implicitly creating a replicated DTensor for "
            "it. However, please consider changing it to a scalar tensor or explicitly create a DTensor under "
            "distributed environment.",
            stacklevel=2,
        )


def is_composite(op: Operator) -> bool:
    """Whether an operator is written with others."""
    return isinstance(op, Composite)
