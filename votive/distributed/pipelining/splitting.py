"""A whole model as parts that follow one another. Knows chains of modules, and decoders by their shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ...autograd.modes import no_grad
from ...nn.containers import Sequential
from ...nn.module import Module
from ...tensor import Tensor
from ..group import ProcessGroup
from .decoders import DecoderPart, is_decoder, layer_places, layer_weights
from .stage import PipelineStage, build_stage


class SplitPoint(Enum):
    """Where a model is cut: before a module, or behind it.

    >>> votive.distributed.pipelining.SplitPoint.BEGINNING.name
    'BEGINNING'
    """

    BEGINNING = 1
    END = 2


@dataclass(frozen=True)
class PipeInfo:
    """How many parts there are."""

    num_stages: int
    has_loss_and_backward: bool = False


class Pipe:
    """A model in parts; each rank takes its own, by `get_stage_module` or `build_stage`.

    >>> from votive.distributed.pipelining import pipeline
    >>> model = votive.nn.Sequential(votive.nn.Linear(2, 3), votive.nn.ReLU(), votive.nn.Linear(3, 1))
    >>> pipe = pipeline(model, (votive.ones(4, 2),), split_spec=2)
    >>> print(pipe)
    stage 0: 0, 9 parameters, gives float32 (4, 3)
    stage 1: 1, 2, 4 parameters, gives float32 (4, 1)
    """

    def __init__(self, parts: Sequence[Module], names: Sequence[Sequence[str]], gives: Sequence[str]) -> None:
        self._parts, self._names, self._gives = list(parts), [list(n) for n in names], list(gives)

    @property
    def num_stages(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def get_stage_module(self, stage_idx: int) -> Module:
        """A part. Its parameters are those of the whole model, by the same names."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self._parts[stage_idx]

    def build_stage(self, stage_index: int, device: Any, group: ProcessGroup | None = None) -> PipelineStage:
        """The stage of a part on a device."""
        return build_stage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)

    def info(self) -> PipeInfo:
        """What `build_stage` asks for."""
        return PipeInfo(self.num_stages)

    def __str__(self) -> str:
        lines = []
        for s, (part, names, gives) in enumerate(zip(self._parts, self._names, self._gives, strict=True)):
            shown = ", ".join(names) if len(names) < 5 else f"{names[0]} to {names[-1]}"
            count = sum(p.numel() for p in part.parameters())
            lines.append(f"stage {s}: {shown}, {count:,} parameters{gives and ', gives '}{gives}")
        return "\n".join(lines)


def pipeline(
    module: Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | int | None = None,
    split_policy: Callable[[Module], dict[str, SplitPoint]] | None = None,
) -> Pipe:
    """Cut a model into parts: a `nn.Sequential`, or a decoder of the package with a head or without.

    `split_spec` names where, by modules' paths, such as `{"model.layers.4": SplitPoint.BEGINNING}`, or says how many
    parts of equal work there are to be. Parts hold the model's own modules, not copies. `mb_args` and `mb_kwargs` are
    those of a microbatch, with which the parts are tried, unless the model is on the meta device; `kwargs` such as
    `attention_mask` go to every part.

    >>> from votive.distributed.pipelining import SplitPoint, pipeline
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=4, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> pipe = pipeline(model, (votive.tensor([[1, 2]]),), split_spec={"model.layers.2": SplitPoint.BEGINNING})
    >>> x = pipe.get_stage_module(0)(votive.tensor([[1, 2]]))
    >>> bool((pipe.get_stage_module(1)(x) == model(votive.tensor([[1, 2]])).logits).all())
    True
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    if not isinstance(mb_args, tuple):
        raise TypeError(f"pipeline: mb_args is a tuple of a microbatch's arguments, got {type(mb_args).__name__}.")
    if split_policy is not None:
        split_spec = split_policy(module)
    if split_spec is None:
        warnings.warn("pipeline: without split_spec= the model is one part.", stacklevel=2)
        split_spec = 1
    if is_decoder(module):
        places, weights = layer_places(module), layer_weights(module)
    elif type(module) is Sequential:
        places = list(module._modules)
        weights = [1 + sum(p.numel() for p in m.parameters()) for m in module]
    else:
        raise TypeError(
            f"pipeline: cannot cut a {type(module).__name__}; it takes an nn.Sequential or a decoder of votive.models. "
            "Of any other model, write the parts as modules and give each to PipelineStage."
        )
    starts = _even(weights, split_spec) if isinstance(split_spec, int) else _starts(places, split_spec)
    ends = [*starts[1:], len(places)]
    parts: list[Module]
    if is_decoder(module):
        spans = list(zip(starts, ends, strict=True))
        parts = [DecoderPart(module, spans, i) for i in range(len(spans))]
    else:
        parts = [_chain(module, a, b) for a, b in zip(starts, ends, strict=True)]
        _tell_shared(parts)
    return Pipe(
        parts, [places[a:b] for a, b in zip(starts, ends, strict=True)], _tried(parts, mb_args, mb_kwargs or {})
    )


def _starts(places: Sequence[str], spec: dict[str, SplitPoint]) -> list[int]:
    """Where parts begin."""
    found = {0}
    for name, point in spec.items():
        at = next((i for i, place in enumerate(places) if place == name or place.endswith(f".{name}")), None)
        if at is None:
            raise ValueError(f"pipeline: {name!r} is none of the places to cut at: {', '.join(places)}.")
        if not isinstance(point, SplitPoint):
            raise TypeError(f"pipeline: split_spec says SplitPoint.BEGINNING or END of {name!r}, got {point!r}.")
        found.add(at + (point is SplitPoint.END))
    if len(places) in found:
        raise ValueError(f"pipeline: nothing is left behind the end of {places[-1]!r}.")
    return sorted(found)


def _even(weights: Sequence[int], count: int) -> list[int]:
    """Where `count` parts begin of which the heaviest is as light as can be."""
    n = len(weights)
    if not 1 <= count <= n:
        raise ValueError(f"pipeline: cannot make {count} parts of {n} layers.")
    sums = [0]
    for w in weights:
        sums.append(sums[-1] + w)
    best = [[0.0] * (n + 1) for _ in range(count + 1)]
    cut = [[0] * (n + 1) for _ in range(count + 1)]
    best[0] = [0.0] + [float("inf")] * n
    for k in range(1, count + 1):
        best[k] = [float("inf")] * (n + 1)
        for end in range(k, n + 1):
            for start in range(k - 1, end):
                value = max(best[k - 1][start], sums[end] - sums[start])
                if value < best[k][end]:
                    best[k][end], cut[k][end] = value, start
    starts, end = [], n
    for k in range(count, 0, -1):
        end = cut[k][end]
        starts.append(end)
    return starts[::-1]


def _chain(module: Any, start: int, end: int) -> Sequential:
    """Some children of a chain by their own names."""
    made = Sequential()
    for name, child in list(module._modules.items())[start:end]:
        made.add_module(name, child)
    return made


def _tell_shared(parts: Sequence[Module]) -> None:
    """Let parts know of weights that others have, too."""
    holders: dict[int, dict[int, str]] = {}
    for s, part in enumerate(parts):
        for name, p in part.named_parameters():
            holders.setdefault(id(p), {})[s] = name
    shared = {next(iter(of.values())): of for of in holders.values() if len(of) > 1}
    for part in parts:
        part.__dict__["shared_weights"] = shared


@no_grad()
def _tried(parts: Sequence[Module], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """What each part gives for a microbatch, in words."""
    held = [t for part in parts for t in part.parameters()]
    given = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
    if any(t.is_meta for t in held) or any(t.device != held[0].device for t in given if held):
        return [""] * len(parts)
    modes = [part.training for part in parts]
    found, said = args, []
    try:
        for part in parts:
            part.eval()  # no dropout, no statistics
            result = part(*found, **kwargs)
            found = tuple(result) if isinstance(result, (list, tuple)) else (result,)
            said.append(", ".join(_shown(t) for t in found))
    finally:
        for part, trains in zip(parts, modes, strict=True):
            part.train(trains)
    return said


def _shown(t: Any) -> str:
    if not isinstance(t, Tensor):
        raise TypeError(f"pipeline: a part gives a {type(t).__name__}; between parts go tensors, or tuples of them.")
    return f"{str(t.dtype).rpartition('.')[2]} {tuple(t.shape)}"
