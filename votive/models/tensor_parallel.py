"""Tensor parallel decoders: each rank of a mesh computes some heads and some neurons, by one plan for all families.

The plan reads what layers are made of. What it does not know (other mixers than attention, norms of the stream,
routers) stays whole on every rank, where it computes the same. Parameters that are cut are distributed tensors; between
the products, activations are plain tensors with this rank's heads.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import votive
from votive import nn
from votive.distributed.collectives import broadcast
from votive.distributed.device_mesh import DeviceMesh
from votive.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from votive.distributed.tensor.parallel import ParallelStyle
from votive.distributed.tensor.parallel.style import parameter

from ..tensor import Tensor
from .attention import AttentionMask, Weights
from .decoder.attention import DecoderAttention
from .decoder.latent_attention import LatentAttention
from .decoder.layer import DecoderLayer
from .decoder.mixture import Mixture
from .decoder.model import Decoder
from .decoder.nets import FusedMLP, GatedMLP, PlainMLP
from .decoder.products import Conv1D
from .shown_whole import show_whole

Net = GatedMLP | FusedMLP | PlainMLP
Select = Callable[[Tensor], Tensor]
M = TypeVar("M", bound=nn.Module)


def _whole(x: Tensor, mesh: DeviceMesh) -> Tensor:
    """What all ranks have, used by each for a part of what follows: gradients are added up."""
    return DTensor.from_local(x, mesh, [Replicate()]).to_local(grad_placements=[Partial()])


def _joint(x: Tensor, mesh: DeviceMesh, dim: int, size: int) -> DTensor:
    """The tensor of `size` along a dimension of which this rank has its part."""
    shape = list(x.shape)
    shape[dim] = size
    strides, step = [1] * len(shape), 1
    for d in reversed(range(len(shape))):
        strides[d], step = step, step * max(shape[d], 1)
    return DTensor.from_local(x, mesh, [Shard(dim)], shape=shape, stride=strides)


def _keys_of_all(latent: Tensor, turned: Tensor, mesh: DeviceMesh) -> tuple[Tensor, Tensor]:
    """What a cache keeps: each rank uses the keys that heads share for its own heads."""
    return latent, _whole(turned, mesh)


class Columns(ParallelStyle):
    """A product cut along its outputs. `select` chooses from whole results what this rank goes on with; without it,
    that is the part that it has computed. `gathered`: all ranks get all.
    """

    def __init__(self, select: Select | None = None, gathered: bool = False) -> None:
        self.select, self.gathered = select, gathered

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        mesh, out = device_mesh, 1 if isinstance(module, Conv1D) else 0
        _product(module)
        parameter(module, "weight", mesh, Shard(out), self.src_data_rank)
        parameter(module, "bias", mesh, Shard(0), self.src_data_rank)

        def finish(_: Any, args: Any, y: Any) -> Tensor:
            if self.select is None and not self.gathered:
                return y.redistribute(placements=[Shard(y.ndim - 1)]).to_local()
            y = y.redistribute(placements=[Replicate()])
            if self.select is None:
                return y.to_local()
            return self.select(y.to_local(grad_placements=[Partial()]))

        module.register_forward_pre_hook(lambda _, args: (DTensor.from_local(args[0], mesh, [Replicate()]), *args[1:]))
        module.register_forward_hook(finish)
        return module


class Rows(ParallelStyle):
    """A product cut along its inputs, of which each rank has its part; ranks add their results up."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        mesh, into = device_mesh, 0 if isinstance(module, Conv1D) else 1
        _product(module)
        size = int(module.weight.shape[into])
        parameter(module, "weight", mesh, Shard(into), self.src_data_rank)
        parameter(module, "bias", mesh, Replicate(), self.src_data_rank)
        module.register_forward_pre_hook(lambda _, args: (_joint(args[0], mesh, args[0].ndim - 1, size), *args[1:]))
        module.register_forward_hook(lambda _, args, y: y.redistribute(placements=[Replicate()]).to_local())
        return module


class Table(ParallelStyle):
    """An embedding cut along its rows."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        mesh = device_mesh
        if not isinstance(module, nn.Embedding) or module.max_norm is not None:
            raise NotImplementedError(f"tensor_parallel: {type(module).__name__} of tokens, or one with max_norm.")
        parameter(module, "weight", mesh, Shard(0), self.src_data_rank)
        module.register_forward_pre_hook(lambda _, args: (DTensor.from_local(args[0], mesh, [Replicate()]), *args[1:]))
        module.register_forward_hook(lambda _, args, y: y.redistribute(placements=[Replicate()]).to_local())
        return module


class OnParts(ParallelStyle):
    """A module whose parameters are whole, on parts along a dimension; `whole`: it needs to see all of them."""

    def __init__(self, dim: int, whole: bool = False) -> None:
        self.dim, self.whole = dim, whole

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        mesh = device_mesh
        for part in module.modules():
            for name in list(part._parameters):
                parameter(part, name, mesh, Replicate(), self.src_data_rank)
            for name, buffer in list(part._buffers.items()):
                if buffer is not None and not isinstance(buffer, DTensor):
                    part._buffers[name] = distribute_tensor(buffer, mesh)

        def prepare(_: Any, args: Any) -> Any:
            x = args[0]
            dim = self.dim % x.ndim
            x = _joint(x, mesh, dim, x.shape[dim] * mesh.size())
            return (x.redistribute(placements=[Replicate()]) if self.whole else x, *args[1:])

        module.register_forward_pre_hook(prepare)
        module.register_forward_hook(
            lambda _, args, y: y.redistribute(placements=[Shard(self.dim % y.ndim)]).to_local()
        )
        return module


def _product(module: nn.Module) -> None:
    if type(module) not in (nn.Linear, Conv1D):
        raise NotImplementedError(
            f"tensor_parallel: a product is a {type(module).__name__}; only plain linear layers are cut. Merge "
            "adapters and undo quantization first."
        )


# --- the plan -------------------------------------------------------------------------------------


class _Local:
    """What a rank of a mesh, this one unless said otherwise, computes of one attention."""

    def __init__(self, attention: DecoderAttention, mesh: DeviceMesh, rank: int | None = None) -> None:
        n, r = mesh.size(), mesh.get_local_rank() if rank is None else rank
        heads, shared, _ = attention.counts
        if heads % n:
            raise ValueError(
                f"tensor_parallel: {heads} attention heads do not divide among {n} ranks; use a mesh of a size that "
                "divides them."
            )
        self.mesh, self.heads = mesh, range(heads // n * r, heads // n * (r + 1))
        self.divides = shared % n == 0
        group = heads // shared
        if self.divides:
            self.shared = list(range(shared // n * r, shared // n * (r + 1)))
        else:
            # Several ranks need the same key head; where groups are cut, each query head has its own copy.
            self.shared = [h // group for h in self.heads]
            kinds = sorted(set(self.shared))
            if all(self.shared.count(k) == self.shared.count(kinds[0]) for k in kinds):
                self.shared = kinds

    def keys(self, x: Tensor, width: int) -> Tensor:
        """The key or value heads (..., heads * width) that this rank's queries see."""
        parts = x.unflatten(-1, (-1, width))
        index = votive.tensor(self.shared, device=x.device)
        return parts.index_select(parts.ndim - 2, index).flatten(-2)


def _of_attention(path: str, attention: DecoderAttention, mesh: DeviceMesh) -> dict[str, ParallelStyle]:
    local, width = _Local(attention, mesh), attention.head_dim
    plan: dict[str, ParallelStyle] = {}
    shared = attention.counts[1]
    if isinstance(attention, LatentAttention):
        plan[f"{path}.{'q_proj' if attention.own.q_rank is None else 'q_b_proj'}"] = Columns()
        plan[f"{path}.kv_b_proj"] = Columns()
    elif len(attention.names) == 3:
        q, k, v = attention.names
        plan[f"{path}.{q}"] = Columns()
        for name in (k, v):
            plan[f"{path}.{name}"] = Columns() if local.divides else Columns(lambda y: local.keys(y, width))
    else:
        before = SimpleNamespace(
            layout=attention.layout, counts=attention.counts, head_dim=width, sizes=list(attention.sizes)
        )

        def select(y: Tensor) -> Tensor:
            q, k, v = DecoderAttention.apart(before, y)  # type: ignore[arg-type]
            mine = q.narrow(-1, local.heads.start * width, len(local.heads) * width)
            return votive.cat([mine, local.keys(k, width), local.keys(v, width)], -1)

        plan[f"{path}.{attention.names[0]}"] = Columns(select)
    plan[f"{path}.{attention.out_name}"] = Rows()
    if attention.qk_norm:
        if attention.qk_norm != "head" and not local.divides:
            raise NotImplementedError(
                f"tensor_parallel: {shared} key heads with norms of their own do not divide among {mesh.size()} ranks."
            )
        for name in attention.qk_names:
            plan[f"{path}.{name}"] = OnParts(2, whole=attention.qk_norm != "head")
    return plan


def _of_net(path: str, net: Any, mesh: DeviceMesh) -> dict[str, ParallelStyle]:
    n, r = mesh.size(), mesh.get_local_rank()
    *first, down = net.names
    plan: dict[str, ParallelStyle] = {f"{path}.{down}": Rows()}
    if isinstance(net, FusedMLP):
        product = getattr(net, first[0])
        inner = int(product.weight.shape[0]) // 2
        each = -(-inner // n)
        begin, end = min(each * r, inner), min(each * (r + 1), inner)

        def select(y: Tensor) -> Tensor:
            return votive.cat([half[..., begin:end] for half in y.chunk(2, -1)], -1)

        plan[f"{path}.{first[0]}"] = Columns(select)
    else:
        plan.update({f"{path}.{name}": Columns() for name in first})
    if list(net.act_fn.parameters()) if isinstance(net.act_fn, nn.Module) else []:
        plan[f"{path}.act_fn"] = OnParts(-1)
    return {name.lstrip("."): style for name, style in plan.items()}


def tp_plan(model: nn.Module, mesh: DeviceMesh) -> dict[str, ParallelStyle]:
    """What `tensor_parallel` does with the parts of a decoder: a style by the path of each that is cut.

    >>> from votive.models.tensor_parallel import tp_plan
    >>> def paths():
    ...     config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...         num_hidden_layers=1, num_attention_heads=2)
    ...     plan = tp_plan(votive.models.LlamaForCausalLM(config), votive.distributed.init_device_mesh("cpu", (2,)))
    ...     return sorted(plan)[:3]
    >>> votive.distributed.simulate(paths, 2)[0]
    ['lm_head', 'model.embed_tokens', 'model.layers.0.mlp.down_proj']
    """
    _check_mesh(mesh)
    names = {id(m): name for name, m in model.named_modules()}
    decoders = [m for m in model.modules() if isinstance(m, Decoder)]
    if not decoders:
        raise NotImplementedError(
            f"tensor_parallel: {type(model).__name__} is no decoder; cut it with parallelize_module and a "
            "plan of your own."
        )
    plan: dict[str, ParallelStyle] = {}
    for decoder in decoders:
        table = getattr(decoder.body, decoder.design.embedding)
        plan[names[id(table)]] = Table()
        for layer in decoder.stack:
            if isinstance(layer, DecoderLayer):
                plan.update(_of_layer(layer, names, mesh))
    head = getattr(model, model.design.head, None) if hasattr(model, "design") else None
    if isinstance(head, nn.Linear):
        plan[names[id(head)]] = Columns(gathered=True)
    return plan


def _of_layer(layer: DecoderLayer, names: dict[int, str], mesh: DeviceMesh) -> dict[str, ParallelStyle]:
    plan: dict[str, ParallelStyle] = {}
    if type(layer.mixer) in (DecoderAttention, LatentAttention):
        assert isinstance(layer.mixer, DecoderAttention)
        plan.update(_of_attention(names[id(layer.mixer)], layer.mixer, mesh))
    try:
        net: nn.Module | None = layer.net
    except LookupError:  # a layer that is a mixer alone
        net = None
    nets: list[nn.Module | None] = [net]
    if isinstance(net, Mixture):
        nets = [*net.nets, *([net.common] if net.design.shared else [])]
    for net in nets:
        # A net without a name of its own has its products as the layer's children.
        if isinstance(net, (GatedMLP, FusedMLP, PlainMLP)):
            plan.update(_of_net(names.get(id(net), names[id(layer)]), net, mesh))
    return plan


def _check_mesh(mesh: DeviceMesh) -> None:
    if mesh.ndim != 1:
        raise ValueError(f'tensor_parallel takes a mesh of one dimension, got {mesh.ndim}; pass mesh["tp"].')


def tensor_parallel(model: M, mesh: DeviceMesh) -> M:
    """Let the ranks of a mesh compute a decoder together: each has some of the heads, neurons and words.

    All ranks give it the same tokens and get the same logits, so that training and `generate` are written as for one
    process. What counts are the first rank's weights. Loading into a model that is cut goes by
    `votive.distributed.checkpoint`, or before.

    >>> from votive.models.tensor_parallel import tensor_parallel
    >>> def write():
    ...     votive.manual_seed(0)
    ...     config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...         num_hidden_layers=1, num_attention_heads=2, eos_token_id=None)
    ...     model = votive.models.LlamaForCausalLM(config).eval()
    ...     tensor_parallel(model, votive.distributed.init_device_mesh("cpu", (2,)))
    ...     return model.generate(votive.tensor([[1, 2]]), max_new_tokens=3).tolist()
    >>> first, second = votive.distributed.simulate(write, 2)
    >>> first == second
    True
    """
    if any("mixed" in m.__dict__ for m in model.modules() if isinstance(m, Mixture)):
        raise RuntimeError("tensor_parallel: cut a model into heads and neurons first, then call expert_parallel.")
    plan = tp_plan(model, mesh)
    tied: dict[int, list[tuple[nn.Module, str]]] = {}
    for part in model.modules():
        for name, p in part._parameters.items():
            if p is not None:
                tied.setdefault(id(p), []).append((part, name))
    shares = [places for places in tied.values() if len(places) > 1]
    attentions = [m for m in model.modules() if type(m) in (DecoderAttention, LatentAttention)]
    for layer in [m for m in model.modules() if isinstance(m, DecoderLayer)]:
        show_whole(layer, plan, {id(m): name for name, m in model.named_modules()}, mesh)
    for attention in attentions:
        assert isinstance(attention, DecoderAttention)
        _make_local(attention, mesh)
    for path, style in plan.items():
        module = model.get_submodule(path)
        for places in shares:
            if any(m is module for m, _ in places):
                _share(places)
        style._apply(module, mesh)
        for places in shares:
            if any(m is module for m, _ in places):
                _share(places)
    _agree(model, mesh)
    return model


def _share(places: list[tuple[nn.Module, str]]) -> None:
    """Give all places of a tied parameter the one that was cut, once it is."""
    made = next((m._parameters[n] for m, n in places if isinstance(m._parameters[n], DTensor)), None)
    if made is not None:
        for m, n in places:
            m._parameters[n] = made


def _agree(model: nn.Module, mesh: DeviceMesh) -> None:
    """Give whole parameters, buffers and the generator of random numbers the state of the first rank."""
    group = mesh.get_group()
    with votive.no_grad():
        for t in (*model.parameters(), *model.buffers()):
            if not isinstance(t, DTensor) and not t.is_meta:
                broadcast(t.detach(), group.ranks[0], group)
        state = votive.tensor(list(votive.get_rng_state()), dtype=votive.uint8)
        broadcast(state, group.ranks[0], group)
        votive.set_rng_state(bytes(state.tolist()))


def _make_local(attention: DecoderAttention, mesh: DeviceMesh) -> None:
    """Let an attention know that it has some heads only."""
    local, width = _Local(attention, mesh), attention.head_dim
    whole, mine = attention.counts[0], len(local.heads)
    if isinstance(attention, LatentAttention):
        attention.counts = (mine, mine, mine)
        kept = attention.kept
        # The part of keys that heads share is used by each rank for its own heads.
        attention.__dict__["kept"] = lambda x: _keys_of_all(*kept(x), mesh)
    else:
        attention.counts = (mine, len(local.shared), len(local.shared))
    attention.sizes = [n * width for n in attention.counts]
    if len(attention.names) == 1:
        attention.layout = "split"
    if attention.has_sinks:
        parameter(attention, "sinks", mesh, Shard(0), 0)
    look = attention.look

    def of_heads(q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, weights: Weights) -> Tensor:
        seen = mask.attn_mask
        if seen is not None and seen.ndim == 4 and seen.shape[1] == whole != mine:
            mask = mask._replace(attn_mask=seen[:, local.heads.start : local.heads.stop])
        if not attention.has_sinks:
            return look(q, k, v, mask, weights)
        sinks = attention._parameters["sinks"]
        assert isinstance(sinks, DTensor)
        attention._parameters["sinks"] = sinks.to_local()
        try:
            return look(q, k, v, mask, weights)
        finally:
            attention._parameters["sinks"] = sinks

    attention.__dict__["look"] = of_heads
