"""What an adapter is: the configurations of PEFT, under its names and with its defaults. Knows no model.

What a configuration asks for and is not built here is refused by its key, never passed over.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ..core.similar import similar

Targets = str | Sequence[str] | None
# Without consequence for what is computed here.
_NOTES = (
    "peft_type", "auto_mapping", "peft_version", "revision", "inference_mode", "megatron_config", "megatron_core",
    "ephemeral_gpu_offload", "runtime_config", "qalora_group_size", "ensure_weight_tying",
)  # fmt: skip


@dataclass(kw_only=True)
class PeftConfig:
    """What every adapter says of itself.

    >>> votive.models.LoraConfig.from_dict({"r": 4, "target_modules": ["q_proj"]}).r
    4
    """

    peft_type: ClassVar[str] = ""
    # Keys that change the computation and are not built: the values with which they are off.
    unbuilt: ClassVar[dict[str, tuple[Any, ...]]] = {}

    task_type: str | None = None
    base_model_name_or_path: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From the object of an adapter_config.json."""
        known = {f.name for f in dataclasses.fields(cls)}
        given: dict[str, Any] = {}
        for name, value in values.items():
            if name in known:
                given[name] = _plain(value)
            elif name in cls.unbuilt:
                if _plain(value) not in cls.unbuilt[name]:
                    raise ValueError(f"{cls.__name__}: {name}={value!r} is not known here; it would change the result.")
            elif name not in _NOTES and value not in (None, False, [], {}):
                near = similar(name, known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise ValueError(f"{cls.__name__}: there is no setting {name!r} (it is {value!r}){hint}")
        return cls(**given)

    def to_dict(self) -> dict[str, Any]:
        """What adapter_config.json holds, with what PEFT wants to be told beside."""
        found = {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}
        return {"peft_type": self.peft_type, "inference_mode": True, **found}


@dataclass(kw_only=True)
class LayerConfig(PeftConfig):
    """What adapters of layers share: which layers, and which whole modules are trained beside them."""

    target_modules: Targets = None
    exclude_modules: Targets = None
    modules_to_save: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.target_modules, str) and not self.target_modules:
            raise ValueError(f"{type(self).__name__}: target_modules is empty.")

    def wants(self, path: str) -> bool:
        """Whether the layer of this path is adapted, "all-linear" apart.

        >>> votive.models.LoraConfig(target_modules=["q_proj"]).wants("layers.0.q_proj")
        True
        """
        if self.exclude_modules and _named(self.exclude_modules, path):
            return False
        if any(re.match(rf"(^|.*\.){m}($|\..*)", path) for m in self.modules_to_save or ()):
            return False
        if not self.target_modules:
            return False
        if not _named(self.target_modules, path):
            return False
        return isinstance(self.target_modules, str) or self._in_chosen_layer(path)

    def _in_chosen_layer(self, path: str) -> bool:
        chosen = getattr(self, "layers_to_transform", None)
        if chosen is None or chosen == []:
            return True
        patterns = getattr(self, "layers_pattern", None) or []
        found = None
        if not patterns:
            found = re.match(r".*?\.[^.]*\.(?P<idx>\d+)\.", path)
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            found = found or re.match(rf"(?:^|.*?\.){pattern}\.(?P<idx>\d+)\.", path)
        return found is not None and int(found["idx"]) in ([chosen] if isinstance(chosen, int) else chosen)


@dataclass(kw_only=True)
class RankedConfig(LayerConfig):
    """Adapters with a rank, which some layers may have otherwise."""

    r: int = 8
    layers_to_transform: int | list[int] | None = None
    layers_pattern: str | list[str] | None = None
    rank_pattern: Mapping[str, int] = field(default_factory=dict)
    alpha_pattern: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.r) is not int or self.r < 1:
            raise ValueError(f"{type(self).__name__}: r must be a positive integer, got {self.r!r}.")
        if isinstance(self.target_modules, str):
            for name in ("layers_to_transform", "layers_pattern"):
                if getattr(self, name) not in (None, [], ""):
                    raise ValueError(f"{type(self).__name__}: {name} cannot stand beside target_modules as a string.")

    def rank(self, path: str) -> int:
        """The rank in one layer.

        >>> votive.models.LoraConfig(r=4, rank_pattern={"v_proj": 2}).rank("layers.0.v_proj")
        2
        """
        return int(_by_pattern(self.rank_pattern, path, self.r))


@dataclass(kw_only=True)
class LoraConfig(RankedConfig):
    """PEFT's LoraConfig: LoRA and DoRA.

    >>> votive.models.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]).lora_alpha
    8
    """

    peft_type: ClassVar[str] = "LORA"
    unbuilt: ClassVar[dict[str, tuple[Any, ...]]] = {
        "target_parameters": (None, []),
        "layer_replication": (None,),
        "alora_invocation_tokens": (None,),
        "use_qalora": (None, False),
        "trainable_token_indices": (None,),
        "use_bdlora": (None, False),
        "arrow_config": (None,),
        "kasa_config": (None,),
        "velora_config": (None,),
        "monteclora_config": (None,),
    }

    lora_alpha: float = 8
    lora_dropout: float = 0.0
    fan_in_fan_out: bool = False
    bias: str = "none"
    use_rslora: bool = False
    use_dora: bool = False
    lora_bias: bool = False
    init_lora_weights: bool | str | None = True
    loftq_config: Any = None
    eva_config: Any = None
    corda_config: Any = None
    lora_ga_config: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bias not in ("none", "all", "lora_only"):
            raise ValueError(f"LoraConfig: bias is none, all or lora_only, got {self.bias!r}.")
        if not 0 <= self.lora_dropout <= 1:
            raise ValueError(f"LoraConfig: lora_dropout is a share from 0 to 1, got {self.lora_dropout}.")

    def alpha(self, path: str) -> float:
        """What one layer's product is scaled by, before it is divided by the rank.

        >>> votive.models.LoraConfig(alpha_pattern={"v_proj": 2}).alpha("layers.0.v_proj")
        2.0
        """
        return float(_by_pattern(self.alpha_pattern, path, self.lora_alpha))

    def to_dict(self) -> dict[str, Any]:
        found = super().to_dict()
        for name in ("loftq_config", "eva_config", "corda_config", "lora_ga_config"):
            if found[name] is None:
                del found[name]
        return found


@dataclass(kw_only=True)
class IA3Config(LayerConfig):
    """PEFT's IA3Config; of the target modules, the `feedforward_modules` have their inputs scaled.

    >>> config = votive.models.IA3Config(target_modules=["k_proj", "fc2"], feedforward_modules=["fc2"])
    >>> config.scales_inputs("layers.0.fc2")
    True
    """

    peft_type: ClassVar[str] = "IA3"

    feedforward_modules: Targets = None
    fan_in_fan_out: bool = False
    init_ia3_weights: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen, inner = self.target_modules, self.feedforward_modules
        if not isinstance(chosen, str) and not isinstance(inner, str) and not set(inner or ()) <= set(chosen or ()):
            raise ValueError("IA3Config: feedforward_modules must be some of target_modules.")

    def scales_inputs(self, path: str) -> bool:
        """Whether a layer's inputs are scaled, rather than its results."""
        named = self.feedforward_modules or ()
        if isinstance(named, str):
            return re.fullmatch(named, path) is not None
        return any(path.endswith(name) for name in named)


@dataclass(kw_only=True)
class LoHaConfig(RankedConfig):
    """PEFT's LoHaConfig.

    >>> votive.models.LoHaConfig(target_modules=["q_proj"]).alpha
    8
    """

    peft_type: ClassVar[str] = "LOHA"

    alpha: float = 8
    rank_dropout: float = 0.0
    module_dropout: float = 0.0
    use_effective_conv2d: bool = False
    init_weights: bool | str = True

    def scale(self, path: str) -> float:
        """The alpha of one layer."""
        return float(_by_pattern(self.alpha_pattern, path, self.alpha))


@dataclass(kw_only=True)
class LoKrConfig(LoHaConfig):
    """PEFT's LoKrConfig.

    >>> votive.models.LoKrConfig(target_modules=["q_proj"]).decompose_factor
    -1
    """

    peft_type: ClassVar[str] = "LOKR"

    decompose_both: bool = False
    decompose_factor: int = -1
    rank_dropout_scale: bool = False


@dataclass(kw_only=True)
class PromptConfig(PeftConfig):
    """What adapters of the input share: vectors that stand before every text."""

    num_virtual_tokens: int | None = None
    token_dim: int | None = None
    num_transformer_submodules: int | None = None
    num_attention_heads: int | None = None
    num_layers: int | None = None
    modules_to_save: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if type(self.num_virtual_tokens) is not int or self.num_virtual_tokens < 1:
            raise ValueError(
                f"{type(self).__name__}: num_virtual_tokens is a positive integer, not {self.num_virtual_tokens!r}."
            )
        if self.num_transformer_submodules not in (None, 1):
            raise ValueError(
                f"{type(self).__name__}: num_transformer_submodules={self.num_transformer_submodules} is for "
                "encoder-decoders, which take no prompts here; decoders have 1."
            )


@dataclass(kw_only=True)
class PromptTuningConfig(PromptConfig):
    """PEFT's PromptTuningConfig; with prompt_tuning_init="TEXT", give the text's ids by `tokenizer_name_or_path`.

    >>> votive.models.PromptTuningConfig(num_virtual_tokens=4).prompt_tuning_init
    'RANDOM'
    """

    peft_type: ClassVar[str] = "PROMPT_TUNING"

    prompt_tuning_init: str = "RANDOM"
    prompt_tuning_init_text: str | None = None
    tokenizer_name_or_path: str | None = None
    tokenizer_kwargs: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prompt_tuning_init not in ("RANDOM", "TEXT", "SAMPLE_VOCAB"):
            raise ValueError(
                f"PromptTuningConfig: prompt_tuning_init={self.prompt_tuning_init!r}; RANDOM, TEXT or SAMPLE_VOCAB?"
            )
        if self.prompt_tuning_init == "TEXT" and not (self.prompt_tuning_init_text and self.tokenizer_name_or_path):
            raise ValueError(
                "PromptTuningConfig: prompt_tuning_init=TEXT needs prompt_tuning_init_text and tokenizer_name_or_path."
            )


@dataclass(kw_only=True)
class PrefixTuningConfig(PromptConfig):
    """PEFT's PrefixTuningConfig: keys and values before every layer's own.

    >>> votive.models.PrefixTuningConfig(num_virtual_tokens=4).prefix_projection
    False
    """

    peft_type: ClassVar[str] = "PREFIX_TUNING"

    init_weights: str | None = None
    encoder_hidden_size: int | None = None
    prefix_projection: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.init_weights not in (None, "zero"):
            raise ValueError(f"PrefixTuningConfig: init_weights is None or 'zero', got {self.init_weights!r}.")


@dataclass(kw_only=True)
class PromptEncoderConfig(PromptConfig):
    """PEFT's PromptEncoderConfig, p-tuning: a small network makes the vectors while they are learned.

    >>> votive.models.PromptEncoderConfig(num_virtual_tokens=4).encoder_reparameterization_type
    'MLP'
    """

    peft_type: ClassVar[str] = "P_TUNING"

    encoder_reparameterization_type: str = "MLP"
    encoder_hidden_size: int | None = None
    encoder_num_layers: int = 2
    encoder_dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = self.encoder_reparameterization_type
        if kind not in ("MLP", "LSTM"):
            raise ValueError(f"PromptEncoderConfig: encoder_reparameterization_type is MLP or LSTM, got {kind!r}.")
        if kind == "MLP" and (self.encoder_num_layers != 2 or self.encoder_dropout):
            raise ValueError("PromptEncoderConfig: encoder_num_layers and encoder_dropout are for LSTM.")


CONFIGS: dict[str, type[PeftConfig]] = {
    cls.peft_type: cls
    for cls in (
        LoraConfig, IA3Config, LoHaConfig, LoKrConfig, PromptTuningConfig, PrefixTuningConfig, PromptEncoderConfig,
    )
}  # fmt: skip


def as_config(given: Any) -> PeftConfig:
    """A configuration from one of these, from PEFT's own, or from a dict with its `peft_type`.

    >>> from votive.models.peft_config import as_config
    >>> as_config({"peft_type": "IA3", "target_modules": ["k_proj"]}).peft_type
    'IA3'
    """
    if isinstance(given, PeftConfig):
        return dataclasses.replace(given)
    values = given if isinstance(given, Mapping) else given.to_dict() if hasattr(given, "to_dict") else None
    if values is None:
        raise TypeError(f"an adapter is told by a LoraConfig or another configuration, not a {type(given).__name__}.")
    kind = _plain(values.get("peft_type"))
    if kind not in CONFIGS:
        raise ValueError(f"peft_type={kind!r} is an adapter that is not known here; known: {', '.join(CONFIGS)}.")
    return CONFIGS[kind].from_dict(values)


def _plain(value: Any) -> Any:
    """A value as JSON has it: members of enumerations by their values, sets as sorted lists."""
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str) and type(value) is not str:
        return str(getattr(value, "value", value))
    return value


def _named(targets: str | Sequence[str], path: str) -> bool:
    """Whether names or a regular expression mean a path: all of it, or its last parts."""
    if isinstance(targets, str):
        return re.fullmatch(targets, path) is not None
    return any(path == name or path.endswith(f".{name}") for name in targets)


def _by_pattern(patterns: Mapping[str, Any], path: str, default: Any) -> Any:
    """A layer's own number, where there is one for names that end so."""
    found = (value for pattern, value in patterns.items() if re.fullmatch(rf"(.*\.)?({pattern})", path))
    return next(found, default)
