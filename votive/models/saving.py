"""What of a model goes into a file: the weights of its plain form. Knows no format.

Adaptations are added into the weights they adapt, parametrized weights are stored as what they
compute, and what no configuration could build again is refused rather than written.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from votive import nn
from votive.nn.layers.adapted import AdaptedLayer
from votive.nn.layers.lora import LoRALinear

from .adapter_layers import adapters_of

if TYPE_CHECKING:
    from .pretrained import PreTrainedModel


def plain_weights(model: PreTrainedModel) -> dict[str, Any]:
    """The weights of a model by the names that its class has for them, tied ones once.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> before = list(votive.models.saving.plain_weights(model))
    >>> _ = votive.nn.apply_lora(model, "q_proj")
    >>> list(votive.models.saving.plain_weights(model)) == before
    True
    """
    return plain_form(model)[0]


def plain_form(model: PreTrainedModel) -> tuple[dict[str, Any], Any]:
    """The weights of a model and the configuration with which they load as they are.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, tie_word_embeddings=True)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> model.lm_head.weight = votive.nn.Parameter(votive.ones(10, 8))
    >>> weights, config = votive.models.saving.plain_form(model)
    >>> "lm_head.weight" in weights, config.tie_word_embeddings
    (True, False)
    """
    found: dict[str, Any] = {}
    state = adapters_of(model)
    if state is not None and any(made.prompt is not None for made in state.made.values()):
        raise ValueError(
            "save_pretrained: a learned prompt is no part of a model's weights; save_adapter(folder) keeps it, "
            "and unload() gives the model without it."
        )
    _collect(model, "", found)
    found = {name: value.detach() for name, value in found.items()}
    _check(model, found)
    config = model.config
    prefix, part = model._tying()
    tied = part.tied if part.config.tie_word_embeddings else {}
    pairs = [(prefix + name, prefix + source) for name, source in tied.items()]
    # The configuration says what was tied once; only the memory says what still is.
    if all(_memory(found[name]) == _memory(found[source]) for name, source in pairs):
        for name, _ in pairs:
            del found[name]
    else:
        config = copy.copy(config)
        if prefix:
            inner = prefix.rstrip(".")
            setattr(config, inner, copy.copy(getattr(config, inner)))
            getattr(config, inner).tie_word_embeddings = False
        else:
            config.tie_word_embeddings = False
    return _apart(found), config


def _memory(value: Any) -> tuple[Any, ...]:
    """What two tensors have in common that are one."""
    return str(value.device), value.data_ptr(), tuple(value.shape), tuple(value.stride())


def _apart(found: dict[str, Any]) -> dict[str, Any]:
    """A copy for each name but the first of one tensor: the model that loads it wants them all."""
    seen: set[tuple[Any, ...]] = set()
    out = {}
    for name, value in found.items():
        place = _memory(value)
        out[name] = value.clone() if place in seen else value
        seen.add(place)
    return out


def _collect(module: nn.Module, prefix: str, found: dict[str, Any]) -> None:
    """Tensors by name, as if nothing stood between a module and its parameters."""
    if isinstance(module, (LoRALinear, AdaptedLayer)):
        found[f"{prefix}weight"] = module.weight
        if module.bias is not None:
            found[f"{prefix}bias"] = module.bias
        return
    computed = module._modules.get("parametrizations")
    own = dict(module._own_state())
    if isinstance(computed, nn.ModuleDict):
        own.update((name, getattr(module, name)) for name in computed)
    found.update((f"{prefix}{name}", value) for name, value in own.items())
    for name, child in module._modules.items():
        if child is not None and child is not computed:
            _collect(child, f"{prefix}{name}.", found)


def _check(model: PreTrainedModel, found: dict[str, Any]) -> None:
    """Raise for what `from_pretrained` could not load: other modules, weights of other sizes."""
    shapes = {name: tuple(value.shape) for name, value in found.items()}
    if shapes == model.__dict__.get("_shapes"):  # as it was built, which is nearly always so
        return
    name = type(model).__name__
    with nn.init.skipped():
        fresh = type(model)(model.config)
    wanted = {key: tuple(value.shape) for key, value in fresh.state_dict().items()}
    if shapes == wanted:
        return
    lines = [f"  {key} is no weight of it" for key in shapes if key not in wanted]
    lines += [f"  {key} is missing" for key in wanted if key not in shapes]
    lines += [
        f"  {key} has the shape {shapes[key]}, not {wanted[key]}"
        for key in shapes
        if key in wanted and shapes[key] != wanted[key]
    ]
    raise ValueError(
        f"save_pretrained: the model is no longer the {name} that its configuration describes, and "
        "from_pretrained could not load it:\n"
        + "\n".join(lines[:8])
        + (f"\n  and {len(lines) - 8} more" if len(lines) > 8 else "")
        + "\nPut the replaced modules back, change model.config to fit, or keep the weights with "
        "votive.save(model.state_dict(), path)."
    )
