"""Making distributed tensors: of whole ones, of nothing, of random numbers; and modules whose parameters are such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...backends.common.sampling import counters
from ...core import dtype as dt
from ...core.device import resolve
from ...core.dtype import dtype as Dtype
from ...core.memory_format import layout as Layout
from ...core.memory_format import strided
from ...core.mode import mode
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...ops.random import _reserve as reserve
from ...ops.registry import F
from ...tensor import Tensor
from ..collectives import broadcast
from ..device_mesh import DeviceMesh, current_mesh
from .dtensor import DTensor, wrap
from .placement_types import Placement, Placements, Replicate, checked
from .redistribution import moved
from .rules_random import agreed, drawn
from .shards import local_box, place_of


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """A leaf tensor that every rank has, as it lies on a mesh; what counts is what the first rank has.

    With `src_data_rank=None` each rank cuts its part out of what it has itself, and nothing is sent.

    >>> from votive.distributed.tensor import distribute_tensor, Shard
    >>> def part():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     return distribute_tensor(votive.arange(5), mesh, [Shard(0)]).to_local().tolist()
    >>> votive.distributed.simulate(part, 2)
    [[0, 1, 2], [3, 4]]
    """
    mesh = device_mesh or current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    lies = checked(placements, mesh.ndim, tensor.ndim, "distribute_tensor")
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != lies:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {lies}. do "
                "you want to call `redistribute` instead?"
            )
        return tensor
    place_of(mesh)
    before, mode.grad = mode.grad, False
    try:
        local = tensor.detach()
        if not local.is_meta:
            local = local.to(mesh.device_type)
        if src_data_rank is not None and not local.is_meta:
            local = F.clone(local.contiguous())
            for i in range(mesh.ndim):
                group = mesh.get_group(i)
                if not 0 <= src_data_rank < group.size():
                    raise ValueError(
                        f"distribute_tensor: src_data_rank={src_data_rank} is not in a group of {group.size()}."
                    )
                broadcast(local, group.ranks[src_data_rank], group)
        if local.is_meta:
            part = F.empty(local_box(tensor.shape, mesh, lies)[0], dtype=local.dtype, device="meta")
        else:
            part = moved(local, tensor.shape, mesh, (Replicate(),) * mesh.ndim, lies)
            # Its memory is its own.
            part = F.clone(part) if part._storage is tensor._storage else part
    finally:
        mode.grad = before
    made = wrap(part, mesh, lies, tensor.shape)
    return made.requires_grad_() if tensor.requires_grad else made


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
) -> Module:
    """Let the parameters of a module lie on a mesh: `partition_fn(name, module, mesh)` distributes those of each part,
    what it leaves is whole on each rank. `input_fn` and `output_fn` prepare what goes into and comes out of a call.

    >>> from votive.distributed.tensor import distribute_module, distribute_tensor, Shard
    >>> def rows(name, module, mesh):
    ...     for key, value in module.named_parameters(recurse=False):
    ...         module.register_parameter(key, votive.nn.Parameter(distribute_tensor(value, mesh, [Shard(0)])))
    >>> def shape():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     return tuple(distribute_module(votive.nn.Linear(3, 4), mesh, rows).weight.to_local().shape)
    >>> votive.distributed.simulate(shape, 2)
    [(2, 3), (2, 3)]
    """
    mesh = device_mesh or current_mesh()
    if module.__dict__.get("_distribute_module_applied"):
        raise RuntimeError("distribute_module should only be called once on a module, but it has already been called!")
    whole: Placements = (Replicate(),) * mesh.ndim
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, value in list(part._parameters.items()):
            if value is not None and not isinstance(value, DTensor):
                made = Parameter(distribute_tensor(value.detach(), mesh, whole), value.requires_grad)
                part.register_parameter(key, made)
        for key, buffer in list(part._buffers.items()):
            if buffer is not None and not isinstance(buffer, DTensor):
                part._buffers[key] = distribute_tensor(buffer, mesh, whole)
    if input_fn is not None:
        prepare_in = input_fn
        module.register_forward_pre_hook(lambda mod, inputs: prepare_in(mod, inputs, mesh))
    if output_fn is not None:
        prepare_out = output_fn
        module.register_forward_hook(lambda mod, inputs, outputs: prepare_out(mod, outputs, mesh))
    module.__dict__["_distribute_module_applied"] = True
    return module


# --- new tensors ----------------------------------------------------------------------------------


def _size(size: tuple[Any, ...]) -> tuple[int, ...]:
    given = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return tuple(int(n) for n in given)


def _where(
    of: str, shape: tuple[int, ...], mesh: DeviceMesh | None, placements: Sequence[Placement] | None, layout: Layout
) -> tuple[DeviceMesh, Placements]:
    if layout is not strided:
        raise AssertionError("layout value not supported!")
    mesh = mesh or current_mesh()
    return mesh, checked(placements, mesh.ndim, len(shape), of)


def _filled(
    of: str,
    shape: tuple[int, ...],
    value: Any,
    dtype: Dtype | None,
    layout: Layout,
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
) -> Any:
    mesh, lies = _where(of, shape, device_mesh, placements, layout)
    whole = F.empty if value is None else F.full
    rest = () if value is None else (value,)
    first = local_box(shape, mesh, lies)[0]
    local = whole(first, *rest, dtype=dtype, device=mesh.device_type)
    # Of a sum only one rank has the value; of other reductions all.
    replicated: Placements = tuple(Replicate() if p.is_partial() else p for p in lies)
    made = wrap(moved(local, shape, mesh, replicated, lies), mesh, lies, shape)
    return made.requires_grad_() if requires_grad else made


def zeros(
    *size: Any,
    requires_grad: bool = False,
    dtype: Dtype | None = None,
    layout: Layout = strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> Any:
    """Zeros on a mesh; each rank makes its part.

    >>> def part():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     placements = [votive.distributed.tensor.Shard(0)]
    ...     return votive.distributed.tensor.zeros(3, device_mesh=mesh, placements=placements).to_local().tolist()
    >>> votive.distributed.simulate(part, 2)
    [[0.0, 0.0], [0.0]]
    """
    dtype = dtype or dt.get_default_dtype()
    return _filled("zeros", _size(size), 0, dtype, layout, requires_grad, device_mesh, placements)


def ones(
    *size: Any,
    dtype: Dtype | None = None,
    layout: Layout = strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> Any:
    """Ones on a mesh; each rank makes its part.

    >>> def total():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     placements = [votive.distributed.tensor.Shard(0)]
    ...     return votive.distributed.tensor.ones(5, device_mesh=mesh, placements=placements).sum().item()
    >>> votive.distributed.simulate(total, 2)
    [5.0, 5.0]
    """
    dtype = dtype or dt.get_default_dtype()
    return _filled("ones", _size(size), 1, dtype, layout, requires_grad, device_mesh, placements)


def empty(
    *size: Any,
    dtype: Dtype | None = None,
    layout: Layout = strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> Any:
    """Memory on a mesh, with undefined values.

    >>> def shape():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     placements = [votive.distributed.tensor.Shard(1)]
    ...     made = votive.distributed.tensor.empty(2, 6, device_mesh=mesh, placements=placements)
    ...     return tuple(made.shape), tuple(made.to_local().shape)
    >>> votive.distributed.simulate(shape, 2)[0]
    ((2, 6), (2, 3))
    """
    return _filled("empty", _size(size), None, dtype, layout, requires_grad, device_mesh, placements)


def full(
    size: Any,
    fill_value: float | complex | bool,
    *,
    dtype: Dtype | None = None,
    layout: Layout = strided,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> Any:
    """A number everywhere on a mesh.

    >>> def part():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     return votive.distributed.tensor.full((2,), 7.0, device_mesh=mesh).to_local().tolist()
    >>> votive.distributed.simulate(part, 2)
    [[7.0, 7.0], [7.0, 7.0]]
    """
    shape = _size((size,)) if not isinstance(size, int) else (size,)
    return _filled("full", shape, fill_value, dtype, layout, requires_grad, device_mesh, placements)


def _drawn(
    name: str,
    shape: tuple[int, ...],
    rest: tuple[float, float],
    dtype: Dtype | None,
    layout: Layout,
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
) -> Any:
    of = "rand" if name == "uniform" else "randn"
    mesh, lies = _where(of, shape, device_mesh, placements, layout)
    kind = dtype or dt.get_default_dtype()
    place = resolve(mesh.device_type)
    count = 1
    for n in shape:
        count *= n
    key, counter = agreed(mesh, *reserve(of, None, place, counters(name, count, kind.np)))
    replicated: Placements = tuple(Replicate() if p.is_partial() else p for p in lies)
    before, mode.grad = mode.grad, False
    try:
        local = drawn(name, shape, *local_box(shape, mesh, replicated), key, counter, kind, place, rest)
    finally:
        mode.grad = before
    made = wrap(moved(local, shape, mesh, replicated, lies), mesh, lies, shape)
    return made.requires_grad_() if requires_grad else made


def rand(
    *size: Any,
    requires_grad: bool = False,
    dtype: Dtype | None = None,
    layout: Layout = strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> Any:
    """Uniform numbers of [0, 1) on a mesh: those that one process would draw, each rank its part.

    >>> def draw():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     votive.manual_seed(0)
    ...     drawn = votive.distributed.tensor.rand(5, device_mesh=mesh, placements=[votive.distributed.tensor.Shard(0)])
    ...     return drawn.full_tensor().tolist()
    >>> _ = votive.manual_seed(0)
    >>> votive.distributed.simulate(draw, 2)[0] == votive.rand(5).tolist()
    True
    """
    return _drawn("uniform", _size(size), (0.0, 1.0), dtype, layout, requires_grad, device_mesh, placements)


def randn(
    *size: Any,
    requires_grad: bool = False,
    dtype: Dtype | None = None,
    layout: Layout = strided,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> Any:
    """Normal numbers on a mesh: those that one process would draw, each rank its part.

    >>> def shape():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     return tuple(votive.distributed.tensor.randn(2, 3, device_mesh=mesh).shape)
    >>> votive.distributed.simulate(shape, 2)[0]
    (2, 3)
    """
    return _drawn("normal", _size(size), (0.0, 1.0), dtype, layout, requires_grad, device_mesh, placements)
