"""Records that are also tuples: what models and searches return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any


@dataclass
class ModelOutput:
    """Fields by name, by key, or in order with those left out that are None.

    >>> out = votive.models.CausalLMOutput(logits=votive.ones(2))
    >>> out.logits is out[0] is out["logits"], list(out.keys())
    (True, ['logits'])
    """

    def keys(self) -> Iterator[str]:
        """Names of the fields that are there."""
        return (f.name for f in fields(self) if getattr(self, f.name) is not None)

    def items(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in self.keys())

    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(value for _, value in self.items())

    def __getitem__(self, at: str | int | slice) -> Any:
        if isinstance(at, str):
            found = getattr(self, at, None)
            if found is None:
                raise KeyError(at)
            return found
        return self.to_tuple()[at]

    def __contains__(self, name: object) -> bool:
        return name in set(self.keys())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_tuple())

    def __len__(self) -> int:
        return len(self.to_tuple())
