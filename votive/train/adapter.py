"""Low-rank adapters for a model that exists, its weights in blocks or not, trained on a text file.

Knows the recipe, models and adapters; the loop is `train_language_model`'s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import votive
from votive import nn

from ..autograd.checkpoint import checkpoint
from ..tensor import Tensor
from .recipe import Recipe


def base_model(recipe: Recipe, device: votive.device | str | None = None) -> Any:
    """The base that a recipe names, with fresh adapters: everything below them is frozen.

    Weights in blocks stay as they are on every device.

    >>> recipe = votive.train.Recipe(base="tales", lora=2)
    >>> model = votive.train.adapter.base_model(recipe)
    >>> sum(p.numel() for p in model.parameters() if p.requires_grad) < model.num_parameters() / 50
    True
    """
    from ..models import AutoModelForCausalLM

    assert recipe.base is not None, "the recipe was checked"
    assert recipe.lora is not None, "the recipe was checked"
    place = Path(recipe.base).expanduser()
    name = str(place.resolve()) if place.exists() else recipe.base
    model = AutoModelForCausalLM.from_pretrained(name, dtype="float32", device=device, dequantize=False)
    alpha = 2.0 * recipe.lora if recipe.lora_alpha is None else recipe.lora_alpha
    votive.nn.apply_lora(model, recipe.lora_targets, r=recipe.lora, alpha=alpha, dropout=recipe.lora_dropout)
    if recipe.gradient_checkpointing:
        recompute_layers(model)
    return model


def base_tokenizer(recipe: Recipe) -> Any:
    """The tokenizer that comes with the base."""
    from ..models.checkpoint import Checkpoint
    from ..text import Tokenizer

    assert recipe.base is not None, "the recipe was checked"
    return Tokenizer.from_pretrained(Checkpoint.find(recipe.base).tokenizer)


def recompute_layers(model: nn.Module) -> None:
    """Let each layer of a decoder be computed again in backward, instead of keeping what it needs for that.

    >>> from votive.train.adapter import recompute_layers
    >>> config = votive.models.LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> recompute_layers(votive.models.LlamaForCausalLM(config))
    """
    found = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    layers = max(found, key=len, default=None)
    if layers is None or not len(layers):
        raise ValueError("gradient_checkpointing: the model has no list of layers.")
    for layer in layers:
        forward = layer.forward

        def again(*args: Any, forward: Any = forward, layer: nn.Module = layer, **kwargs: Any) -> Any:
            if not layer.training or not votive.is_grad_enabled():
                return forward(*args, **kwargs)
            return checkpoint(forward, *args, use_reentrant=False, **kwargs)

        layer.forward = again


def trained_parameters(model: nn.Module) -> int:
    """How many numbers of a model are trained.

    >>> from votive.train.adapter import trained_parameters
    >>> trained_parameters(votive.nn.Linear(2, 3).requires_grad_(False))
    0
    """
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def save_adapted(model: nn.Module, tokenizer: Any, out: Path) -> None:
    """Write the adapters as PEFT does, and the tokenizer beside them."""
    from ..models.adapter_files import save_adapter

    trained: list[Tensor] = [p for p in model.parameters() if p.requires_grad]
    if any(not bool(p.isfinite().all()) for p in trained):
        raise FloatingPointError("the adapters hold infinities or NaN; lower the learning rate.")
    save_adapter(model, out)
    tokenizer.save_pretrained(out)
