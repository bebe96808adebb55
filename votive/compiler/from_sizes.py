"""What integers and floats that come from sizes share: how they are compared, shown, hashed and copied."""

from __future__ import annotations

from typing import Any

from .symbols import Symbols


class FromSizes:
    """A number that remembers how it comes from sizes."""

    symbols: Symbols
    text: Any

    def fixed(self, why: str) -> Any:
        """The number itself, which is then a condition of the trace."""
        raise NotImplementedError

    def _asked(self, other: Any, relation: str, swap: bool = False) -> Any:
        raise NotImplementedError

    def __eq__(self, other: object) -> Any:
        return self._asked(other, "==")

    def __ne__(self, other: object) -> Any:
        found = self._asked(other, "==")
        return found if found is NotImplemented else not found

    def __lt__(self, other: Any) -> Any:
        return self._asked(other, "<")

    def __le__(self, other: Any) -> Any:
        return self._asked(other, "<=")

    def __gt__(self, other: Any) -> Any:
        return self._asked(other, "<", True)

    def __ge__(self, other: Any) -> Any:
        return self._asked(other, "<=", True)

    def __hash__(self) -> int:
        return hash(self.fixed("it is a key of a table"))

    def __repr__(self) -> str:
        return self.text if self.symbols.closed else repr(self.fixed("it becomes text"))

    __str__ = __repr__

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self
