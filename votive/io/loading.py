"""`load_into`: the tensors of a source become the parameters of a module. Knows no format.

Everything is checked from names and shapes before anything is read, and everything is read before
the module is changed.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..autograd.modes import no_grad
from ..core import dtype as dt
from ..core.device import DeviceLike
from ..nn.loading import Loading
from ..nn.module import Module
from ..nn.parameter import Parameter, is_lazy
from ..tensor import Tensor
from .report import LoadError, LoadReport
from .source import MemorySource, TensorInfo, Values, WeightSource, as_dtype


@dataclass
class _Place:
    """A parameter or buffer, and all the names the module knows it by."""

    value: Any
    owners: list[tuple[Any, str]]
    names: list[str]


def load_into(
    module: Module,
    source: WeightSource | Mapping[str, Values] | str | os.PathLike[str],
    *,
    strict: bool = True,
    dtype: dt.dtype | str | None = None,
    device: DeviceLike = None,
    assign: bool = True,
    blocks: bool = False,
) -> LoadReport:
    """Load a module's parameters and buffers, or change nothing and say all that does not fit.

    Floating-point values get `dtype`, by default that of the module's own; "auto" takes the file's.
    With `assign` they replace the module's tensors, and where no conversion is needed their memory
    is the file itself, read when touched; without, values are copied into the module's tensors. A
    parameter that the module has under several names is loaded once, from whichever is there.
    With `blocks`, matrices that a file stores in blocks of few bits stay so and compute as they are, in `dtype`.
    With `strict=False` what fits is loaded and the rest reported.

    >>> m = votive.nn.Linear(2, 1, bias=False)
    >>> report = votive.io.load_into(m, {"weight": votive.ones(1, 2)})
    >>> report.ok, m.weight.data
    (True, tensor([[1., 1.]]))
    """
    if not isinstance(source, WeightSource):
        if isinstance(source, Mapping):
            source = MemorySource(source)
        else:
            from .formats import open_weights

            source = open_weights(source)
    wanted: Any = dtype if dtype is None or dtype == "auto" else as_dtype(dtype)
    if _customised(module):
        return _load_by_state_dict(module, source, strict, wanted, device, assign, blocks)
    report, pairs = _match(_places(module), source)
    if strict and not report.ok:
        raise LoadError(type(module).__name__, report)
    if blocks and not assign:
        raise ValueError("load_into: blocks=True replaces tensors, so it needs assign=True.")
    values = [(place, _fetch(source, info, place, wanted, device, assign, blocks)) for place, info in pairs]
    for place, value in values:
        (_assign if assign else _copy)(place, value)
    return report


def _places(module: Module) -> list[_Place]:
    """What the module saves, tensors that appear several times only once."""
    found: dict[int, _Place] = {}
    for prefix, child in module.named_modules(remove_duplicate=False):
        for name, value in child._own_state().items():
            place = found.setdefault(id(value), _Place(value, [], []))
            place.owners.append((child, name))
            place.names.append(f"{prefix}.{name}" if prefix else name)
    return list(found.values())


def _match(places: list[_Place], source: WeightSource) -> tuple[LoadReport, list[tuple[_Place, TensorInfo]]]:
    report = LoadReport()
    pairs: list[tuple[_Place, TensorInfo]] = []
    unused = dict.fromkeys(source.names())
    for place in places:
        there = [name for name in place.names if name in unused]
        if not there:
            report.missing.append(place.names[0])
            continue
        for name in there:
            del unused[name]
        info = source.info(there[0])
        if not is_lazy(place.value):
            want = tuple(place.value.shape)
            # Saved before 0-d tensors were known.
            if info.shape != want and (want, info.shape) != ((), (1,)):
                report.mismatched.append((there[0], info.shape, want))
                continue
        report.loaded.append(there[0])
        pairs.append((place, info))
    report.unused.extend(unused)
    return report, pairs


def _fetch(
    source: WeightSource,
    info: TensorInfo,
    place: _Place,
    dtype: dt.dtype | str | None,
    device: DeviceLike,
    assign: bool,
    blocks: bool,
) -> Tensor:
    """The value for one place, of the type and on the device it shall have."""
    have = place.value
    target = have.dtype if assign else info.dtype
    if info.dtype.is_floating_point and have.dtype.is_floating_point and dtype is not None:
        target = info.dtype if dtype == "auto" else dtype
    kept = source.blocks(info.name) if blocks and have.ndim >= 2 else None
    if kept is not None and tuple(kept.shape) == tuple(have.shape):
        numbers = target if target in (dt.float64, dt.float32, *dt.HALF) else dt.float32
        return kept.computing_in(numbers).to(have.device if device is None else device)
    t = source.tensor(info.name, dtype=target, device=have.device if device is None else device)
    if not is_lazy(have) and tuple(t.shape) != tuple(have.shape):
        t = t.reshape(have.shape)
    return t


def _assign(place: _Place, value: Tensor) -> None:
    have = place.value
    if isinstance(have, Parameter):
        value = Parameter(value, requires_grad=have.requires_grad and value.dtype.is_inexact)
    for owner, name in place.owners:
        setattr(owner, name, value)


def _copy(place: _Place, value: Tensor) -> None:
    with no_grad():
        if is_lazy(place.value):
            place.value.materialize(value.shape)
        place.value.copy_(value)


def _customised(module: Module) -> bool:
    """Whether some part has its own way of loading, which must then be asked."""
    plain: Callable[..., Any] = Module._load_from_state_dict
    return any(
        m._load_state_dict_pre_hooks
        or m._load_state_dict_post_hooks
        or type(m)._load_from_state_dict is not plain
        or type(m).set_extra_state is not Module.set_extra_state
        for m in module.modules()
    )


def _load_by_state_dict(
    module: Module,
    source: WeightSource,
    strict: bool,
    dtype: dt.dtype | str | None,
    device: DeviceLike,
    assign: bool,
    blocks: bool,
) -> LoadReport:
    """The way of `load_state_dict`, which lets every module look at what it is given."""
    places = _places(module)
    report, pairs = _match(places, source)
    if strict and report.mismatched:
        raise LoadError(type(module).__name__, report)
    state: dict[str, Any] = OrderedDict()
    for place, info in pairs:
        state.update(dict.fromkeys(place.names, _fetch(source, info, place, dtype, device, assign, blocks)))
    state.update((name, source.tensor(name)) for name in report.unused)
    loading = Loading(source.metadata.get("_metadata"), assign)
    try:
        loading.visit(module, state, "")
        loading.finish(module, strict)
    except BaseException as error:
        loading.roll_back()
        found = _after(report, loading)
        if strict and not found.ok and not loading.errors and type(error) is RuntimeError:
            raise LoadError(type(module).__name__, found) from None
        raise
    if assign:
        _tie(places)
    return _after(report, loading)


def _after(report: LoadReport, loading: Loading) -> LoadReport:
    """The report once the modules have had their say: hooks rename, add and forgive."""
    wrong = {name for name, _, _ in report.mismatched}
    missing = [name for name in loading.keys.missing_keys if name not in wrong]
    return LoadReport(report.loaded, missing, list(loading.keys.unexpected_keys), report.mismatched)


def _tie(places: list[_Place]) -> None:
    for place in places:
        owner, name = place.owners[0]
        for other, alias in place.owners[1:]:
            setattr(other, alias, getattr(owner, name))
