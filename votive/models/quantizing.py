"""What `quantization_config` of `from_pretrained` asks for, as a format of blocks. Knows settings, and no files.

bitsandbytes' four and eight bits have formats here; others are names of votive's, such as "q4_k_m".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from votive import nn

from ..core.blocks import FORMATS, block_dtype

if TYPE_CHECKING:
    from .pretrained import PreTrainedModel

# What bitsandbytes calls them, and formats of the same kind (values spaced as a normal law, or floats) in finer blocks.
_FOUR = {"nf4": "iq4_nl", "fp4": "mxfp4"}
_EIGHT = "q8_0"


@dataclass(frozen=True)
class Quantization:
    """A format, or a recipe by its name, and the modules that are left as they are.

    >>> from votive.models.quantizing import Quantization
    >>> Quantization("q8_0").skip
    ()
    """

    kind: str
    skip: tuple[str, ...] = ()
    products_only: bool = False  # as bitsandbytes does it: neither tables nor the last product


def quantization_of(op: str, config: Any, eight: bool | None, four: bool | None) -> Quantization | None:
    """What is asked for by `quantization_config`, `load_in_8bit` and `load_in_4bit`.

    >>> from votive.models.quantizing import quantization_of
    >>> quantization_of("from_pretrained", {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, None, None).kind
    'iq4_nl'
    """
    if config is None and not eight and not four:
        return None
    if config is not None and (eight or four):
        raise TypeError(f"{op}: pass quantization_config, or load_in_8bit or load_in_4bit, not both.")
    if isinstance(config, (str, block_dtype)):
        return Quantization(config if isinstance(config, str) else config.name)
    values: dict[str, Any] = {"load_in_8bit": eight, "load_in_4bit": four} if config is None else _values(config)
    skip = tuple(values.get("llm_int8_skip_modules") or ())
    if values.get("load_in_8bit"):
        return Quantization(_EIGHT, skip, products_only=True)
    if values.get("load_in_4bit"):
        kind = str(values.get("bnb_4bit_quant_type") or "fp4")
        if kind not in _FOUR:
            raise ValueError(f"{op}: bnb_4bit_quant_type={kind!r} is not known; there are {', '.join(_FOUR)}.")
        return Quantization(_FOUR[kind], skip, products_only=True)
    method = values.get("quant_method")
    raise ValueError(
        f"{op}: quantization_config={config!r:.200} is not supported. Load a folder that is quantized already"
        f"{f' by {method}' if method else ''} without it, or pass a format such as 'q8_0' or 'q4_k_m', or "
        "bitsandbytes' load_in_8bit or load_in_4bit."
    )


def _values(config: Any) -> dict[str, Any]:
    if isinstance(config, dict):
        return config
    told = config.to_dict() if hasattr(config, "to_dict") else vars(config)
    return dict(told)


def quantize(model: PreTrainedModel, asked: Quantization) -> None:
    """Put the weights of a model in the blocks that are asked for.

    >>> from votive.models.quantizing import Quantization, quantize
    >>> config = votive.models.LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=64,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> quantize(model, Quantization("q8_0", products_only=True))
    >>> model.model.layers[0].mlp.up_proj.weight.dtype, model.lm_head.weight.dtype
    (votive.q8_0, votive.float32)
    """
    from ..quant import quantize_

    if not asked.products_only:
        quantize_(model, asked.kind, skip=asked.skip)
        return
    format = FORMATS[asked.kind]
    products = {name for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    base = model.base_model_prefix
    # Heads stand beside the base; their scores are what rounding hurts most.
    heads = {name for name in products if hasattr(model, base) and not name.startswith(f"{base}.")}

    def choose(name: str, shape: tuple[int, int]) -> block_dtype | None:
        fits = name in products and name not in heads and shape[1] % format.block_size == 0
        return format if fits else None

    quantize_(model, choose, skip=asked.skip)
