"""Edits: what to change at which address, as data that can be saved. Knows no model."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex, TypeAlias

import votive

from .address import Pattern
from .display import Displayable

# What an edit may do to a value; "swap" and "skip" are about the call itself.
KINDS = ("replace", "add", "scale", "zero", "mean", "resample", "call", "swap", "skip")
_VALUED = ("replace", "add", "scale", "call", "swap")


@dataclass(frozen=True)
class Edit(Displayable):
    """One change: where, what, and to which part of the value.

    `positions` are those of the text, counted from its beginning even if a cache holds its first
    part: the second dimension of what modules give, the third of what attention gives. `features`
    choose in the last dimension (for convolutions, channels), `samples` in the first, `heads` where
    heads have a dimension of their own, as at `layers.3.attn.z`. Where it is not known what a
    dimension means, they are refused. `runs` are the outermost calls it is made in, counted from 1;
    None means all. "mean" puts the mean over the samples of a batch in place of a value, position by
    position; its `value` is the mean of a data set, as `means` gives it. A swap's value is a module,
    or as a text the address of another one of the model, or "identity".

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
    heads: tuple[int, ...] | None = None
    pattern: Pattern = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.do not in KINDS:
            raise ValueError(f"Edit: do must be one of {', '.join(KINDS)}, got {self.do!r}.")
        if self.do in _VALUED and self.value is None:
            raise ValueError(f"Edit: {self.do!r} at {self.at!r} needs a value.")
        if self.do in ("zero", "skip") and self.value is not None:
            raise ValueError(f"Edit: {self.do!r} at {self.at!r} takes no value.")
        for name in ("positions", "features", "samples", "heads", "runs"):
            object.__setattr__(self, name, _indices(name, getattr(self, name)))
        if self.do in ("swap", "skip") and (self.positions or self.features or self.samples or self.heads):
            raise ValueError(f"Edit: {self.do!r} is about a whole call, not about parts of it.")
        object.__setattr__(self, "pattern", Pattern(self.at))

    def to_dict(self) -> dict[str, Any]:
        """Plain values and tensors, which `votive.save` takes; functions cannot be saved."""
        if callable(self.value) and not isinstance(self.value, votive.Tensor):
            raise TypeError(self._unsaved())
        fields = {
            "at": self.at,
            "do": self.do,
            "value": self.value,
            "positions": self.positions,
            "features": self.features,
            "samples": self.samples,
            "runs": self.runs,
            "seed": self.seed,
            "heads": self.heads,
        }
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}
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
    def from_dict(cls, fields: Mapping[str, Any]) -> Edit:
        """What `to_dict` gave."""
        return cls(**fields)


# One edit, several, or a mapping from addresses to values, functions, modules or None.
Edits: TypeAlias = Edit | Mapping[str, Any] | Sequence[Any]


def _indices(name: str, given: object) -> tuple[int, ...] | None:
    if given is None:
        return None
    found = _listed(name, given)
    if not found:
        raise ValueError(f"Edit: {name} is empty, so nothing would be changed; use None for all.")
    return found


def _listed(name: str, given: object) -> tuple[int, ...]:
    if isinstance(given, range):
        return tuple(given)
    if isinstance(given, slice):
        if given.stop is None:
            raise ValueError(f"Edit: {name} as a slice needs an end, or give a range.")
        if given.stop < 0 or (given.start or 0) < 0:
            raise ValueError(f"Edit: {name} as a slice counts from the beginning; give a list of negative numbers.")
        return tuple(range(*given.indices(given.stop)))
    found = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(found, Sequence) and not isinstance(found, str):
        return tuple(_whole(name, i) for i in found)
    return (_whole(name, found),)


def _whole(name: str, given: object) -> int:
    if isinstance(given, bool):
        raise TypeError(f"Edit: {name} are numbers, not truth values; give mask.nonzero().flatten() for a mask.")
    if not isinstance(given, SupportsIndex):
        raise TypeError(f"Edit: {name} must be an int, a range or a list of them, got {given!r}.")
    return operator.index(given)


def edits_of(given: Edits) -> list[Edit]:
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
        f"give an Edit, a list of them, or a dict such as {{'layers.3.mlp': value}}; got {type(given).__name__}."
    )


def _edit(at: str, what: object) -> Edit:
    if isinstance(what, Edit):
        return what
    if what is None:
        return Edit(at, "skip")
    if isinstance(what, votive.nn.Module):
        return Edit(at, "swap", what)
    if isinstance(what, Callable) and not isinstance(what, votive.Tensor):  # type: ignore[arg-type]
        return Edit(at, "call", what)
    return Edit(at, "replace", what)
