"""Which block format each weight of a module gets: recipes by llama.cpp's names, for modules of any names.

A recipe such as "q4_k_m" speaks of llama.cpp's tensors (`blk.3.ffn_down.weight`). The name of a module is read as one
of those by its last parts; whatever it does not resemble gets the recipe's plain format. Reads no weight.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

from ..core import dtype as dt
from ..core.blocks import FORMATS, block_dtype

# Asked with the name of a module and the (rows, columns) of its weight; None leaves the weight as it is.
Recipe = Callable[[str, tuple[int, int]], block_dtype | None]
Kind = str | block_dtype | Recipe

# The last part of a module's name, and what llama.cpp calls such a tensor. First match wins.
_ROLES: tuple[tuple[str, str], ...] = (
    (r"(attn|attention|self_attn)\.c_proj", "attn_output"),
    (r"(mlp|feed_forward|ffn)\.c_proj", "ffn_down"),
    (r"q_proj|query|wq|q_lin|to_q|attn_q", "attn_q"),
    (r"k_proj|key|wk|k_lin|to_k|attn_k", "attn_k"),
    (r"v_proj|value|wv|v_lin|to_v|attn_v", "attn_v"),
    (r"qkv|qkv_proj|c_attn|query_key_value|in_proj|attn_qkv", "attn_qkv"),
    (r"o_proj|out_proj|wo|out_lin|to_out|attn_output|attention\.output\.dense", "attn_output"),
    (r"gate_proj|w1|ffn_gate", "ffn_gate"),
    (r"up_proj|w3|fc1|lin1|linear1|c_fc|fc_in|ffn_up|gate_up_proj|intermediate\.dense", "ffn_up"),
    (r"down_proj|w2|fc2|lin2|linear2|fc_out|ffn_down|output\.dense", "ffn_down"),
    (r"lm_head|embed_out|output|head", "output"),
    (r"embed_tokens|wte|tok_embeddings|word_embeddings|token_embedding|token_embd|shared", "token_embd"),
)
_EXPERT = re.compile(r"\bexperts\.(\d+)\.")
_PATTERNS = tuple((re.compile(rf"(?:.*\.)?(?:{pattern})"), role) for pattern, role in _ROLES)


def gguf_name(module: str) -> str:
    """The tensor of llama.cpp's that the weight of a module most resembles.

    >>> from votive.quant.recipes import gguf_name
    >>> gguf_name("model.layers.3.mlp.down_proj"), gguf_name("lm_head"), gguf_name("net.0")
    ('blk.3.ffn_down.weight', 'output.weight', 'blk.0.other.weight')
    """
    role = next((role for pattern, role in _PATTERNS if pattern.fullmatch(module)), "other")
    if role in ("output", "token_embd"):
        return f"{role}.weight"
    number = next((part for part in module.split(".") if part.isdigit()), "0")
    return f"blk.{number}.{role}.weight"


def recipe(kind: Kind, modules: Iterable[str] | Mapping[str, tuple[int, int]], *, weighed: bool = False) -> Recipe:
    """The function that says which format a weight gets.

    `kind` is a format, its name, one of llama.cpp's mixtures, or such a function itself. The names of the IQ kinds mean
    files: "iq2_s" is a mixture of several formats as llama.cpp's is, `votive.iq2_s` that format for all. `modules` are
    the names of all modules with weights, perhaps with (rows, columns): mixtures depend on how many layers and experts
    there are, on how queries share keys, and whether the output has its own. `weighed` tells that there is an
    importance matrix, with which some mixtures give fewer bits.

    >>> from votive.quant.recipes import recipe
    >>> choose = recipe("q4_k_m", [f"layers.{i}.mlp.down_proj" for i in range(8)] + ["lm_head"])
    >>> choose("layers.0.mlp.down_proj", (64, 256)), choose("layers.1.mlp.down_proj", (64, 256))
    (votive.q6_k, votive.q4_k)
    >>> choose("layers.1.mlp.down_proj", (64, 96))
    votive.q5_0
    """
    plain = isinstance(kind, block_dtype)
    if isinstance(kind, block_dtype):
        kind = kind.name
    if not isinstance(kind, str):
        if not callable(kind):
            raise TypeError(f"quantize_: kind is a format, a name or a function, got {kind!r}.")
        return _checked(kind)
    shapes = dict(modules) if isinstance(modules, Mapping) else dict.fromkeys(modules, (1, 1))
    names = [gguf_name(m) for m in shapes]
    layers = {int(n.split(".")[1]) for n in names if n.startswith("blk.")}
    rows = {role: n for role in ("attn_q", "attn_v") for m, (n, _) in shapes.items() if f".{role}." in gguf_name(m)}
    head = {
        "general.architecture": "module",
        "module.block_count": max(layers, default=-1) + 1,
        "module.attention.head_count": rows.get("attn_q", 1),
        "module.attention.head_count_kv": rows.get("attn_v", 1),
        "module.expert_count": max((int(n[1]) + 1 for n in map(_EXPERT.search, shapes) if n), default=0),
    }
    # The mixtures stand with the files that name them, in a layer above this one.
    mixture = import_module("votive.models.gguf_types").mixture
    choose, _ = mixture(kind.upper(), head, names, weighed=weighed, plain=plain)

    # Routers beside experts stay numbers: every error in them is felt everywhere.
    routers = {
        f"{n.partition('experts.')[0]}{last}" for n in shapes if _EXPERT.search(n) for last in ("gate", "router")
    }

    def chosen(module: str, shape: tuple[int, int]) -> block_dtype | None:
        if module in routers:
            return None
        found = choose(gguf_name(module), shape, dt.float32)
        # Types without blocks (F16 where rows fill none) leave the numbers of a module as they are.
        return FORMATS.get(found.lower()) if found is not None else None

    return chosen


def _checked(given: Recipe) -> Recipe:
    def chosen(module: str, shape: tuple[int, int]) -> block_dtype | None:
        format = given(module, shape)
        if format is None:
            return None
        if not isinstance(format, block_dtype):
            raise TypeError(f"quantize_: a recipe gives block formats or None, got {format!r} for {module!r}.")
        format.row_bytes(shape[1])
        return format

    return chosen
