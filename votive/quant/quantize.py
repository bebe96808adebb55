"""`quantize_`: the weights of a module become blocks, in place. Knows modules, recipes and methods."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..backends.common.blocks.encode import FITTED
from ..core.blocks import block_dtype
from ..nn import Module
from ..surface.block_tensor import BlockTensor
from .awq import can_scale, grouped, scale_inputs, search, weighting
from .calibration import Inputs, collect, groups
from .encoding import ENCODABLE, rounded
from .gptq import gptq
from .grid import ASYMMETRIC, FORMATS, Array, decoded, records_of
from .hqq import hqq
from .imatrix import columns_of
from .importance_file import read_importance
from .places import Place, places
from .recipes import Kind, recipe
from .report import Entry, Report

METHODS = ("rtn", "gptq", "awq", "hqq")
# Told the name of a weight, how many are done and how many there are.
Progress = Callable[[str, int, int], None]
# Bytes of sums of products that are collected at a time.
BUDGET = 1 << 28
Chosen = list[tuple[Place, block_dtype]]


def quantize_(
    model: Module,
    kind: Kind,
    *,
    imatrix: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    method: str = "rtn",
    data: Iterable[Any] | None = None,
    skip: Iterable[str] = (),
    folded: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Put the weights of a module's linear layers and tables in blocks of few bits, in place.

    `kind` is a block format (`votive.q4_k` or its name), a recipe by llama.cpp's name (`"q4_k_m"`, see
    `votive.quant.recipe`) or a function of a module's name and its weight's (rows, columns) that gives a format or
    None; "int8_dynamic" and "int8_static" are described below. `method` chooses the codes: "rtn" rounds, weighted by
    an importance matrix if there is one; "gptq" and "awq" need `data`, inputs of the model; "hqq" moves the minima of
    formats that have some. `imatrix` maps names of weights, the model's or llama.cpp's, to sums of squared inputs
    (`votive.quant.importance`), or is the path of a file of them (`votive.quant.read_importance`); with "rtn" and
    "hqq", `data` has the same effect. `skip` names modules to leave as they are; patterns such as "*.router" count.
    Tied weights stay tied. With `folded`, "awq" scales inputs only where a norm before can do it, so that layers keep
    their classes and files describe the model. Whatever is wrong is said before anything changes.

    "int8_dynamic" replaces linear layers by ones that multiply 8 bits by 8 bits, with a scale of the input found at
    each call; "int8_static" takes those scales from `data` and replaces convolutions too. Weights have a scale per row.

    >>> net = votive.nn.Sequential(votive.nn.Linear(64, 32), votive.nn.ReLU(), votive.nn.Linear(32, 8))
    >>> report = votive.quantize_(net, "q8_0")
    >>> net[0].weight.dtype, round(report.bits_per_weight, 1), report.worst(1)[0].relative_error < 0.01
    (votive.q8_0, 8.5, True)
    """
    if not isinstance(model, Module):
        raise TypeError(f"quantize_: model is a Module, got {type(model).__name__}.")
    if kind in ("int8_dynamic", "int8_static"):
        if imatrix is not None or method != "rtn" or folded:
            raise ValueError(f"quantize_: {kind} rounds to nearest; leave out imatrix=, method= and folded=.")
        from .int8 import int8_

        return int8_(model, str(kind), data=data, skip=skip, progress=progress)
    if method not in METHODS:
        raise ValueError(f"quantize_: method is one of {', '.join(METHODS)}, got {method!r}.")
    wanted = places(model, skip)
    weighed = imatrix is not None or data is not None
    choose = recipe(kind, {n: p.shape for p in wanted for n, _ in p.owners}, weighed=weighed)
    report = Report()
    chosen: Chosen = []
    for place in wanted:
        format = choose(place.name, place.shape)
        if format is None or place.weight.dtype is format:
            report.kept.append(place.name)
        else:
            chosen.append((place, format))
    if not chosen:
        raise ValueError("quantize_: the model has no weight of a linear layer or a table that this would change.")
    if folded and method != "awq":
        raise ValueError(f"quantize_: folded= is for awq, which scales inputs; {method} scales none.")
    _check(chosen, method, imatrix, data)
    # Every item is used once for each group of layers.
    inputs = None if data is None else list(data)
    weights = _importance(chosen, read_importance(imatrix) if isinstance(imatrix, (str, os.PathLike)) else imatrix)
    if (imatrix is not None or data is not None) and method in ("rtn", "hqq"):
        _check_heard({f.name for _, f in chosen}, method)
    tell = progress if progress is not None else lambda name, done, total: None
    run = _Run(model, chosen, method, weights, inputs, report, tell, folded)
    run.all()
    return report


def _check(chosen: Chosen, method: str, imatrix: object, data: object) -> None:
    if method in ("gptq", "awq") and data is None:
        raise ValueError(f"quantize_: {method} goes by what layers are fed; give data=, some inputs of the model.")
    if imatrix is not None and data is not None:
        raise ValueError("quantize_: data= makes an importance matrix of its own; leave out imatrix=.")
    names = {f.name for _, f in chosen}
    if not names <= set(ENCODABLE):
        unknown = ", ".join(sorted(names - set(ENCODABLE)))
        raise ValueError(f"quantize_: numbers become {', '.join(ENCODABLE)}, not {unknown}.")
    if method == "hqq" and not names & set(ASYMMETRIC):
        raise ValueError(f"quantize_: hqq moves the minima of {', '.join(ASYMMETRIC)}; {', '.join(names)} have none.")
    if method == "gptq" and not names <= set(FORMATS):
        raise ValueError(f"quantize_: gptq chooses codes of {', '.join(FORMATS)}, not of {', '.join(names)}.")
    for place, _ in chosen:
        if place.weight.device.type == "meta":
            raise ValueError(f"quantize_: {place.name!r} is on meta and has no numbers; load the model first.")
        if not isinstance(place.weight, BlockTensor) and not bool(place.weight.isfinite().all()):
            raise ValueError(f"quantize_: the weight of {place.name!r} holds infinities or NaN.")


def _check_heard(names: set[str], method: str) -> None:
    heard = FITTED | (set(ASYMMETRIC) if method == "hqq" else set())
    if not names & heard:
        raise ValueError(
            f"quantize_: {', '.join(sorted(names))} is rounded as it is; "
            f"imatrix= and data= weigh errors in {', '.join(sorted(heard))}."
        )


def _importance(chosen: Chosen, imatrix: Mapping[str, Any] | None) -> dict[int, Array]:
    """The importance matrix by weights; every entry must fit."""
    found: dict[int, Array] = {}
    if imatrix is None:
        return found
    for place, _ in chosen:
        values = columns_of(imatrix, [f"{n}.weight" if n else "weight" for n, _ in place.owners], place.shape)
        if values is not None:
            found[id(place)] = values
    if not found:
        raise ValueError("quantize_: imatrix= names no weight of this model.")
    return found


class _Run:
    """One call of `quantize_`, after everything has been checked."""

    def __init__(
        self,
        model: Module,
        chosen: Chosen,
        method: str,
        weights: dict[int, Array],
        data: Sequence[Any] | None,
        report: Report,
        tell: Progress,
        folded: bool = False,
    ) -> None:
        self.folded = folded
        self.model, self.method, self.weights, self.data = model, method, weights, data
        self.report, self.tell, self.total = report, tell, len(chosen)
        self.formats = {id(p): f for p, f in chosen}
        self.places = [p for p, _ in chosen]

    def all(self) -> None:
        if self.data is None:
            for place in self.places:
                self._put(place, None)
            return
        # Layers are fed by those before them as these have become.
        for group in groups(self.places, BUDGET):
            found = collect(self.model, self.data, group, products=self.method in ("gptq", "awq"))
            inputs = {id(p): sums for p, sums in zip(group, found)}
            if self.method == "awq":
                self._scaled(group, inputs)
                continue
            for place in group:
                self._put(place, inputs[id(place)])

    def _scaled(self, members: list[Place], inputs: dict[int, Inputs]) -> None:
        for group in grouped(self.model, members):
            scale = None
            if can_scale(group) and (group.norm is not None or not self.folded):
                arrays = [p.array() for p in group.places]
                formats = [self.formats[id(p)] for p in group.places]
                scale = search(arrays, formats, inputs[id(group.places[0])])
            if scale is not None:
                scale_inputs(self.model, group, scale)
            for place in group.places:
                self._put(place, inputs[id(place)], scale)

    def _put(self, place: Place, inputs: Inputs | None, scale: Array | None = None) -> None:
        format, array = self.formats[id(place)], place.array()
        done = self.method
        weight = self.weights.get(id(place))
        if inputs is not None and inputs.count:
            weight = weighting(inputs, scale)
        if scale is not None:
            raw = rounded(array * scale, format, weight)
        elif self.method == "gptq" and inputs is not None and inputs.count and inputs.products is not None:
            raw = gptq(array, format, inputs.products, inputs.count)
        elif self.method == "hqq" and format.name in ASYMMETRIC:
            raw = hqq(array, format, weight)
        else:
            done, raw = "rtn", rounded(array, format, weight)
        self.report.entries.append(_entry(place, format, array, raw, scale, done))
        place.assign(raw, format.name)
        self.tell(place.name, len(self.report.entries), self.total)


def _entry(place: Place, format: block_dtype, array: Array, raw: Array, scale: Array | None, method: str) -> Entry:
    made = decoded(records_of(raw, format), format).reshape(array.shape)
    if scale is not None:
        made = made / scale
    mse = float(np.square(made - array, dtype=np.float64).mean())
    size = float(np.square(array, dtype=np.float64).mean())
    relative = (mse / size) ** 0.5 if size else 0.0
    bits = 8 * format.block_bytes / format.block_size
    return Entry(place.name, place.shape, format.name, bits, raw.nbytes, mse, relative, method)
