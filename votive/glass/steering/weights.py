"""A direction taken out of a model's weights, so that nothing can write it any more. Knows layers, no model class."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import votive

from ... import nn
from ...nn import Module
from ...tensor import Tensor
from ..address import Patterns
from ..parts import parts_of
from ..targets import patterns
from .directions import Direction


def orthogonalised(model: Module, direction: Direction | Tensor, *, at: Patterns | None = None) -> Any:
    """A copy of a model whose matrices that write into the stream cannot write a direction (Arditi et al. 2024).

    `at` are patterns of the modules that write; without them the embedding and, in each layer, the projections that
    end attention and MLP, told by their names. What the copy computes is what the model computes with the direction
    taken out of the embedding and of all that layers write. Weights in blocks are refused.

    >>> net = votive.nn.Sequential(votive.nn.Linear(2, 2))
    >>> copy = votive.glass.steering.orthogonalised(net, votive.tensor([1.0, 0.0]), at="0")
    >>> copy(votive.randn(3, 2))[:, 0].abs().max() < 1e-6
    tensor(True)
    """
    vector = direction.vector if isinstance(direction, Direction) else direction
    if vector.dim() != 1 or not float(vector.norm()) > 0:
        raise ValueError(f"orthogonalised: a direction is a vector that is not zero, got {tuple(vector.shape)}.")
    made = deepcopy(model)
    unit = (vector / vector.norm()).double()
    done: set[int] = set()
    for name, module in writers(made, at):
        _without(name, module, unit, done)
    _check_head(model, made, done)
    return made


# What ends attention and MLPs in the families that there are.
_ENDS = ("o_proj", "out_proj", "down_proj", "c_proj", "dense_4h_to_h", "dense", "fc2", "w2", "wo")


def writers(model: Module, at: Patterns | None = None) -> list[tuple[str, Any]]:
    """The modules that write into the stream, with their names.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> [n for n, _ in votive.glass.steering.weights.writers(votive.models.LlamaForCausalLM(config))]
    ['model.embed_tokens', 'model.layers.0.self_attn.o_proj', 'model.layers.0.mlp.down_proj']
    """
    named = list(model.named_modules())
    if at is not None:
        wanted = patterns(at)
        found = [(n, m) for n, m in named if any(p.regex is not None and p.regex.fullmatch(f"{n}#0") for p in wanted)]
        if not found:
            raise ValueError(f"orthogonalised: {at!r} names no module.")
        return found
    parts = parts_of(model, None)
    width = getattr(getattr(parts.embedding, "weight", None), "shape", (0, 0))[-1]
    known = {id(m): n for n, m in named}
    found = [(known[id(parts.embedding)], parts.embedding)] if parts.embedding is not None else []
    for layer, prefix in zip(parts.layers, parts.names, strict=True):
        own = [(f"{prefix}.{n}", m) for n, m in layer.named_modules() if n.rpartition(".")[2] in _ENDS]
        own = [(n, m) for n, m in own if _gives(m) == width]
        if len(own) < 2:
            raise ValueError(
                f"orthogonalised: {prefix} has {len(own)} modules that are known to write into the stream; name them "
                "by at=."
            )
        found += own
    return found


def _gives(module: Any) -> int:
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2:
        return -1
    return int(weight.shape[0] if isinstance(module, nn.Linear) else weight.shape[1])


def _without(name: str, module: Any, unit: Tensor, done: set[int]) -> None:
    weight = getattr(module, "weight", None)
    if not isinstance(weight, nn.Parameter) or weight.dim() != 2 or not weight.is_floating_point():
        raise TypeError(f"orthogonalised: {name} is {type(module).__name__}, whose weight is not a matrix of numbers.")
    if _gives(module) != len(unit):
        raise ValueError(f"orthogonalised: {name} gives {_gives(module)} numbers, the direction has {len(unit)}.")
    unit = unit.to(weight.device)
    with votive.no_grad():
        if id(weight) not in done:
            wide = weight.double()
            # nn.Linear has what it gives in rows; embeddings and GPT-2's transposed matrices in columns.
            wide = (
                wide - votive.outer(unit, unit @ wide)
                if isinstance(module, nn.Linear)
                else (wide - votive.outer(wide @ unit, unit))
            )
            weight.copy_(wide.to(weight.dtype))
            done.add(id(weight))
        bias = getattr(module, "bias", None)
        if isinstance(bias, Tensor):
            wide = bias.double()
            bias.copy_((wide - (wide @ unit) * unit).to(bias.dtype))


def _check_head(model: Module, made: Any, done: set[int]) -> None:
    """Where the head is the embedding, let it keep the weights that it had."""
    try:
        parts, before = parts_of(made, None), parts_of(model, None)
    except (LookupError, ValueError):
        return
    head = getattr(parts.head, "weight", None)
    if parts.head is not None and parts.head is not parts.embedding and head is not None and id(head) in done:
        parts.head.weight = nn.Parameter(before.head.weight.detach().clone())
