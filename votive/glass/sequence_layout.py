"""How values lie at recurrent layers, attention and transformers of `nn`. Knows these classes only.

Without `batch_first`, which is their default, they take (positions, samples, features), and all
that runs inside of them does. What stands beside such a module in a model may lie either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from votive import nn

from ..nn import Module
from . import values
from .probe import Frame

_KNOWN = (
    nn.RNNBase,
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
    nn.TransformerEncoder,
    nn.TransformerDecoder,
    nn.Transformer,
)
_TURNS = (nn.RNNBase, nn.MultiheadAttention)  # inside, positions come first in any case
# The inputs that are texts, by number or by name; others are states and masks.
_TEXTS = {
    nn.RNNBase: ("0", "input"),
    nn.MultiheadAttention: ("0", "1", "2", "query", "key", "value"),
    nn.Module: ("0", "1", "src", "tgt", "memory"),
}
Dims = tuple[tuple[int, ...], int | None, int | None, int | None]


@dataclass
class Layout:
    """How values lie inside of a call; without one, a module beside has positions first."""

    call: Frame | None

    def dims(self, frame: Frame, side: str, path: tuple[str, ...], shape: tuple[int, ...]) -> Dims | None:
        """Shape, and dimensions of samples, positions, features; None: samples come first."""
        size, last = len(shape), len(shape) - 1 if shape else None
        plain: Dims = (shape, None, None, last)
        if self.call is None:
            return plain
        module, itself = self.call.subject, frame is self.call
        text = values.first((self.call.args, self.call.kwargs))
        if itself and not _is_text(module, side, path):
            return self._beside(module, side, path, shape)
        if isinstance(self.call.args[0] if self.call.args else None, nn.utils.rnn.PackedSequence):
            return plain  # rows of all texts, by position
        if itself and size == 2:
            return shape, None, 0, 1  # a single text
        if batch_first(module) and not (isinstance(module, _TURNS) and not itself):
            return None
        if itself:
            return (shape, 1, 0, 2) if size == 3 else plain
        if text is None or text.dim() != 3:
            return plain
        first, second = text.shape[:2]
        if batch_first(module):
            first, second = second, first
        if frame.address.op and frame.parent is self.call and isinstance(module, _TURNS):
            # Heads and steps have been taken apart; only what goes through weights is known.
            if frame.address.op != "linear":
                return plain
        if size == 3 and shape[:2] == (first, second):
            return shape, 1, 0, 2
        if size == 2 and shape[0] == first * second:
            return (first, second, shape[1]), 1, 0, 2
        return plain

    def _beside(self, module: Module, side: str, path: tuple[str, ...], shape: tuple[int, ...]) -> Dims:
        """Of states and of weights of attention."""
        size = len(shape)
        if isinstance(module, nn.RNNBase) and size == 3:
            return shape, 1, None, 2  # (layers, samples, features)
        if isinstance(module, nn.MultiheadAttention) and side == "out" and size in (3, 4):
            return shape, 0, size - 2, None  # (samples, heads, positions, keys)
        return shape, None, None, None


def layout_of(chain: Sequence[Frame], model: Module) -> Layout | None:
    """The layout at a place, by the calls around it; None where samples come first."""
    for frame in chain:
        if isinstance(frame.subject, _KNOWN):
            return Layout(frame)
    known = [m for m in model.modules() if isinstance(m, _KNOWN)]
    return None if all(batch_first(m) for m in known) else Layout(None)


def batch_first(module: Module) -> bool:
    """Whether a module of these classes takes samples first.

    >>> from votive.glass.sequence_layout import batch_first
    >>> batch_first(votive.nn.LSTM(2, 2)), batch_first(votive.nn.LSTM(2, 2, batch_first=True))
    (False, True)
    """
    own = getattr(module, "batch_first", None)
    if own is not None:
        return bool(own)
    inside = (getattr(m, "batch_first", None) for m in module.modules())
    return all(found for found in inside if found is not None)


def _is_text(module: Module, side: str, path: tuple[str, ...]) -> bool:
    if not path:
        return True
    if side == "out":
        return path[0] == "0" or not isinstance(module, _TURNS)
    names = next(names for kind, names in _TEXTS.items() if isinstance(module, kind))
    return path[0] in names
