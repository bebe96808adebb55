"""Which dimension of a value is that of samples, of positions, of features. Knows no model class.

What a dimension means follows from the call that gives the value: a module gives (samples,
positions, features), attention (samples, heads, positions, features), a convolution (samples,
channels, positions). Where sizes would have to be guessed from, nothing is known.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import Any

import votive

from ..nn.points import Point
from ..tensor import Tensor
from . import values
from .address import Pattern
from .capture import by_number, input_at
from .probe import Frame
from .sequence_layout import Layout, layout_of

_CHANNELS_FIRST = tuple(
    getattr(votive.nn, kind + size)
    for kind in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm", "MaxPool", "AvgPool")
    for size in ("1d", "2d", "3d")
) + (votive.nn.GroupNorm,)
# Whose values are (samples, heads, positions, features), or keys in the last dimension.
_BY_HEADS = ("attention", "rope", "softmax")
# What does the same to each row of (rows, features).
_BY_ROWS = ("layer_norm", "linear", "log_softmax", "rms_norm", "softmax")
# Where models look for the tokens that they go on with.
_TEXTS = ("decoder_input_ids", "decoder_inputs_embeds", "input_ids", "inputs_embeds")
# Inside of these, rows are no positions: those that were sent to an expert, pairs of positions.
_OTHERS = ("expert", "relative")
Text = tuple[int, int]  # samples, positions


@dataclass(frozen=True)
class Axes:
    """Dimensions of a value looked at as `shape`; None where there is none or it is not known.

    Rows of all positions of all samples are told apart: (6, 4) may be looked at as (2, 3, 4).
    `start` is the position in the text of what stands first.
    """

    shape: tuple[int, ...]
    samples: int | None = None
    positions: int | None = None
    features: int | None = None
    start: int = 0
    heads: int | None = None

    @property
    def stop(self) -> int:
        """How long the text is up to the last position in the value."""
        return self.start + (0 if self.positions is None else self.shape[self.positions])


@dataclass
class Place:
    """Where in a run a value stands: at which call, and how much of the text a cache holds."""

    model: Any
    frame: Frame
    pattern: Pattern
    past: int = 0
    met: set[int] = field(default_factory=set)  # positions of an edit that were found there

    def axes(self, x: Tensor) -> Axes:
        """What the dimensions of the value there are."""
        shape = tuple(x.shape)
        if isinstance(self.frame.subject, Point):
            return self._begun(_of_point(self.frame.subject.layout, shape))
        if any(name in self.frame.address.module for name in _OTHERS):
            return Axes(shape, None, None, len(shape) - 1 if shape else None)
        layout = layout_of(self._chain(), self.model)
        if layout is not None:
            axes = self._of_sequences(layout, shape)
            if axes is not None:
                return axes
        found = self._of_op(shape) if self.frame.address.op else self._of_module(x, shape)
        if found is None:
            found = self._by_sizes(x, shape)
        return found if found.positions is None else self._begun(found)

    @property
    def cached(self) -> bool:
        """Whether the run is one of several that feed a text in parts."""
        return bool(caches(self.frame))

    def check_padding(self) -> None:
        """Raise where texts begin with padding, so that positions are not those of the text."""
        names = ["attention_mask"]
        inside = "encoder" in self.frame.address.module.split(".")
        for frame in self._chain():
            given = named_inputs(frame)
            if not inside and any(given.get(n) is not None for n in _TEXTS[:2]):
                names = ["decoder_attention_mask"]
            mask = next((given[n] for n in names if given.get(n) is not None), None)
            if not isinstance(mask, votive.Tensor) or mask.dim() != 2 or not mask.numel():
                continue
            hidden = [i for i, on in enumerate(mask[:, 0].tolist()) if not on]
            # A mask that is added has nothing above 0, and says nothing about padding.
            padded = [i for i in hidden if max(mask[i].tolist()) > 0]
            if padded:
                raise ValueError(
                    f"positions: padding comes before the text in the samples {padded} of "
                    f"{str(frame.address) or '(model)'}, whose {names[0]} is {tuple(mask.shape)}, "
                    "so that they would not count from the beginning of each text. Pad on the "
                    "right, or run texts of different lengths one by one; means with "
                    "over='positions' hold for such texts too."
                )

    def _of_sequences(self, layout: Layout, shape: tuple[int, ...]) -> Axes | None:
        """Axes at recurrent layers and transformers; None where samples come first as usual."""
        if self.frame.address.op == "attention":
            return None
        path = by_number(self.frame, self.pattern.path) if self.pattern.path else ()
        dims = layout.dims(self.frame, self.pattern.side, tuple(map(str, path)), shape)
        if dims is None:
            return None
        whole, samples, positions, features = dims
        # Nobody knows where in a text that a cache holds such a value would stand.
        return Axes(whole, samples, None if self.past else positions, features)

    # --- by the kind of call ------------------------------------------------------------------

    def _of_op(self, shape: tuple[int, ...]) -> Axes | None:
        op, dims = self.frame.address.op, len(shape)
        if op == "convolution":
            return _of_maps(shape)
        if op not in _BY_HEADS or dims < 3:
            return None
        if op == "attention" and self._chosen("in", "3"):
            return Axes(shape, 0, 2) if dims == 4 else None  # a mask of queries and keys
        if op == "attention" and self._chosen("out", "1"):
            return Axes(shape, 0, 2)  # (samples, heads, positions)
        if op == "attention" and dims == 4:
            return Axes(shape, 0, 2, 3)
        text = self._text()
        if dims == 4 and text is not None and shape[2] == text[1]:
            return Axes(shape, 0, 2, None if op == "softmax" else 3)
        return None

    def _chosen(self, side: str, *numbers: str) -> bool:
        """Whether one of these inputs or results is meant."""
        path = by_number(self.frame, self.pattern.path) if self.pattern.path else ()
        return self.pattern.side == side and str(next(iter(path), "")) in numbers

    def _of_module(self, x: Tensor, shape: tuple[int, ...]) -> Axes | None:
        module, dims = self.frame.subject, len(shape)
        if isinstance(module, _CHANNELS_FIRST):
            return _of_maps(shape)
        if not x.is_floating_point():
            return Axes(shape, 0, 1) if dims == 2 else None  # ids
        if isinstance(module, votive.nn.Embedding):
            ids = input_at(self.frame, ())
            run = self._run()
            if ids is not None and ids.dim() == 1 and run is not None and ids.shape[0] == run[1]:
                return Axes(shape, None, 0, 1)  # of positions, for all samples
        if dims != 3 or not self._features_last(self.frame, shape[-1]):
            return None
        run = self._run()
        if run is not None and shape[0] not in (1, run[0]):
            return None
        return Axes(shape, 0, 1, 2)

    def _features_last(self, frame: Frame, size: int) -> bool:
        """Whether what a module takes or gives has features, `size` of them, in the last place."""
        inside = list(frame.subject.modules())
        for m in inside:
            if isinstance(m, _CHANNELS_FIRST):
                continue
            shapes = [p.shape for p in m._parameters.values() if p is not None and p.dim() > 0]
            if any(s[-1] == size or (len(s) == 2 and s[0] == size) for s in shapes):
                return True
        # Without weights of its own it does as its neighbours do.
        owner = self._owner(frame.address.module.rpartition(".")[0])
        return not any(isinstance(m, _CHANNELS_FIRST) for m in (*inside, *owner))

    def _owner(self, path: str) -> list[Any]:
        """What stands directly in the module at a path."""
        try:
            return list(self.model.get_submodule(path).children())
        except AttributeError:
            return []  # made while the model runs

    # --- by sizes -----------------------------------------------------------------------------

    def _by_sizes(self, x: Tensor, shape: tuple[int, ...]) -> Axes:
        dims, text, run = len(shape), self._text(), self._run()
        maps = dims > 2 and self._among_maps(shape[-1])
        plain = Axes(shape, None, None, dims - 1 if dims and not maps else None)
        if text is None:
            # Without a text there are samples, and no positions.
            first = self._first(self._chain()[-1])
            alike = first is not None and first.dim() > 0 and dims > 1
            return replace(plain, samples=0) if alike and shape[0] == first.shape[0] else plain
        if dims == 2 and x.is_floating_point():
            return self._rows(plain, text)
        if dims == 3 and shape[:2] == text and self.frame.address.op and not maps:
            return replace(plain, samples=0, positions=1)
        if dims == 4 and run is not None and shape[0] == run[0]:
            # (samples, positions, heads, features) or with both in the other order.
            hits = [d for d in (1, 2) if shape[d] == text[1]]
            if len(hits) == 1 or (hits and text[1] == 1):
                keys = hits[0] == 2 and shape[3] == self.past + text[1]
                return Axes(shape, 0, hits[0], None if keys else 3)
        # A module's samples come first, whatever else there is.
        samples = run is not None and dims > 2 and shape[0] == run[0] and self.frame.is_module
        return replace(plain, samples=0) if samples else plain

    def _among_maps(self, size: int) -> bool:
        """Whether a value may be of maps, in which channels do not come last."""
        if self.frame.address.op:
            inside = self._owner(self.frame.address.module)
            if any(isinstance(m, _CHANNELS_FIRST) for m in inside):
                return True
        return not self._features_last(self._chain()[0], size)

    def _rows(self, plain: Axes, text: Text) -> Axes:
        """Axes of (rows, features): all positions of all samples, or samples."""
        rows, size = plain.shape
        by_rows = self.frame.is_module or self.frame.address.op in _BY_ROWS
        if by_rows and rows == text[0] * text[1]:
            return Axes((*text, size), 0, 1, 2)
        pooled = self.frame.is_module and rows == text[0]
        return replace(plain, samples=0) if pooled else plain

    # --- the text -----------------------------------------------------------------------------

    def _chain(self) -> list[Frame]:
        """The calls of modules around the value, the innermost first."""
        at: Frame | None = self.frame if self.frame.is_module else self.frame.parent
        out = []
        while at is not None:
            out.append(at)
            at = at.parent
        return out

    def _first(self, frame: Frame) -> Any:
        return values.first((frame.args, frame.kwargs))

    def _text(self) -> Text | None:
        """Samples and positions of the nearest call that is given a text."""
        for frame in self._chain():
            if any(name in frame.address.module for name in _OTHERS):
                continue
            found = self._text_in(frame, self._first(frame))
            if found is not None:
                return found
        return self._run()

    def _run(self) -> Text | None:
        """Samples and positions that the call which feeds a text is given."""
        root = self._feeding()
        for name in _TEXTS:
            found = self._text_in(root, root.kwargs.get(name))
            if found is not None:
                return found
        return self._text_in(root, self._first(root))

    def _feeding(self) -> Frame:
        """The outermost call; or, of those given the cache of the nearest one, the outermost."""
        chain = self._chain()
        given = [f for f in chain if f.cache is not None and f.cache is chain[0].cache]
        return (given or chain)[-1]

    def _text_in(self, frame: Frame, x: Tensor) -> Text | None:
        """Samples and positions of ids, or of features, that a call is given."""
        if not isinstance(x, votive.Tensor):
            return None
        if x.dim() == 2 and not x.is_floating_point():
            return int(x.shape[0]), int(x.shape[1])
        if x.dim() == 3 and x.is_floating_point() and self._features_last(frame, x.shape[2]):
            return int(x.shape[0]), int(x.shape[1])
        return None

    def _begun(self, found: Axes) -> Axes:
        """Axes with the position that comes first in the value; without any where nobody knows."""
        frame, run = self.frame, self._run()
        assert found.positions is not None
        length = found.shape[found.positions]
        if "encoder" in frame.address.module.split("."):
            return found  # a text of its own, of which no cache holds anything
        if frame.address.op == "attention" and self._chosen("in", "1", "2"):
            # Keys and values: the whole text, or another one; a window has lost its beginning.
            whole = length >= self.past + frame.args[0].shape[2]
            return found if whole else replace(found, positions=None)
        if run is None or length == run[1]:
            return replace(found, start=self.past)
        kept = self._feeding().kwargs.get("logits_to_keep")
        if type(kept) is int and kept == length:
            return replace(found, start=self.past + run[1] - kept)
        if self.past or isinstance(kept, votive.Tensor):
            return replace(found, positions=None)
        return found


def caches(frame: Frame) -> list[Any]:
    """The key-value cache that the nearest call around a call is given, if one is."""
    return [] if frame.cache is None else [frame.cache]


def named_inputs(frame: Frame) -> dict[str, Any]:
    """What a module's call is given, by the names of its forward."""
    try:
        names = list(inspect.signature(frame.subject.forward).parameters)
    except (TypeError, ValueError):
        names = []
    return {**dict(zip(names, frame.args, strict=False)), **frame.kwargs}


def _of_point(layout: str, shape: tuple[int, ...]) -> Axes:
    """Of a place in a decoder, which tells the order of its dimensions."""
    at = {name: layout.find(name) for name in "bhtqc"}
    positions = at["t"] if at["q"] < 0 else at["q"]
    features, heads = (None if at[name] < 0 else at[name] for name in "ch")
    return Axes(shape, at["b"], positions, features, heads=heads)


def _of_maps(shape: tuple[int, ...]) -> Axes:
    """Of a convolution: (samples, channels, positions); pictures have no positions."""
    if len(shape) < 3:
        return Axes(shape, None, None, len(shape) - 1)
    return Axes(shape, 0, 2 if len(shape) == 3 else None, 1)
