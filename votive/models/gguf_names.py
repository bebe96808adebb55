"""GGUF files as Hugging Face models and back: configuration, names, and tensors made to fit.

What llama.cpp stores differently (the order of query rows, norms with one added, stacked experts)
is turned into what the models here, and `transformers`, expect; `to_gguf` does the opposite.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import votive

from ..io import FileFormatError, WeightSource
from .gguf_config import config_of, llama3_factors, llama3_scaling, metadata_of, rope_values
from .gguf_encoders import BERT, zeros_of_segments
from .gguf_families import FAMILIES, by_metadata, by_model_type
from .gguf_family import Family
from .gguf_tensors import BLOCK, FACTORS, FREQUENCIES, fitted, incoming, outgoing, plain_names
from .refitted import Refitted
from .stacked import restacked

_ENCODER_BLOCK = re.compile(r"enc\.blk\.(\d+)\.")
_SIZES = ("block_count", "embedding_length")


def from_gguf(file: WeightSource) -> tuple[dict[str, Any], WeightSource]:
    """The configuration and the weights of a GGUF file, as a Hugging Face checkpoint has them.

    Tensors whose names are not known keep them, so that loading reports them.

    >>> import tempfile
    >>> from votive.models.gguf_names import from_gguf, to_gguf
    >>> config = votive.models.LlamaConfig(vocab_size=4, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=8)
    >>> path = tempfile.mkdtemp() + "/model.gguf"
    >>> metadata, tensors = to_gguf(config, votive.models.LlamaForCausalLM(config).state_dict())
    >>> votive.io.gguf.write(path, tensors, metadata)
    >>> config, source = from_gguf(votive.io.gguf.GGUFFile(path))
    >>> config["head_dim"], source.names()[:2]
    (4, ['model.embed_tokens.weight', 'model.layers.0.input_layernorm.weight'])
    """
    metadata = file.metadata
    family = by_metadata(metadata)
    known = set(file.names())
    shapes = lambda name: tuple(file.info(name).shape) if name in known else None
    _check(family, file)
    config = config_of(family, metadata, shapes)
    if FREQUENCIES in known:
        found = llama3_scaling(file.tensor(FREQUENCIES).numpy(), config)
        config["rope_scaling"] = found or config["rope_scaling"]
    if set(FACTORS.values()) <= known:
        factors = {k: file.tensor(n).tolist() for k, n in FACTORS.items()}
        config["rope_scaling"] = {"rope_type": "longrope", **factors}
    added = {}
    if family is BERT and "token_types.weight" not in known:
        added = zeros_of_segments(config)
    return config, Refitted(file, incoming(file, family, config), added)


def as_files(config: Mapping[str, Any], source: WeightSource) -> WeightSource:
    """What `from_gguf` gives as other programs expect it in files: some want the experts of a layer in one tensor.

    >>> from votive.models.gguf_names import as_files
    >>> source = votive.io.MemorySource({"a": votive.ones(1)})
    >>> as_files({"model_type": "llama"}, source) is source
    True
    """
    layout = by_model_type(config.get("model_type")).stacked
    return source if layout is None else restacked(source, layout)


def _check(family: Family, file: WeightSource) -> None:
    """The numbers agree with the tensors, so that nothing made from them is larger."""
    sizes = {key: file.metadata.get(f"{family.architecture}.{key}") for key in _SIZES}
    found = {int(m[1]) for m in map(BLOCK.fullmatch, file.names()) if m is not None}
    layers = sizes["block_count"]
    if family.table is not None:
        found = {int(m[1]) for m in map(_ENCODER_BLOCK.match, file.names()) if m is not None}
    if layers != len(found) or found != set(range(len(found))):
        raise FileFormatError(f"the GGUF file should have {layers} layers; there are tensors of {len(found)}.")
    if "token_embd.weight" not in file:
        raise FileFormatError("the GGUF file has no token_embd.weight; it holds no whole model.")
    shape = tuple(file.info("token_embd.weight").shape)
    if len(shape) != 2 or shape[1] != sizes["embedding_length"]:
        raise FileFormatError(
            f"the GGUF file says {sizes['embedding_length']} numbers per token, but token_embd.weight has the "
            f"shape {shape}."
        )


def to_gguf(
    config: Any,
    source: WeightSource | Mapping[str, Any],
    *,
    tokenizer: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], WeightSource]:
    """The metadata and the tensors of a GGUF file, for `votive.io.gguf.write`.

    `tokenizer` is the metadata of a tokenizer (keys `tokenizer.*`), `name` a title. Nothing is
    read before it is written. Types stay as they are; see `gguf_types.mixture` for quantized ones.

    >>> from votive.models.gguf_names import to_gguf
    >>> config = votive.models.LlamaConfig(vocab_size=4, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=8)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> metadata, tensors = to_gguf(config, model.state_dict())
    >>> metadata["llama.block_count"], tensors.info("blk.0.attn_q.weight").shape
    (1, (8, 8))
    """
    values = dict(config) if isinstance(config, Mapping) else config.to_dict()
    if not isinstance(source, WeightSource):
        source = votive.io.MemorySource(source)
    family = by_model_type(values.get("model_type"))
    values = _settled(family, values)
    if family.fits is not None:
        family = next(f for f in FAMILIES if f.model_type == family.model_type and f.fits and f.fits(values))
    family = fitted(family, values)
    metadata = metadata_of(family, values)
    if name is not None:
        metadata["general.name"] = name
    metadata |= tokenizer or {}
    source = plain_names(source, family)
    added = {}
    rope = rope_values(family, values)
    if (rope["rope_scaling"] or {}).get("rope_type") == "llama3":
        factors = llama3_factors(rope["rope_scaling"], {**values, **rope})
        added[FREQUENCIES] = votive.from_numpy(factors)
    if (rope["rope_scaling"] or {}).get("rope_type") == "longrope":
        for key, stored in FACTORS.items():
            added[stored] = votive.tensor(rope["rope_scaling"][key], dtype=votive.float32)
    parts = outgoing(source, family, values)
    rows = "token_embd.weight"
    key = f"{family.architecture}.vocab_size"
    if rows in parts:
        metadata[key] = int(source.info(parts[rows].names[0]).shape[0])
    return metadata, Refitted(source, parts, added)


def _settled(family: Family, values: dict[str, Any]) -> dict[str, Any]:
    """A configuration with what it leaves to its family's defaults, where files need that."""
    if not family.settled:
        return values
    from .auto import AutoConfig

    config = AutoConfig.from_dict(values)
    out: dict[str, Any] = config.to_dict()
    if family.partial:
        design = config.design
        for rope in design.ropes[:1]:
            turned = rope.features or int(design.head_dim * rope.part)
            out[family.partial] = turned / design.head_dim
    return out if family.prepared is None else family.prepared(out)
