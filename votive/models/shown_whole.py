"""Which values of a layer that is cut over ranks are parts of what: so that glass shows and edits them whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from votive import nn
from votive.distributed.device_mesh import DeviceMesh
from votive.distributed.tensor.parts import Parts, Spread
from votive.distributed.tensor.shards import chunk
from votive.nn.hooks import register_around
from votive.nn.points import POINTS, wanted

from .decoder.attention import DecoderAttention
from .decoder.latent_attention import LatentAttention
from .decoder.layer import DecoderLayer
from .decoder.nets import FusedMLP, GatedMLP, PlainMLP

Places = list[list[int]]
# Places of a layer by what is cut there, and along which dimension.
_HEADS = {"attn.q": 2, "attn.rot_q": 2, "attn.z": 2, "attn.scores": 1, "attn.pattern": 1}
_KEYS = {"attn.k": 2, "attn.v": 2, "attn.rot_k": 2}
_NEURONS = ("mlp.pre", "mlp.pre_linear", "mlp.post")
# Each head computes alone there, which the products of several ranks cannot.
_REFUSED = ("q_input", "k_input", "v_input", "attn.result")


def show_whole(layer: DecoderLayer, plan: dict[str, Any], names: dict[int, str], mesh: DeviceMesh) -> None:
    """Let glass see the values of a layer whole that a plan will cut."""
    points: dict[str, Parts] = {}
    mixer = layer.mixer
    if type(mixer) in (DecoderAttention, LatentAttention) and f"{names[id(mixer)]}.{mixer.out_name}" in plan:
        assert isinstance(mixer, DecoderAttention)
        points.update(_of_attention(mixer, mesh))
    try:
        net: Any = layer.net
    except LookupError:
        net = None
    if isinstance(net, (GatedMLP, FusedMLP, PlainMLP)):
        points.update(_of_net(net, mesh))
    else:
        for inner in net.modules() if isinstance(net, nn.Module) else ():
            if isinstance(inner, (GatedMLP, FusedMLP, PlainMLP)):
                _of_net(inner, mesh)
    if points:
        register_around(layer, _around(points, f"layers.{layer.layer_idx}"))


def _around(points: dict[str, Parts], at: str) -> Callable[..., Any]:
    def around(module: Any, args: Any, kwargs: Any, proceed: Callable[..., Any]) -> Any:
        if not POINTS.watchers:
            return proceed(args, kwargs)
        refused = [f"{at}.{name}" for name in _REFUSED if wanted(f"{at}.{name}")]
        if refused:
            raise NotImplementedError(
                f"glass: {refused[0]} is not shown of a model that is cut over ranks; look at attn.z in its place, or "
                "at a model that is whole."
            )
        before = POINTS.here.__dict__.get("parts")
        POINTS.here.parts = points
        try:
            return proceed(args, kwargs)
        finally:
            POINTS.here.parts = before

    return around


def _features(heads: Sequence[int], width: int) -> list[int]:
    return [h * width + i for h in heads for i in range(width)]


def _of_attention(attention: DecoderAttention, mesh: DeviceMesh) -> dict[str, Parts]:
    from .tensor_parallel import _Local

    ranks = [_Local(attention, mesh, r) for r in range(mesh.size())]
    heads: Places = [list(one.heads) for one in ranks]
    latent = isinstance(attention, LatentAttention)
    keys: Places = heads if latent else [list(one.shared) for one in ranks]
    width = attention.head_dim

    def out(name: str, places: Places, width: int) -> None:
        module = getattr(attention, name)
        module.__dict__["_spread"] = Spread(out=Parts(mesh, -1, [_features(p, width) for p in places]))

    if isinstance(attention, LatentAttention):
        own = attention.own
        out("q_proj" if own.q_rank is None else "q_b_proj", heads, width)
        out("kv_b_proj", heads, own.fixed + own.value)
        width = own.value
    elif len(attention.names) == 3:
        for name, places in zip(attention.names, (heads, keys, keys), strict=True):
            out(name, places, width)
    elif attention.layout == "split":
        count, shared, _ = attention.counts
        begins = (0, count, count + shared)
        both = [
            [b + h for b, part in zip(begins, (q, k, k), strict=True) for h in part]
            for q, k in zip(heads, keys, strict=True)
        ]
        out(attention.names[0], both, width)
    if attention.qk_norm:
        for name, places in zip(attention.qk_names, (heads, keys), strict=True):
            whole = attention.qk_norm == "whole"
            cut = Parts(mesh, 2, [_features(p, attention.head_dim) for p in places] if whole else places)
            # Ranks may have the same key heads, which are no shards of anything.
            getattr(attention, name).__dict__["_spread"] = Spread(cut if attention.qk_norm == "head" else None, cut)
    found = {name: Parts(mesh, dim, heads) for name, dim in _HEADS.items()}
    return {**found, **{name: Parts(mesh, dim, keys) for name, dim in _KEYS.items()}}


def _of_net(net: Any, mesh: DeviceMesh) -> dict[str, Parts]:
    first = net.names[:-1]
    product = getattr(net, first[0])
    inner = int(product.weight.shape[1 if type(product) is not nn.Linear else 0]) // (
        2 if isinstance(net, FusedMLP) else 1
    )
    cuts = [chunk(inner, mesh.size(), r) for r in range(mesh.size())]
    places: Places = [list(range(a, a + n)) for a, n in cuts]
    neurons = Parts(mesh, -1, places)
    both = Parts(mesh, -1, [p + [inner + i for i in p] for p in places])
    for name in first:
        getattr(net, name).__dict__["_spread"] = Spread(out=both if isinstance(net, FusedMLP) else neurons)
    if isinstance(net.act_fn, nn.Module):
        net.act_fn.__dict__["_spread"] = Spread(None, neurons)
    return dict.fromkeys(_NEURONS, neurons)
