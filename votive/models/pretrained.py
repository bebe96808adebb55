"""What every model can do: start values, ties, loading, saving. Knows no architecture."""

from __future__ import annotations

import copy
import re
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import votive
from votive import nn
from votive.nn.points import point

from ..io.report import LoadReport
from ..io.source import WeightSource, as_dtype
from ..tensor import Tensor
from .adapter_layers import adapters_of
from .adapter_methods import AdapterMethods
from .attention import next_token_loss
from .checkpoint import Checkpoint, write_json
from .config import Config, StrPath
from .loading import FromPretrained, differ, fill, sizes_in_memory_errors, stored_dtype
from .output import BaseModelOutput, CausalLMOutput, MoeCausalLMOutput
from .placement import automatic, device_of, place

if TYPE_CHECKING:
    from ..generation import GenerationConfig
    from .fused_decoder import FusedDecoder


class PreTrainedModel(FromPretrained, AdapterMethods):
    """A model made from a configuration, whose weights files hold by name.

    >>> config = votive.models.GPT2Config(vocab_size=8, n_positions=4, n_embd=4, n_layer=0,
    ...     n_head=1)
    >>> votive.models.GPT2LMHeadModel(config).num_parameters()
    56
    """

    config_class: ClassVar[type[Config]] = Config
    # What a bare model is called inside one with a head; its weights may come with or without it.
    base_model_prefix: ClassVar[str] = "model"
    # Name of a parameter: name of the one it shares, when the configuration ties them.
    tied: ClassVar[dict[str, str]] = {}
    # Old names of weights and the present ones, as regular expressions.
    renames: ClassVar[dict[str, str]] = {}
    # Names in files that are no weights: tables that are computed, masks.
    ignored: ClassVar[tuple[str, ...]] = (r"rotary_emb\.inv_freq$", r"\.position_ids$")

    def __init__(self, config: Config) -> None:
        super().__init__()
        if not isinstance(config, Config):
            raise TypeError(
                f"{type(self).__name__}: give a {self.config_class.__name__}, or use "
                f"{type(self).__name__}.from_pretrained(path); got {type(config).__name__}."
            )
        self.config = config
        self._untied: set[str] = set()
        self.name_or_path = ""
        self._generation_config: GenerationConfig | dict[str, Any] = {}

    @property
    def generation_config(self) -> GenerationConfig:
        """Settings of `generate` that come with the model, a `votive.generation.GenerationConfig`.

        >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
        ...     num_hidden_layers=1, num_attention_heads=2, eos_token_id=None)
        >>> model = votive.models.LlamaForCausalLM(config)
        >>> model.generation_config.max_new_tokens = 3
        >>> model.generate([[1, 2]]).shape
        votive.Size([1, 5])
        """
        # Made when it is first looked at: a model that only computes needs no generation.
        if isinstance(self._generation_config, dict):
            from ..generation import GenerationConfig

            self._generation_config = GenerationConfig.from_dict(self._generation_config)
        return self._generation_config

    @generation_config.setter
    def generation_config(self, settings: GenerationConfig | dict[str, Any]) -> None:
        if not (isinstance(settings, dict) or hasattr(settings, "to_dict")):
            raise TypeError(
                "generation_config must be a votive.generation.GenerationConfig or a dict, got "
                f"{type(settings).__name__}."
            )
        self._generation_config = settings

    def post_init(self) -> None:
        """Start values for what is new, then the ties; to be called last in a constructor."""
        for module in self.modules():
            if not module.__dict__.get("_started"):
                module.__dict__["_started"] = True
                self.init_weights(module)
        self.tie_weights()
        # What saving compares with, to notice modules that were put in the place of others.
        self.__dict__["_shapes"] = {name: tuple(value.shape) for name, value in self.state_dict().items()}

    def init_weights(self, module: nn.Module) -> None:
        """Start values of one module: normal weights, zero biases, norms of one."""
        std = self.config.initializer_range
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx])

    def ties(self) -> dict[str, str]:
        """Names of parameters that are others, and of those others, as the configuration says."""
        if not self.config.tie_word_embeddings:
            return {}
        return {name: source for name, source in self.tied.items() if name not in self._untied}

    def _tying(self) -> tuple[str, PreTrainedModel]:
        """Which part of the model ties parameters, by the start of its names."""
        return "", self

    def _untie(self, names: list[str]) -> None:
        """Give parameters of their own to those that files hold apart."""
        for name in names:
            path, _, attribute = name.rpartition(".")
            own = nn.Parameter(votive.empty_like(self.get_parameter(self.tied[name])))
            setattr(self.get_submodule(path), attribute, own)
        self._untied |= set(names)
        if not self.ties():
            self.config.tie_word_embeddings = False
        warnings.warn(
            f"{type(self).__name__}: the configuration says tie_word_embeddings=true, but the file "
            f"holds {', '.join(names)} apart and with other values; they are kept and not tied. "
            "Set tie_word_embeddings to false in config.json to say so.",
            stacklevel=5,
        )

    def tie_weights(self) -> None:
        """Let parameters be shared that the configuration ties."""
        for name, source in self.ties().items():
            path, _, attribute = name.rpartition(".")
            setattr(self.get_submodule(path), attribute, self.get_parameter(source))

    def get_input_embeddings(self) -> nn.Module:
        """The table of token embeddings."""
        inner = getattr(self, self.base_model_prefix, self)
        return inner.embed_tokens

    def embedded(self, input_ids: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:
        """Embeddings of the ids, or those that were given instead."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError(f"{type(self).__name__}: give either input_ids or inputs_embeds, not both.")
        if inputs_embeds is not None:
            return inputs_embeds
        assert input_ids is not None, "one of both is there"
        if input_ids.dim() != 2:
            raise ValueError(
                f"{type(self).__name__}: input_ids must be (batch, positions), got shape "
                f"{tuple(input_ids.shape)}; one text is input_ids.unsqueeze(0)."
            )
        return self.get_input_embeddings()(input_ids)

    @property
    def device(self) -> votive.device:
        """Where the parameters are."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> votive.dtype:
        """The floating-point type of the parameters."""
        return next(p.dtype for p in self.parameters() if p.is_floating_point())

    def num_parameters(self) -> int:
        """How many numbers are learned; shared ones count once."""
        return sum(p.numel() for p in self.parameters())

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """A model with start values."""
        with sizes_in_memory_errors(cls.__name__, config):
            return cls(config)

    @classmethod
    def _class_for(cls, model_type: str, architectures: list[str] | None = None) -> type[PreTrainedModel]:
        return cls

    @classmethod
    def _config_for(cls, values: dict[str, Any]) -> Config:
        return cls.config_class.from_dict(values)

    @classmethod
    def from_checkpoint(
        cls,
        found: Checkpoint,
        *,
        dtype: votive.dtype | str | None = None,
        device: votive.device | str | None = None,
        config: Config | None = None,
        strict: bool | None = None,
        ignore_mismatched_sizes: bool = False,
        dequantize: bool | None = None,
        device_map: str | dict[str, Any] | None = None,
        max_memory: dict[Any, int | str] | None = None,
    ) -> Self:
        """A model from what `Checkpoint.find` found."""
        if config is None:
            config = cls.config_class.from_dict(found.config)
        source = found.weights()
        packed = found.config.get("quantization_config")
        if packed:
            from ..quant.huggingface import quantized_source

            try:
                source = quantized_source(source, packed)
            except ValueError as e:
                raise ValueError(f"{cls.__name__}: {found.name}: {e}") from None
            # What is saved are blocks, which describe themselves.
            config = copy.deepcopy(config)
            config.extra.pop("quantization_config", None)
        dtype = found.dtype if dtype is None or dtype == "auto" else as_dtype(dtype)
        if dtype is None:
            dtype = stored_dtype(source)
        with (
            sizes_in_memory_errors(cls.__name__, config),
            nullcontext() if strict is False or ignore_mismatched_sizes else nn.init.skipped(),
        ):
            model = cls(config)
        if isinstance(device_map, str):
            device_map = automatic(model, device_map, max_memory)
        if dequantize is None and device_map is not None:
            dequantize = any(device_of(where).type != "cpu" for where in device_map.values())
        model.load_weights(
            source,
            dtype=dtype,
            device=device,
            strict=strict,
            ignore_mismatched_sizes=ignore_mismatched_sizes,
            dequantize=dequantize,
        )
        model.name_or_path = str(found.name)
        model.generation_config = found.generation_config
        if device_map is not None:
            place(model, device_map)
        return model.eval()

    def load_weights(
        self,
        source: WeightSource,
        *,
        dtype: votive.dtype | None = None,
        device: votive.device | str | None = None,
        strict: bool | None = None,
        ignore_mismatched_sizes: bool = False,
        dequantize: bool | None = None,
    ) -> LoadReport:
        """Fill the parameters from a weight source; gives the report of what did not fit."""
        prefix = f"{self.base_model_prefix}."
        source = self.adapted(source)
        wanted = set(self.state_dict().keys())
        shared = self.ties()

        def renamed(name: str) -> str:
            for pattern, new in self.renames.items():
                name = re.sub(pattern, new, name)
            return name

        # A bare model takes from the file of one with a head what is below its prefix.
        bare = not hasattr(self, self.base_model_prefix)
        headed = bare and any(renamed(name).startswith(prefix) for name in source.names())

        def known(name: str) -> str | None:
            name = renamed(name)
            if any(re.search(pattern, name) for pattern in self.ignored):
                return None
            if headed and not name.startswith(prefix):
                return None
            for candidate in (name, prefix + name, name.removeprefix(prefix)):
                if candidate in wanted:
                    return candidate
            return name

        there = {known(name): name for name in source.names()}
        apart = [
            new
            for new, first in shared.items()
            if new in there and first in there and differ(source, there[new], there[first])
        ]
        if apart:
            self._untie(apart)
            shared = self.ties()

        def rule(name: str) -> str | None:
            new = known(name)
            if new not in shared:
                return new
            # Of two names for one parameter, files may have either.
            return None if shared[new] in there else shared[new]

        return fill(self, source.renamed(rule), dtype, device, strict, ignore_mismatched_sizes, dequantize)

    def adapted(self, source: WeightSource) -> WeightSource:
        """A source in the form the parameters have; families override where files differ."""
        return source

    def filed(self, weights: dict[str, Any]) -> dict[str, Any]:
        """Weights by name as files of the family have them: the opposite of `adapted`."""
        return weights

    def save_pretrained(self, folder: StrPath, *, max_shard_size: int | str = "5GB") -> None:
        """Write config.json and the weights as safetensors, in shards if they are large.

        The file holds the model in its plain form: what `apply_lora` adapted is stored merged, as
        one weight (`save_adapter` stores the adaptation alone). A model that its configuration no
        longer describes is refused. Whether a head is tied is read from the weights: one that is
        its own now is written, and config.json says so.
        """
        from ..io.safetensors import save_sharded
        from .saving import plain_form

        path = Path(folder)
        weights, config = plain_form(self)
        for described in (self.config, config):
            described.architectures = [type(self).__name__]
            described.dtype = str(self.dtype).removeprefix("votive.")
        save_sharded(self.filed(weights), path, max_shard_size=max_shard_size, metadata={"format": "pt"})
        # After the weights, which are what a full disk refuses: a failed save changes nothing.
        config.save_pretrained(path)
        settings = self._generation_config
        settings = settings if isinstance(settings, dict) else settings.to_dict()
        if settings:
            write_json(path / "generation_config.json", settings)


class CausalLM(PreTrainedModel):
    """A model that predicts the next token; `generate` writes with it.

    >>> issubclass(votive.models.LlamaForCausalLM, votive.models.CausalLM)
    True
    """

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Continue texts; see votive.generation.generate."""
        from ..generation import generate

        state = adapters_of(self)
        if state is not None and state.prompt is not None:
            from .prompts import generate_behind

            return generate_behind(self, state.prompt, *args, settings=kwargs)
        return generate(self, *args, **kwargs)

    def fused_decoder(self) -> FusedDecoder | None:
        """The step of one token by fused operators, or None where only the modules know it."""
        return None


class DecoderLM(CausalLM):
    """A decoder and a head, as Llama and GPT-2 have them."""

    def scores(self, x: Tensor) -> Tensor:
        """Logits of the next token."""
        return self.lm_head(x)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: nn.KVCache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        logits_to_keep: int = 0,
        **options: Any,
    ) -> CausalLMOutput | MoeCausalLMOutput:
        """`options` go to the decoder: those that not every family has."""
        found = getattr(self, self.base_model_prefix)(
            input_ids,
            attention_mask,
            position_ids,
            past_key_values,
            inputs_embeds,
            use_cache,
            output_attentions,
            output_hidden_states,
            **options,
        )
        return self.predictions(found, labels, logits_to_keep, attention_mask)

    def predictions(
        self, found: BaseModelOutput, labels: Tensor | None, logits_to_keep: int, attention_mask: Tensor | None
    ) -> CausalLMOutput | MoeCausalLMOutput:
        """Logits of the last positions (0: of all), and their loss where labels are given."""
        assert found.last_hidden_state is not None, "a decoder gives it"
        logits = point("logits", self.scores(found.last_hidden_state[:, -logits_to_keep:]))
        return CausalLMOutput(
            loss=None if labels is None else next_token_loss(logits, labels),
            logits=logits,
            past_key_values=found.past_key_values,
            hidden_states=found.hidden_states,
            attentions=found.attentions,
        )
