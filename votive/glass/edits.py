"""Edits: what to change at which address, as data that can be saved. Knows no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import votive

from .address import Pattern
from .shown import Shown

# What an edit may do to a value; "swap" and "skip" are about the call itself.
KINDS = ("replace", "add", "scale", "zero", "mean", "resample", "call", "swap", "skip")
_VALUED = ("replace", "add", "scale", "call", "swap")


@dataclass(frozen=True)
class Edit(Shown):
    """One change: where, what, and to which part of the value.

    `positions` are those of the sequence, dimension 1, counted from the beginning of the text even
    if a cache holds its first part; `features` choose in the last dimension, `samples` in the
    first. `runs` are the outermost calls it is made in, counted from 1; None means all. A swap's
    value is a module, or as a text the address of another one of the model, or "identity".

    >>> edit = votive.glass.Edit("layers.3.mlp", "zero", positions=[0])
    >>> votive.glass.Edit.from_dict(edit.to_dict()) == edit
    True
    """

    at: str
    do: str = "replace"
    value: Any = None
    positions: tuple[int, ...] | None = None
    features: tuple[int, ...] | None = None
    samples: tuple[int, ...] | None = None
    runs: tuple[int, ...] | None = None
    seed: int = 0
    pattern: Pattern = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.do not in KINDS:
            raise ValueError(f"Edit: do must be one of {', '.join(KINDS)}, got {self.do!r}.")
        if self.do in _VALUED and self.value is None:
            raise ValueError(f"Edit: {self.do!r} at {self.at!r} needs a value.")
        if self.do in ("zero", "skip") and self.value is not None:
            raise ValueError(f"Edit: {self.do!r} at {self.at!r} takes no value.")
        for name in ("positions", "features", "samples", "runs"):
            object.__setattr__(self, name, _indices(name, getattr(self, name)))
        if self.do in ("swap", "skip") and (self.positions or self.features or self.samples):
            raise ValueError(f"Edit: {self.do!r} is about a whole call, not about parts of it.")
        object.__setattr__(self, "pattern", Pattern(self.at))

    def to_dict(self) -> dict[str, Any]:
        """Plain values and tensors, which `votive.save` takes; functions cannot be saved."""
        if callable(self.value) and not isinstance(self.value, votive.Tensor):
            raise TypeError(self._unsaved())
        told = {
            "at": self.at, "do": self.do, "value": self.value, "positions": self.positions,
            "features": self.features, "samples": self.samples, "runs": self.runs,
            "seed": self.seed,
        }  # fmt: skip
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in told.items()}
        return {k: v for k, v in plain.items() if v is not None and (k != "seed" or v)}

    def _unsaved(self) -> str:
        said = f"Edit: {self.do!r} at {self.at!r} holds code, which is not saved"
        if self.do != "swap":
            return f"{said}; use a tensor and 'replace', 'add' or 'scale', or take it out first."
        return (
            f"{said}: a {type(self.value).__name__} of your own is known to this program only. Swap"
            " in a module of the model by its address, as Edit(at, 'swap', 'model.layers.2'), or"
            " 'identity'; or take the edit out first."
        )

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Edit:
        """What `to_dict` gave."""
        return cls(**told)

    def applied(self, x: Any, past: int = 0) -> Any:
        """The value after this edit; `past` positions of the text are not in it."""
        window = self._window(x, past)
        if window is None:
            return x
        if window == ():
            return _fitted(self._new(x, x), x, self)
        part = x[window]
        # What looks at the whole value gives a whole one, of which the same part is taken.
        whole = self._whole(x)
        new = self._new(part, x) if whole is None else whole.expand(x.shape)[window]
        out = x.clone()
        out[window] = _fitted(new, part, self)
        return out

    def _new(self, part: Any, x: Any) -> Any:
        if self.do == "zero":
            return votive.zeros_like(part)
        if self.do == "scale":
            return part * self.value
        if self.do == "add":
            return part + self.value
        if self.do == "call":
            return self.value(part)
        if self.value is not None:
            return self.value
        return self._whole(x)

    def _whole(self, x: Any) -> Any:
        """The mean over samples and positions, or the values of other samples."""
        if self.value is not None or self.do not in ("mean", "resample"):
            return None
        if self.do == "mean":
            dims = tuple(range(x.dim() - 1))
            return x.mean(dims, keepdim=True) if dims else x
        if x.shape[0] < 2:
            raise ValueError(
                f"Edit: 'resample' at {self.at!r} takes values of other samples, but the batch "
                "has only one; give value=."
            )
        generator = votive.Generator().manual_seed(self.seed)
        return x.roll(int(votive.randint(1, x.shape[0], (), generator=generator)), 0)

    def _window(self, x: Any, past: int) -> Any:
        """Index of the part that changes: () for all, None for nothing."""
        if self.positions is None and self.features is None and self.samples is None:
            return ()
        index: list[Any] = [slice(None)] * x.dim()
        if self.samples is not None:
            index[0] = _tensor_index(self.samples, x.shape[0], "samples", self.at)
        if self.positions is not None:
            if x.dim() < 2:
                raise ValueError(f"Edit: {self.at!r} has shape {tuple(x.shape)}, no positions.")
            length = x.shape[1]
            here = [p - past if p >= 0 else p + length for p in self.positions]
            here = [p for p in here if 0 <= p < length]
            if not here:
                return None
            index[1] = votive.tensor(here, device=x.device)
        if self.features is not None:
            index[-1] = _tensor_index(self.features, x.shape[-1], "features", self.at)
        lists = [i for i in index if not isinstance(i, slice)]
        if len(lists) > 1:
            # A grid of all combinations, not pairs.
            grid = iter(votive.meshgrid(*lists, indexing="ij"))
            return tuple(i if isinstance(i, slice) else next(grid) for i in index)
        return tuple(index)


def _tensor_index(given: tuple[int, ...], size: int, what: str, at: str) -> Any:
    bad = [i for i in given if not -size <= i < size]
    if bad:
        raise IndexError(f"Edit: {what} {bad} at {at!r} are outside of 0..{size - 1}.")
    return votive.tensor([i % size for i in given])


def _indices(name: str, given: Any) -> tuple[int, ...] | None:
    if given is None:
        return None
    if isinstance(given, range):
        return tuple(given)
    if isinstance(given, slice):
        if given.stop is None:
            raise ValueError(f"Edit: {name} as a slice needs an end, or give a range.")
        return tuple(range(*given.indices(given.stop)))
    if isinstance(given, int):
        return (given,)
    if isinstance(given, Sequence) or hasattr(given, "tolist"):
        return tuple(int(i) for i in (given.tolist() if hasattr(given, "tolist") else given))
    raise TypeError(f"Edit: {name} must be an int, a range or a list, got {type(given).__name__}.")


def _fitted(new: Any, old: Any, edit: Edit) -> Any:
    """A new value in the shape, type and place of the old one."""
    if not isinstance(new, votive.Tensor):
        new = votive.as_tensor(new)
    new = new.to(device=old.device, dtype=old.dtype)
    try:
        return new if new.shape == old.shape else new.expand(old.shape)
    except RuntimeError:
        raise ValueError(
            f"Edit: the value for {edit.at!r} has shape {tuple(new.shape)}, which does not fit "
            f"into {tuple(old.shape)}."
        ) from None


def edits_of(given: Any) -> list[Edit]:
    """Edits from one, a list, or a mapping from addresses to values, functions or edits.

    >>> from votive.glass.edits import edits_of
    >>> [e.do for e in edits_of({"layers.0": 0.0, "layers.1": lambda x: x, "layers.2": None})]
    ['replace', 'call', 'skip']
    """
    if isinstance(given, Edit):
        return [given]
    if isinstance(given, Mapping):
        return [_edit(at, what) for at, what in given.items()]
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [e for one in given for e in edits_of(one)]
    raise TypeError(
        "give an Edit, a list of them, or a dict such as {'layers.3.mlp': value}; got "
        f"{type(given).__name__}."
    )


def _edit(at: str, what: Any) -> Edit:
    if isinstance(what, Edit):
        return what
    if what is None:
        return Edit(at, "skip")
    if isinstance(what, votive.nn.Module):
        return Edit(at, "swap", what)
    if isinstance(what, Callable) and not isinstance(what, votive.Tensor):  # type: ignore[arg-type]
        return Edit(at, "call", what)
    return Edit(at, "replace", what)
