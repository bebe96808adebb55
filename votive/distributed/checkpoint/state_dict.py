"""States of models and optimizers by the names of parameters, whole or as each rank holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...autograd.modes import no_grad
from ...nn.loading import IncompatibleKeys
from ...nn.module import Module
from ...nn.parallel import DistributedDataParallel
from ...ops.registry import F
from ...optim import Optimizer
from ...tensor import Tensor
from ..collectives import broadcast
from ..fsdp.sharding import marked, sharding_of
from ..groups import get_rank
from ..objects import all_gather_object, broadcast_object_list
from ..optim import ZeroRedundancyOptimizer
from ..tensor import DTensor, distribute_tensor
from ..world import is_initialized
from .leaves import leaves, replace


@dataclass
class StateDictOptions:
    """`full_state_dict`: whole tensors instead of each rank's rows, on all ranks; with `cpu_offload` in main memory and
    on rank 0 alone. `broadcast_from_rank0`: when a whole state is set, rank 0's counts. `flatten_optimizer_state_dict`:
    settings of groups by each parameter's name, for ranks that have other parameters, as stages of a pipeline.

    >>> votive.distributed.checkpoint.StateDictOptions(full_state_dict=True).strict
    True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


Optimizers = Optimizer | Iterable[Optimizer]


def _plain(model: Module) -> Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


def _listed(optimizers: Optimizers) -> list[Optimizer]:
    found = [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)
    for one in found:
        if isinstance(one, ZeroRedundancyOptimizer):
            raise NotImplementedError(
                "checkpoint: a ZeroRedundancyOptimizer saves its states by consolidate_state_dict and state_dict."
            )
    return found


def _given(value: Any, options: StateDictOptions) -> Any:
    """A value as the options want it."""
    if not isinstance(value, Tensor):
        return value
    spread = sharding_of(value)
    if options.full_state_dict and spread is not None:
        value, spread = spread.gather(value), None
    if options.full_state_dict and isinstance(value, DTensor):
        value = value.detach().full_tensor()
    if options.cpu_offload:
        value = marked(value.cpu(), spread)
    return value


def _leaves_out(options: StateDictOptions) -> bool:
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0


def get_model_state_dict(model: Module, *, options: StateDictOptions | None = None) -> dict[str, Any]:
    """The state of a model by its own names, also of one within DistributedDataParallel. All ranks call it.

    >>> from votive.distributed import checkpoint, fsdp
    >>> def whole():
    ...     model = fsdp.fully_shard(votive.nn.Linear(2, 3))
    ...     options = checkpoint.StateDictOptions(full_state_dict=True)
    ...     return tuple(checkpoint.get_model_state_dict(model, options=options)["weight"].shape)
    >>> votive.distributed.simulate(whole, 2)
    [(3, 2), (3, 2)]
    """
    options = options or StateDictOptions()
    plain = _plain(model)
    if options.full_state_dict and any("_of_expert_on" in p.__dict__ for p in plain.parameters()):
        raise NotImplementedError(
            "checkpoint: no rank has all experts of this model, so there is no full state; use checkpoint.save, which "
            "stores those of all ranks."
        )
    frozen = {n for n, p in plain.named_parameters() if not p.requires_grad} if options.ignore_frozen_params else set()
    state = {n: _given(v, options) for n, v in plain.state_dict().items() if n not in frozen}
    return {} if _leaves_out(options) else state


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> IncompatibleKeys:
    """Take over what `get_model_state_dict` gave with the same options; whole states fit any number of ranks.

    >>> from votive.distributed import checkpoint, fsdp
    >>> def take(state):
    ...     model = fsdp.fully_shard(votive.nn.Linear(2, 3))
    ...     options = checkpoint.StateDictOptions(full_state_dict=True)
    ...     checkpoint.set_model_state_dict(model, state, options=options)
    ...     return model.bias.tolist()
    >>> state = {"weight": votive.ones(3, 2), "bias": votive.tensor([1.0, 2.0, 3.0])}
    >>> votive.distributed.simulate(take, 2, state)
    [[1.0, 2.0], [3.0]]
    """
    options = options or StateDictOptions()
    plain = _plain(model)
    here = plain.state_dict()
    if options.broadcast_from_rank0:
        model_state_dict = _of_rank_0(model_state_dict, options)
    if options.full_state_dict:
        model_state_dict = {n: _part(n, v, here.get(n)) for n, v in model_state_dict.items()}
    return plain.load_state_dict(model_state_dict, strict=options.strict)


@no_grad()
def _part(name: str, value: Any, like: Any) -> Any:
    """What this rank holds of a whole, as another tensor lies."""
    if not isinstance(value, Tensor) or not isinstance(like, Tensor):
        return value
    if isinstance(like, DTensor) and not isinstance(value, DTensor):
        if tuple(value.shape) != tuple(like.shape):
            raise ValueError(f"{name} has the shape {tuple(value.shape)}, and the whole parameter {tuple(like.shape)}.")
        return distribute_tensor(value.detach(), like.device_mesh, like.placements, src_data_rank=None)
    spread = sharding_of(like)
    if spread is None:
        return value
    if tuple(value.shape) != spread.whole_shape:
        raise ValueError(f"{name} has the shape {tuple(value.shape)}, and the whole parameter {spread.whole_shape}.")
    return marked(spread.local(value.detach()), spread)


def _of_rank_0(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Rank 0's state on all ranks."""
    if not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    described: list[Any] = [None]
    values = leaves(state) if get_rank() == 0 else {}
    if get_rank() == 0:
        shown = {n: (tuple(v.shape), v.dtype) if isinstance(v, Tensor) else None for n, v in values.items()}
        described = [(shown, replace(_copied(state), lambda n, v: None if isinstance(v, Tensor) else v))]
    broadcast_object_list(described, 0)
    shown, tree = described[0]

    def sent(name: str, value: Any) -> Any:
        if shown.get(name) is None:
            return value
        shape, kind = shown[name]
        t = values[name].detach().clone() if name in values else F.empty(shape, dtype=kind)
        broadcast(t, 0)
        return t

    # Tensors in one order on all ranks; None where they go.
    made = {name: sent(name, None) for name in shown if shown[name] is not None}
    filled: dict[str, Any] = replace(tree, lambda n, v: made.get(n, v))
    return filled


def _copied(state: Any) -> Any:
    if isinstance(state, dict):
        return {k: _copied(v) for k, v in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_copied(v) for v in state)
    return state


# --- optimizers -------------------------------------------------------------------------------


def _names(model: Module) -> dict[int, str]:
    return {id(p): n for n, p in _plain(model).named_parameters()}


def _started(optimizer: Optimizer) -> None:
    """Let an optimizer have its states, by a step of gradients and rates that are zero."""
    if optimizer.state:
        return
    params = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad]
    grads = [p._grad for p in params]
    rates = [g.get("lr") for g in optimizer.param_groups]
    with no_grad():
        for p in params:
            p._grad = F.zeros_like(p.detach())
        for g in optimizer.param_groups:
            if "lr" in g:
                g["lr"] = 0.0
        optimizer.step()
    for p, grad in zip(params, grads, strict=True):
        p._grad = grad
    for g, rate in zip(optimizer.param_groups, rates, strict=True):
        if "lr" in g:
            g["lr"] = rate


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizers, *, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """States of optimizers by the names of the model's parameters. One that has not stepped gets states of zeros.

    >>> from votive.distributed import checkpoint
    >>> model = votive.nn.Linear(1, 1)
    >>> optimizer = votive.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    >>> checkpoint.get_optimizer_state_dict(model, optimizer)["state"]["bias"]
    {'momentum_buffer': tensor([0.])}
    """
    options = options or StateDictOptions()
    names = _names(model)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _listed(optimizers):
        _started(optimizer)
        for group in optimizer.param_groups:
            fqns = [_known(names, p) for p in group["params"]]
            every = _of_all_ranks(fqns, group["params"])
            groups.append({k: v for k, v in group.items() if k not in ("params", "param_names")} | {"params": every})
            for name, p in zip(fqns, group["params"], strict=True):
                if p in optimizer.state:
                    state[name] = {k: _given(_spread_as(name, k, v, p), options) for k, v in optimizer.state[p].items()}
    if _leaves_out(options):
        return {}
    return _flat(state, groups) if options.flatten_optimizer_state_dict else {"state": state, "param_groups": groups}


def _flat(state: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    found = {f"state.{name}.{k}": v for name, row in state.items() for k, v in row.items()}
    for group in groups:
        for name in group["params"]:
            found.update({f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"})
    return found


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    """What `_flat` was given, with a group for each parameter."""
    rows: dict[str, dict[str, dict[str, Any]]] = {"state": {}, "param_groups": {}}
    for key, value in flat.items():
        kind, _, rest = key.partition(".")
        name, _, k = rest.rpartition(".")
        if kind not in rows or not name:
            raise ValueError(f"checkpoint: {key!r} is no part of a flat state of an optimizer.")
        rows[kind].setdefault(name, {})[k] = value
    return {"state": rows["state"], "param_groups": [{**g, "params": [n]} for n, g in rows["param_groups"].items()]}


def _of_all_ranks(fqns: list[str], params: Sequence[Tensor]) -> list[str]:
    """Names of parameters, those among them that only other ranks have, such as experts."""
    spread: Any = next((p.__dict__["_of_expert_on"] for p in params if "_of_expert_on" in p.__dict__), None)
    if spread is None:
        return fqns
    found: list[Any] = [None] * spread.size()
    all_gather_object(found, fqns, spread)
    return list(dict.fromkeys(name for one in found for name in one))


def _known(names: dict[int, str], p: Tensor) -> str:
    if id(p) not in names:
        raise ValueError("checkpoint: the optimizer has a parameter that is not of the model.")
    return names[id(p)]


def _spread_as(name: str, key: str, value: Any, p: Tensor) -> Any:
    """A state that knows that it is spread as its parameter is."""
    spread = sharding_of(p)
    if spread is None or not isinstance(value, Tensor) or value.dim() == 0:
        return value
    if value.shape != p.shape:
        raise NotImplementedError(
            f"checkpoint: the state {key} of {name} has not the shape of the parameter, so its rows are unknown."
        )
    return marked(value.detach(), spread)


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizers, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Take over what `get_optimizer_state_dict` gave with the same options.

    >>> from votive.distributed import checkpoint
    >>> model = votive.nn.Linear(1, 1)
    >>> one, two = (votive.optim.SGD(model.parameters(), lr=lr, momentum=0.9) for lr in (0.1, 0.2))
    >>> checkpoint.set_optimizer_state_dict(model, two, checkpoint.get_optimizer_state_dict(model, one))
    >>> two.param_groups[0]["lr"]
    0.1
    """
    options = options or StateDictOptions()
    if options.broadcast_from_rank0:
        optim_state_dict = _of_rank_0(optim_state_dict, options)
    if options.flatten_optimizer_state_dict:
        optim_state_dict = _nested(optim_state_dict)
    names = _names(model)
    of_name = {n: g for g in optim_state_dict["param_groups"] for n in g["params"]}
    for optimizer in _listed(optimizers):
        states: dict[int, Any] = {}
        groups: list[dict[str, Any]] = []
        count = 0
        for group in optimizer.param_groups:
            fqns = [_known(names, p) for p in group["params"]]
            missing = [n for n in fqns if n not in of_name]
            if missing:
                raise KeyError(f"checkpoint: there is no state of {missing[0]}.")
            source = of_name[fqns[0]] if fqns else group
            groups.append(
                {k: v for k, v in source.items() if k not in ("params", "param_names")}
                | {"params": list(range(count, count + len(fqns)))}
            )
            for i, (name, p) in enumerate(zip(fqns, group["params"], strict=True), count):
                if name in optim_state_dict["state"]:
                    found = optim_state_dict["state"][name]
                    like = p if options.full_state_dict else None
                    states[i] = {
                        k: _part(f"{k} of {name}", v, like if isinstance(v, Tensor) and v.dim() else None)
                        for k, v in found.items()
                    }
            count += len(fqns)
        optimizer.load_state_dict({"state": states, "param_groups": groups})


def get_state_dict(
    model: Module, optimizers: Optimizers, *, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and its optimizers.

    >>> from votive.distributed import checkpoint
    >>> model = votive.nn.Linear(1, 1)
    >>> state, _ = checkpoint.get_state_dict(model, votive.optim.SGD(model.parameters(), lr=0.1))
    >>> sorted(state)
    ['bias', 'weight']
    """
    return (get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options))


def set_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> IncompatibleKeys:
    """Take over what `get_state_dict` gave with the same options.

    >>> from votive.distributed import checkpoint
    >>> model = votive.nn.Linear(1, 1)
    >>> optimizer = votive.optim.SGD(model.parameters(), lr=0.1)
    >>> state, steps = checkpoint.get_state_dict(model, optimizer)
    >>> checkpoint.set_state_dict(model, optimizer, model_state_dict=state, optim_state_dict=steps)
    <All keys matched successfully>
    """
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
