"""How many floating-point operations an operator takes, from the shapes of its arguments. Knows no kernel.

A multiplication and an addition are two. Only what grows faster than its memory is counted: products of matrices,
convolutions, attention, and their gradients; as in torch, biases, norms and elementwise work count nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Formula = Callable[..., int]
FORMULAS: dict[str, Formula] = {}


def formula(name: str) -> Callable[[Formula], Formula]:
    """Let a function of (arguments, result) count the operator of this name."""

    def keep(fn: Formula) -> Formula:
        FORMULAS[name] = fn
        return fn

    return keep


def _size(x: Any) -> int:
    return math.prod(x.shape)


@formula("matmul")
def _matmul(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(out) * int(args[0].shape[-1])


@formula("linear")
def _linear(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(args[0]) * math.prod(args[1].shape[:-1])


@formula("_linear_activated")
def _linear_activated(args: tuple[Any, ...], out: Any) -> int:
    return _linear(args, out)


@formula("_linear_add")
def _linear_add(args: tuple[Any, ...], out: Any) -> int:
    return _linear(args, out)


@formula("_linear_gradients")
def _linear_gradients(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(args[0]) * int(args[1].shape[-1])


@formula("_linear_slope")
def _linear_slope(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(args[0]) * int(args[1].shape[-1])


@formula("_norm_linear")
def _norm_linear(args: tuple[Any, ...], out: Any) -> int:
    return sum(2 * _size(args[0]) * int(weight.shape[0]) for weight in args[3])


@formula("_addmm")
def _addmm(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(args[1]) * int(args[2].shape[-1])


@formula("_addmm_activated")
def _addmm_activated(args: tuple[Any, ...], out: Any) -> int:
    return _addmm(args, out)


@formula("_addbmm")
def _addbmm(args: tuple[Any, ...], out: Any) -> int:
    return _addmm(args, out)


@formula("_scaled_product")
def _scaled_product(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(args[0]) * int(args[1].shape[-1])


@formula("_whole_product")
def _whole_product(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(args[0]) * int(args[1].shape[-1])


@formula("_convolution")
def _convolution(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(out) * math.prod(args[1].shape[1:])


@formula("_convolution_transpose")
def _convolution_transpose(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(args[0]) * math.prod(args[1].shape[1:])


@formula("_convolution_weight")
def _convolution_weight(args: tuple[Any, ...], out: Any) -> int:
    return 2 * _size(args[1]) * math.prod(out.shape[1:])


def _attention_products(tensors: tuple[Any, ...], by_features: int, by_values: int) -> int:
    query, key, value = tensors
    pairs = math.prod(query.shape[:3]) * int(key.shape[2])
    return 2 * pairs * (by_features * int(query.shape[3]) + by_values * int(value.shape[3]))


@formula("_attention")
def _attention(args: tuple[Any, ...], out: Any) -> int:
    return _attention_products(args[:3], 1, 1)


@formula("_attention_backward")
def _attention_backward(args: tuple[Any, ...], out: Any) -> int:
    # Scores again, their gradient by queries and by keys; the gradient of the weights and by values.
    return _attention_products(args[2:5], 3, 2)


def _packed_pairs(ends_q: Any, ends_k: Any) -> int:
    queries, keys = (x.numpy() for x in (ends_q, ends_k))
    return int(((queries[1:] - queries[:-1]).astype("int64") * (keys[1:] - keys[:-1])).sum())


@formula("_varlen_attention")
def _varlen_attention(args: tuple[Any, ...], out: Any) -> int:
    pairs = _packed_pairs(args[3], args[4]) * int(args[0].shape[1])
    return 2 * pairs * (int(args[0].shape[2]) + int(args[2].shape[2]))


@formula("_varlen_attention_backward")
def _varlen_attention_backward(args: tuple[Any, ...], out: Any) -> int:
    pairs = _packed_pairs(args[5], args[6]) * int(args[2].shape[1])
    return 2 * pairs * (3 * int(args[2].shape[2]) + 2 * int(args[4].shape[2]))


@formula("_recurrent")
def _recurrent(args: tuple[Any, ...], out: Any) -> int:
    steps = math.prod(args[0].shape[:-1])  # every weight matrix multiplies every position once
    return sum(2 * steps * _size(w) for w in args[3] if len(w.shape) == 2)


@formula("_recurrent_backward")
def _recurrent_backward(args: tuple[Any, ...], out: Any) -> int:
    steps = math.prod(args[3].shape[:-1])
    return sum(4 * steps * _size(w) for w in args[6] if len(w.shape) == 2)


def count(name: str, args: tuple[Any, ...], out: Any) -> int:
    """The operations of one call; nothing where no formula is known."""
    found = FORMULAS.get(name)
    if found is None:
        return 0
    return found(args, out[0] if isinstance(out, (tuple, list)) and out else out)
