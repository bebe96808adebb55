"""The adapters of a model, by name: added, switched, merged, taken out. Knows no file and no architecture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from votive import nn

from .adapter_layers import activate, adapted_layers, attach, build, check_new, forget, needed, refresh, remove, unwrap
from .peft_config import as_config

Model = TypeVar("Model", bound=nn.Module)


def add_adapter(model: nn.Module, config: Any, adapter_name: str = "default") -> list[str]:
    """Put a new adapter into a model and make it the active one; gives the paths of what is adapted.

    Everything that is no adapter is frozen. `config` is one of these configurations or one of PEFT's.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 4), votive.nn.Linear(4, 2))
    >>> votive.models.add_adapter(net, votive.models.LoraConfig(r=2, target_modules=["1"]))
    ['1']
    >>> [name for name, p in net.named_parameters() if p.requires_grad]
    ['1.adapters.default.lora_A', '1.adapters.default.lora_B']
    """
    config = as_config(config)
    check_new(model, adapter_name, config)
    if config.base_model_name_or_path is None:
        config.base_model_name_or_path = getattr(model, "name_or_path", "") or None
    made = build(model, config)
    attach(model, adapter_name, made)
    needed(model, "add_adapter").trainable.add(adapter_name)
    activate(model, [adapter_name])
    return list(made.layers)


def set_adapter(model: nn.Module, names: str | Sequence[str]) -> None:
    """Make one adapter, or several that act one after the other, the active ones, and let them learn.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> for name in ("a", "b"):
    ...     _ = votive.models.add_adapter(net, votive.models.LoraConfig(target_modules=["0"]), name)
    >>> votive.models.set_adapter(net, ["a", "b"])
    >>> net[0].active
    ('a', 'b')
    """
    chosen = [names] if isinstance(names, str) else list(names)
    if not chosen:
        raise ValueError("set_adapter: name at least one adapter, or disable_adapters().")
    state = needed(model, "set_adapter")
    merged = sorted({n for layer in adapted_layers(model).values() for n in layer.merged})
    if merged:
        raise RuntimeError(f"set_adapter: {', '.join(merged)} are merged into the model; unmerge_adapter comes first.")
    before = set(state.trainable)
    state.trainable |= set(chosen) & set(state.made)
    try:
        activate(model, chosen)
    except ValueError:
        state.trainable = before
        raise


def switch_adapters(model: nn.Module, enabled: bool) -> None:
    """Let the active adapters of a model act, or not."""
    state = needed(model, "enable_adapters" if enabled else "disable_adapters")
    if not enabled:
        for layer in adapted_layers(model).values():
            layer.unmerge()
    state.disabled = not enabled
    refresh(model)


def delete_adapter(model: nn.Module, names: str | Sequence[str]) -> None:
    """Take adapters out of a model; with the last one, its layers are plain again.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> _ = votive.models.add_adapter(net, votive.models.LoraConfig(target_modules=["0"]))
    >>> votive.models.delete_adapter(net, "default")
    >>> net[0]
    Linear(in_features=4, out_features=2, bias=True)
    """
    for name in [names] if isinstance(names, str) else list(names):
        remove(model, name)


def merge_adapter(model: nn.Module, names: Sequence[str] | None = None) -> None:
    """Let layers themselves do the work of adapters (None: of the active ones), until `unmerge_adapter`.

    Results are the same but for rounding; unmerging gives back the very weights from before.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> _ = votive.models.add_adapter(net, votive.models.LoraConfig(target_modules=["0"], init_lora_weights=False))
    >>> before = net[0].base.weight
    >>> votive.models.merge_adapter(net)
    >>> votive.models.unmerge_adapter(net)
    >>> net[0].base.weight is before
    True
    """
    state = needed(model, "merge_adapter")
    chosen = list(state.active if names is None else [names] if isinstance(names, str) else names)
    unknown = [n for n in chosen if n not in state.made]
    if unknown:
        raise ValueError(f"merge_adapter: there is no adapter {unknown[0]!r}; there are {', '.join(state.made)}.")
    if any(state.made[n].prompt is not None for n in chosen):
        raise ValueError("merge_adapter: a learned prompt is no weight that could be merged.")
    if state.disabled:
        raise RuntimeError("merge_adapter: adapters are disabled; enable_adapters() comes first.")
    for layer in adapted_layers(model).values():
        layer.merge(chosen)


def unmerge_adapter(model: nn.Module) -> None:
    """Give layers their own weights back: see `merge_adapter`.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> _ = votive.models.add_adapter(net, votive.models.LoraConfig(target_modules=["0"], init_lora_weights=False))
    >>> x = votive.ones(1, 4)
    >>> before = net(x)
    >>> votive.models.merge_adapter(net)
    >>> votive.models.unmerge_adapter(net)
    >>> votive.equal(net(x), before)
    True
    """
    for layer in adapted_layers(model).values():
        layer.unmerge()


def merge_and_unload(model: Model) -> Model:
    """The model with its active adapters merged for good, and none left; layers in blocks become layers of numbers.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> _ = votive.models.add_adapter(net, votive.models.LoraConfig(target_modules=["0"]))
    >>> votive.models.merge_and_unload(net)[0]
    Linear(in_features=4, out_features=2, bias=True)
    """
    state = needed(model, "merge_and_unload")
    if state.prompt is not None:
        raise ValueError("merge_and_unload: a learned prompt is no weight that could be merged; unload() drops it.")
    layers = list(adapted_layers(model).values())
    for layer in layers:
        layer.unmerge()
        layer.plain()
    unwrap(model, layers)
    forget(model, state)
    return model


def unload(model: Model) -> Model:
    """The model without its adapters, as it was before them.

    >>> net = votive.nn.Sequential(votive.nn.Linear(4, 2))
    >>> _ = votive.models.add_adapter(net, votive.models.LoraConfig(target_modules=["0"]))
    >>> votive.models.unload(net)[0]
    Linear(in_features=4, out_features=2, bias=True)
    """
    delete_adapter(model, list(needed(model, "unload").made))
    return model
