"""Places that are reached by way of other places: an attribute or an element of what is found there at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .guards import Place

_TEXTS: dict[str, Callable[[str, str], str]] = {
    "item": lambda owner, key: f"{owner}[{key}]",
    "attr": lambda owner, key: f"{owner}.{key}",
    "of": lambda owner, key: f"{owner}.get({key})",
    "len": lambda owner, key: f"len({owner})",
    "number": lambda owner, key: f"{owner}.item()",
    "sign": lambda owner, key: f"({owner} > 0) - ({owner} < 0)",
}


class Below(Place):
    """What is found below another place: an element ("item"), an attribute ("attr"), the entry "of" what is found at
    a place that is the key, the length ("len"), the sign or the number of it.
    """

    __slots__ = ()

    def __init__(self, above: Place, by: str, key: object = None, label: str = "") -> None:
        super().__init__("below", above, key, label, by)

    @property
    def id(self) -> Any:
        key = self.key.id if isinstance(self.key, Place) else self.key
        return self.where.id, self.by, key

    def get(self, flat: tuple[Any, ...]) -> Any:
        found = self.where.get(flat)
        if self.by == "item":
            return found[self.key]
        if self.by == "attr":
            return getattr(found, self.key)
        if self.by == "of":
            return found.get(self.key.get(flat))
        if self.by == "number":
            return found.item()
        return len(found) if self.by == "len" else (found > 0) - (found < 0)

    def code(self, name: Callable[[Any], str]) -> str:
        key = self.key
        if isinstance(key, Place):
            text = key.code(name)
        else:
            text = str(key) if self.by == "attr" else name(key)
        return _TEXTS[self.by](self.where.code(name), text)

    def __str__(self) -> str:
        if self.owner:
            return str(self.owner)
        if self.by == "attr":
            return f"{self.key.strip('_')} of {self.where}"
        if self.by == "of":
            return f"state of {self.key}"
        return f"{self.where}[{self.key!r}]" if self.by == "item" else f"{self.by} of {self.where}"


class Live:
    """A number that is read where it stands before each run, such as a learning rate."""

    __slots__ = ("place", "value")

    def __init__(self, place: Place, value: float) -> None:
        self.place, self.value = place, value

    def __repr__(self) -> str:
        return f"<{self.place}>"
