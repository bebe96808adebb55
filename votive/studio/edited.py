"""A model under edits as a model of its own, for what looks at a run from outside of them.

Of two probes the one that was attached first stands outside. Whoever wants to see what edits make
of a value must be attached before them; so the edits are attached inside the call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from greenlet import getcurrent

from .. import nn
from ..dispatch.observe import attach, detach
from ..glass.edits import Edit
from ..glass.patch import Patch, Receipt
from ..glass.probe import Probe, _OpEye


class Edited(nn.Module):
    """The model with edits; all else that is asked of it, the model answers.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> from votive.studio.edited import Edited
    >>> Edited(net, [votive.glass.Edit("0", "scale", 3.0)])(votive.ones(2))
    tensor([3., 3.])
    """

    def __init__(self, model: Any, edits: Iterable[Edit], *, measure: bool = False) -> None:
        super().__init__()
        # Not as a submodule: the addresses below are those of the model.
        self.__dict__["inner"] = model
        self.__dict__["_modules"] = model._modules  # what looks for paths walks through these
        self.__dict__["edits"] = list(edits)
        self.__dict__["measure"] = measure
        self.__dict__["receipt"] = None
        self.training = model.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        patch = _Here(self.inner, self.edits, measure=self.measure)
        patch.begin()
        try:
            return self.inner(*args, **kwargs)
        finally:
            patch.end()
            self.__dict__["receipt"] = _joined(self.receipt, patch.receipt)

    def named_modules(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.named_modules(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.named_buffers(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)


class _Here(Patch):
    """Edits for the greenlet that makes the call, not for what else its thread does meanwhile."""

    def __init__(self, model: Any, edits: list[Edit], *, measure: bool) -> None:
        super().__init__(model, edits, measure=measure)
        self._green = getcurrent()
        self._door = _Door(self, list(model.modules()) if self._ops else self._only)

    @property
    def blind(self) -> bool:
        return getcurrent() is not self._green or super().blind

    def begin(self) -> None:
        """Attach; what is attached to all modules at once would stand outside of the rest."""
        self._door.__enter__()
        self._thread = threading.get_ident()
        if self._ops:
            eye = _OpEye(self)
            attach(eye)
            self._door._closing.callback(detach, eye)

    def end(self) -> None:
        """Detach; an edit that met no call is no error: a lens runs the model without layers."""
        self._thread = 0
        self.stack.clear()
        self._door.__exit__(None, None, None)


class _Door(Probe):
    """Where edits are attached: for all but their own greenlet it is open, and changes nothing.

    A session that goes on while a debugger waits under edits would else refuse to.
    """

    def __init__(self, edits: _Here, only: Any) -> None:
        super().__init__(edits.model, only=only)
        self._edits = edits

    def _around(self, module: Any, args: Any, kwargs: Any, proceed: Any) -> Any:
        return self._edits._around(module, args, kwargs, proceed)


def _joined(old: Receipt | None, new: Receipt) -> Receipt:
    """What both did."""
    if old is None:
        return new
    for address, site in new.sites.items():
        have = old.sites.setdefault(address, type(site)())
        have.times += site.times
        have.largest = max(have.largest, site.largest)
        have.relative = max(have.relative, site.relative)
    for mine, theirs in zip(old.edits, new.edits, strict=True):
        for address, times in theirs.items():
            mine[address] = mine.get(address, 0) + times
    return old
