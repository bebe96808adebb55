"""The version of torch whose names and behaviour the alias has, in the forms that programs ask for."""

from __future__ import annotations

import re

VERSION = "2.13.0"


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a version such as {VERSION!r}.")
    return tuple(int(part) for part in found[1].split("."))


class TorchVersion(str):
    """A version that compares by its numbers with text and with tuples.

    >>> TorchVersion("2.13.0") >= (2, 4)
    True
    >>> TorchVersion("2.13.0") > "2.9"
    True
    """

    __slots__ = ()

    def _key(self, other: object) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        if isinstance(other, str):
            theirs = _numbers(other)
        elif isinstance(other, tuple | list):
            theirs = _numbers(".".join(str(part) for part in other))
        else:
            release = getattr(other, "release", None)
            if release is None:
                return None
            theirs = tuple(release)
        ours = _numbers(self)
        # 2.13 and 2.13.0 are the same version.
        width = max(len(ours), len(theirs))
        return ours + (0,) * (width - len(ours)), theirs + (0,) * (width - len(theirs))

    def __eq__(self, other: object) -> bool:
        try:
            key = self._key(other)
        except ValueError:
            return str.__eq__(self, str(other))
        return key is not None and key[0] == key[1]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __lt__(self, other: object) -> bool:
        key = self._key(other)
        return NotImplemented if key is None else key[0] < key[1]

    def __le__(self, other: object) -> bool:
        key = self._key(other)
        return NotImplemented if key is None else key[0] <= key[1]

    def __gt__(self, other: object) -> bool:
        key = self._key(other)
        return NotImplemented if key is None else key[0] > key[1]

    def __ge__(self, other: object) -> bool:
        key = self._key(other)
        return NotImplemented if key is None else key[0] >= key[1]
