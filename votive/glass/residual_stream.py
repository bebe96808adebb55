"""The stream of a decoder: what goes into its layers and comes out, and what the rest makes of it.

Knows layers, not what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import votive

from ..tensor import Tensor
from . import values
from .capture import input_at
from .parts import Parts
from .probe import Frame, Probe, past_of


@dataclass
class ResidualStream:
    """The states of one run: before the first layer and behind each one, in the order of calls."""

    parts: Parts
    names: list[str] = field(default_factory=list)  # "embedding", then the layers
    states: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)  # of the layers, whole
    result: Any = None  # of the model
    past: int = 0


class _StreamProbe(Probe):
    """Keeps what goes into the first layer and comes out of each."""

    def __init__(self, parts: Parts, stream: ResidualStream) -> None:
        super().__init__(parts.model)
        self.ids = {id(m) for m in parts.layers}
        self.found = stream

    def entered(self, frame: Frame) -> None:
        if id(frame.subject) in self.ids and not self.found.states:
            start = input_at(frame, ())
            if not isinstance(start, votive.Tensor):
                start = values.first((frame.args, frame.kwargs))
            if start is None:
                raise LookupError(f"{frame.address} is called without a tensor.")
            self.found.names.append("embedding")
            self.found.states.append(start)
            self.found.past = self.past

    def left(self, frame: Frame) -> None:
        if id(frame.subject) not in self.ids:
            return
        state = values.first(frame.output)
        if state is None:
            raise LookupError(f"{frame.address} gives no tensor.")
        self.found.names.append(str(frame.address))
        self.found.states.append(state)
        self.found.outputs.append(frame.output)


def run_stream(parts: Parts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ResidualStream:
    """Run a model and keep the states between its layers.

    >>> from votive.glass.residual_stream import run_stream
    >>> net = votive.nn.Sequential(votive.nn.ModuleList([votive.nn.Identity()])[0])
    >>> parts = votive.glass.find_parts(net, layers=["0"])
    >>> run_stream(parts, (votive.ones(1, 2, 3),), {}).names
    ['embedding', '0']
    """
    stream = ResidualStream(parts)
    with _StreamProbe(parts, stream):
        stream.result = parts.model(*args, **kwargs)
    inner = parts.inner() if not stream.outputs else None
    if inner is not None:
        return run_stream(inner, args, kwargs)
    if not stream.outputs:
        raise LookupError(
            f"{type(parts.model).__name__} did not call its layers {parts.names[0]}, …; name others with layers=."
        )
    return stream


def logits_of(result: object) -> Tensor:
    """The scores in what a model gave: its field `logits`, or its first tensor.

    >>> from votive.glass.residual_stream import logits_of
    >>> logits_of({"logits": votive.ones(1)})
    tensor([1.])
    """
    if isinstance(result, dict) and "logits" in result:
        return result["logits"]
    found = getattr(result, "logits", None)
    found = values.first(result) if found is None else found
    if found is None:
        raise LookupError(f"a {type(result).__name__} holds no tensor that could be logits.")
    return found


def ids_of(args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor | None:
    """The token ids among a model's arguments: the first integers of two dimensions, or None.

    >>> from votive.glass.residual_stream import ids_of
    >>> ids_of((), {"input_ids": votive.tensor([[1]])})
    tensor([[1]])
    """
    for value in (*args, *kwargs.values()):
        if isinstance(value, votive.Tensor) and value.dim() == 2 and not value.is_floating_point():
            return value
    return None


def index_in_run(position: int, args: Sequence[Any], kwargs: dict[str, Any], what: str) -> int:
    """The index in this run of a position, which counts from the beginning of the text.

    >>> from votive.glass.residual_stream import index_in_run
    >>> index_in_run(3, (), {}, "saliency"), index_in_run(-1, (), {}, "saliency")
    (3, -1)
    """
    past = past_of(args, kwargs)
    if 0 <= position < past:
        raise IndexError(f"{what}: position {position} is in the cache, which holds {past}, and not in this run.")
    return position - past if position >= 0 else position


class _SkipLayers(Probe):
    """Lets no layer run, nor any patch of one; each gives the state on that is given."""

    def __init__(self, parts: Parts, template: object) -> None:
        super().__init__(parts.model)
        self.ids = {id(m) for m in parts.layers}
        self.path, self.template = values.first_path(template), template
        self.state: Any = None

    def answer(self, frame: Frame) -> None:
        if id(frame.subject) in self.ids:
            assert self.path is not None
            frame.answer(values.put(self.template, self.path, self.state))


class Unembed:
    """What a model does behind its last layer, as a function of a state (..., features).

    The model itself runs, with its layers skipped, so that capped or scaled scores come as in the
    model. It runs on one token: what follows the layers looks at each position alone, and that is
    checked against the model's own logits.
    """

    def __init__(self, stream: ResidualStream, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.stream, self.parts = stream, stream.parts
        self.template = stream.outputs[-1]
        real = logits_of(stream.result)
        last = stream.states[-1]
        if real.shape[:-1] != last.shape[:-1]:
            raise ValueError(
                f"the layers give {tuple(last.shape)}, but the logits are {tuple(real.shape)}: "
                "a lens needs logits at each position (leave out logits_to_keep)."
            )
        row = (slice(0, 1),) * (last.dim() - 2)
        probe, wanted = last[row][..., -1:, :], real[row][..., -1:, :]
        ways = [_one_token(args, kwargs), (args, _without_cache(kwargs))]
        errors = []
        for self.args, self.kwargs in ways:
            try:
                got = self(probe)
            except Exception as e:
                errors.append(f"{type(e).__name__}: {e}")
                continue
            if got.shape == wanted.shape and _near(got, wanted):
                return
            errors.append(f"it gives {tuple(got.shape)} that differ from the logits")
        raise ValueError(
            f"{type(self.parts.model).__name__}: with its layers skipped, the rest does not give "
            f"the logits of the last state ({'; '.join(errors)}); name the layers with layers=."
        )

    def __call__(self, state: Tensor) -> Tensor:
        """The logits (..., tokens) of states (..., features)."""
        probe = _SkipLayers(self.parts, self.template)
        # Most models want (batch, positions, features).
        probe.state = state.reshape(1, -1, state.shape[-1])
        with probe:
            found = logits_of(self.parts.model(*self.args, **self.kwargs))
        return found.reshape(*state.shape[:-1], found.shape[-1])


def _near(got: Tensor, wanted: Tensor) -> bool:
    """Equal but for the order of sums, which differs with the number of rows."""
    slack = max(1e-4, 8 * votive.finfo(wanted.dtype).eps)
    got, wanted = got.detach().double(), wanted.detach().double()
    scale = float(wanted.abs().max())
    return float((got - wanted).abs().max()) <= slack * scale


def _one_token(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The first tensor among the arguments, cut to one sample and position, and nothing else."""
    for i, value in enumerate(args):
        if isinstance(value, votive.Tensor):
            cut = value[(slice(0, 1),) * min(2, value.dim())]
            return (*args[:i], cut), {}
    for name, value in kwargs.items():
        if isinstance(value, votive.Tensor):
            return (), {name: value[(slice(0, 1),) * min(2, value.dim())]}
    return args, kwargs


def _without_cache(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kwargs.items() if not hasattr(v, "get_seq_length")}
