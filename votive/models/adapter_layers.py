"""The adapters of a model: which layers have them, which are active, and what stands in for what.

Knows modules and configurations; knows no file and no architecture.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from votive import nn
from votive.nn.layers.adaptation import Adaptation, Ia3, Lora, Place
from votive.nn.layers.adapted import AdaptedLayer
from votive.nn.layers.lora import _replace
from votive.nn.layers.lycoris import LoHa, LoKr

from .adapter_targets import CLASSIFIERS, own_parameters, targets, walk
from .peft_config import (
    IA3Config,
    LayerConfig,
    LoHaConfig,
    LoKrConfig,
    LoraConfig,
    PeftConfig,
    PromptConfig,
    RankedConfig,
)

_STATE = "_adapters"
# How new LoRA weights may begin; other ways need the data or change what is below them.
_STARTS = (None, True, False, "gaussian")


@dataclass
class Made:
    """What one adapter is made of, before it stands in a model."""

    config: PeftConfig
    layers: dict[str, Adaptation] = field(default_factory=dict)
    modules: dict[str, nn.Module] = field(default_factory=dict)  # in the place of the model's, while active
    parameters: dict[str, nn.Parameter] = field(default_factory=dict)
    prompt: Any = None


@dataclass
class Adapters:
    """The adapters of one model."""

    made: dict[str, Made] = field(default_factory=dict)
    active: list[str] = field(default_factory=list)
    trainable: set[str] = field(default_factory=set)
    disabled: bool = False
    # What the model has itself where an adapter has its own.
    modules: dict[str, nn.Module] = field(default_factory=dict)
    parameters: dict[str, tuple[nn.Parameter, list[tuple[nn.Module, str]]]] = field(default_factory=dict)
    hook: Any = None

    @property
    def prompt(self) -> Any:
        """The prompt that stands before texts now, or None."""
        if self.disabled:
            return None
        return next((m.prompt for n in self.active if (m := self.made[n]).prompt is not None), None)


def adapters_of(model: nn.Module) -> Adapters | None:
    """The adapters of a model that has any."""
    found = model.__dict__.get(_STATE)
    return found if isinstance(found, Adapters) and found.made else None


def needed(model: nn.Module, op: str) -> Adapters:
    """The adapters of a model, which must have some."""
    state = adapters_of(model)
    if state is None:
        raise ValueError(f"{op}: {type(model).__name__} has no adapter; add_adapter or load_adapter comes first.")
    return state


def build(model: nn.Module, config: PeftConfig, *, blank: bool = False) -> Made:
    """An adapter for a model, apart from it; with `blank`, its start values are about to be overwritten."""
    made = Made(config)
    if isinstance(config, LayerConfig) and config.task_type in ("SEQ_CLS", "TOKEN_CLS"):
        # A classifier's head is new: it is learned and saved beside the adapter.
        heads = [n for n in CLASSIFIERS if isinstance(getattr(model, n, None), nn.Module)]
        config.modules_to_save = list(dict.fromkeys([*(config.modules_to_save or ()), *heads]))
    if isinstance(config, PromptConfig):
        from .prompts import Prompt

        made.prompt = Prompt.of(model, config, blank=blank)
    else:
        assert isinstance(config, LayerConfig), "the other kind"
        for path, place in targets(model, config).items():
            made.layers[path] = _adaptation(config, path, place, blank)
        if isinstance(config, LoraConfig) and config.bias != "none":
            made.parameters = _biases(model, config.bias, list(made.layers))
    for path, module in _whole_modules(model, getattr(config, "modules_to_save", None)):
        made.modules[path] = copy.deepcopy(module)
    return made


def _adaptation(config: LayerConfig, path: str, place: Place, blank: bool) -> Adaptation:
    if isinstance(config, IA3Config):
        return Ia3(place, config.scales_inputs(path), blank or config.init_ia3_weights)
    assert isinstance(config, RankedConfig), "all others have a rank"
    r = config.rank(path)
    if isinstance(config, LoKrConfig):
        return LoKr(
            place, r, config.scale(path), config.rank_dropout, config.module_dropout, config.rank_dropout_scale,
            config.decompose_both, config.decompose_factor, config.use_effective_conv2d,
            True if blank else config.init_weights,
        )  # fmt: skip
    if isinstance(config, LoHaConfig):
        return LoHa(
            place, r, config.scale(path), config.rank_dropout, config.module_dropout,
            config.use_effective_conv2d, True if blank else bool(config.init_weights),
        )  # fmt: skip
    assert isinstance(config, LoraConfig), "the last one"
    start = config.init_lora_weights
    if not blank and start not in _STARTS:
        raise ValueError(
            f"LoraConfig: init_lora_weights={start!r} is no start that is known here; use True, False or 'gaussian'."
        )
    return Lora(
        place, r, config.alpha(path), config.lora_dropout, config.use_rslora, config.use_dora, config.lora_bias,
        True if blank or start is None else start,
    )  # fmt: skip


def _biases(model: nn.Module, which: str, layers: list[str]) -> dict[str, nn.Parameter]:
    """Copies of the biases that are trained beside the layers."""
    found: dict[str, nn.Parameter] = {}
    seen: set[int] = set()
    for path, parameter, _ in own_parameters(model):
        if id(parameter) in seen:
            continue
        seen.add(id(parameter))
        inside = path.rpartition(".")[0] in layers
        if path.rpartition(".")[2] == "bias" and (which == "all" or inside):
            found[path] = nn.Parameter(parameter.detach().clone())
    return found


def _whole_modules(model: nn.Module, names: Sequence[str] | None) -> Iterable[tuple[str, nn.Module]]:
    if not names:
        return []
    found = [(p, m) for p, m in walk(model) if p and any(p == n or p.endswith(f".{n}") for n in names)]
    missing = [n for n in names if not any(p == n or p.endswith(f".{n}") for p, _ in found)]
    if any(p in CLASSIFIERS for p, _ in found):
        missing = [n for n in missing if n not in CLASSIFIERS]  # PEFT names both, of which a model has one
    if missing:
        raise ValueError(f"modules_to_save: {type(model).__name__} has no module {missing[0]!r}.")
    adapted = [p for p, m in found if any(isinstance(inner, AdaptedLayer) for inner in m.modules())]
    if adapted:
        raise ValueError(f"modules_to_save: {adapted[0]} has layers that another adapter adapts; take another module.")
    return found


def attach(model: nn.Module, name: str, made: Made) -> None:
    """Put an adapter into a model; it is not yet active."""
    state = model.__dict__.setdefault(_STATE, Adapters())
    if not state.made:
        model.requires_grad_(False)
    everything = dict(walk(model))
    wrapped: dict[int, nn.Module] = {}
    for path, adaptation in made.layers.items():
        layer = everything[path]
        if not isinstance(layer, AdaptedLayer):
            wrapped[id(layer)] = layer = AdaptedLayer(layer).train(layer.training)
        layer.adapters[name] = adaptation.train(layer.training)
    _replace(model, wrapped)
    for path in made.modules:
        state.modules.setdefault(path, everything[path])
    held = {path: (parameter, places) for path, parameter, places in own_parameters(model)}
    for path in made.parameters:
        state.parameters.setdefault(path, held[path])
    if made.prompt is not None:
        prompts = model._modules.get("prompt_encoder")
        if prompts is None:
            prompts = nn.ModuleDict()
            model.add_module("prompt_encoder", prompts)
        prompts[name] = made.prompt
        if state.hook is None:
            from .prompts import put_before

            state.hook = model.register_forward_pre_hook(put_before, with_kwargs=True)
    state.made[name] = made


def check_new(model: nn.Module, name: str, config: PeftConfig) -> None:
    """Raise where an adapter cannot stand beside those that are there."""
    if not name or "." in name:
        raise ValueError(f"an adapter's name has no dots and is not empty, got {name!r}.")
    state = adapters_of(model)
    if state is None:
        return
    if name in state.made:
        raise ValueError(f"there is an adapter {name!r} already; delete_adapter({name!r}) or take another name.")
    other = next(iter(state.made.values())).config
    if other.peft_type != config.peft_type:
        raise ValueError(f"the model has {other.peft_type} adapters; a {config.peft_type} cannot stand beside them.")
    if any(layer.merged for layer in adapted_layers(model).values()):
        raise RuntimeError("adapters are merged into the model; unmerge_adapter comes before another is added.")


def adapted_layers(model: nn.Module) -> dict[str, AdaptedLayer]:
    """The layers that have adapters, by the paths that they have without."""
    return {path: m for path, m in walk(model) if isinstance(m, AdaptedLayer)}


def activate(model: nn.Module, names: Sequence[str]) -> None:
    """Make some adapters the active ones and put everything where it belongs."""
    state = needed(model, "set_adapter")
    unknown = [n for n in names if n not in state.made]
    if unknown:
        raise ValueError(f"set_adapter: there is no adapter {unknown[0]!r}; there are {', '.join(state.made)}.")
    if len(set(names)) < len(names):
        raise ValueError(f"set_adapter: {list(names)} names an adapter twice; use add_weighted_adapter to weigh it.")
    owners: dict[str, str] = {}
    for name in names:
        made = state.made[name]
        for path in (*made.modules, *made.parameters, *(["the prompt"] if made.prompt is not None else [])):
            if path in owners:
                raise ValueError(f"set_adapter: {owners[path]!r} and {name!r} both bring {path}; only one can.")
            owners[path] = name
    state.active = list(names)
    refresh(model)


def refresh(model: nn.Module) -> None:
    """Let layers, whole modules and parameters be those of the active adapters, or the model's own."""
    state = needed(model, "set_adapter")
    acting = [] if state.disabled else [state.made[name] for name in state.active]
    for layer in adapted_layers(model).values():
        layer.active, layer.disabled = tuple(state.active), state.disabled
    for path, own in state.modules.items():
        wanted = next((m.modules[path] for m in acting if path in m.modules), own)
        parent, _, last = path.rpartition(".")
        there = model.get_submodule(parent)._modules[last]
        if there is not None and there is not wanted:
            _follow(there, wanted)
            _replace(model, {id(there): wanted})
    for path, (before, places) in state.parameters.items():
        found = next((m.parameters[path] for m in acting if path in m.parameters), before)
        if found.device != before.device:
            found.data = found.data.to(before.device)
        for module, name in places:
            module._parameters[name] = found
    for name, made in state.made.items():
        learns = name in state.trainable and name in state.active
        for part in (*made.layers.values(), *made.modules.values(), *([made.prompt] if made.prompt else [])):
            part.requires_grad_(learns)
        for parameter in made.parameters.values():
            parameter.requires_grad_(learns)


def _follow(there: nn.Module, wanted: nn.Module) -> None:
    """Let a module that takes another's place have its device and mode."""
    at = next((p.device for p in there.parameters()), None)
    if at is not None and next(wanted.parameters()).device != at:
        wanted.to(device=at)
    wanted.train(there.training)


@contextmanager
def disabled_adapters(model: nn.Module) -> Iterator[None]:
    """The model as it is without its adapters, while the block runs.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> _ = votive.models.add_adapter(net, votive.models.LoraConfig(target_modules=["0"], init_lora_weights=False))
    >>> x = votive.ones(1, 4)
    >>> with votive.models.disabled_adapters(net):
    ...     print(votive.equal(net(x), net[0].base(x)))
    True
    """
    state = needed(model, "disabled_adapters")
    before = state.disabled
    merged = {path: layer.merged for path, layer in adapted_layers(model).items() if layer.merged}
    for layer in adapted_layers(model).values():
        layer.unmerge()
    state.disabled = True
    refresh(model)
    try:
        yield
    finally:
        state.disabled = before
        refresh(model)
        for path, layer in adapted_layers(model).items():
            if path in merged:
                layer.merge(merged[path])


def remove(model: nn.Module, name: str) -> None:
    """Take an adapter out of a model; with the last one, its layers are plain again."""
    state = needed(model, "delete_adapter")
    if name not in state.made:
        raise ValueError(f"delete_adapter: there is no adapter {name!r}; there are {', '.join(state.made)}.")
    layers = adapted_layers(model)
    if any(name in layer.merged for layer in layers.values()):
        raise RuntimeError(f"delete_adapter: {name!r} is merged into the model; unmerge_adapter comes first.")
    left = [n for n in state.active if n != name]
    if not left:
        left = [n for n in state.made if n != name][:1]
    disabled = state.disabled
    if not left:
        state.active, state.disabled = [], True
        refresh(model)
    state.made.pop(name)
    for layer in layers.values():
        if name in layer.adapters:
            del layer.adapters[name]
    prompts = model._modules.get("prompt_encoder")
    if isinstance(prompts, nn.ModuleDict) and name in prompts:
        del prompts[name]
    state.trainable.discard(name)
    if left:
        state.disabled = disabled
        activate(model, left)
    unwrap(model, [layer for layer in layers.values() if not len(layer.adapters)])
    if not state.made:
        forget(model, state)


def unwrap(model: nn.Module, layers: Iterable[AdaptedLayer]) -> None:
    """Put the layers themselves back in the place of adapted ones."""
    for layer in layers:
        layer.base.train(layer.training)
    _replace(model, {id(layer): layer.base for layer in layers})


def forget(model: nn.Module, state: Adapters) -> None:
    """Leave nothing of the adapters at a model."""
    if state.hook is not None:
        state.hook.remove()
    model._modules.pop("prompt_encoder", None)
    model.__dict__.pop(_STATE, None)


def same_scaling(layer: Any) -> bool:
    """Whether a layer's product is divided by its rank, rather than the rank's root."""
    return math.isclose(layer.scaling, layer.alpha / layer.r)
