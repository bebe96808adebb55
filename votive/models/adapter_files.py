"""Adapters of models, in folders as PEFT has them: adapter_config.json beside the adapted weights.

Knows files and what adapters are made of; knows no architecture.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import votive
from votive import nn
from votive.nn.layers.lora import LoRALinear

from ..io.source import WeightSource
from ..tensor import Tensor
from .adapter_layers import Made, activate, adapted_layers, adapters_of, attach, build, check_new, needed, same_scaling
from .adapter_targets import ALL_LINEAR, own_parameters
from .checkpoint import download, is_repo_id, write_json
from .config import StrPath, read_json
from .peft_config import LoraConfig, PeftConfig, PromptConfig, as_config

NAME = "adapter_config.json"
_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
_PREFIX = "base_model.model."
# How an adapter may start and leave the weights below it as they are; other ways change them too.
_STARTS = (None, True, False, "gaussian", "eva", "orthogonal", "mica")
_PLACES = ("revision", "token", "cache_dir", "local_files_only", "force_download", "subfolder")


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter and no model of its own."""
    return (folder / NAME).is_file() and not (folder / "config.json").is_file()


def base_of(folder: Path) -> str | None:
    """What an adapter says it belongs to."""
    return read_json(folder / NAME).get("base_model_name_or_path") or None


def adapter_state_dict(model: nn.Module, name: str | None = None) -> dict[str, Tensor]:
    """The weights of one adapter (None: the active one) by the names of PEFT's files."""
    made = _one(model, name, "get_adapter_state_dict")[1]
    if made.prompt is not None:
        return {"prompt_embeddings": made.prompt.vectors().detach()}
    found = {
        f"{_PREFIX}{path}.{adaptation.files[key]}": value.detach()
        for path, adaptation in made.layers.items()
        for key, value in adaptation.named_parameters()
    }
    for path, module in made.modules.items():
        found |= {f"{_PREFIX}{path}.{key}": value.detach() for key, value in module.state_dict().items()}
    for path, value in made.parameters.items():
        parent, _, last = path.rpartition(".")
        inner = "base_layer." if parent in made.layers else ""
        found[f"{_PREFIX}{parent}.{inner}{last}" if parent else f"{_PREFIX}{last}"] = value.detach()
    return found


def _one(model: nn.Module, name: str | None, op: str) -> tuple[str, Made]:
    state = needed(model, op)
    if name is None:
        if len(state.active) != 1:
            raise ValueError(f"{op}: {', '.join(state.active)} are active; name the one you mean.")
        name = state.active[0]
    if name not in state.made:
        raise ValueError(f"{op}: there is no adapter {name!r}; there are {', '.join(state.made)}.")
    return name, state.made[name]


def save_adapter(model: nn.Module, folder: StrPath, adapter_name: str | None = None) -> list[str]:
    """Write one adapter of a model (None: the active one) as PEFT does; gives the paths of what is adapted.

    What `votive.nn.apply_lora` put there is written as well.

    >>> import tempfile
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> model.add_adapter(votive.models.LoraConfig(target_modules=["q_proj"]))
    >>> votive.models.save_adapter(model, tempfile.mkdtemp())
    ['model.layers.0.self_attn.q_proj']
    """
    plain = {n: m for n, m in model.named_modules() if isinstance(m, LoRALinear)}
    if adapters_of(model) is None:
        if not plain:
            raise ValueError("save_adapter: the model has no LoRA layers and no adapter; see add_adapter.")
        if adapter_name is not None:
            raise ValueError("save_adapter: what apply_lora put there has no name; leave out adapter_name.")
        return _save_plain(model, plain, Path(folder))
    if plain:
        raise ValueError(
            "save_adapter: the model has layers of votive.nn.apply_lora beside its adapters; merge_lora(model) first."
        )
    made = _one(model, adapter_name, "save_adapter")[1]
    settings = made.config.to_dict()
    if "target_modules" in settings:
        chosen = settings["target_modules"]
        if isinstance(chosen, str) and chosen.lower() == ALL_LINEAR:
            settings["target_modules"] = sorted(made.layers)
        places = adapted_layers(model)
        if "fan_in_fan_out" in settings:
            settings["fan_in_fan_out"] = any(places[p].place.transposed for p in made.layers)
    weights = adapter_state_dict(model, _one(model, adapter_name, "save_adapter")[0])
    _write(Path(folder), settings, weights)
    return list(made.layers)


def _write(path: Path, settings: dict[str, Any], weights: dict[str, Tensor]) -> None:
    path.mkdir(parents=True, exist_ok=True)
    weights = {name: value.contiguous() for name, value in weights.items()}
    votive.io.safetensors.save_file(weights, path / _WEIGHTS[0], metadata={"format": "pt"})
    write_json(path / NAME, settings)


def _save_plain(model: nn.Module, layers: dict[str, LoRALinear], path: Path) -> list[str]:
    """Write what `apply_lora` put into a model."""
    roots = {not same_scaling(m) for m in layers.values()}
    if len(roots) > 1:
        raise ValueError("save_adapter: PEFT has rslora for all layers or for none.")
    first = next(iter(layers.values()))
    config = LoraConfig(
        task_type="CAUSAL_LM" if hasattr(model, "lm_head") else None,
        base_model_name_or_path=getattr(model, "name_or_path", "") or None,
        target_modules=sorted(layers),
        r=first.r,
        lora_alpha=first.alpha,
        lora_dropout=first.dropout.p,
        use_rslora=roots.pop(),
        rank_pattern={n: m.r for n, m in layers.items() if m.r != first.r},
        alpha_pattern={n: m.alpha for n, m in layers.items() if m.alpha != first.alpha},
    )
    weights = {
        f"{_PREFIX}{name}.lora_{side}.weight": getattr(m, f"lora_{side}").detach()
        for name, m in layers.items()
        for side in "AB"
    }
    _write(path, config.to_dict(), weights)
    return list(layers)


def load_adapter(
    model: nn.Module, folder: StrPath, adapter_name: str = "default", *, is_trainable: bool = True, **places: Any
) -> list[str]:
    """Put the adapter of a PEFT folder into a model and make it active; gives the paths of what is adapted.

    Everything else is frozen, the adapter too unless it is `is_trainable`. A name that is no folder is that of a
    repository; `places` say where (`revision`, `token`, `subfolder`, ...).

    >>> import tempfile
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model, folder = votive.models.LlamaForCausalLM(config), tempfile.mkdtemp()
    >>> model.add_adapter(votive.models.LoraConfig(target_modules=["q_proj", "v_proj"]))
    >>> _ = votive.models.save_adapter(model, folder)
    >>> votive.models.load_adapter(votive.models.LlamaForCausalLM(config), folder)
    ['model.layers.0.self_attn.q_proj', 'model.layers.0.self_attn.v_proj']
    """
    path = _found(folder, places)
    settings = read_json(path / NAME)
    config = _config(path, settings)
    check_new(model, adapter_name, config)
    file = next((path / name for name in _WEIGHTS if (path / name).is_file()), None)
    if file is None:
        raise FileNotFoundError(f"load_adapter: {path} has none of {', '.join(_WEIGHTS)}.")
    with votive.io.open_weights(file) as source:
        made = _fitting(model, path, config, source)
        _fill(model, path, made, source)
    attach(model, adapter_name, made)
    if is_trainable:
        needed(model, "load_adapter").trainable.add(adapter_name)
    activate(model, [adapter_name])
    return list(made.layers)


def _found(folder: StrPath, places: dict[str, Any]) -> Path:
    unknown = sorted(set(places) - set(_PLACES))
    if unknown:
        raise TypeError(f"load_adapter: unexpected argument {unknown[0]!r}; there are {', '.join(_PLACES)}.")
    path, subfolder = Path(folder).expanduser(), places.get("subfolder")
    if path.is_dir():
        path = path / subfolder if subfolder else path
    elif is_repo_id(str(folder)) and not path.exists():
        given = {k: v for k, v in places.items() if k not in ("subfolder", "revision", "local_files_only")}
        path = download(str(folder), places.get("revision"), bool(places.get("local_files_only")), subfolder, **given)
    if not (path / NAME).is_file():
        raise FileNotFoundError(f"load_adapter: {path} has no {NAME}; an adapter is a folder as PEFT writes it.")
    return path


def _config(path: Path, settings: dict[str, Any]) -> PeftConfig:
    start = settings.get("init_lora_weights")
    if start not in _STARTS:
        raise ValueError(
            f"load_adapter: init_lora_weights={start!r} in {path / NAME} also changed the weights "
            "that are adapted, which the adapter does not hold. Save it with PEFT's "
            "save_pretrained(..., path_initial_model_for_weight_conversion=...), which makes it an "
            "adapter of the weights as they were, or merge it there and load the model."
        )
    try:
        return as_config(settings)
    except (ValueError, TypeError) as e:
        raise ValueError(f"load_adapter: {path / NAME}: {e}") from None


def _fitting(model: nn.Module, path: Path, config: PeftConfig, source: WeightSource) -> Made:
    """The adapter with start values; a base that it does not belong to is told."""
    try:
        with nn.init.skipped():
            made = build(model, config, blank=True)
    except ValueError as e:
        base = config.base_model_name_or_path
        told = [n.removeprefix(_PREFIX).partition(".lora_")[0] for n in source.names() if ".lora_" in n]
        first = f" It adapts {told[0]!r}, for one." if told else ""
        raise ValueError(
            f"load_adapter: {type(model).__name__} has no such layers as {path} adapts: {e}{first} "
            f"Is its base {base!r} the model you loaded?"
        ) from None
    return made


def _fill(model: nn.Module, path: Path, made: Made, source: WeightSource) -> None:
    """Read the weights of an adapter that stands apart; nothing in the file may be left over or lacking."""
    if isinstance(made.config, PromptConfig):
        _take(path, source, {"prompt_embeddings": made.prompt.embedding.weight}, set(source.names()))
        return
    wanted: dict[str, Tensor] = {}
    for place, adaptation in made.layers.items():
        wanted |= {f"{place}.{adaptation.files[key]}": value for key, value in adaptation.named_parameters()}
    for place, module in made.modules.items():
        wanted |= {f"{place}.{key}": value for key, value in module.state_dict().items()}
    files = {_known(name, wanted): name for name in source.names()}
    held = {name: (parameter, places) for name, parameter, places in own_parameters(model)}
    for name, file in list(files.items()):
        # The model's own parameters that the adapter has otherwise: biases, embeddings.
        own = name.replace(".base_layer.", ".")
        if name in wanted or own not in held:
            continue
        value = source.tensor(file)
        mine = held[own][0]
        if tuple(value.shape) != tuple(mine.shape):
            raise ValueError(
                f"load_adapter: {file} has the shape {tuple(value.shape)}, {own} of the model {tuple(mine.shape)}; "
                "resize the model as it was when the adapter was learned."
            )
        del files[name]
        plain = getattr(mine, "blocks", None) is not None
        if own in made.parameters or plain or not votive.equal(value.to(mine.dtype), mine.detach()):
            made.parameters[own] = nn.Parameter(
                value.to(device=mine.device, dtype=votive.float32 if plain else mine.dtype)
            )
    _take(path, source, wanted, set(files.values()), files)


def _known(name: str, wanted: dict[str, Tensor]) -> str:
    """A file's name as one that is wanted: without its start, and without the adapter's own name in it."""
    plain = name.removeprefix(_PREFIX)
    if plain in wanted:
        return plain
    # `lora_A.default.weight`, `ia3_l.default`, `classifier.modules_to_save.default.weight`
    for pattern in (r"\.(lora_[AB])\.[^.]+(\.(?:weight|bias))$", r"\.(\w+)\.[^.]+()$"):
        found = re.sub(pattern, r".\1\2", plain)
        if found in wanted:
            return found
    found = re.sub(r"\.modules_to_save\.[^.]+\.", ".", plain)
    if found in wanted:
        return found
    found = re.sub(r"\.lora_magnitude_vector(\.[^.]+)?\.weight$", ".lora_magnitude_vector", plain)
    return found if found in wanted else plain


def _take(
    path: Path, source: WeightSource, wanted: dict[str, Tensor], there: set[str], files: dict[str, str] | None = None
) -> None:
    """Copy what is wanted; all is checked before anything is changed."""
    files = {name: name for name in there} if files is None else files
    missing = [name for name in wanted if name not in files]
    extra = [files[name] for name in files if name not in wanted]
    if extra:
        raise ValueError(
            f"load_adapter: {path} holds {extra[0]!r} (and {len(extra) - 1} more), which its {NAME} or the model "
            "has no place for."
        )
    if missing:
        raise ValueError(f"load_adapter: {path} lacks {missing[0]!r} (and {len(missing) - 1} more).")
    for name, parameter in wanted.items():
        shape = tuple(source.info(files[name]).shape)
        if shape != tuple(parameter.shape):
            raise ValueError(
                f"load_adapter: {files[name]} has the shape {shape}; {NAME} and the model say {tuple(parameter.shape)}."
            )
    with votive.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(source.tensor(files[name], dtype=parameter.dtype, device=parameter.device))
