"""Calls with distributed tensors: brought to where a way wants them, run on parts, and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.errors import UnsupportedError
from ...core.mode import mode
from ...dispatch.arguments import normalise
from ...ops.operator import Composite, Op, Operator
from ...tensor import Tensor
from ..device_mesh import DeviceMesh
from . import rules, rules_nn, rules_products, rules_random, rules_reductions, rules_views  # noqa: F401 - they register
from .dtensor import DTensor, entered, left, remember_view, warn_single, wrap
from .lists import LISTS, run_lists
from .loss_classes import CLASSES
from .placement_types import Partial, Placement, Placements, Replicate
from .shards import local_box
from .special import SPECIAL
from .state import here
from .ways import RULES, Call, Way, choose


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Take plain tensors beside DTensors as the same on all ranks, inside of the block.

    >>> from votive.distributed.tensor import distribute_tensor, experimental, Shard
    >>> def sum_up():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     x = distribute_tensor(votive.ones(4), mesh, [Shard(0)])
    ...     with experimental.implicit_replication():
    ...         return (x + votive.arange(4.0)).full_tensor().tolist()
    >>> votive.distributed.simulate(sum_up, 2)[1]
    [1.0, 2.0, 3.0, 4.0]
    """
    before, here.implicit = here.implicit, True
    try:
        yield
    finally:
        here.implicit = before


def call(name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run what was called with at least one distributed tensor."""
    if isinstance(op, Op) and op.name in LISTS:
        return run_lists(op, normalise(op, args))
    if not here.inside:
        refuse_mixed(name, (*args, *kwargs.values()))
    if kwargs.get("out") is not None:
        raise UnsupportedError(f"{name}: out= is not supported for DTensors; assign the result.")
    in_place = name.endswith("_") and op.name == name[:-1]
    if name in SPECIAL:
        return SPECIAL[name](*args, **kwargs)
    if here.loss_parallel and name in CLASSES:
        made = CLASSES[name](*args, **kwargs)
        if made is not NotImplemented:
            return made
    if isinstance(op, Composite):
        return _composite(op, args, kwargs, in_place)
    assert isinstance(op, Op)
    args = normalise(op, args)
    if in_place:
        return write(op.name, args[0], args, lambda: run(op, args))
    return run(op, args)


def _composite(op: Composite, args: tuple[Any, ...], kwargs: dict[str, Any], in_place: bool) -> Any:
    here.inside += 1
    try:
        if in_place:
            x = args[0] if args else next(iter(kwargs.values()))
            return write(op.name, x, args, lambda: op.fn(*args, **kwargs))
        kwargs = {k: v for k, v in kwargs.items() if k != "out"}
        if op.autocast is not None and mode.autocast:
            return Composite.run_cast(op.autocast, op.fn, args, kwargs)
        return op.fn(*args, **kwargs)
    finally:
        here.inside -= 1


def refuse_mixed(name: str, values: Sequence[Any]) -> None:
    """Raise when plain tensors of more than one number stand beside distributed ones."""
    if here.implicit:
        return
    for v in values:
        if isinstance(v, (tuple, list)):
            refuse_mixed(name, v)
        elif isinstance(v, Tensor) and not isinstance(v, DTensor):
            if v._spec.numel != 1:
                raise RuntimeError(
                    f"{name}: got mixed votive.Tensor and DTensor, need to convert all votive.Tensor to DTensor before "
                    "calling distributed operators!"
                )
            warn_single(v)


def mesh_of(name: str, leaves: Sequence[Any]) -> DeviceMesh:
    """The mesh of all distributed tensors."""
    meshes = [t._mesh for t in leaves if isinstance(t, DTensor)]
    for mesh in meshes[1:]:
        if mesh is not meshes[0] and mesh != meshes[0]:
            raise RuntimeError(
                f"{name}: all DTensors must be on the same mesh, got {meshes[0]} and {mesh}; use full_tensor(), or one "
                "mesh of more dimensions."
            )
    return meshes[0]


def spread(t: Any, mesh: DeviceMesh) -> DTensor:
    """A tensor on a mesh; a plain one is whole on each rank."""
    if isinstance(t, DTensor):
        return t
    lies: Placements = (Replicate(),) * mesh.ndim
    made: DTensor = left(t, mesh, lies, t._spec.shape, lies)
    return made


def run(op: Op, args: tuple[Any, ...]) -> Any:
    """Run an operator on arguments in schema order."""
    leaves = [v for v in _flat(args) if isinstance(v, Tensor)]
    mesh = mesh_of(op.name, leaves)
    args = _with_agreed_draw(op, args, mesh)
    wide = [spread(t, mesh) for t in leaves]
    tracked = mode.grad and op.differentiable and any(t._rg for t in wide)
    key = _key(op, args, wide, tracked, mesh)
    known = None if key is None else _KNOWN.get(key)
    if known is not None:
        ways, static, outs = known
        return run_ways(Call.again(op, args, wide, tracked, static, outs), ways, mesh)
    c = Call(op, args, wide, tracked)
    ways = choose(c, [t._placements for t in wide], mesh.shape)
    if key is not None:
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = ways, c.static, c.outs
    return run_ways(c, ways, mesh)


# Which ways calls have taken: they depend on shapes, placements and static arguments alone.
_KNOWN: dict[Any, tuple[list[Way], tuple[Any, ...], list[Any]]] = {}
MOST_KNOWN = 4096


def _key(op: Op, args: tuple[Any, ...], leaves: Sequence[DTensor], tracked: bool, mesh: DeviceMesh) -> Any:
    """What a call's ways depend on; None where that cannot be a key, or never comes again."""
    if "counter" in op.schema.names:
        return None
    specs = tuple([(t._spec.shape, t._spec.strides, t._spec.dtype, t._spec.device, t._placements) for t in leaves])
    key = (op, mesh.shape, tracked, specs, tuple([_static(v) for v in args]))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _static(v: Any) -> Any:
    if isinstance(v, Tensor):
        return Tensor
    return tuple([_static(x) for x in v]) if v.__class__ is tuple else (v.__class__, v)


def _with_agreed_draw(op: Op, args: tuple[Any, ...], mesh: DeviceMesh) -> tuple[Any, ...]:
    """The arguments of an operator that draws random numbers with the first rank's key and counter."""
    names = op.schema.names
    if "counter" not in names or ("dropout_p" in names and not args[names.index("dropout_p")]):
        return args
    key, counter = names.index("key" if "key" in names else "seed"), names.index("counter")
    found = list(args)
    found[key], found[counter] = rules_random.agreed(mesh, int(args[key]), int(args[counter]))
    return tuple(found)


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for v in values:
        if v.__class__ in (tuple, list):
            yield from v
        else:
            yield v


def _replaced(v: Any, parts: Iterator[Any]) -> Any:
    """An argument with parts in place of tensors."""
    if v.__class__ is tuple:
        return tuple(_replaced(x, parts) for x in v)
    return next(parts) if isinstance(v, Tensor) else v


def behind_input(way: Way, p: Placement) -> Placement:
    """How the gradient of an argument's part lies."""
    if isinstance(p, Partial):
        return Replicate()
    if isinstance(p, Replicate) and not _same(way):
        return Partial()
    return p


def _same(way: Way) -> bool:
    """Whether all ranks compute the same."""
    return all(isinstance(p, Replicate) for p in (*way.ins, *way.outs))


def run_ways(c: Call, ways: Sequence[Way], mesh: DeviceMesh) -> Any:
    """Run on parts, as decided for each dimension of the mesh."""
    parts = []
    for i, t in enumerate(c.leaves):
        target = tuple(w.ins[i] for w in ways)
        parts.append(entered(t, target, tuple(behind_input(w, w.ins[i]) for w in ways)))
    given = iter(parts)
    local = tuple(_replaced(v, given) for v in c.given)
    word = c.op.placement
    special = None if all(_same(w) for w in ways) else RULES.get(word, (None, None))[1]
    out = c.op.apply(local) if special is None else special(c, local, ways, mesh)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    made = []
    for i, o in enumerate(outs):
        lies = tuple(w.outs[i] if i < len(w.outs) else Replicate() for w in ways)
        whole = (
            c.outs[i].shape if i < len(c.outs) and not all(isinstance(p, Replicate) for p in lies) else o._spec.shape
        )
        if local_box(whole, mesh, lies)[0] != tuple(o._spec.shape):
            raise RuntimeError(
                f"{c.op.name}: internal: the part has shape {tuple(o._spec.shape)}, but {lies} of {tuple(whole)} is "
                f"{local_box(whole, mesh, lies)[0]}."
            )
        # The gradient of parts of a sum is whole, otherwise it lies as the result does.
        behind = tuple(Replicate() if isinstance(p, Partial) else p for p in lies)
        made.append(left(o, mesh, lies, whole, behind))
        first = c.leaves[0] if c.leaves else None
        if isinstance(first, DTensor) and (c.op.kind == "view" or c.op.name in ("_split", "_unbind")):
            remember_view(made[-1], first)
    if isinstance(out, (tuple, list)):
        return type(out)(*made) if hasattr(out, "_fields") else type(out)(made)
    return made[0]


def write(name: str, x: Any, args: Sequence[Any], compute: Any) -> Any:
    """Write what `compute` gives into a distributed tensor."""
    if not isinstance(x, DTensor):
        raise RuntimeError(
            f"{name}_: got mixed votive.Tensor and DTensor: a plain tensor cannot be overwritten with a distributed "
            "one; use .full_tensor() or .to_local()."
        )
    tracked = mode.grad and (x._rg or any(getattr(t, "_rg", False) for t in _flat(args)))
    if tracked and x._rg and x._edge is None:
        raise RuntimeError(
            f"{name}_: a leaf Variable that requires grad is being used in an in-place operation; use no_grad() or a "
            "copy."
        )
    if tracked and (x._viewed is not None or len(x._seen_as or ())):
        raise UnsupportedError(
            f"{name}_: a DTensor that is a view, or of which there are views, cannot be written in place while "
            "gradients are recorded; clone() it before, or assign the result."
        )
    if name == "copy":
        made: Any = spread(args[1], x._mesh)
        if made._spec.shape != x._spec.shape:
            made = made.expand(x._spec.shape)
    else:
        made = compute()
    if made is x:
        return x
    if made._spec.shape != x._spec.shape:
        raise RuntimeError(
            f"{name}_: the tensor's shape {tuple(x._spec.shape)} doesn't match the result's {tuple(made._spec.shape)}."
        )
    from ...core.promotion import can_cast

    if name != "copy" and not can_cast(made.dtype, x.dtype):
        raise RuntimeError(f"{name}_: result type {made.dtype} can't be cast to the tensor's type {x.dtype}.")
    made = brought(made, x._placements)
    before, mode.grad = mode.grad, False
    try:
        x._held.copy_(made._held)
    finally:
        mode.grad = before
    if tracked and made._rg:
        if made.dtype != x.dtype:
            made = made.to(x.dtype)
        x._rg, x._edge = True, made._edge
    return x


def brought(x: DTensor, placements: Placements) -> DTensor:
    """A tensor under placements, parts of sums among them, with its history."""
    if x._placements == placements:
        return x
    behind = tuple(Replicate() if isinstance(p, Partial) else p for p in placements)
    if x._rg and mode.grad:
        made: DTensor = left(entered(x, placements, behind), x._mesh, placements, x._spec.shape, behind)
        return made
    plain: DTensor = wrap(entered(x, placements, behind), x._mesh, placements, x._spec.shape)
    return plain
