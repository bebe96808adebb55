"""Those who look at calls of modules inside of a compiled program: what they see is added to its results, and shown to
them after each run, in the order of the calls. Knows no hooks and no probes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..core.mode import mode
from ..dispatch import state
from .structure import Template

Found = tuple[Any, ...]
IsOuter = Callable[[Any], bool]


def looking() -> Any:
    """What is looked at from outside; None: by somebody who must see the run itself."""
    if mode.unobserved:
        return ()
    found = tuple([looker.compiled_as() for looker in state.lookers])
    return None if None in found else found


@dataclass(eq=False)
class Event:
    """A call of a module that somebody looks at: `show(args, kwargs, more, proceed)` lets them see it again.

    Of arguments and result only what they look at is there, else None.
    """

    path: str
    show: Callable[[tuple[Any, ...], dict[str, Any], Any, Callable[..., Any]], Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    more: Any = None  # whatever else is shown
    inner: list[Event] = field(default_factory=list)

    def addresses(self) -> list[str]:
        """Of this call and those inside, where somebody looks at something."""
        seen = self.result is not None or self.args or self.kwargs
        return [*([str(self.path)] if seen else []), *(a for e in self.inner for a in e.addresses())]

    def shown(self, tensors: list[Any], is_outer: IsOuter) -> Callable[[Found], None]:
        """A function that shows the call with other tensors; those of this one are appended to `tensors`."""
        given = Template((self.args, self.kwargs, self.more), is_outer, tensors)
        inner = [e.shown(tensors, is_outer) for e in self.inner]
        result = Template(self.result, is_outer, tensors).released()
        path, show = self.path, self.show

        def run(found: Found) -> None:
            def proceed(*_: Any) -> Any:
                for one in inner:
                    one(found)
                return result(found)

            before, mode.module_path = mode.module_path, path
            mode.renew()
            try:
                args, kwargs, more = given(found)
                show(args, kwargs, more, proceed)
            finally:
                mode.module_path = before
                mode.renew()

        return run


def with_events(
    build: Callable[[Found], Any], events: list[Event], tensors: list[Any], is_outer: IsOuter
) -> Callable[[Found], Any]:
    """What builds a result, and then shows the calls that led to it."""
    shown = [e.shown(tensors, is_outer) for e in events]

    def run(found: Found) -> Any:
        result = build(found)
        for one in shown:
            one(found)
        return result

    return run if shown else build
