"""`fully_shard`: a module whose parameters are spread over ranks, and gathered while it computes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ...core.device import device as Device
from ...nn.hooks import register_around
from ...nn.module import Module
from ...nn.parallel.agreeing import broadcast_all, check_same_everywhere, part_of
from ...nn.parallel.moving import moved
from ...nn.parameter import is_lazy
from ...tensor import Tensor
from ..device_mesh import DeviceMesh
from ..world import needed
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from .saved import names_parameters
from .sharding import ShardedParameter, Sharding, marked, sharding_of
from .unit import Held, Unit

M = TypeVar("M", bound=Module)


class _Run(threading.local):
    """Which sharded modules run in this thread, and in which order their units have begun."""

    depth = 0
    last: Unit | None = None


_run = _Run()
AS_THEY_ARE, IN_PLACE = MixedPrecisionPolicy(), OffloadPolicy()


def fully_shard(
    module: M,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = AS_THEY_ARE,
    offload_policy: OffloadPolicy = IN_PLACE,
    ignored_params: Iterable[Tensor] | None = None,
    dp_mesh_dims: Any = None,
) -> M:
    """Spread the parameters of a module over ranks, by rows; its calls gather them, backward reduces their gradients.

    Call it for the inner modules first (each layer), then for the whole, and make the optimizer behind that. All ranks
    begin with rank 0's parameters. A mesh of two dimensions replicates along the first and shards along the second.
    What is too large for one process is built on the meta device; its shards get memory by `to_empty`.

    >>> def train():
    ...     model = votive.nn.Sequential(votive.nn.Linear(4, 8), votive.nn.Tanh(), votive.nn.Linear(8, 1))
    ...     for layer in (model[0], model[2]):
    ...         votive.distributed.fsdp.fully_shard(layer)
    ...     votive.distributed.fsdp.fully_shard(model)
    ...     optimizer = votive.optim.Adam(model.parameters(), lr=0.1)
    ...     model(votive.ones(2, 4)).mean().backward()
    ...     optimizer.step()
    ...     return tuple(model[0].weight.shape), tuple(model[0].weight.grad.shape)
    >>> votive.distributed.simulate(train, 2)
    [((4, 4), (4, 4)), ((4, 4), (4, 4))]
    """
    if not isinstance(module, Module):
        raise TypeError(f"fully_shard: takes one module, got {type(module).__name__}.")
    if isinstance(module, FSDPModule):
        raise ValueError("fully_shard has already been applied to this module.")
    if shard_placement_fn is not None or dp_mesh_dims is not None:
        raise NotImplementedError(
            "fully_shard: shard_placement_fn and dp_mesh_dims are not supported; parameters are spread by rows over "
            "the last dimension of the mesh."
        )
    if reshard_after_forward not in (None, True, False):
        raise NotImplementedError("fully_shard: reshard_after_forward must be True, False or None, not a number.")
    ignored = {id(p) for p in ignored_params or ()}
    held = _unsharded(module, ignored)
    first = next((p for p, _, _ in held), None)
    if mesh is None:
        group, replicas = needed().group, None
        device = Device("cpu") if first is None or first.is_meta else first.device
    else:
        if mesh.ndim > 2:
            raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
        group, replicas = mesh.get_group(mesh.ndim - 1), mesh.get_group(0) if mesh.ndim == 2 else None
        device = Device(mesh.device_type)
    for p, name, _ in held:
        _check(p, name)
    check_same_everywhere([(n, p) for p, n, _ in held], group, "fully_shard")
    moves: list[Tensor] = [part_of(p) for p, _, _ in held if not p.is_meta]
    broadcast_all(moves, group)
    if replicas is not None:
        broadcast_all(moves, replicas)
    on_cpu = isinstance(offload_policy, CPUOffloadPolicy)
    home = Device("cpu") if on_cpu else device
    made = [Held(name, places, _shard(p, places, group, home)) for p, name, places in held]
    unit = Unit(made, group, replicas, mp_policy, device)
    kind = type(module)
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})
    module.__dict__["_fsdp_unit"] = unit
    module.__dict__["_fsdp_reshard"] = reshard_after_forward
    register_around(module, _around)
    module._register_state_dict_hook(_mark_shards)
    return module


def _unsharded(module: Module, ignored: set[int]) -> list[tuple[Any, str, list[tuple[Any, str]]]]:
    """Parameters that no call for an inner module has taken, each with its name and all of its places."""
    found: dict[int, tuple[Any, str, list[tuple[Any, str]]]] = {}
    for path, part in module.named_modules():
        if part is not module and isinstance(part, FSDPModule):
            continue
        for name, p in part._parameters.items():
            if p is None or id(p) in ignored or isinstance(p, ShardedParameter):
                continue
            entry = found.setdefault(id(p), (p, f"{path}.{name}".lstrip("."), []))
            entry[2].append((part, name))
    return list(found.values())


def _check(p: Any, name: str) -> None:
    if is_lazy(p):
        raise RuntimeError(f"fully_shard: {name} is not initialized; run a forward pass before.")
    if p.dim() == 0:
        raise ValueError(f"fully_shard doesn't support scalar parameters, and {name} is one; give it the shape (1,).")


def _shard(p: Any, places: Sequence[tuple[Any, str]], group: Any, device: Device) -> Sharding:
    from ..tensor.stored import Whole

    part, whole = Whole.of(p)
    sharding = Sharding(group, tuple(part.shape), whole)
    local = sharding.local_of_part(part.detach())
    # Without numbers it stays where it is, for `to_empty` and a state dict.
    shard = ShardedParameter(local if local.is_meta else local.to(device), p.requires_grad)
    marked(shard, sharding)
    for module, name in places:
        module._parameters[name] = shard
    return sharding


def _mark_shards(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    """Values of a state dict know how they are spread."""
    for path, p in module.named_parameters(remove_duplicate=False):
        key = prefix + path
        if key in state and isinstance(state[key], Tensor) and sharding_of(p) is not None:
            marked(state[key], sharding_of(p))


# --- calls ------------------------------------------------------------------------------------


def _around(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]) -> Any:
    """A call of a sharded module, with its whole parameters."""
    unit: Unit = module._fsdp_unit
    policy = unit.policy
    root = _run.depth == 0
    if root:
        _run.last = None
    if policy.cast_forward_inputs and policy.param_dtype is not None:
        args, kwargs = moved((args, kwargs), dtype=policy.param_dtype)
    if unit.device.type != "cpu":
        args, kwargs = moved((args, kwargs), unit.device)
    reshards = module._fsdp_reshard if module._fsdp_reshard is not None else not root
    if module._fsdp_summoned and unit.fulls_versions != unit.versions():
        module.reshard()  # the shards were written since
    before = [(m, n, m._parameters[n]) for h in unit.held for m, n in h.places]
    fulls = unit.gather()
    unit.before, _run.last = _run.last, unit
    for other in unit.next_forward:
        if other.fulls is None:
            other.begin()
    _run.depth += 1
    unit.inside += 1
    for h, full in zip(unit.held, fulls, strict=True):
        whole = h.sharding.beside
        made = full if whole is None else whole.placed(full)
        for m, n in h.places:
            m._parameters[n] = made
    try:
        if reshards:
            with names_parameters():
                result = proceed(args, kwargs)
        else:
            result = proceed(args, kwargs)
    finally:
        unit.inside -= 1
        _run.depth -= 1
        for m, n, p in before:
            m._parameters[n] = p
        if not unit.inside and (reshards or unit.fulls is None) and not module._fsdp_summoned:
            unit.reshard()
    return result if policy.output_dtype is None else moved(result, dtype=policy.output_dtype)


class UnshardHandle:
    """Parameters that are on their way.

    >>> votive.distributed.fsdp.UnshardHandle(lambda: None).wait()
    """

    def __init__(self, finish: Callable[[], None]) -> None:
        self._finish: Callable[[], None] | None = finish

    def wait(self) -> None:
        """Return when the module has its whole parameters."""
        if self._finish is not None:
            self._finish()
            self._finish = None


class FSDPModule:
    """What a module can do since `fully_shard`.

    >>> votive.distributed.simulate(
    ...     lambda: isinstance(votive.distributed.fsdp.fully_shard(votive.nn.Linear(1, 1)),
    ...                        votive.distributed.fsdp.FSDPModule), 1)
    [True]
    """

    _fsdp_unit: Unit
    _fsdp_reshard: bool | None
    _fsdp_summoned = False

    def _fsdp_all(self, recurse: bool = True) -> list[Any]:
        if not recurse:
            return [self]
        return [m for m in self.modules() if isinstance(m, FSDPModule)]  # type: ignore[attr-defined]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Let the module hold its whole parameters until `reshard()`. All ranks call it.

        >>> def whole():
        ...     layer = votive.distributed.fsdp.fully_shard(votive.nn.Linear(1, 4))
        ...     layer.unshard()
        ...     shape = tuple(layer.weight.shape)
        ...     layer.reshard()
        ...     return shape, tuple(layer.weight.shape)
        >>> votive.distributed.simulate(whole, 2)[0]
        ((4, 1), (2, 1))
        """
        unit = self._fsdp_unit
        if not self._fsdp_summoned:
            unit.begin(async_op)

        def finish() -> None:
            if not self._fsdp_summoned:
                shards = [h.shard for h in unit.held]
                with _no_history():
                    fulls = unit.gather()
                self.__dict__["_fsdp_summoned"] = shards
                for h, full in zip(unit.held, fulls, strict=True):
                    whole = h.sharding.beside
                    made = full if whole is None else whole.placed(full)
                    for m, n in h.places:
                        m._parameters[n] = made

        if async_op:
            return UnshardHandle(finish)
        finish()
        return None

    def reshard(self) -> None:
        """Let the module hold its shards again."""
        shards: Any = self.__dict__.pop("_fsdp_summoned", None)
        for h, shard in zip(self._fsdp_unit.held, shards or (), strict=False):
            for m, n in h.places:
                m._parameters[n] = shard
        self._fsdp_unit.reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Send gradients in backward, or add them up, whole, on each rank."""
        for m in self._fsdp_all(recurse):
            m._fsdp_unit.syncs = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """With a mesh of two dimensions: average gradients along the first, too."""
        for m in self._fsdp_all(recurse):
            m._fsdp_unit.reduces_replicas = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Forget the whole parameters after each forward pass, or keep them for backward."""
        for m in self._fsdp_all(recurse):
            m.__dict__["_fsdp_reshard"] = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Forget the whole parameters behind their last use in backward, or only at the end of the pass."""
        for m in self._fsdp_all(recurse):
            m._fsdp_unit.reshards_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Send for the parameters of these when the forward pass of this one begins."""
        self._fsdp_unit.next_forward = [m._fsdp_unit for m in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Send for the parameters of these when backward comes to this one; else for those that ran before it."""
        self._fsdp_unit.next_backward = [m._fsdp_unit for m in modules]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide sums of gradients by this instead of the number of ranks."""
        self._fsdp_unit.divisor = float(factor)


def _no_history() -> Any:
    from ...autograd.modes import no_grad

    return no_grad()


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method other than `forward` have the whole parameters, too.

    >>> def other():
    ...     class Two(votive.nn.Linear):
    ...         def double(self, x):
    ...             return 2 * votive.nn.functional.linear(x, self.weight)
    ...     layer = votive.distributed.fsdp.fully_shard(Two(1, 4))
    ...     votive.distributed.fsdp.register_fsdp_forward_method(layer, "double")
    ...     return tuple(layer.double(votive.ones(1, 1)).shape)
    >>> votive.distributed.simulate(other, 2)
    [(1, 4), (1, 4)]
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _around(module, args, kwargs, lambda a, k: method(*a, **k))

    module.__dict__[method_name] = wrapped
