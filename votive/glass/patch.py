"""Changing values while a model runs, with a receipt of what was changed. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import votive

from . import values
from .applying import applied
from .axes import Place, caches
from .capture import input_at, put_input
from .edits import Edit, edits_of
from .means import means
from .probe import Frame, Probe
from .shown import Shown
from .stand_in import IDENTITY, check_name, instead_of
from .targets import modules_for, no_match


@dataclass
class Fired:
    """What happened at one address."""

    times: int = 0
    largest: float = 0.0  # change of a single number
    relative: float = 0.0  # norm of the change over the norm of the value, at its largest


@dataclass
class Receipt(Shown):
    """What a patch did: by address, how often it fired and how much it changed."""

    sites: dict[str, Fired] = field(default_factory=dict)
    edits: list[dict[str, int]] = field(default_factory=list)  # per edit: address -> times

    @property
    def fired(self) -> int:
        """How often anything was changed."""
        return sum(s.times for s in self.sites.values())

    def __str__(self) -> str:
        rows = [
            f"{a or '(model)'}  fired {s.times}  largest change {s.largest:.4g}  relative "
            f"{s.relative:.4g}"
            for a, s in self.sites.items()
        ]
        return "\n".join(rows) or "nothing was changed"


class Patch(Probe, Shown):
    """Edits that hold inside a `with` block; gives their receipt."""

    def __init__(self, model: Any, edits: Any, *, measure: bool = True) -> None:
        self.edits = edits_of(edits)
        if not self.edits:
            raise ValueError("patch: no edit was given.")
        found = [e.pattern for e in self.edits]
        only = modules_for(model, found)
        for e in self.edits:
            if e.do == "swap" and isinstance(e.value, str):
                check_name(model, e.value)
        super().__init__(model, ops=any(p.wants_ops for p in found), only=only)
        self.measure = measure
        self.receipt = Receipt(edits=[{} for _ in self.edits])
        self._met: dict[int, set[int]] = {}  # by edit: its positions that were found

    def __enter__(self) -> Any:
        super().__enter__()
        return self.receipt

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        if exc[0] is None and self.runs:
            for i, (edit, fired) in enumerate(zip(self.edits, self.receipt.edits, strict=True)):
                if not fired and edit.runs is None and i not in self._met:
                    raise no_match(edit.pattern, [n for n, _ in self.model.named_modules()])
                self._check_positions(i, edit)

    def _check_positions(self, i: int, edit: Edit) -> None:
        """Raise if an edit names positions that no run had."""
        missing = [p for p in edit.positions or () if p not in self._met.get(i, edit.positions)]
        if missing:
            raise IndexError(
                f"patch: the positions {missing} of the edit at {edit.at!r} were in no run; "
                "positions count from 0, at the beginning of the text."
            )

    def _due(self, frame: Frame) -> list[tuple[int, Edit]]:
        return [
            (i, e) for i, e in enumerate(self.edits)
            if (e.runs is None or self.runs in e.runs) and e.pattern.matches(frame.address, frame)
        ]  # fmt: skip

    def entered(self, frame: Frame) -> None:
        for i, edit in self._due(frame):
            if edit.do in ("skip", "swap"):
                self._change_call(edit, frame)
                self._note(i, frame, None, None)
            elif edit.pattern.side == "in":
                self._change_input(i, edit, frame)

    def left(self, frame: Frame) -> None:
        if frame.parent is None:
            self._check_cache(frame)
        for i, edit in self._due(frame):
            if edit.do in ("skip", "swap") or edit.pattern.side == "in":
                continue
            path = edit.pattern.path or values.first_path(frame.output)
            if path is None:
                raise LookupError(f"{frame.address} gives no tensor that could be changed.")
            old = values.get(frame.output, path)
            new = self._edited(i, frame, old)
            frame.output = values.put(frame.output, path, new)
            self._note(i, frame, old, new)

    def _check_cache(self, frame: Frame) -> None:
        """Raise if a cache was not filled by what runs in the place of attention."""
        swaps = [e for e in self.edits if e.do == "swap"]
        if swaps and any(int(c.get_seq_length()) == self.past for c in caches(frame)):
            raise RuntimeError(
                f"swap: what runs at {swaps[0].at!r} has put nothing into the cache, from which "
                "models know how much of the text they have read; swap in a module that takes "
                "past_key_values, or 'identity', or run without a cache."
            )

    def _change_call(self, edit: Edit, frame: Frame) -> None:
        with self.muted():
            instead = edit.value
            if edit.do == "skip" and frame.is_module and caches(frame):
                instead = IDENTITY  # its part of the cache is filled all the same
            if isinstance(instead, str):
                if not frame.is_module:
                    raise ValueError(f"swap: {frame.address} is an operator, not a module.")
                instead = instead_of(self.model, frame.address.module, instead)
            if instead is None:
                frame.skip(passed_on(frame))
            else:
                frame.swap(instead)

    def _change_input(self, i: int, edit: Edit, frame: Frame) -> None:
        old = input_at(frame, edit.pattern.path)
        if not isinstance(old, votive.Tensor):
            raise LookupError(f"{frame.address} has no tensor at {edit.pattern.text!r}.")
        new = self._edited(i, frame, old)
        put_input(frame, edit.pattern.path, new)
        self._note(i, frame, old, new)

    def _edited(self, i: int, frame: Frame, old: Any) -> Any:
        edit = self.edits[i]
        place = Place(self.model, frame, edit.pattern, self.past)
        with self.muted():
            new = applied(edit, old, place)
        self._met.setdefault(i, set()).update(place.met)
        return new

    def _note(self, i: int, frame: Frame, old: Any, new: Any) -> None:
        if new is old and old is not None:
            return  # its positions are not in this run
        text = str(frame.address)
        self.receipt.edits[i][text] = self.receipt.edits[i].get(text, 0) + 1
        site = self.receipt.sites.setdefault(text, Fired())
        site.times += 1
        if old is None or not self.measure:
            return
        with self.muted(), votive.no_grad():
            change = (new.detach().float() - old.detach().float()).reshape(-1)
            if change.numel():
                site.largest = max(site.largest, float(change.abs().max()))
                norm = float(old.detach().float().norm())
                site.relative = max(site.relative, float(change.norm()) / norm if norm else 0.0)


def passed_on(frame: Frame) -> Any:
    """What a module that is skipped gives: its first input."""
    if not frame.is_module:
        raise ValueError(f"skip: {frame.address} is an operator; replace its value instead.")
    given = input_at(frame, ())
    if given is None:
        raise LookupError(f"skip: {frame.address} has no input to pass on.")
    return given


def patch(model: Any, edits: Any, *, measure: bool = True) -> Patch:
    """Change values at addresses while the block runs; `with ... as receipt` tells what happened.

    `edits` maps patterns to values, to functions of the value, to modules that run instead, or to
    None to skip; or it is a list of `Edit`s. Gradients flow through. `measure=False` spares the
    receipt the size of changes.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> with votive.glass.patch(net, {"0": lambda x: 2 * x}) as receipt:
    ...     net(votive.ones(2))
    tensor([2., 2.])
    >>> print(receipt)
    0  fired 1  largest change 1  relative 1
    """
    return Patch(model, edits, measure=measure)


def ablate(
    model: Any, at: Any, kind: str = "zero", *, value: Any = None, positions: Any = None,
    features: Any = None, samples: Any = None, seed: int = 0, measure: bool = True,
    data: Any = None, over: str = "samples",
) -> Patch:  # fmt: skip
    """Take away what a part says: zeros, its mean, or what it says about another sample.

    The mean is over the samples of the batch, for each position on its own, so that no position
    learns of later ones. With `data` it is over those batches, as `means` has them; `over` as
    there. "resample" takes the values that another sample of the batch has at the same position.

    >>> net = votive.nn.Identity()
    >>> with votive.glass.ablate(net, "^", positions=[1]):
    ...     net(votive.ones(1, 3, 1)).flatten()
    tensor([1., 0., 1.])
    """
    if kind not in ("zero", "mean", "resample"):
        raise ValueError(f"ablate: kind must be zero, mean or resample, got {kind!r}.")
    if data is None and over != "samples":
        raise ValueError(f"ablate: over={over!r} is about a data set; give data=.")
    if data is not None:
        if kind != "mean" or value is not None:
            raise ValueError("ablate: data= is for kind 'mean', in place of value=.")
        parts = {"positions": positions, "features": features, "samples": samples}
        found = [replace(e, **parts) for e in means(model, at, data, over=over)]
        return Patch(model, found, measure=measure)
    at = [at] if isinstance(at, str) else list(at)
    made = [
        Edit(a, kind, value, positions=positions, features=features, samples=samples, seed=seed)
        for a in at
    ]  # fmt: skip
    return Patch(model, made, measure=measure)


def swap(model: Any, at: str, module: Any) -> Patch:
    """Let another module run at an address while the block runs.

    A text is the address of another module of the model, which runs in this place with its own
    weights; "identity" gives the input on, and a key-value cache is filled all the same.

    >>> net = votive.nn.Sequential(votive.nn.Tanh())
    >>> with votive.glass.swap(net, "0", votive.nn.Identity()):
    ...     net(votive.full((1,), 5.0))
    tensor([5.])
    >>> net = votive.nn.Sequential(votive.nn.Tanh(), votive.nn.ReLU())
    >>> with votive.glass.swap(net, "0", "1"):
    ...     net(votive.full((1,), 5.0))
    tensor([5.])
    """
    return Patch(model, [Edit(at, "swap", module)])


def skip(model: Any, at: Any) -> Patch:
    """Let modules give on their first input while the block runs.

    Where a key-value cache is filled, attention runs unheard, so that the cache is filled too.

    >>> net = votive.nn.Sequential(votive.nn.Tanh())
    >>> with votive.glass.skip(net, "0"):
    ...     net(votive.full((1,), 5.0))
    tensor([5.])
    """
    return Patch(model, [Edit(a, "skip") for a in ([at] if isinstance(at, str) else at)])
