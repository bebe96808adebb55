"""Changing values while a model runs, with a receipt of what was changed. Knows no model."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

import votive

from ..core.mode import mode
from ..nn import Module
from ..tensor import Tensor
from . import values
from .apply_edit import apply_edit
from .axes import Place, caches
from .capture import first_input, input_at, put_input
from .display import Displayable
from .edits import Edit, Edits, edits_of
from .means import means
from .module_swap import IDENTITY, check_name, replacement_for
from .probe import Frame, Probe
from .probe_hub import EDITS, HUB, storages
from .receipt import Fired, Receipt, size_of_change
from .skipping import skipped_output
from .taint import Outcome, TaintTracker, Unread
from .targets import modules_for, no_match
from .traced_edits import key_of, traceable


class Patch(Probe, Displayable):
    """Edits that hold inside a `with` block; gives their receipt.

    At the end of the block an edit that met no call raises `NoMatch`, and one of whose values
    nothing in the result was computed raises `Unread`. With `measure=False` neither the size of
    changes nor what reads them is found out.
    """

    order = EDITS
    for_runs = True

    def __init__(self, model: Module, edits: Edits, *, measure: bool = True, follow: bool | None = None) -> None:
        self.edits = edits_of(edits)
        if not self.edits:
            raise ValueError("patch: no edit was given.")
        found = [e.pattern for e in self.edits]
        only = modules_for(model, found)
        for e in self.edits:
            _check_swap(model, e)
        super().__init__(model, ops=any(p.wants_ops for p in found), only=only, sites=found)
        self.measure = measure
        self.receipt = Receipt(edits=[{} for _ in self.edits])
        self._met: dict[int, set[int]] = {}  # by edit: its positions that were found
        self.tracker = TaintTracker(self) if (measure if follow is None else follow) else None

    def swapped_in(self) -> list[tuple[Edit, Any]]:
        """The modules that are swapped in, with the edits that say where."""
        return [(e, e.value) for e in self.edits if e.do == "swap" and hasattr(e.value, "_modules")]

    def __enter__(self) -> Any:
        super().__enter__()
        return self.receipt

    def __exit__(self, *exc: object) -> None:
        self.close()
        if exc[0] is None and self.runs:
            for i, (edit, fired) in enumerate(zip(self.edits, self.receipt.edits, strict=True)):
                if not fired and edit.runs is None and i not in self._met:
                    raise no_match(edit.pattern, [n for n, _ in self.model.named_modules()])
                self._check_positions(i, edit)
            self.check_read()

    def _check_positions(self, i: int, edit: Edit) -> None:
        """Raise if an edit names positions that no run had."""
        missing = [p for p in edit.positions or () if p not in self._met.get(i, edit.positions or ())]
        if missing:
            raise IndexError(
                f"patch: the positions {missing} of the edit at {edit.at!r} were in no run; "
                "positions count from 0, at the beginning of the text."
            )

    def mark(self) -> Any:
        return super().mark(), deepcopy(self.receipt), deepcopy(self._met)

    def rewind(self, mark: Any) -> None:
        runs, receipt, self._met = deepcopy(mark)
        super().rewind(runs)
        # The one that was given out goes on.
        self.receipt.sites, self.receipt.edits = receipt.sites, receipt.edits

    def close(self) -> None:
        """Detach it; nothing is raised."""
        super().__exit__(None, None, None)
        if self.tracker is not None:
            self.tracker.end()

    def check_read(self) -> None:
        """Raise for an edit that has changed only what the model has no use for."""
        if self.tracker is None:
            return
        for i, edit in enumerate(self.edits):
            outcomes = {a: f for (n, a), f in self.tracker.outcomes.items() if n == i}
            if outcomes and all(f.wrong for f in outcomes.values()):
                raise _unread(edit, *next(iter(outcomes.items())))

    def finished(self, frame: Frame) -> None:
        if self.tracker is None:
            return
        if frame.error is None:
            self.tracker.ended(frame.output)
        for address, site in self.receipt.sites.items():
            outcomes = [f for (_, a), f in self.tracker.outcomes.items() if a == address]
            # Of several edits at one place, the one that got furthest speaks.
            best = max(outcomes, key=lambda f: (bool(f.reached), f.reached is None), default=None)
            if best is not None:
                site.reached, site.why = best.reached, best.why

    def compiled_as(self) -> Any:
        if type(self) is not Patch or self.inactive or not all(map(traceable, self.edits)):
            return None
        if self.tracker is not None:
            # The first run shows what reads the new values.
            found = self.tracker.outcomes.values()
            if not found or not all(o.reached for o in found):
                return None
        return self.model, self.measure, tuple(map(key_of, self.edits))

    def reads(self, frame: Frame, side: str) -> bool:
        return False

    def _again(self, frame: Frame, side: str) -> bool:
        """In a compiled program, where edits are a part of the graph: note what they have done."""
        done = frame.state.edited
        if done is None or mode.tracing is not None:
            return False
        for i, fired, old, new, met in done.get(HUB.probes.index(self), ()):
            if self.edits[i].pattern.side == side:
                self._met.setdefault(i, set()).update(met)
                if fired:
                    self._note(i, frame, old, new)
        return True

    def _log(self, i: int, frame: Frame, old: Tensor, new: Any, met: set[int]) -> None:
        """While a program is traced: say what `_again` will note."""
        if frame.state.edited is not None:
            measured = (old, new) if self.measure and new is not None else (None, None)
            mode.tracing.looks_at(measured)
            frame.state.edited.setdefault(HUB.probes.index(self), []).append(
                (i, new is not None, *measured, tuple(met))
            )

    def _due(self, frame: Frame) -> list[tuple[int, Edit]]:
        return [
            (i, e)
            for i, e in enumerate(self.edits)
            if (e.runs is None or self.runs in e.runs)
            and e.pattern.matches(frame.address, frame)
            and not (e.do == "swap" and _inside_of(e, frame))
        ]

    def entered(self, frame: Frame) -> None:
        if self._again(frame, "in"):
            return
        for i, edit in self._due(frame):
            if edit.do in ("skip", "swap"):
                self._change_call(edit, frame)
                self._note(i, frame, None, None)
            elif edit.pattern.side == "in":
                self._change_input(i, edit, frame)

    def left(self, frame: Frame) -> None:
        if frame.parent is None:
            self._check_cache(frame)
        if self._again(frame, "out"):
            return
        for i, edit in self._due(frame):
            if edit.do in ("skip", "swap"):
                self._track_call(i, edit, frame)
            elif edit.pattern.side == "out":
                path = edit.pattern.path or values.first_path(frame.output)
                if path is None:
                    raise LookupError(f"{frame.address} gives no tensor that could be changed.")
                old = values.get(frame.output, path)
                if not isinstance(old, votive.Tensor):
                    raise LookupError(f"{frame.address} gives no tensor at {edit.pattern.text!r}.")
                new, where = self._edited(i, frame, old)
                if new is not None:
                    frame.output = values.put(frame.output, path, new)
                    self._note(i, frame, old, new, where)

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
            replacement = edit.value
            if edit.do == "skip" and frame.is_module and caches(frame):
                replacement = IDENTITY  # its part of the cache is filled all the same
            if isinstance(replacement, str):
                if not frame.is_module:
                    raise ValueError(f"swap: {frame.address} is an operator, not a module.")
                replacement = replacement_for(self.model, frame.address.module, replacement)
            if replacement is None:
                frame.skip(skipped_output(frame))
            else:
                frame.swap(replacement)

    def _change_input(self, i: int, edit: Edit, frame: Frame) -> None:
        path = edit.pattern.path or first_input(frame)
        old = None if path is None else input_at(frame, path)
        if not isinstance(old, votive.Tensor):
            raise LookupError(f"{frame.address} has no tensor at {edit.pattern.text!r}.")
        new, where = self._edited(i, frame, old)
        if new is not None:
            put_input(frame, path, new)
            self._note(i, frame, old, new, where)

    def _edited(self, i: int, frame: Frame, old: Tensor) -> tuple[Any, Any]:
        """The new value, which shares no memory with others; None where nothing is to be done.

        With it comes which elements were edited; None for all.
        """
        edit = self.edits[i]
        place = Place(self.model, frame, edit.pattern, self.past)
        new, where = self._computed(i, edit, old, place)
        self._log(i, frame, old, new, place.met)
        return new, where

    def _computed(self, i: int, edit: Edit, old: Tensor, place: Place) -> tuple[Any, Any]:
        tracing = mode.tracing
        with self.muted() if tracing is None else tracing.recorded(edit):
            # A function may write into what it is given, and others may hold the same tensor.
            given = old.clone() if edit.do == "call" else old
            new, where = apply_edit(edit, given, place)
            self._met.setdefault(i, set()).update(place.met)
            if new is given and edit.positions is not None:
                return None, None  # they are not in this run
            # What comes next may write into it: into a value that is expanded nobody can, and into
            # the edit's own nobody should.
            # What a function gives may be its own.
            mine = edit.do == "call" or (
                isinstance(edit.value, votive.Tensor) and new._storage.root is edit.value._storage.root
            )
            return new.clone() if mine or new._spec.layout.overlaps else new, where

    def _note(
        self, i: int, frame: Frame, old: Tensor | None, new: Tensor | None, where: np.ndarray | None = None
    ) -> None:
        text = str(frame.address)
        self.receipt.edits[i][text] = self.receipt.edits[i].get(text, 0) + 1
        site = self.receipt.sites.setdefault(text, Fired())
        site.times += 1
        if old is None or new is None:
            return
        reads = _reads(self.edits[i])
        for tracker in HUB.active_trackers():
            had = tracker.keys_of(old)
            if not had:
                continue
            if self.edits[i].do in ("add", "scale"):
                tracker.spread(old, new, np.ones(tuple(old.shape), bool))
            elif reads:
                tracker.spread(old, new)
            elif where is not None:
                tracker.spread(old, new, ~where)  # the rest is as it was
            # Another edit of the same patch may have been made here before.
            tracker.cut(had - tracker.keys_of(new), text)
        self._track_value(i, frame, new, where)
        if not self.measure:
            return
        with self.muted(), votive.no_grad():
            site.add(*size_of_change(old.detach(), new.detach()))

    def _track_value(self, i: int, frame: Frame, new: object, where: np.ndarray | None = None) -> None:
        if self.tracker is None:
            return
        key = i, str(frame.address)
        if frame.shown:
            counts = str(frame.address._replace(op=frame.shown, index=0))
            why = f"it is computed only to be shown; the model computes with {counts}"
            self.tracker.settle(key, Outcome(False, why, True, counts))
        else:
            self.tracker.begin(key, new, where)

    def _track_call(self, i: int, edit: Edit, frame: Frame) -> None:
        """Follow what a skip or swap gave, where that can be told from what went in."""
        if self.tracker is None:
            return
        key = i, str(frame.address)
        given, got = storages((frame.args, frame.kwargs)), storages(frame.output)
        if given & got or not got:
            why = "what was given on is its input, which others may read too" if got else "it gives no tensor"
            self.tracker.settle(key, Outcome(None, why))
        else:
            self._track_value(i, frame, frame.output)


def _inside_of(edit: Edit, frame: Frame) -> bool:
    """Whether a call is made by what the swap has put in: '1' means '1.1' too."""
    around = frame.parent
    while around is not None:
        if around.replacement is not None and edit.pattern.matches(around.address, around):
            return True
        around = around.parent
    return False


def _reads(edit: Edit) -> bool:
    """Whether an edit makes new values of the old ones."""
    if edit.do in ("mean", "resample"):
        return edit.value is None
    return edit.do not in ("replace", "zero")


def _check_swap(model: Module, edit: Edit) -> None:
    """Raise unless what a swap would put in can run there."""
    if edit.do != "swap":
        return
    if isinstance(edit.value, str):
        if not edit.pattern.wants_modules:
            raise ValueError(f"swap: {edit.at!r} is an operator, not a module; give a function of its arguments.")
        check_name(model, edit.value)
    elif not callable(edit.value):
        raise TypeError(
            f"swap: {edit.at!r} needs a module, its address or a function, got {type(edit.value).__name__}."
        )


def _unread(edit: Edit, address: str, outcome: Outcome) -> Unread:
    said = f"{edit.at!r} changed {address or '(model)'}, but {outcome.why}."
    if outcome.counts:
        return Unread(f"{said} Edit {outcome.counts.removesuffix('#0')!r} instead.")
    module = address.partition("/")[0]
    if module != address and module:
        said += f" What goes on from there is the result of {module!r}."
    return Unread(said)


def patch(model: Module, edits: Edits, *, measure: bool = True) -> Patch:
    """Change values at addresses while the block runs; `with ... as receipt` tells what happened.

    `edits` maps patterns to values, to functions of the value, to modules that run instead, or to
    None to skip; or it is a list of `Edit`s. Gradients flow through. Several patches at one place
    are made in the order in which their blocks were entered. At the end of the block, an edit that
    met no call raises `NoMatch`, and one that changed only what nothing in the result is computed
    from raises `Unread`. `measure=False` spares the receipt the size of changes and who reads them.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> with votive.glass.patch(net, {"0": lambda x: 2 * x}) as receipt:
    ...     net(votive.ones(2))
    tensor([2., 2.])
    >>> print(receipt)
    0  fired 1  largest change 1  relative 1
    """
    return Patch(model, edits, measure=measure)


def ablate(
    model: Module,
    at: str | Collection[str],
    kind: str = "zero",
    *,
    value: object = None,
    positions: Any = None,
    features: Any = None,
    samples: Any = None,
    heads: Any = None,
    seed: int = 0,
    measure: bool = True,
    data: Iterable[object] | None = None,
    over: str = "samples",
) -> Patch:
    """Take away what a part says: zeros, its mean, or what it says about another sample.

    The mean is over the samples of the batch, for each position on its own, so that no position
    learns of later ones. With `data` it is over those batches, as `means` has them; `over` as
    there. "resample" takes the values that another sample of the batch has at the same position.
    `positions`, `features`, `samples` and `heads` choose as in `Edit`.

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
        found = [
            replace(e, positions=positions, features=features, samples=samples, heads=heads)
            for e in means(model, at, data, over=over)
        ]
        return Patch(model, found, measure=measure)
    at = [at] if isinstance(at, str) else list(at)
    chosen = {"positions": positions, "features": features, "samples": samples, "heads": heads}
    made = [Edit(a, kind, value, **chosen, seed=seed) for a in at]
    return Patch(model, made, measure=measure)


def swap(model: Module, at: str, module: object) -> Patch:
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


def skip(model: Module, at: str | Iterable[str]) -> Patch:
    """Let modules give on their first input while the block runs, in the form of their result.

    To find out that form, a module is run unobserved, with nothing left of it: once, or each time if
    it gives more than one tensor. An input that does not fit into the place of the first tensor of
    the result is refused; swap in a function then.
    Where a key-value cache is filled, attention runs unobserved, so that the cache is filled too.

    >>> net = votive.nn.Sequential(votive.nn.Tanh())
    >>> with votive.glass.skip(net, "0"):
    ...     net(votive.full((1,), 5.0))
    tensor([5.])
    """
    return Patch(model, [Edit(a, "skip") for a in ([at] if isinstance(at, str) else at)])
