"""Classes with some arguments given: how a configuration says which observers will be made. Knows no modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


class Constructor:
    """A class and arguments for it; those given as functions are asked when an object is made."""

    def __init__(self, p: partial[Any], late: dict[str, Callable[[], Any]] | None = None) -> None:
        self.p = p
        self.late = dict(late or {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        asked = {name: ask() for name, ask in self.late.items() if name not in kwargs}
        return self.p(*args, **asked, **kwargs)

    def with_args(self, **kwargs: Any) -> Constructor:
        """The same with further arguments."""
        return Constructor(partial(self.p, **kwargs), self.late)

    def with_callable_args(self, **kwargs: Callable[[], Any]) -> Constructor:
        """The same with arguments that are asked for each time."""
        return Constructor(self.p, {**self.late, **kwargs})

    def same(self, other: object) -> bool:
        """Whether both make the same."""
        if not isinstance(other, Constructor) or self.p.func is not other.p.func or self.p.args != other.p.args:
            return False
        mine, theirs = self.p.keywords, other.p.keywords
        return mine.keys() == theirs.keys() and all(constructs_same(v, theirs[k]) for k, v in mine.items())

    def __repr__(self) -> str:
        given = "".join(f", {k}={v!r}" for k, v in self.p.keywords.items())
        return f"functools.partial({self.p.func!r}{given}){self.late if self.late else '{}'}"


def constructs_same(a: Any, b: Any) -> bool:
    """Whether two classes, constructors or values are the same."""
    return a.same(b) if isinstance(a, Constructor) else bool(a is b or a == b)


class Constructible:
    """A class whose arguments can be given before objects are made."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> Constructor:
        """This class with some arguments given, to be called for objects.

        >>> from votive.ao.quantization import MinMaxObserver
        >>> MinMaxObserver.with_args(dtype=votive.qint8)().dtype
        votive.qint8
        """
        return Constructor(partial(cls, **kwargs))

    @classmethod
    def with_callable_args(cls, **kwargs: Callable[[], Any]) -> Constructor:
        """This class with arguments that are asked for when an object is made."""
        return Constructor(partial(cls), kwargs)
