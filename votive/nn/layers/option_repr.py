"""Layers that show their options by name. Knows no layer."""

from __future__ import annotations

from ..module import Module


class OptionRepr(Module):
    """A layer whose repr names its `_options` and their values, and `inplace` where it is on."""

    _options: tuple[str, ...] = ()
    inplace: bool = False

    def extra_repr(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self._options]
        return ", ".join(shown + ["inplace=True"] * self.inplace)
