"""Adaptations of a pipeline's networks: loaded from files, weighed, switched, merged, taken out. Knows no pipeline.

Names and order of arguments are diffusers'; each network's adapters are those of `votive.models`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import votive
from votive import nn
from votive.nn.layers.adaptation import Lora, place_of

from ..adapter_layers import adapted_layers, adapters_of
from ..adapters import (
    add_adapter,
    delete_adapter,
    merge_adapter,
    set_adapter,
    switch_adapters,
    unload,
    unmerge_adapter,
)  # fmt: skip
from ..config import StrPath
from ..peft_config import LoraConfig
from .lora_files import PARTS, LowRank, find_file, read_file


class Adapting:
    """A pipeline whose denoiser and readers of texts take adaptations.

    >>> from votive.models.diffusion import StableDiffusionPipeline
    >>> hasattr(StableDiffusionPipeline, "load_lora_weights")
    True
    """

    def _adapted(self) -> Iterator[tuple[str, nn.Module]]:
        """The networks that may be adapted."""
        for part in PARTS:
            network = getattr(self, part, None)
            if isinstance(network, nn.Module):
                yield part, network

    def load_lora_weights(
        self, source: StrPath, *, weight_name: str | None = None, adapter_name: str | None = None
    ) -> None:
        """Put the LoRA of a file, or of a folder's `weight_name`, into the networks, and make it the active one.

        Files of diffusers and of kohya's trainer are read. Their strength is 1; see `set_adapters`.
        """
        networks = dict(self._adapted())
        layers = {part: _places(network) for part, network in networks.items()}
        found = read_file(find_file(source, weight_name), layers)
        if not found:
            raise ValueError(f"load_lora_weights: {source} holds no adaptation.")
        taken = {name for names in self.get_list_adapters().values() for name in names}
        name = adapter_name or f"default_{len(taken)}"
        if name in taken:
            raise ValueError(f"load_lora_weights: there is an adapter {name!r} already; give another adapter_name.")
        for part, pairs in found.items():
            _put(networks[part], pairs, name)

    def set_adapters(
        self, adapter_names: str | Sequence[str], adapter_weights: float | Sequence[float] | None = None
    ) -> None:
        """Make adapters the active ones, each as strong as its number says; 1 is as strong as it was trained."""
        names = [adapter_names] if isinstance(adapter_names, str) else list(adapter_names)
        given = adapter_weights if isinstance(adapter_weights, list | tuple) else [adapter_weights] * len(names)
        if len(given) != len(names):
            raise ValueError(f"set_adapters: {len(given)} weights came for {len(names)} adapters.")
        known = {name for there in self.get_list_adapters().values() for name in there}
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            what = f"there is no adapter {unknown[0]!r}" if unknown else "name at least one adapter"
            raise ValueError(f"set_adapters: {what}; there are {', '.join(sorted(known)) or 'none'}.")
        strength = {n: 1.0 if w is None else float(w) for n, w in zip(names, given, strict=True)}
        for _, network in self._adapted():
            state = adapters_of(network)
            if state is None:
                continue
            own = [name for name in names if name in state.made]
            switch_adapters(network, bool(own))
            if own:
                set_adapter(network, own)
                _frozen(network)
            for name, adaptation in _adaptations(network):
                if name in strength:
                    adaptation.scaling = strength[name] * adaptation.alpha / adaptation.r

    def get_active_adapters(self) -> list[str]:
        """The adapters that act now."""
        found: dict[str, None] = {}
        for _, network in self._adapted():
            state = adapters_of(network)
            if state is not None and not state.disabled:
                found |= dict.fromkeys(state.active)
        return list(found)

    def get_list_adapters(self) -> dict[str, list[str]]:
        """The adapters of each network."""
        states = {part: adapters_of(network) for part, network in self._adapted()}
        return {part: list(state.made) for part, state in states.items() if state is not None}

    def delete_adapters(self, adapter_names: str | Sequence[str]) -> None:
        """Take adapters out."""
        for name in [adapter_names] if isinstance(adapter_names, str) else list(adapter_names):
            there = [network for _, network in self._adapted() if name in getattr(adapters_of(network), "made", ())]
            if not there:
                raise ValueError(f"delete_adapters: there is no adapter {name!r}.")
            for network in there:
                delete_adapter(network, name)

    def unload_lora_weights(self) -> None:
        """Take all adapters out: the networks are as before, but for what is fused, which stays."""
        for _, network in self._adapted():
            if adapters_of(network) is not None:
                for layer in adapted_layers(network).values():
                    layer._before, layer.merged = {}, ()
                unload(network)

    def fuse_lora(self, lora_scale: float = 1.0, adapter_names: Sequence[str] | None = None) -> None:
        """Let the layers themselves do the work of the active adapters, `lora_scale` as strong, until `unfuse_lora`."""
        for _, network in self._adapted():
            state = adapters_of(network)
            if state is None or state.disabled:
                continue
            names = [n for n in (state.active if adapter_names is None else adapter_names) if n in state.made]
            scaled = [adaptation for name, adaptation in _adaptations(network) if name in names]
            before = [adaptation.scaling for adaptation in scaled]
            try:
                for adaptation in scaled:
                    adaptation.scaling *= lora_scale
                merge_adapter(network, names)
            finally:
                for adaptation, scaling in zip(scaled, before, strict=True):
                    adaptation.scaling = scaling

    def unfuse_lora(self) -> None:
        """Give the layers their own weights back."""
        for _, network in self._adapted():
            if adapters_of(network) is not None:
                unmerge_adapter(network)


def _adaptations(network: nn.Module) -> Iterator[tuple[str, Lora]]:
    """All low-rank adaptations in a network, by the names of their adapters."""
    for layer in adapted_layers(network).values():
        for name, adaptation in layer.adapters.items():
            if isinstance(adaptation, Lora):
                yield name, adaptation


def _frozen(network: nn.Module) -> None:
    """Adapters of files are not learned further."""
    for _, adaptation in _adaptations(network):
        adaptation.requires_grad_(False)


def _places(network: nn.Module) -> list[str]:
    """Paths of the layers that may be adapted; of one that is adapted already, its own."""
    inside = tuple(f"{path}." for path in adapted_layers(network))
    return [
        *adapted_layers(network),
        *(p for p, m in network.named_modules() if p and not p.startswith(inside) and place_of(m) is not None),
    ]


def _put(network: nn.Module, pairs: dict[str, LowRank], name: str) -> None:
    """A new adapter from its matrices."""
    config = LoraConfig(
        r=1,
        lora_alpha=1,
        target_modules=list(pairs),
        rank_pattern={path: pair.rank for path, pair in pairs.items()},
        alpha_pattern={path: pair.alpha for path, pair in pairs.items()},
    )
    learned = [p for p in network.parameters() if p.requires_grad]
    add_adapter(network, config, name)
    state = adapters_of(network)
    assert state is not None, "it was just added"
    try:
        with votive.no_grad():
            for path, pair in pairs.items():
                layer: Any = state.made[name].layers[path]
                for parameter, value in ((layer.lora_A, pair.down), (layer.lora_B, pair.up)):
                    if parameter.numel() != value.numel():
                        raise ValueError(
                            f"load_lora_weights: {path} takes a matrix {tuple(parameter.shape)}, the file has "
                            f"{tuple(value.shape)}; it is of another model."
                        )
                    parameter.copy_(value.reshape(parameter.shape))
    except ValueError:
        delete_adapter(network, name)
        raise
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)
    _frozen(network)
