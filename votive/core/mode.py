"""Per-thread switches that change what a call does. Knows nothing of what reads them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class Mode(threading.local):
    """Grad recording, inference mode, anomaly mode and autocast of the running thread."""

    grad: bool = True
    inference: bool = False
    anomaly: bool = False
    anomaly_nan: bool = True
    # Pairs (pack, unpack) that see every value autograd saves.
    saved_hooks: tuple[tuple[object, object], ...] = ()
    hooks_refused: str | None = None  # the error of who adds such a pair, where that is forbidden
    # Whether recording must do more than the usual: anomaly mode, saved-value hooks or a module
    # path is set. One flag, because reading a thread-local costs as much as making an attribute.
    noted: bool = False
    # Whether it must do more than note the module's path.
    special: bool = False
    # Path of the module whose call is running, for errors, anomaly reports and observers.
    module_path: str = ""
    # Device types under autocast, each with its dtype; replaced as a whole, never changed.
    autocast: dict[str, Any] = {}

    # Modes that override functions, innermost last, and whether arguments may (`__torch_function__`).
    functions: tuple[Any, ...] = ()
    subclass_functions: bool = True

    # Transformations of functions that run (`votive.func`), outermost first; how many times the counters that a draw
    # of random numbers takes are needed, and how many the last draw would have taken alone.
    levels: tuple[Any, ...] = ()
    draws: int = 1
    drawn: int = 0

    # While something is computed only to be shown: the operator that computes with such values.
    shown: str = ""
    # While what looks at a run computes for itself: no probe sees it.
    unobserved: int = 0
    # While a program with edits is traced: lets what they compute be a part of it.
    tracing: Any = None
    # While gradients are computed: whether what nodes keep is dropped behind them.
    freeing: bool = False
    # The backward pass that runs, which is the same object as long as it does.
    walk: Any = None
    # While a checkpointed function runs again: whose edits were made in its first run, else None.
    recomputing: tuple[Any, ...] | None = None

    def renew(self) -> None:
        """Recompute `noted` after one of its causes changed."""
        self.special = self.anomaly or bool(self.saved_hooks)
        self.noted = self.special or bool(self.module_path)
        if self.noted:
            Ever.noted = True


class Ever:
    """Whether any thread ever noted more than the usual; a plain attribute is read faster."""

    noted: bool = False


mode = Mode()


@contextlib.contextmanager
def only_shown(counts: str) -> Iterator[None]:
    """Say that what is computed inside is only shown: nothing the model computes with reads it.

    `counts` is the operator, called by the same module, that has the values which count. An edit
    of what is only shown is then an error that names it.

    >>> from votive.core.mode import only_shown
    >>> scores = votive.tensor([0.0, 1.0])
    >>> with only_shown("attention"):
    ...     weights = scores.softmax(-1)
    """
    before, mode.shown = mode.shown, counts
    try:
        yield
    finally:
        mode.shown = before
