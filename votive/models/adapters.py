"""LoRA adapters in folders as PEFT has them: adapter_config.json beside the adapted weights.

Knows files and `nn.LoRALinear`; knows no architecture.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import votive
from votive import nn
from votive.nn.layers.lora import LoRALinear, _replace

from .checkpoint import write_json
from .config import StrPath, read_json

NAME = "adapter_config.json"
_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_PREFIX = "base_model.model."
# What changes the computation and is not known here: its name, and the value with which it is off.
_UNKNOWN = {
    "use_dora": (None, False),
    "modules_to_save": (None, []),
    "bias": (None, "none"),
    "lora_bias": (None, False),
    "fan_in_fan_out": (None, False),
    "target_parameters": (None, []),
    "layer_replication": (None,),
    "alora_invocation_tokens": (None,),
    "use_qalora": (None, False),
    "trainable_token_indices": (None,),
}

# How an adapter may start and leave the weights below it as they are; other ways change them too.
_STARTS = (None, True, False, "gaussian", "eva", "orthogonal")


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter and no model of its own."""
    return (folder / NAME).is_file() and not (folder / "config.json").is_file()


def base_of(folder: Path) -> str | None:
    """What an adapter says it belongs to."""
    return read_json(folder / NAME).get("base_model_name_or_path") or None


def save_adapter(model: nn.Module, folder: StrPath) -> list[str]:
    """Write the adaptations of a model as PEFT does; gives the paths of what is adapted.

    >>> import tempfile
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> _ = votive.nn.apply_lora(model, "q_proj")
    >>> votive.models.save_adapter(model, tempfile.mkdtemp())
    ['model.layers.0.self_attn.q_proj']
    """
    layers = {n: m for n, m in model.named_modules() if isinstance(m, LoRALinear)}
    if not layers:
        raise ValueError("save_adapter: the model has no LoRA layers; see votive.nn.apply_lora.")
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    roots = {name: not math.isclose(m.scaling, m.alpha / m.r) for name, m in layers.items()}
    if len(set(roots.values())) > 1:
        raise ValueError("save_adapter: PEFT has rslora for all layers or for none.")
    first = next(iter(layers.values()))
    write_json(
        path / NAME,
        {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM" if hasattr(model, "lm_head") else None,
            "base_model_name_or_path": getattr(model, "name_or_path", "") or None,
            "target_modules": sorted(layers),
            "r": first.r,
            "lora_alpha": first.alpha,
            "lora_dropout": first.dropout.p,
            "use_rslora": next(iter(roots.values())),
            "rank_pattern": {n: m.r for n, m in layers.items() if m.r != first.r},
            "alpha_pattern": {n: m.alpha for n, m in layers.items() if m.alpha != first.alpha},
            "bias": "none",
            "fan_in_fan_out": False,
            "inference_mode": True,
        },
    )
    weights = {
        f"{_PREFIX}{name}.lora_{side}.weight": getattr(m, f"lora_{side}").detach()
        for name, m in layers.items()
        for side in "AB"
    }
    votive.io.safetensors.save_file(weights, path / _WEIGHTS[0], metadata={"format": "pt"})
    return list(layers)


def load_adapter(model: nn.Module, folder: StrPath) -> list[str]:
    """Put the adapter of a PEFT folder into a model; gives the paths of what is adapted.

    >>> import tempfile
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model, folder = votive.models.LlamaForCausalLM(config), tempfile.mkdtemp()
    >>> _ = votive.nn.apply_lora(model, ["q_proj", "v_proj"])
    >>> _ = votive.models.save_adapter(model, folder)
    >>> votive.models.load_adapter(votive.models.LlamaForCausalLM(config), folder)
    ['model.layers.0.self_attn.q_proj', 'model.layers.0.self_attn.v_proj']
    """
    path = Path(folder).expanduser()
    settings = read_json(path / NAME)
    kind = settings.get("peft_type")
    if kind != "LORA":
        raise ValueError(f"load_adapter: {path} is a {kind} adapter; only LORA is known.")
    for name, off in _UNKNOWN.items():
        if settings.get(name) not in off:
            raise ValueError(f"load_adapter: {name}={settings[name]!r} in {path / NAME} is not known.")
    start = settings.get("init_lora_weights")
    if start not in _STARTS:
        raise ValueError(
            f"load_adapter: init_lora_weights={start!r} in {path / NAME} also changed the weights "
            "that are adapted, which the adapter does not hold. Save it with PEFT's "
            "save_pretrained(..., path_initial_model_for_weight_conversion=...), which makes it an "
            "adapter of the weights as they were, or merge it there and load the model."
        )
    file = next((path / name for name in _WEIGHTS if (path / name).is_file()), None)
    if file is None:
        raise FileNotFoundError(f"load_adapter: {path} has none of {', '.join(_WEIGHTS)}.")
    with votive.io.open_weights(file) as source:
        pairs = _pairs(path, source.names())
        modules: dict[str, Any] = dict(model.named_modules())
        wrong = [n for n in pairs if not isinstance(modules.get(n), nn.Linear)]
        if wrong:
            raise ValueError(
                f"load_adapter: {type(model).__name__} has no Linear {wrong[0]!r}, which {path} "
                f"adapts (and {len(wrong) - 1} more); is its base "
                f"{settings.get('base_model_name_or_path')!r} the model you loaded?"
            )
        made: dict[str, LoRALinear] = {}
        ranks = {n: _by_pattern(settings, "rank_pattern", n, settings.get("r", 8)) for n in pairs}
        for name, (a, b) in pairs.items():  # all is checked before anything is changed
            linear, r = modules[name], ranks[name]
            for key, shape in ((a, (r, linear.in_features)), (b, (linear.out_features, r))):
                if tuple(source.info(key).shape) != shape:
                    raise ValueError(
                        f"load_adapter: {key} has the shape {tuple(source.info(key).shape)}; "
                        f"{name} with r={r} takes {shape}."
                    )
        for name, (a, b) in pairs.items():
            layer = LoRALinear(
                modules[name],
                ranks[name],
                _by_pattern(settings, "alpha_pattern", name, settings.get("lora_alpha", 8)),
                settings.get("lora_dropout") or 0.0,
                bool(settings.get("use_rslora")),
            )
            with votive.no_grad():
                for p, key in ((layer.lora_A, a), (layer.lora_B, b)):
                    p.copy_(source.tensor(key, dtype=p.dtype, device=p.device))
            made[name] = layer.train(model.training)
    model.requires_grad_(False)
    for layer in made.values():
        layer.lora_A.requires_grad_(True)
        layer.lora_B.requires_grad_(True)
    _replace(model, {id(modules[name]): layer for name, layer in made.items()})
    return [name for name in modules if name in made]


def _pairs(path: Path, names: list[str]) -> dict[str, tuple[str, str]]:
    """The two tensors of each adapted layer; whatever else is in the file is an error."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        m = re.fullmatch(r"(.+)\.lora_([AB])(?:\.default)?\.weight", name.removeprefix(_PREFIX))
        if m is None:
            raise ValueError(f"load_adapter: {path} holds {name!r}, which is no LoRA weight.")
        found.setdefault(m[1], {})[m[2]] = name
    half = [name for name, sides in found.items() if len(sides) != 2]
    if half or not found:
        raise ValueError(f"load_adapter: {path} lacks a lora_A or lora_B of {half or 'any layer'}.")
    return {name: (sides["A"], sides["B"]) for name, sides in found.items()}


def _by_pattern(settings: dict[str, Any], key: str, name: str, default: Any) -> Any:
    """A layer's own number, where the configuration has one for names that end so."""
    for pattern, value in (settings.get(key) or {}).items():
        if re.fullmatch(rf"(.*\.)?({pattern})", name):
            return value
    return default
