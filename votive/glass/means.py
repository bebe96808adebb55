"""Means of values over a data set, as edits that put them in the values' place. Knows no model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from .address import Address, Pattern, Patterns
from .axes import Place
from .edits import Edit
from .probe import Frame, Probe
from .resumed_run import value_at
from .sweep_runs import inputs_of
from .targets import modules_for, no_match, patterns

OVER = ("samples", "positions")


class _Total:
    """A sum over samples, and how many there were at each position."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.sum: Any = None
        self.count: Any = None
        self.dim: int | None = None  # of positions
        self.dtype: Any = None

    def add(self, x: Tensor, count: Tensor, dim: int | None) -> None:
        """Sums (1, ...) of some samples, of which there were `count` at each position."""
        if self.sum is not None and dim is not None:
            # Texts of several lengths: what is behind the end of one counts nothing there.
            length = max(x.shape[dim], self.sum.shape[dim])
            self.sum, self.count, x, count = (_longer(t, dim, length) for t in (self.sum, self.count, x, count))
        if self.sum is not None and x.shape != self.sum.shape:
            raise ValueError(
                f"means: {self.address} is {tuple(x.shape)} for one sample of a batch, and "
                f"{tuple(self.sum.shape)} for one of another."
            )
        self.sum = x if self.sum is None else self.sum + x
        self.count = count if self.count is None else self.count + count
        self.dim = dim

    def mean(self, over: str) -> Tensor:
        total, count = self.sum, self.count
        if over == "positions" and self.dim is not None:
            total = total.sum(self.dim, keepdim=True)
            count = count.sum(self.dim, keepdim=True)
        if not bool((count > 0).all()):
            raise ValueError(
                f"means: at {self.address} there are positions that the attention_mask leaves out "
                "of every text; use over='positions'."
            )
        return (total / count).to(self.dtype)


def _longer(t: Tensor, dim: int, length: int) -> Tensor:
    if t.shape[dim] == length:
        return t
    more = list(t.shape)
    more[dim] = length - t.shape[dim]
    return votive.cat([t, t.new_zeros(more)], dim)


class _Means(Probe):
    def __init__(self, model: Module, wanted: list[Pattern], over: str) -> None:
        only = modules_for(model, wanted)
        super().__init__(model, ops=any(p.wants_ops for p in wanted), only=only, sites=wanted)
        self.wanted, self.over = wanted, over
        self.totals: dict[str, _Total] = {}
        self.fired: set[int] = set()  # which patterns
        self.mask: Any = None  # (samples, positions): which count

    def entered(self, frame: Frame) -> None:
        self._take(frame, "in")

    def left(self, frame: Frame) -> None:
        self._take(frame, "out")

    def _take(self, frame: Frame, side: str) -> None:
        done: set[str] = set()  # what several patterns mean is counted once
        for i, pattern in enumerate(self.wanted):
            if pattern.side == side and pattern.matches(frame.address, frame):
                self.fired.add(i)
                text = f"^{frame.address}:{side}" + "".join(f".{p}" for p in pattern.path)
                if text not in done:
                    done.add(text)
                    with self.muted():
                        self._add(text, frame, pattern)

    def _add(self, text: str, frame: Frame, pattern: Pattern) -> None:
        x = value_at(frame, pattern)
        place = Place(self.model, frame, pattern, self.past)
        axes = place.axes(x)
        if axes.samples is None or not x.is_floating_point():
            raise ValueError(
                f"means: {frame.address} is {tuple(x.shape)}, in which no dimension is known to be that of samples."
            )
        # Of half types the mean has more digits than the values.
        dtype = votive.promote_types(x.dtype, votive.float32)
        x = x.detach().reshape(axes.shape).double()
        shape = [1] * x.dim()
        shape[axes.samples] = x.shape[axes.samples]
        weight = votive.ones(shape, dtype=x.dtype, device=x.device)
        if axes.positions is not None:
            shape[axes.positions] = x.shape[axes.positions]
            weight = weight.expand(shape)
            if self.over == "samples":
                place.check_padding()
            if self.mask is not None and self.mask.numel() == weight.numel():
                mask = self.mask if axes.samples < axes.positions else self.mask.t()
                weight = mask.to(device=x.device, dtype=x.dtype).reshape(shape)
        total = self.totals.setdefault(text, _Total(frame.address))
        # What is not counted may be anything, also no number.
        x = votive.where(weight != 0, x, 0.0).sum(axes.samples, keepdim=True)
        total.dtype = dtype
        total.add(x, weight.sum(axes.samples, keepdim=True), axes.positions)

    def edits(self) -> list[Edit]:
        often = {t.address.module for t in self.totals.values() if t.address.call}
        out = []
        for text, total in self.totals.items():
            module = total.address.module
            if module in often and not total.address.call:
                text = text.replace(f"^{module}", f"^{module}#0", 1)
            out.append(Edit(text.removesuffix(":out"), "mean", total.mean(self.over)))
        return out


def means(model: Module, at: Patterns, batches: Iterable[Any], *, over: str = "samples") -> list[Edit]:
    """Edits that put the mean over a data set in place of the values at addresses.

    `batches` are inputs of the model: tensors, tuples of arguments or dicts of named ones; where
    these have an `attention_mask`, only the positions in it count. The mean is over samples, for
    each position on its own; with `over="positions"` it is over both, and holds in texts of any
    length. The edits serve `patch` and sessions, and can be saved.

    >>> net = votive.nn.Sequential(votive.nn.Identity())
    >>> data = [votive.zeros(1, 2, 1), votive.full((3, 2, 1), 4.0)]
    >>> edits = votive.glass.means(net, "0", data)
    >>> edits[0].at, edits[0].value.flatten().tolist()
    ('^0', [3.0, 3.0])
    >>> with votive.glass.patch(net, edits):
    ...     net(votive.ones(1, 2, 1)).flatten()
    tensor([3., 3.])
    """
    if over not in OVER:
        raise ValueError(f"means: over must be one of {', '.join(OVER)}, got {over!r}.")
    wanted = patterns(at)
    probe = _Means(model, wanted, over)
    with votive.no_grad(), probe:
        for batch in batches:
            args, kwargs = inputs_of(batch)
            probe.mask = _mask(kwargs)
            model(*args, **kwargs)
    if not probe.runs:
        raise ValueError("means: no batch was given, so there is nothing to average.")
    for i, pattern in enumerate(wanted):
        if i not in probe.fired:
            raise no_match(pattern, [n for n, _ in model.named_modules()])
    return probe.edits()


def _mask(kwargs: dict[str, Any]) -> Tensor | None:
    mask = kwargs.get("attention_mask")
    return mask if isinstance(mask, votive.Tensor) and mask.dim() == 2 else None
