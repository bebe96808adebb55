"""What every model can do: start values, ties, loading, saving. Knows no architecture."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.fused_linear import gelu_tanh

from ..io.source import as_dtype
from .checkpoint import Checkpoint, write_json
from .config import Config

if TYPE_CHECKING:
    from .fused_decoder import FusedDecoder

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "silu": F.silu,
    "swish": F.silu,
    "relu": F.relu,
    "tanh": votive.tanh,
    "mish": F.mish,
    "gelu": F.gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "quick_gelu": lambda x: x * votive.sigmoid(1.702 * x),
    "relu2": lambda x: F.relu(x).square(),
    "sigmoid": votive.sigmoid,
    "linear": lambda x: x,
}


def activation(name: str) -> Callable[[Any], Any]:
    """The function that a configuration calls `name`.

    >>> from votive.models.pretrained import activation
    >>> activation("relu")(votive.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    if name not in _ACTIVATIONS:
        known = ", ".join(sorted(_ACTIVATIONS))
        raise ValueError(f"unknown activation {name!r}; known: {known}.")
    return _ACTIVATIONS[name]


class PreTrainedModel(nn.Module):
    """A model made from a configuration, whose weights files hold by name.

    >>> config = votive.models.GPT2Config(vocab_size=8, n_positions=4, n_embd=4, n_layer=0,
    ...     n_head=1)
    >>> votive.models.GPT2LMHeadModel(config).num_parameters()
    56
    """

    config_class: ClassVar[Any] = Config
    # What a bare model is called inside one with a head; its weights may come with or without it.
    base_model_prefix: ClassVar[str] = "model"
    # Name of a parameter: name of the one it shares, when the configuration ties them.
    tied: ClassVar[dict[str, str]] = {}
    # Old names of weights and the present ones, as regular expressions.
    renames: ClassVar[dict[str, str]] = {}
    # Names in files that are no weights: tables that are computed, masks.
    ignored: ClassVar[tuple[str, ...]] = (r"rotary_emb\.inv_freq$", r"\.position_ids$")

    def __init__(self, config: Any) -> None:
        super().__init__()
        if not isinstance(config, Config):
            raise TypeError(
                f"{type(self).__name__}: give a {self.config_class.__name__}, or use "
                f"{type(self).__name__}.from_pretrained(path); got {type(config).__name__}."
            )
        self.config = config
        self._untied: set[str] = set()
        self.name_or_path = ""
        self.generation_config = {}

    @property
    def generation_config(self) -> Any:
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
    def generation_config(self, settings: Any) -> None:
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

    def _tying(self) -> tuple[str, Any]:
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

    def get_input_embeddings(self) -> Any:
        """The table of token embeddings."""
        inner = getattr(self, self.base_model_prefix, self)
        return inner.embed_tokens

    def embedded(self, input_ids: Any, inputs_embeds: Any) -> Any:
        """Embeddings of the ids, or those that were given instead."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError(f"{type(self).__name__}: give either input_ids or inputs_embeds, not both.")
        if inputs_embeds is not None:
            return inputs_embeds
        if input_ids.dim() != 2:
            raise ValueError(
                f"{type(self).__name__}: input_ids must be (batch, positions), got shape "
                f"{tuple(input_ids.shape)}; one text is input_ids.unsqueeze(0)."
            )
        return self.get_input_embeddings()(input_ids)

    @property
    def device(self) -> Any:
        """Where the parameters are."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> Any:
        """The floating-point type of the parameters."""
        return next(p.dtype for p in self.parameters() if p.is_floating_point())

    def num_parameters(self) -> int:
        """How many numbers are learned; shared ones count once."""
        return sum(p.numel() for p in self.parameters())

    @classmethod
    def from_config(cls, config: Any) -> Self:
        """A model with start values."""
        with told_sizes(cls.__name__, config):
            return cls(config)

    @classmethod
    def from_pretrained(
        cls,
        name: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        config: Any = None,
        strict: bool = True,
        revision: str | None = None,
        local_files_only: bool = False,
        **options: Any,
    ) -> Any:
        """A model from a folder, a file, the name of a bundled model or a repository id.

        `dtype=None` keeps that of the file; quantized weights become float32. With
        `strict=False`, weights that are missing keep their start values and a warning tells which;
        with `ignore_mismatched_sizes=True`, those of another shape as well. Other options are
        those of transformers that have a meaning here, and fields of the configuration.
        The model comes in evaluation mode; with `output_loading_info=True` a dict that tells what
        did not fit comes with it. A folder with a PEFT adapter gives its base, adapted, where the
        base is found.
        """
        options |= {
            "dtype": dtype,
            "device": device,
            "strict": strict,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        return load_asked(cls, cls.__name__, name, config, options)

    @classmethod
    def _class_for(cls, model_type: Any, architectures: Any = None) -> Any:
        return cls

    @classmethod
    def _config_for(cls, values: dict[str, Any]) -> Any:
        return cls.config_class.from_dict(values)

    @classmethod
    def from_checkpoint(
        cls,
        found: Checkpoint,
        *,
        dtype: Any = None,
        device: Any = None,
        config: Any = None,
        strict: bool = True,
        ignore_mismatched_sizes: bool = False,
    ) -> Self:
        """A model from what `Checkpoint.find` found."""
        packed = found.config.get("quantization_config")
        if packed:
            kind = packed.get("quant_method", packed) if isinstance(packed, dict) else packed
            raise ValueError(
                f"{cls.__name__}: the weights of {found.name} are quantized by {kind!r}, which is "
                "not supported; use unquantized weights or a GGUF file."
            )
        if config is None:
            config = cls.config_class.from_dict(found.config)
        source = found.weights()
        dtype = found.dtype if dtype is None or dtype == "auto" else as_dtype(dtype)
        if dtype is None:
            dtype = _stored_dtype(source)
        with (
            told_sizes(cls.__name__, config),
            nullcontext() if not strict or (ignore_mismatched_sizes) else nn.init.skipped(),
        ):
            model = cls(config)
        model.load_weights(
            source, dtype=dtype, device=device, strict=strict, ignore_mismatched_sizes=ignore_mismatched_sizes
        )
        model.name_or_path = str(found.name)
        model.generation_config = found.generation_config
        return model.eval()

    def load_weights(
        self,
        source: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        strict: bool = True,
        ignore_mismatched_sizes: bool = False,
    ) -> Any:
        """Fill the parameters from a weight source; gives the report of what did not fit."""
        prefix = f"{self.base_model_prefix}."
        source = self.adapted(source)
        wanted = set(self.state_dict().keys())
        shared = self.ties()
        # A bare model takes from the file of one with a head what is below its prefix.
        bare = not hasattr(self, self.base_model_prefix)
        headed = bare and any(name.startswith(prefix) for name in source.names())

        def known(name: str) -> str | None:
            for pattern, new in self.renames.items():
                name = re.sub(pattern, new, name)
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

        return _load(self, source.renamed(rule), dtype, device, strict, ignore_mismatched_sizes)

    def adapted(self, source: Any) -> Any:
        """A source in the form the parameters have; families override where files differ."""
        return source

    def save_pretrained(self, folder: Any, *, max_shard_size: Any = "5GB") -> None:
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
        for told in (self.config, config):
            told.architectures = [type(self).__name__]
            told.dtype = str(self.dtype).removeprefix("votive.")
        save_sharded(weights, path, max_shard_size=max_shard_size, metadata={"format": "pt"})
        # After the weights, which are what a full disk refuses: a failed save changes nothing.
        config.save_pretrained(path)
        settings = self._generation_config
        settings = settings if isinstance(settings, dict) else settings.to_dict()
        if settings:
            write_json(path / "generation_config.json", settings)


@contextmanager
def told_sizes(name: str, config: Any) -> Iterator[None]:
    """Say with what sizes a model does not fit into memory."""
    try:
        yield
    except (MemoryError, OverflowError) as error:
        told = ", ".join(
            f"{key}={getattr(config, key):,}"
            for key in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
            if isinstance(getattr(config, key, None), int)
        )
        raise MemoryError(f"{name}: a model of {told} does not fit into memory ({error}).") from error


def differ(source: Any, a: str, b: str) -> bool:
    """Whether two tensors of a file hold other values."""
    if source.info(a).shape != source.info(b).shape:
        return True
    # Most that differ do so from the start.
    parts = (slice(0, 8), slice(None)) if source.info(a).shape else (...,)
    return any(not votive.equal(source.slice(a, part), source.slice(b, part)) for part in parts)


def _stored_dtype(source: Any) -> Any:
    """The type of the first weights in a file that are no whole numbers."""
    found = (source.info(name).dtype for name in source.names())
    return next((dtype for dtype in found if dtype.is_floating_point), None)


def load_asked(
    kind: Any, op: str, name: Any, config: Any, options: dict[str, Any]
) -> Any:  # `kind` is a model's class or an Auto class
    """What `from_pretrained` does for all classes."""
    from .adapters import base_of, is_adapter, load_adapter
    from .arguments import asked, changed

    op = f"{op}.from_pretrained"
    ask = asked(op, options)
    folder = Path(name).expanduser()
    if is_adapter(folder):
        base = base_of(folder)
        if base is not None and Path(base).expanduser().exists():
            rest = {**options, "output_loading_info": False}
            model = load_asked(kind, op.partition(".")[0], base, config, rest)
            load_adapter(model, folder)
            return (model, _told(model)) if ask.output_loading_info else model
    found = Checkpoint.find(name, **ask.places).chosen(ask.variant, ask.use_safetensors)
    config = kind._config_for(found.config) if config is None else config
    config = changed(op, config, ask.changes)
    model = kind._class_for(config.model_type, config.architectures).from_checkpoint(
        found,
        dtype=ask.dtype,
        device=ask.device,
        config=config,
        strict=ask.strict,
        ignore_mismatched_sizes=ask.ignore_mismatched_sizes,
    )
    return (model, _told(model)) if ask.output_loading_info else model


def _told(model: Any) -> dict[str, Any]:
    """What did not fit while loading, in the words of transformers."""
    report = model.__dict__["_report"]
    return {
        "missing_keys": set(report.missing),
        "unexpected_keys": set(report.unused),
        "mismatched_keys": set(report.mismatched),
        "error_msgs": [],
    }


def _load(model: Any, source: Any, dtype: Any, device: Any, strict: bool, other_sizes: bool) -> Any:
    from ..io import load_into

    report = load_into(model, source, strict=False, dtype=dtype, device=device)
    if (report.mismatched and not other_sizes) or (strict and report.missing):
        hint = (
            "\nWith ignore_mismatched_sizes=True those of another shape keep their start values."
            if report.mismatched and not report.missing
            else ""
        )
        raise ValueError(f"{type(model).__name__}: the weights do not fit.\n{report}{hint}")
    model.__dict__["_report"] = report
    if report.missing or report.unused or report.mismatched:
        warnings.warn(f"{type(model).__name__}: {report}", stacklevel=4)
    if dtype is not None or device is not None:
        model.to(device=device, dtype=dtype)
    return report


class CausalLM(PreTrainedModel):
    """A model that predicts the next token; `generate` writes with it.

    >>> issubclass(votive.models.LlamaForCausalLM, votive.models.CausalLM)
    True
    """

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Continue texts; see votive.generation.generate."""
        from ..generation import generate

        return generate(self, *args, **kwargs)

    def fused_decoder(self) -> FusedDecoder | None:
        """The step of one token by fused operators, or None where only the modules know it."""
        return None
