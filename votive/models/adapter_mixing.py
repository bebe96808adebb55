"""A LoRA adapter made of others, each with a weight. Knows adapters of layers; knows no file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import votive
from votive import nn
from votive.nn.layers.adaptation import Lora, Place

from ..tensor import Tensor
from .adapter_layers import adapted_layers, attach, build, check_new, needed, refresh
from .peft_config import LoraConfig

_WAYS = "svd, linear, cat"  # of PEFT's


def add_weighted_adapter(
    model: nn.Module,
    adapters: Sequence[str],
    weights: Sequence[float],
    adapter_name: str,
    combination_type: str = "svd",
    svd_rank: int | None = None,
) -> None:
    """Make a LoRA adapter of others; it is not yet active.

    "cat" adds up what they do exactly, with the sum of their ranks; "svd" comes as near as `svd_rank` (the largest of
    theirs) can; "linear" adds up both factors, of one rank, which is neither.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> for name in ("a", "b"):
    ...     _ = votive.models.add_adapter(net, votive.models.LoraConfig(r=2, target_modules=["0"]), name)
    >>> votive.models.add_weighted_adapter(net, ["a", "b"], [0.7, 0.3], "both", "cat")
    >>> net[0].adapters["both"].r
    4
    """
    state = needed(model, "add_weighted_adapter")
    if len(adapters) != len(weights) or not adapters:
        raise ValueError(f"add_weighted_adapter: {len(adapters)} adapters and {len(weights)} weights; give one each.")
    unknown = [n for n in adapters if n not in state.made]
    if unknown:
        raise ValueError(
            f"add_weighted_adapter: there is no adapter {unknown[0]!r}; there are {', '.join(state.made)}."
        )
    if combination_type not in _WAYS.split(", "):
        raise ValueError(f"add_weighted_adapter: combination_type is one of {_WAYS}, not {combination_type!r}.")
    if svd_rank is not None and combination_type != "svd":
        raise ValueError(f"add_weighted_adapter: svd_rank is for 'svd', not for {combination_type!r}.")
    configs = [state.made[n].config for n in adapters]
    for name, config in zip(adapters, configs, strict=True):
        if not isinstance(config, LoraConfig):
            raise ValueError(
                f"add_weighted_adapter: {name!r} is a {config.peft_type} adapter; only LORA ones are mixed."
            )
        if config.use_dora or config.lora_bias or state.made[name].modules or state.made[name].parameters:
            raise ValueError(
                f"add_weighted_adapter: {name!r} is more than products (use_dora, lora_bias, bias, modules_to_save), "
                "which have no sum."
            )
    first = configs[0]
    assert isinstance(first, LoraConfig), "just checked"
    layers = adapted_layers(model)
    used = [path for path, layer in layers.items() if any(n in layer.adapters for n in adapters)]
    parts = {path: _parts(layers[path].adapters, adapters, weights) for path in used}
    ranks = [c.r for c in configs if isinstance(c, LoraConfig)]
    if combination_type == "svd":
        rank = svd_rank or max(ranks)
    else:
        rank = sum(ranks) if combination_type == "cat" else ranks[0]
    by_layer = {
        path: sum(lora.r for lora, _ in found) if combination_type == "cat" else found[0][0].r
        for path, found in parts.items()
        if combination_type != "svd"
    }
    if combination_type == "linear":
        odd = [path for path, found in parts.items() if len({lora.r for lora, _ in found}) > 1]
        if odd:
            raise ValueError(
                f"add_weighted_adapter: 'linear' needs one rank, and {odd[0]} has several; use 'cat' or 'svd'."
            )
    config = dataclasses.replace(
        first,
        r=rank,
        lora_alpha=rank,
        target_modules=used,
        exclude_modules=None,
        layers_to_transform=None,
        layers_pattern=None,
        use_rslora=False,
        rank_pattern={path: r for path, r in by_layer.items() if r != rank},
        alpha_pattern={path: r for path, r in by_layer.items() if r != rank},
        init_lora_weights=True,
    )
    check_new(model, adapter_name, config)
    made = build(model, config)
    with votive.no_grad():
        for path, adaptation in made.layers.items():
            assert isinstance(adaptation, Lora), "made from a LoraConfig"
            A, B = adaptation.sides
            low, high = _mixed(combination_type, parts[path], layers[path].place, adaptation.r)
            A.copy_(low.reshape(A.shape))
            B.copy_(high.reshape(B.shape))
    attach(model, adapter_name, made)
    refresh(model)


def _parts(there: nn.ModuleDict, names: Sequence[str], weights: Sequence[float]) -> list[tuple[Lora, float]]:
    found = []
    for name, weight in zip(names, weights, strict=True):
        if name in there:
            adaptation = there[name]
            assert isinstance(adaptation, Lora), "checked by its configuration"
            found.append((adaptation, float(weight)))
    return found


def _mixed(way: str, parts: list[tuple[Lora, float]], place: Place, rank: int) -> tuple[Tensor, Tensor]:
    """Both factors, as matrices (rank, inputs) and (outputs, rank)."""
    sides = [(lora.sides[0].detach().flatten(1), lora.sides[1].detach().flatten(1)) for lora, _ in parts]
    scales = [weight * lora.scaling for lora, weight in parts]
    if way == "cat":
        return votive.cat([a * s for (a, _), s in zip(sides, scales, strict=True)]), votive.cat(
            [b for _, b in sides], 1
        )
    if way == "linear":
        roots = [math.sqrt(abs(s)) for s in scales]
        low = [a * (r if s >= 0 else -r) for (a, _), r, s in zip(sides, roots, scales, strict=True)]
        high = [b * r for (_, b), r in zip(sides, roots, strict=True)]
        return sum(low[1:], low[0]), sum(high[1:], high[0])
    deltas = [weight * lora.delta(place).detach().flatten(1) for lora, weight in parts]
    whole = sum(deltas[1:], deltas[0])
    if rank > min(whole.shape):
        raise ValueError(f"add_weighted_adapter: svd_rank={rank} is more than a weight of {tuple(whole.shape)} has.")
    U, S, V = votive.linalg.svd(whole.to(votive.float32), full_matrices=False)
    return V[:rank], U[:, :rank] * S[:rank]
