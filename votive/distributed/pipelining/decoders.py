"""Decoders of the package as parts of some layers each. Knows a decoder by what it is made of, and no family."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ...nn.module import Module
from ...tensor import Tensor


class Elsewhere(Module):
    """A layer that another part has: gives the stream as it came.

    >>> from votive.distributed.pipelining.decoders import Elsewhere
    >>> Elsewhere()(votive.ones(1))
    tensor([1.])
    """

    def forward(self, x: Tensor, *_: Any) -> Tensor:
        return x


def _base(model: Any) -> Any:
    return getattr(model, model.base_model_prefix, model)


def is_decoder(module: Any) -> bool:
    """Whether a module is a decoder of the package, with the head of a language model or without.

    >>> from votive.distributed.pipelining.decoders import is_decoder
    >>> is_decoder(votive.nn.Linear(1, 1))
    False
    """
    if not hasattr(module, "design") or not hasattr(module, "base_model_prefix"):
        return False
    base = _base(module)
    return hasattr(base, "stack") and hasattr(base, "rotations") and (base is module or hasattr(module, "scores"))


def layer_places(model: Any) -> list[str]:
    """The paths of its layers."""
    names = {id(m): path for path, m in model.named_modules()}
    return [names[id(layer)] for layer in _base(model).stack]


def layer_weights(model: Any) -> list[int]:
    """What each layer has to do, by its parameters; the last one has the head with it."""
    found = [1 + sum(p.numel() for p in layer.parameters()) for layer in _base(model).stack]
    head = getattr(model, model.design.head, None) if _base(model) is not model else None
    found[-1] += sum(p.numel() for p in head.parameters()) if isinstance(head, Module) else 0
    return found


class DecoderPart(Module):
    """Some layers of a decoder: the first part has the embeddings, the last one the norm and the head.

    The first takes tokens, the others the stream; the last gives logits. Parameters have the names that they have in
    the whole model, so checkpoints are the same.
    """

    def __init__(self, model: Any, spans: Sequence[tuple[int, int]], index: int) -> None:
        super().__init__()
        if getattr(model.config, "output_router_logits", False):
            raise NotImplementedError(
                "pipeline: an even use of experts is asked for by output_router_logits, and parts do not know one "
                "another's routers; set it to False in the configuration."
            )
        base = _base(model)
        self.is_first, self.is_last = index == 0, index == len(spans) - 1
        start, end = spans[index]
        own = _pruned(base, range(start, end), self.is_first, self.is_last)
        whole = own
        if base is not model:
            whole = _copied(model)
            whole._modules[model.base_model_prefix] = own
            if not self.is_last:
                whole._modules.pop(model.design.head)
        # By the names of the whole, without what is only borrowed.
        for name, child in whole._modules.items():
            self.add_module(name, child)
        for name, p in whole._parameters.items():
            self.register_parameter(name, p)
        self.__dict__["_parts"] = (own, whole)
        self.__dict__["shared_weights"] = _shared(model, base, spans)
        self.training = model.training

    def forward(self, x: Tensor, **kwargs: Any) -> Tensor:
        base, model = self.__dict__["_parts"]
        if base is model:
            base.training = self.training  # it is not among the children
        tokens = x if self.is_first else None
        found: Tensor = base(input_ids=tokens, inputs_embeds=None if self.is_first else x, **kwargs).last_hidden_state
        if self.is_last and model is not base:
            logits: Tensor = model.scores(found)
            return logits
        return found


def _copied(module: Any) -> Any:
    """The same module with dictionaries of its own: its children and parameters are shared."""
    made = copy.copy(module)
    for name in ("_modules", "_parameters", "_buffers"):
        made.__dict__[name] = dict(module.__dict__[name])
    return made


def _pruned(base: Any, layers: range, is_first: bool, is_last: bool) -> Any:
    """A decoder without what other parts have."""
    design = base.design
    made = _copied(base)
    body = made
    if design.body:
        body = made._modules[design.body] = _copied(base.body)
    stack = body._modules[design.stack] = _copied(base.stack)
    for i, name in enumerate(list(stack._modules)):
        if i not in layers:
            stack._modules[name] = Elsewhere()
    into, out = design.embedding_products if design.embedding_width not in (None, design.width) else ("", "")
    if not is_first:
        for name in (design.embedding, design.places, design.embedding_norm, into):
            if isinstance(name, str):
                body._modules.pop(name, None)
        made.__dict__["embedded"] = _as_it_came
        made.__dict__["start"] = _as_it_came_first
    if not is_last:
        for name in (design.last_norm, out):
            if isinstance(name, str) and name in body._modules:
                body._modules[name] = Elsewhere()
    return made


def _as_it_came(input_ids: Any, inputs_embeds: Tensor) -> Tensor:
    return inputs_embeds


def _as_it_came_first(x: Tensor, *_: Any) -> Tensor:
    return x


def _shared(model: Any, base: Any, spans: Sequence[tuple[int, int]]) -> dict[str, dict[int, str]]:
    """Weights that are in several parts: of one tensor, all names in the whole model, and the part of each."""
    places = layer_places(model)
    last = len(spans) - 1
    first_names = (base.design.embedding, base.design.places, base.design.embedding_norm)

    def part_of(path: str) -> int:
        for i, place in enumerate(places):
            if path.startswith(f"{place}."):
                return next(s for s, (a, b) in enumerate(spans) if a <= i < b)
        words = path.split(".")
        return 0 if any(isinstance(n, str) and n and n in words for n in first_names) else last

    holders: dict[int, dict[int, str]] = {}
    for path, p in model.named_parameters(remove_duplicate=False):
        holders.setdefault(id(p), {}).setdefault(part_of(path), path)
    return {next(iter(of.values())): of for of in holders.values() if len(of) > 1}
