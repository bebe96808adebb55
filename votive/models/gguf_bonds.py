"""Rows of products that GGUF files keep in another order than checkpoints, or apart, or together.

Each function gives bonds: how the tensors of one side are made of those of the other. Knows no kind of model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import votive

from ..tensor import Tensor
from .gguf_family import Bond

_ENDS = ("weight", "bias")


def _apart(t: Tensor, heads: int) -> Tensor:
    """Queries, keys and values of each head in turn become all queries, all keys, all values."""
    return t.reshape(heads, 3, -1, *t.shape[1:]).transpose(0, 1).reshape(t.shape)


def _in_turn(t: Tensor, heads: int) -> Tensor:
    return t.reshape(3, heads, -1, *t.shape[1:]).transpose(0, 1).reshape(t.shape)


def by_head(name: str, heads: int) -> list[Bond]:
    """One product that has a query, a key and a value for each head in turn.

    >>> from votive.models.gguf_bonds import by_head
    >>> weight, _ = by_head("query_key_value", 2)
    >>> weight.stored["attn_qkv.weight"](votive.arange(6).view(6, 1)).flatten().tolist()
    [0, 3, 1, 4, 2, 5]
    """
    return [
        Bond(
            stored={f"attn_qkv.{end}": partial(_apart, heads=heads)},
            named={f"{name}.{end}": partial(_in_turn, heads=heads)},
            rows=True,
            optional=end == "bias",
        )
        for end in _ENDS
    ]


def _groups_apart(t: Tensor, heads: int, shared: int) -> Tensor:
    """For each key head its queries, its key and its value become all queries, all keys, all values."""
    rows = t.reshape(shared, heads // shared + 2, -1, *t.shape[1:])
    parts = (rows[:, :-2], rows[:, -2:-1], rows[:, -1:])
    return votive.cat([part.flatten(0, 2) for part in parts])


def _groups(t: Tensor, heads: int, shared: int) -> Tensor:
    size, rest = t.shape[0] // (heads + 2 * shared), t.shape[1:]
    first, second = heads * size, (heads + shared) * size
    ranges = (t[:first], t[first:second], t[second:])
    return votive.cat([part.reshape(shared, -1, size, *rest) for part in ranges], 1).reshape(t.shape)


def by_key_head(name: str, heads: int, shared: int) -> list[Bond]:
    """One product that has for each key head its queries, its key and its value.

    >>> from votive.models.gguf_bonds import by_key_head
    >>> weight, _ = by_key_head("query_key_value", 4, 2)
    >>> weight.stored["attn_qkv.weight"](votive.arange(8).view(8, 1)).flatten().tolist()
    [0, 1, 4, 5, 2, 6, 3, 7]
    """
    return [
        Bond(
            stored={f"attn_qkv.{end}": partial(_groups_apart, heads=heads, shared=shared)},
            named={f"{name}.{end}": partial(_groups, heads=heads, shared=shared)},
            rows=True,
            optional=end == "bias",
        )
        for end in _ENDS
    ]


def _taken(t: Tensor, start: int, stop: int | None) -> Tensor:
    return t[start:stop]


def _together(*parts: Tensor) -> Tensor:
    return votive.cat(list(parts))


def one_product(config: Mapping[str, Any]) -> list[Bond]:
    """Files that have one product for queries, keys and values where checkpoints have three; only read.

    >>> from votive.models.gguf_bonds import one_product
    >>> config = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4}
    >>> one_product(config)[0].named["self_attn.k_proj.weight"](votive.arange(16)).tolist()
    [8, 9, 10, 11]
    """
    size = config["head_dim"]
    first = config["num_attention_heads"] * size
    second = first + config["num_key_value_heads"] * size
    ranges = {"q": (0, first), "k": (first, second), "v": (second, None)}
    return [
        Bond(
            stored={f"attn_qkv.{end}": _together},
            named={f"self_attn.{n}_proj.{end}": partial(_taken, start=a, stop=b) for n, (a, b) in ranges.items()},
            rows=True,
            written=False,
        )
        for end in _ENDS
    ]


def joined_product(config: Mapping[str, Any]) -> list[Bond]:
    """Files that have one product where checkpoints have three, or one of another name.

    >>> from votive.models.gguf_bonds import joined_product
    >>> [list(bond.named) for bond in joined_product({"hidden_size": 4, "num_attention_heads": 2})][1]
    ['attn.Wqkv.weight']
    """
    size = config["hidden_size"] // config["num_attention_heads"]
    even = {"num_key_value_heads": config["num_attention_heads"], "head_dim": size}
    three = one_product({**config, **even})[0]
    whole = Bond(stored={"attn_qkv.weight": _only}, named={"attn.Wqkv.weight": _only}, rows=True, optional=True)
    return [replace(three, written=True, optional=True), whole]


def _only(t: Tensor) -> Tensor:
    return t


def _row(t: Tensor, index: int) -> Tensor:
    return t[index]


def _stacked(*parts: Tensor) -> Tensor:
    return votive.stack(list(parts))


def listed_norms(config: Mapping[str, Any]) -> list[Bond]:
    """Norms of heads that checkpoints have one by one, files in one tensor.

    >>> from votive.models.gguf_bonds import listed_norms
    >>> list(listed_norms({"num_attention_heads": 2, "num_key_value_heads": 1})[1].named)
    ['self_attn.k_layernorm.norms.0.weight']
    """
    counts = {"q": config["num_attention_heads"], "k": config["num_key_value_heads"]}
    return [
        Bond(
            stored={f"attn_{n}_norm.weight": _stacked},
            named={f"self_attn.{n}_layernorm.norms.{i}.weight": partial(_row, index=i) for i in range(count)},
            optional=True,
        )
        for n, count in counts.items()
    ]


def halves_together(name: str, first: str, second: str, optional: bool = True) -> Bond:
    """One product of which files have both halves of the rows apart.

    >>> from votive.models.gguf_bonds import halves_together
    >>> bond = halves_together("shared_mlp.input_linear", "ffn_gate", "ffn_up")
    >>> bond.stored["ffn_up.weight"](votive.arange(4)).tolist()
    [2, 3]
    """
    return Bond(
        stored={f"{first}.weight": partial(_half, which=0), f"{second}.weight": partial(_half, which=1)},
        named={f"{name}.weight": _together},
        rows=True,
        optional=optional,
    )


def _half(t: Tensor, which: int) -> Tensor:
    half = t.shape[0] // 2
    return t[which * half : (which + 1) * half]


def _latent_keys(t: Tensor, heads: int, keys: int) -> Tensor:
    return t.reshape(heads, -1, t.shape[-1])[:, :keys].transpose(1, 2)


def _latent_values(t: Tensor, heads: int, keys: int) -> Tensor:
    return t.reshape(heads, -1, t.shape[-1])[:, keys:]


def _latent(keys: Tensor, values: Tensor) -> Tensor:
    return votive.cat([keys.transpose(1, 2), values], 1).flatten(0, 1)


def latent_heads(config: Mapping[str, Any]) -> list[Bond]:
    """The product that makes keys and values of what is kept: files have both apart by heads, the keys' transposed.

    >>> from votive.models.gguf_bonds import latent_heads
    >>> made = latent_heads({"num_attention_heads": 2, "qk_nope_head_dim": 3})[0].stored
    >>> [change(votive.ones(10, 4)).shape for change in made.values()]
    [votive.Size([2, 4, 3]), votive.Size([2, 2, 4])]
    """
    shape = {"heads": config["num_attention_heads"], "keys": config["qk_nope_head_dim"]}
    return [
        Bond(
            stored={
                "attn_k_b.weight": partial(_latent_keys, **shape),
                "attn_v_b.weight": partial(_latent_values, **shape),
            },
            named={"self_attn.kv_b_proj.weight": _latent},
        )
    ]


def _delta_parts(t: Tensor, heads: int, keys: int) -> tuple[Tensor, ...]:
    rows = t.reshape(heads, -1, *t.shape[1:])
    values = (rows.shape[1] - 2 * keys) // 2
    second = 2 * keys + values
    return tuple(
        part.flatten(0, 1)
        for part in (rows[:, :keys], rows[:, keys : 2 * keys], rows[:, 2 * keys : second], rows[:, second:])
    )


def _delta_inputs(t: Tensor, heads: int, keys: int) -> Tensor:
    return votive.cat(list(_delta_parts(t, heads, keys)[:3]))


def _delta_gates(t: Tensor, heads: int, keys: int) -> Tensor:
    return _delta_parts(t, heads, keys)[3]


def _delta_product(inputs: Tensor, gates: Tensor, heads: int, keys: int) -> Tensor:
    first = heads * keys
    parts = (inputs[:first], inputs[first : 2 * first], inputs[2 * first :], gates)
    return votive.cat([part.reshape(heads, -1, *part.shape[1:]) for part in parts], 1).flatten(0, 1)


def delta_rule(config: Mapping[str, Any]) -> list[Bond]:
    """The product of a gated delta rule: for each key head a query, a key, values and gates, or all of each kind.

    >>> from votive.models.gguf_bonds import delta_rule
    >>> bond = delta_rule({"linear_num_key_heads": 2, "linear_key_head_dim": 1})[0]
    >>> bond.stored["attn_qkv.weight"](votive.arange(8).view(8, 1)).flatten().tolist()
    [0, 4, 1, 5, 2, 6]
    """
    shape = {"heads": config["linear_num_key_heads"], "keys": config["linear_key_head_dim"]}
    return [
        Bond(
            stored={
                "attn_qkv.weight": partial(_delta_inputs, **shape),
                "attn_gate.weight": partial(_delta_gates, **shape),
            },
            named={"linear_attn.in_proj_qkvz.weight": partial(_delta_product, **shape)},
            rows=True,
            optional=True,
        )
    ]


def _scaled(t: Tensor, by: float | list[float]) -> Tensor:
    factors = votive.tensor(by, dtype=votive.float32, device=t.device)
    return (t.float() * (factors.unsqueeze(1) if factors.dim() else factors)).to(t.dtype)


def _same(t: Tensor) -> Tensor:
    return t


def scaled(stored: str, named: str, by: float | list[float], *, whole: bool = False, optional: bool = False) -> Bond:
    """A product that files have multiplied by a number, or its rows by one each; what is read stays as it is.

    >>> from votive.models.gguf_bonds import scaled
    >>> scaled("ffn_down", "mlp.down_proj", [1.0, 2.0]).stored["ffn_down.weight"](votive.ones(2, 2)).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    return Bond(
        stored={f"{stored}.weight": partial(_scaled, by=by)},
        named={f"{named}.weight": _same},
        rows=True,
        whole=whole,
        optional=optional,
    )
