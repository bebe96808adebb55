"""Which block type each tensor of a GGUF model gets. Knows names of tensors, reads none.

Vectors and routers stay F32: they are small and every error in them is felt everywhere. The
mixtures (`Q4_K_M` …) give more bits to what suffers most, in the manner of llama.cpp's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..io.gguf import TYPES, tensor_type
from ..io.gguf.types import SMALLER
from .gguf_mixtures import IQ_MIXTURES, Model, chosen

Choice = Callable[[str, tuple[int, ...], Any], str | None]

# llama.cpp's numbers for how a file is quantized (general.file_type).
FILE_TYPES = {
    "F32": 0,
    "F16": 1,
    "Q4_0": 2,
    "Q4_1": 3,
    "Q8_0": 7,
    "Q5_0": 8,
    "Q5_1": 9,
    "Q2_K": 10,
    "Q3_K_S": 11,
    "Q3_K_M": 12,
    "Q4_K_S": 14,
    "Q4_K_M": 15,
    "Q5_K_S": 16,
    "Q5_K_M": 17,
    "Q6_K": 18,
    "IQ2_XXS": 19,
    "IQ2_XS": 20,
    "IQ3_XS": 22,
    "IQ3_XXS": 23,
    "IQ1_S": 24,
    "IQ4_NL": 25,
    "IQ3_S": 26,
    "IQ3_M": 27,
    "IQ2_S": 28,
    "IQ2_M": 29,
    "IQ4_XS": 30,
    "IQ1_M": 31,
    "BF16": 32,
    "TQ1_0": 36,
    "TQ2_0": 37,
    "MXFP4": 38,
    "NVFP4": 39,
    "Q1_0": 40,
    "Q2_0": 41,
}
# Base type, and what the values and the last matrix of the MLP have in every, or in some, layers.
_MIXTURES = {
    "Q3_K_S": ("Q3_K", "", ""),
    "Q3_K_M": ("Q3_K", "Q5_K", "Q4_K"),
    "Q4_K_S": ("Q4_K", "", ""),
    "Q4_K_M": ("Q4_K", "", "Q6_K"),
    "Q5_K_S": ("Q5_K", "", ""),
    "Q5_K_M": ("Q5_K", "", "Q6_K"),
}
_PRECISE = re.compile(
    r"(ssm_a|ssm_d|ssm_conv1d|ssm_norm|shortconv\.conv|ffn_gate_inp|ffn_gate_inp_shexp|rope_freqs|rope_factors_long|"
    r"rope_factors_short|token_types|position_embd|attn_q_norm|attn_k_norm|attn_rel_b|bias)\b"
)
_WIDENED = re.compile(r"blk\.(\d+)\.(attn_v|ffn_down|ffn_down_exps)\.weight")


def mixture(
    kind: str | None, metadata: Mapping[str, Any], names: Any, *, weighed: bool = False, plain: bool = False
) -> tuple[Choice, dict[str, Any]]:
    """A function for `write(types=...)`, and the metadata that tells how a file is quantized.

    `kind` is a type of tensor, a mixture (Q3_K_S, Q3_K_M, Q4_K_S, Q4_K_M, Q5_K_S, Q5_K_M, or one of the
    IQ kinds), or None for the types as they are, but for vectors. The IQ kinds' names are those of
    files: IQ2_S is a mixture that is mostly of the type IQ2_XS. With `plain` they name the type of all.
    `metadata` and `names` are the file's; `weighed` tells that there is an importance matrix, with which
    llama.cpp gives some tensors fewer bits.

    >>> from votive.models.gguf_types import mixture
    >>> head = {"general.architecture": "llama", "llama.block_count": 8}
    >>> choose, written = mixture("Q4_K_M", head, ["token_embd.weight"])
    >>> [choose(n, (512, 512), votive.float32) for n in
    ...     ("blk.0.attn_v.weight", "blk.3.attn_v.weight", "blk.3.attn_q.weight")]
    ['Q6_K', 'Q6_K', 'Q4_K']
    >>> written
    {'general.quantization_version': 2, 'general.file_type': 15}
    """
    if kind is None:
        return _unchanged, {}
    kind = kind.upper()
    if kind not in _MIXTURES and kind not in IQ_MIXTURES and kind not in TYPES:
        known = ", ".join(dict.fromkeys([*_MIXTURES, *IQ_MIXTURES, *TYPES]))
        raise ValueError(f"there is no quantization {kind!r}; known: {known}.")
    mixed = kind in IQ_MIXTURES and not plain
    model = Model.of(metadata, weighed)
    base, every, some = _MIXTURES.get(kind, (kind, "", ""))
    layers = metadata.get(f"{metadata.get('general.architecture')}.block_count", 0)
    # With tied embeddings the table makes the logits too.
    head = "output.weight" if "output.weight" in set(names) else "token_embd.weight"

    def choose(name: str, shape: tuple[int, ...], dtype: Any) -> str | None:
        if not dtype.is_floating_point:
            return None
        if len(shape) < 2 or _PRECISE.search(name):
            return "F32"
        if mixed:
            return _fitting(chosen(kind, name, names, model), shape[-1])
        wanted = base
        layer = _WIDENED.fullmatch(name)
        if layer is not None and some and _needs_more(int(layer[1]), layers):
            wanted = some
        if layer is not None and every and int(layer[1]) < max(2, layers // 16):
            wanted = every
        if name == head and (kind in (*_MIXTURES, "Q2_K") or (kind in ("Q1_0", "Q2_0") and not plain)):
            wanted = "Q6_K"
        return _fitting(wanted, shape[-1])

    written: dict[str, Any] = {}
    if mixed or not tensor_type(base).plain:
        written["general.quantization_version"] = 2
    if kind in FILE_TYPES:
        written["general.file_type"] = FILE_TYPES[kind]
    return choose, written


def _unchanged(name: str, shape: tuple[int, ...], dtype: Any) -> str | None:
    """Programs that run GGUF files want vectors as F32, and have no kernels for F64."""
    if not dtype.is_floating_point:
        return None
    vector = len(shape) < 2 or _PRECISE.search(name) is not None
    return "F32" if vector or dtype.itemsize == 8 else None


def _needs_more(layer: int, layers: int) -> bool:
    """The first and last eighth of the layers, and every third between them."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def _fitting(wanted: str, row: int) -> str:
    """The type, or one of smaller blocks and no fewer bits, where rows do not fill its blocks."""
    while row % tensor_type(wanted).block:
        wanted = SMALLER.get(wanted, "F16")
    return wanted
