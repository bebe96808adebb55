"""The files of llama2.c: a Llama without names, its parts one after the other.

Layouts: https://github.com/karpathy/llama2.c, export.py (versions 0, 1 and 2) and tokenizer.py.
Tensors get their Hugging Face names and row order, and `config` says what model they make; nothing
here knows how it computes.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..io.mapped import Index
from ..serialization.atomic import replacing
from ..serialization.container import FileFormatError, raw_bytes
from ..surface.interchange import _own
from ..tensor import Tensor
from .mapped import MappedFile, little
from .rotary import halves, neighbours
from .source import MemorySource, TableSource, TensorInfo, WeightSource

__all__ = ["Llama2cFile", "open", "tokenizer", "write"]

_MAGIC = 0x616B3432  # "ak42"
_HEADER = 256
_EPS, _THETA = 1e-5, 10000.0  # what the format's own program has built in
_LAYER = {
    "rms_att": "input_layernorm",
    "wq": "self_attn.q_proj",
    "wk": "self_attn.k_proj",
    "wv": "self_attn.v_proj",
    "wo": "self_attn.o_proj",
    "rms_ffn": "post_attention_layernorm",
    "w1": "mlp.gate_proj",
    "w2": "mlp.down_proj",
    "w3": "mlp.up_proj",
}
_WHOLE = {"tokens": "model.embed_tokens.weight", "rms": "model.norm.weight", "classifier": "lm_head.weight"}
# The order of the parts in each version; the tables of version 0 are never read.
_ORDER = {
    0: ["tokens", "rms_att", "wq", "wk", "wv", "wo", "rms_ffn", "w1", "w2", "w3", "rms", "cos", "sin", "classifier"],
    1: ["rms_att", "rms_ffn", "rms", "tokens", "wq", "wk", "wv", "wo", "w1", "w2", "w3", "classifier"],
}
_ORDER[2] = _ORDER[1]


@dataclass(frozen=True)
class _Sizes:
    dim: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    length: int
    shared: bool
    group: int = 0  # of numbers with one scale, in version 2

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads

    def shape(self, part: str) -> tuple[int, ...]:
        d, kv = self.dim, self.kv_heads * self.head_dim
        return {
            "tokens": (self.vocab, d),
            "classifier": (self.vocab, d),
            "rms": (d,),
            "rms_att": (d,),
            "rms_ffn": (d,),
            "wq": (d, d),
            "wk": (kv, d),
            "wv": (kv, d),
            "wo": (d, d),
            "w1": (self.hidden, d),
            "w2": (d, self.hidden),
            "w3": (self.hidden, d),
            "cos": (self.length, self.head_dim // 2),
            "sin": (self.length, self.head_dim // 2),
        }[part]

    def nbytes(self, part: str) -> int:
        """Of one layer's part."""
        count = math.prod(self.shape(part))
        if not self.group or part.startswith("rms"):
            return 4 * count
        return count + 4 * (count // self.group)


@dataclass(frozen=True)
class _Entry:
    part: str
    begin: int


class Llama2cFile(TableSource[_Entry]):
    """A llama2.c checkpoint of version 0, 1 or 2 (with int8 weights) as a source of weights.

    Names and row order are those of Hugging Face's Llama; `config` is its config.json.

    >>> import tempfile
    >>> config = {"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 0, "vocab_size": 3,
    ...     "num_attention_heads": 1, "max_position_embeddings": 2, "tie_word_embeddings": True}
    >>> w = {"model.embed_tokens.weight": votive.ones(3, 4), "model.norm.weight": votive.ones(4)}
    >>> path = tempfile.mkdtemp() + "/model.bin"
    >>> votive.io.llama2c.write(path, w, config)
    >>> file = votive.io.llama2c.open(path)
    >>> file.names(), file.config["hidden_size"]
    (['model.embed_tokens.weight', 'model.norm.weight'], 4)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.mapped = MappedFile(path)
        self.path = self.mapped.path
        head = bytes(self.mapped.peek(0, min(_HEADER, self.mapped.size)))
        self.version, self.sizes, start = _header(head, self.path.name)
        self.entries = self._find(start)
        self.metadata = {"format": f"llama2.c version {self.version}"}

    def _find(self, begin: int) -> dict[str, _Entry]:
        s, order = self.sizes, _ORDER[self.version]
        wanted = [part for part in order if part != "classifier" or not s.shared]
        counts = {part: s.layers if part in _LAYER else 1 for part in wanted}
        end = begin + sum(s.nbytes(part) * count for part, count in counts.items())
        # Before a name is made for each layer: a file that is large enough may have many.
        if end != self.mapped.size:
            raise FileFormatError(
                f"{self.path.name}: its llama2.c header describes {end:,} bytes and the file has "
                f"{self.mapped.size:,}; it is cut off, damaged or something else."
            )
        found: dict[str, _Entry] = {}
        for part in wanted:
            for layer in range(counts[part]):
                if part not in ("cos", "sin"):
                    found[_name(part, layer)] = _Entry(part, begin)
                begin += s.nbytes(part)
        return found

    @property
    def config(self) -> dict[str, Any]:
        """The content of a Hugging Face config.json for this model."""
        s = self.sizes
        return {
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": s.vocab,
            "hidden_size": s.dim,
            "intermediate_size": s.hidden,
            "num_hidden_layers": s.layers,
            "num_attention_heads": s.heads,
            "num_key_value_heads": s.kv_heads,
            "head_dim": s.head_dim,
            "max_position_embeddings": s.length,
            "hidden_act": "silu",
            "rms_norm_eps": _EPS,
            "rope_theta": _THETA,
            "tie_word_embeddings": s.shared,
            # The texts it was trained on are divided by the first one; its program stops there.
            "bos_token_id": 1,
            "eos_token_id": [1, 2],
        }

    def info(self, name: str) -> TensorInfo:
        part = self._entry(name).part
        stored = "F32" if self._plain(part) else f"I8 in groups of {self.sizes.group}"
        shape, nbytes = self.sizes.shape(part), self.sizes.nbytes(part)
        return TensorInfo(name, dt.float32, shape, stored, nbytes, self.path)

    def _plain(self, part: str) -> bool:
        return not self.sizes.group or part.startswith("rms")

    def _read(self, name: str) -> Tensor:
        e, s = self._entry(name), self.sizes
        if self._plain(e.part):
            t = self.mapped.tensor(e.begin, dt.float32, s.shape(e.part))
        else:
            t = self._decoded(e)
        heads = {"wq": s.heads, "wk": s.kv_heads}.get(e.part)
        return t if heads is None else halves(t, heads)

    def _read_part(self, name: str, index: Index) -> Tensor:
        e = self._entry(name)
        if not self._plain(e.part) or e.part in ("wq", "wk"):
            return super()._read_part(name, index)
        return self.mapped.part(e.begin, dt.float32, self.sizes.shape(e.part), index)

    def _decoded(self, e: _Entry) -> Tensor:
        shape, group = self.sizes.shape(e.part), self.sizes.group
        count = math.prod(shape)
        raw = self.mapped.peek(e.begin, self.sizes.nbytes(e.part))
        scales = little(raw[count:], dt.float32, (count // group, 1))
        codes = raw[:count].view(np.int8).reshape(-1, group)
        with np.errstate(over="ignore", invalid="ignore"):  # damaged scales
            return _own((codes * scales).reshape(shape), "cpu")

    def close(self) -> None:
        self.mapped.close()


def open(path: str | os.PathLike[str]) -> Llama2cFile:
    """Open a llama2.c checkpoint.

    >>> votive.io.llama2c.open("missing.bin")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'missing.bin'
    """
    return Llama2cFile(path)


def _name(part: str, layer: int) -> str:
    return _WHOLE.get(part) or f"model.layers.{layer}.{_LAYER[part]}.weight"


def _header(head: bytes, name: str) -> tuple[int, _Sizes, int]:
    """Version, sizes and where the weights begin."""
    marked = head[:4] == _MAGIC.to_bytes(4, "little")
    if len(head) < (_HEADER if marked else 28):
        raise FileFormatError(f"{name}: {len(head)} bytes are too few for a llama2.c header.")
    version, shared, group = 0, True, 0
    if marked:
        (version,) = struct.unpack_from("<i", head, 4)
        if version not in (1, 2):
            raise FileFormatError(f"{name}: llama2.c has no version {version}; 0, 1 and 2 are read.")
        numbers = struct.unpack_from("<7i", head, 8)
        shared = head[36] != 0
        group = struct.unpack_from("<i", head, 37)[0] if version == 2 else 0
    else:
        numbers = struct.unpack_from("<7i", head)
        # A negative vocabulary says that the classifier is not the embedding.
        shared = numbers[5] > 0
        numbers = (*numbers[:5], abs(numbers[5]), numbers[6])
    dim, hidden, layers, heads, kv_heads, vocab, length = numbers
    good = min(dim, hidden, heads, kv_heads, vocab, length) > 0 and layers >= 0
    if not good or dim % heads or heads % kv_heads or (dim // heads) % 2:
        raise FileFormatError(f"{name}: no Llama has the sizes {numbers} of its llama2.c header.")
    if version == 2 and (group < 1 or dim % group or hidden % group):
        raise FileFormatError(f"{name}: rows of {dim} and {hidden} make no groups of {group}.")
    sizes = _Sizes(dim, hidden, layers, heads, kv_heads, vocab, length, shared, group)
    return version, sizes, _HEADER if marked else 28


def write(path: str | os.PathLike[str], source: WeightSource | Mapping[str, Tensor], config: Any) -> None:
    """Write a Llama with Hugging Face names as a llama2.c file of version 0.

    The format has no room for biases, stretched or other rotary frequencies, or another epsilon
    of the norms; such models are refused.

    >>> votive.io.llama2c.write("model.bin", {}, {"model_type": "gpt2"})
    Traceback (most recent call last):
    ...
    ValueError: llama2c.write: model_type is 'gpt2'; the format needs 'llama'.
    """
    sizes = _sizes(config if isinstance(config, Mapping) else config.to_dict())
    if not isinstance(source, WeightSource):
        source = MemorySource(source)
    order = [part for part in _ORDER[0] if part != "classifier" or not sizes.shared]
    _check(source, sizes, order)
    vocab = sizes.vocab if sizes.shared else -sizes.vocab
    with replacing(path) as f:
        numbers = (sizes.dim, sizes.hidden, sizes.layers, sizes.heads, sizes.kv_heads, vocab)
        f.write(struct.pack("<7i", *numbers, sizes.length))
        for part in order:
            for layer in range(sizes.layers if part in _LAYER else 1):
                f.write(raw_bytes(_part(source, sizes, part, layer)))


def _part(source: WeightSource, sizes: _Sizes, part: str, layer: int) -> np.ndarray:
    if part in ("cos", "sin"):
        steps = np.arange(0, sizes.head_dim, 2, dtype=np.float32) / np.float32(sizes.head_dim)
        frequency = (1.0 / _THETA**steps).astype(np.float32)
        angles = np.outer(np.arange(sizes.length, dtype=np.float32), frequency)
        return (np.cos if part == "cos" else np.sin)(angles)
    t = source.tensor(_name(part, layer), dtype=dt.float32, device="cpu")
    heads = {"wq": sizes.heads, "wk": sizes.kv_heads}.get(part)
    return (t if heads is None else neighbours(t, heads)).detach().numpy()


def _sizes(config: Mapping[str, Any]) -> _Sizes:
    heads = config.get("num_attention_heads")
    needed = {
        "model_type": "llama",
        "hidden_act": "silu",
        "rope_theta": _THETA,
        "rms_norm_eps": _EPS,
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "sliding_window": None,
    }
    if heads:
        needed["head_dim"] = config.get("hidden_size", 0) // heads
    given = {**config, **{k: v for k, v in _rope(config).items() if v is not None}}
    for key, value in needed.items():
        got = given.get(key)
        if got is not None and got != value and not _close(got, value):
            raise ValueError(f"llama2c.write: {key} is {got!r}; the format needs {value!r}.")
    names = (
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "max_position_embeddings",
    )
    missing = [n for n in names if not isinstance(config.get(n), int)]
    if missing:
        raise ValueError(f"llama2c.write: the configuration lacks {', '.join(missing)}.")
    dim, hidden, layers, heads, vocab, length = (config[n] for n in names)
    kv_heads = config.get("num_key_value_heads") or heads
    shared = bool(config.get("tie_word_embeddings", False))
    return _Sizes(dim, hidden, layers, heads, kv_heads, vocab, length, shared)


def _rope(config: Mapping[str, Any]) -> dict[str, Any]:
    """Frequencies in the newer spelling, `rope_parameters`, in the older one."""
    rope = dict(config.get("rope_parameters") or {})
    theta = rope.pop("rope_theta", None)
    kind = rope.get("rope_type", "default")
    return {"rope_theta": theta, "rope_scaling": None if kind == "default" else rope}


def _close(a: object, b: object) -> bool:
    return isinstance(a, (int, float)) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-6)


def _check(source: WeightSource, sizes: _Sizes, order: list[str]) -> None:
    """All names and shapes, before anything is written."""
    known = set(source.names())
    wanted = {
        _name(part, layer): sizes.shape(part)
        for part in order
        if part not in ("cos", "sin")
        for layer in range(sizes.layers if part in _LAYER else 1)
    }
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ValueError(f"llama2c.write: {len(missing)} tensors are missing: {missing[:5]}.")
    for name, shape in wanted.items():
        if tuple(source.info(name).shape) != shape:
            raise ValueError(
                f"llama2c.write: {name} has shape {tuple(source.info(name).shape)}; the configuration asks for {shape}."
            )
    # A tied classifier may be listed under both of its names.
    spare = sorted(known - set(wanted) - {"lm_head.weight"})
    spare = [name for name in spare if not name.endswith("rotary_emb.inv_freq")]
    if spare:
        raise ValueError(f"llama2c.write: the format has no place for {spare[:5]}.")


def tokenizer(path: str | os.PathLike[str]) -> tuple[list[bytes], list[float]]:
    """The pieces of text and their scores in a llama2.c tokenizer file, in the order of their ids.

    >>> import tempfile, struct, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "tok.bin")
    >>> _ = path.write_bytes(struct.pack("<i", 2) + struct.pack("<fi", -1.5, 2) + b"ab")
    >>> votive.io.llama2c.tokenizer(path)
    ([b'ab'], [-1.5])
    """
    raw = Path(path).read_bytes()
    name, entry = Path(path).name, struct.Struct("<fi")
    pieces: list[bytes] = []
    scores: list[float] = []
    if len(raw) < 4:
        raise FileFormatError(f"{name}: {len(raw)} bytes are not a llama2.c tokenizer.")
    (longest,) = struct.unpack_from("<i", raw)
    at = 4
    while at < len(raw):
        if at + entry.size > len(raw):
            raise FileFormatError(f"{name}: piece {len(pieces)} is cut off.")
        score, length = entry.unpack_from(raw, at)
        at += entry.size
        if not 0 <= length <= min(longest, len(raw) - at):
            raise FileFormatError(
                f"{name}: piece {len(pieces)} should have {length} bytes; {len(raw) - at} are left "
                f"and the longest has {longest}. The file is cut off, or is not a llama2.c tokenizer."
            )
        pieces.append(raw[at : at + length])
        scores.append(score)
        at += length
    return pieces, scores
