"""A model under edits as a model of its own, for what runs a model that it is given.

The edits are attached inside the call, for the greenlet that makes it: while a debugger waits under
edits, what else its thread computes is not edited.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from .. import nn
from ..glass.edits import Edit
from ..glass.patch import Patch
from ..glass.receipt import Receipt

if TYPE_CHECKING:
    from ..nn import Module


class EditedModel(nn.Module):
    """The model with edits; all else that is asked of it, the model answers.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> from votive.studio.edited_model import EditedModel
    >>> EditedModel(net, [votive.glass.Edit("0", "scale", 3.0)])(votive.ones(2))
    tensor([3., 3.])
    """

    def __init__(self, model: Module, edits: Iterable[Edit], *, measure: bool = False) -> None:
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
        patch.__enter__()
        try:
            return self.inner(*args, **kwargs)
        finally:
            # An edit that met no call is no error: a lens runs the model without layers.
            patch.close()
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

    def __init__(self, model: Module, edits: list[Edit], *, measure: bool) -> None:
        super().__init__(model, edits, measure=measure)
        self._green = getcurrent()

    @property
    def inactive(self) -> bool:
        return getcurrent() is not self._green or super().inactive


def _joined(old: Receipt | None, new: Receipt) -> Receipt:
    """What both did."""
    if old is None:
        return new
    for address, site in new.sites.items():
        have = old.sites.setdefault(address, type(site)())
        have.times += site.times
        have.largest = max(have.largest, site.largest)
        have.relative = max(have.relative, site.relative)
        have.measured = have.measured or site.measured
        if not have.reached:
            have.reached, have.why = site.reached, site.why
    for mine, theirs in zip(old.edits, new.edits, strict=True):
        for address, times in theirs.items():
            mine[address] = mine.get(address, 0) + times
    return old
