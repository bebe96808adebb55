"""Which type each tensor of a file of the IQ kinds gets, as llama.cpp's names for such files mean it.

Knows what a tensor does in its layer, and a few numbers of the model; reads no tensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"blk\.(\d+)\.(.+)\.weight")
_DOWN = ("ffn_down", "ffn_down_exps")
_WIDE = ("ffn_gate", "ffn_up", "ffn_gate_exps", "ffn_up_exps")


@dataclass(frozen=True)
class Model:
    """What mixtures depend on: layers, query heads to a head of keys, experts, whether an importance matrix weighs."""

    layers: int
    queries: int = 1
    experts: int = 0
    weighed: bool = False

    @classmethod
    def of(cls, metadata: Mapping[str, Any], weighed: bool) -> Model:
        """From the metadata of a file; numbers that differ by layer count as the largest ratio."""
        name = metadata.get("general.architecture")

        def number(key: str) -> int:
            found = metadata.get(f"{name}.{key}", 0)
            each = [n for n in found if n] if isinstance(found, list) else [found]
            return int(min(each, default=0))

        queries = number("attention.head_count") // max(1, number("attention.head_count_kv"))
        return cls(number("block_count"), max(1, queries), number("expert_count"), weighed)


@dataclass(frozen=True)
class Mixture:
    """The type of most tensors, that of the output, and that of a table beside an output of its own."""

    base: str
    output: str = "Q6_K"
    table: str = ""
    finer: str = ""  # of the lowest types: what they give to values and to the first layers


IQ_MIXTURES = {
    "IQ1_S": Mixture("IQ1_S", "Q5_K", "Q2_K", "Q2_K"),
    "IQ1_M": Mixture("IQ1_M", "Q5_K", "Q2_K", "Q2_K"),
    "IQ2_XXS": Mixture("IQ2_XXS", "Q5_K", "Q2_K", "Q2_K"),
    "IQ2_XS": Mixture("IQ2_XS", "Q5_K", "Q2_K", "Q2_K"),
    "IQ2_S": Mixture("IQ2_XS", "Q5_K", "IQ3_S", "IQ3_S"),
    "IQ2_M": Mixture("IQ2_S", "Q5_K", "IQ3_S", "IQ3_S"),
    "IQ3_XXS": Mixture("IQ3_XXS", "Q5_K", "IQ3_S"),
    "IQ3_XS": Mixture("IQ3_S"),
    "IQ3_S": Mixture("IQ3_S"),
    "IQ3_M": Mixture("IQ3_S"),
    "IQ4_NL": Mixture("IQ4_NL"),
    "IQ4_XS": Mixture("IQ4_XS"),
}


def chosen(kind: str, name: str, names: Iterable[str], model: Model) -> str:
    """The type of a tensor in a mixture.

    >>> from votive.models.gguf_mixtures import Model, chosen
    >>> [chosen("IQ2_M", n, ["output.weight"], Model(8)) for n in
    ...     ("output.weight", "token_embd.weight", "blk.0.ffn_down.weight", "blk.1.ffn_down.weight")]
    ['Q5_K', 'IQ3_S', 'IQ3_S', 'IQ2_S']
    """
    mix = IQ_MIXTURES[kind]
    # With tied embeddings the table makes the logits too.
    if name == ("output.weight" if "output.weight" in set(names) else "token_embd.weight"):
        return mix.output
    if name == "token_embd.weight":
        return mix.table or mix.base
    found = _NAME.fullmatch(name)
    if found is None:
        return mix.base
    layer, role = int(found[1]), found[2]
    return (_lowest(kind, mix, role, layer, model) if mix.finer else _low(kind, role, layer, model)) or mix.base


def _lowest(kind: str, mix: Mixture, role: str, layer: int, model: Model) -> str | None:
    """Two bits and fewer."""
    if role == "attn_v":
        return "Q4_K" if model.queries >= 4 or model.experts >= 4 else mix.finer
    if role == "attn_k" and model.experts == 8:
        return "Q4_K"
    if role in _DOWN and layer < model.layers // 8:
        return mix.finer
    if role == "attn_output":
        if model.experts == 8:
            return "Q5_K"
        return "IQ2_XXS" if kind in ("IQ1_S", "IQ1_M") else "IQ3_S" if mix.finer == "IQ3_S" else None
    return None


def _low(kind: str, role: str, layer: int, model: Model) -> str | None:
    """Three and four bits."""
    eight, shared = model.experts == 8, model.queries >= 4
    if role in ("attn_v", "attn_k") and eight:
        return "Q8_0"
    if role == "attn_output" and eight:
        return "Q5_K"
    if kind == "IQ3_XXS":
        return _three_xxs(role, layer, model)
    if kind == "IQ3_XS":
        within = model.layers // 8 <= layer < 7 * model.layers // 8
        if role in ("attn_q", "attn_k") or (role in _WIDE and within):
            return "IQ3_XXS"
    if kind == "IQ3_M":
        if role in ("attn_v", "attn_output", "attn_qkv"):
            return "Q4_K"
        return "Q4_K" if role in _DOWN and (layer < model.layers // 8 or (eight and _more(layer, model))) else None
    if kind in ("IQ3_XS", "IQ3_S"):
        return "Q4_K" if role == "attn_v" and shared else None
    if kind in ("IQ4_NL", "IQ4_XS"):
        first = role in _DOWN and layer < model.layers // 8 and not model.weighed
        return "Q5_K" if first or (role == "attn_v" and shared) else None
    return None


def _three_xxs(role: str, layer: int, model: Model) -> str | None:
    if role == "attn_v":
        return "Q4_K" if model.queries >= 4 else None if model.weighed else "IQ3_S"
    if role in ("attn_q", "attn_k"):
        return "IQ2_S"
    if role in _DOWN and not model.weighed:
        return "Q4_K" if layer < model.layers // 8 else "Q3_K"
    return "IQ3_S" if role == "attn_output" else None


def _more(layer: int, model: Model) -> bool:
    eighth = model.layers // 8
    return layer < eighth or layer >= 7 * model.layers // 8 or (layer - eighth) % 3 == 2
