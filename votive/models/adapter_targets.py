"""Which layers of a model an adapter means, by their paths. Knows modules and configurations; changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from votive import nn
from votive.nn.layers.adaptation import Place, place_of
from votive.nn.layers.adapted import AdaptedLayer

from .peft_config import LayerConfig

ALL_LINEAR = "all-linear"
# What a new head of a classifier is called.
CLASSIFIERS = ("classifier", "score")


def walk(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Modules by path, those inside adapted layers left out.

    >>> from votive.models.adapter_targets import walk
    >>> [path for path, _ in walk(votive.nn.Sequential(votive.nn.Linear(2, 2)))]
    ['', '0']
    """
    seen: set[int] = set()

    def go(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
        if id(module) in seen:
            return
        seen.add(id(module))
        yield path, module
        if isinstance(module, AdaptedLayer):
            return
        for name, child in module._modules.items():
            if child is not None and not (not path and name == "prompt_encoder"):
                yield from go(child, f"{path}.{name}" if path else name)

    return go(model, prefix)


def _place(module: nn.Module) -> Place | None:
    return module.place if isinstance(module, AdaptedLayer) else place_of(module)


def own_parameters(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, list[tuple[nn.Module, str]]]]:
    """Parameters of the model itself by the names that they have without adapters, and every place that has each."""
    places: dict[int, list[tuple[nn.Module, str]]] = {}
    named: list[tuple[str, nn.Parameter]] = []
    for path, module in walk(model):
        holder = module.base if isinstance(module, AdaptedLayer) else module
        for name, parameter in holder._parameters.items():
            if parameter is None:
                continue
            named.append((f"{path}.{name}" if path else name, parameter))
            places.setdefault(id(parameter), []).append((holder, name))
    for name, parameter in named:
        yield name, parameter, places[id(parameter)]


def targets(model: nn.Module, config: LayerConfig) -> dict[str, Place]:
    """The layers that a configuration means, by path."""
    everything = dict(walk(model))
    name = type(config).__name__
    chosen = config.target_modules
    if not chosen:
        raise ValueError(
            f"{name}: say which layers, such as target_modules=['q_proj', 'v_proj'] or target_modules='all-linear'."
        )
    if isinstance(chosen, str) and chosen.lower() == ALL_LINEAR:
        linear = {p: place for p, m in everything.items() if p and (place := _place(m)) and place.kind == "linear"}
        plain = _told(config, list(linear))
        return {p: place for p, place in linear.items() if not _is_head(model, p, config) and plain.wants(p)}
    found = {path: module for path, module in everything.items() if path and config.wants(path)}
    if not found:
        named = chosen if isinstance(chosen, str) else ", ".join(chosen)
        layers = sorted({p.rpartition(".")[2] for p, m in everything.items() if p and _place(m) is not None})
        raise ValueError(f"{name}: target_modules {named} name no layer; there are {', '.join(layers)}.")
    places = {path: _place(module) for path, module in found.items()}
    wrong = [path for path, place in places.items() if place is None]
    if wrong:
        kind = type(found[wrong[0]]).__name__
        raise ValueError(
            f"{name}: {wrong[0]} is a {kind}, which cannot be adapted; target_modules name Linear, Conv1D, "
            "Embedding, or Conv1d, Conv2d and Conv3d without groups."
        )
    return {path: place for path, place in places.items() if place is not None}


def _told(config: LayerConfig, paths: list[str]) -> LayerConfig:
    """The configuration with its layers told one by one."""
    found = copy.copy(config)
    found.target_modules = paths
    return found


def _is_head(model: nn.Module, path: str, config: LayerConfig) -> bool:
    """Whether a layer gives the model's results; "all-linear" leaves it out."""
    if path in ("lm_head", "embed_out", "output", "proj_out"):
        return True
    return path in CLASSIFIERS and config.task_type == "SEQ_CLS"
