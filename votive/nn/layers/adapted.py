"""A layer with adapters by name: which are active, whether they are in force, and merging them.

Knows what an adaptation can do; knows no kind of it, no model and no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import votive

from ...tensor import Tensor
from ..containers import ModuleDict
from ..module import Module
from ..parameter import Parameter
from .adaptation import Adaptation, Place, place_of


class AdaptedLayer(Module):
    """A layer and its adapters; the active ones act one after the other, in the order they were named.

    What the layer has otherwise (`in_features`, `stride`, ...) is still found on it; `weight` and `bias` are those of a
    plain layer that does the same.

    >>> from votive.nn.layers.adaptation import Lora
    >>> base = votive.nn.Linear(6, 4)
    >>> layer = votive.nn.AdaptedLayer(base)
    >>> layer.adapters["mine"] = Lora(layer.place, r=2)
    >>> layer.active = ("mine",)
    >>> votive.equal(layer(votive.ones(1, 6)), base(votive.ones(1, 6)))
    True
    """

    def __init__(self, base: Module) -> None:
        super().__init__()
        if place_of(base) is None:
            raise TypeError(f"AdaptedLayer: a {type(base).__name__} cannot have adapters.")
        self.base = base
        self.adapters = ModuleDict()
        self.active: tuple[str, ...] = ()
        self.disabled = False
        self.merged: tuple[str, ...] = ()
        self._before: dict[str, Parameter | None] = {}  # weight and bias of the base while merged
        self.register_state_dict_pre_hook(_refuse_merged)

    @property
    def place(self) -> Place:
        """The layer as adaptations see it."""
        found = place_of(self.base)
        assert found is not None, "checked when it was made"
        return found

    def acting(self) -> list[Adaptation]:
        """The adaptations that are in force here and not merged."""
        if self.disabled or self.merged:
            return []
        found: list[Any] = [self.adapters[name] for name in self.active if name in self.adapters]
        return found

    def forward(self, input: Tensor) -> Tensor:
        acting = self.acting()
        if not acting:
            return self.base(input)
        place, x = self.place, input
        for adaptation in acting:
            x = adaptation.before(x)
        out: Tensor = self.base(x)
        for adaptation in acting:
            out = adaptation.after(place, x, out)
        return out

    def _sum(self, names: Sequence[str]) -> tuple[Tensor, Tensor | None]:
        """Weight and bias with some adaptations, the weight as the layer keeps it."""
        place = self.place
        weight, bias = place.weight, getattr(self.base, "bias", None)
        for name in names:
            adaptation = self.adapters[name]
            assert isinstance(adaptation, Adaptation), "only those are put here"
            weight = adaptation.into(place, weight)
            if bias is not None:
                bias = adaptation.into_bias(bias)
            elif getattr(adaptation, "lora_B_bias", None) is not None:
                raise RuntimeError(
                    f"merge: {name!r} adds a bias (lora_bias), and the {type(self.base).__name__} it adapts has none."
                )
        return (weight.t() if place.transposed else weight), bias

    def _in_force(self) -> list[str]:
        return [] if self.disabled or self.merged else [name for name in self.active if name in self.adapters]

    @property
    def weight(self) -> Tensor:
        """The weight of the whole, as numbers where anything is added."""
        names = self._in_force()
        return self._sum(names)[0] if names else self.base.weight

    @property
    def bias(self) -> Tensor | None:
        """The bias of the whole."""
        names = self._in_force()
        return self._sum(names)[1] if names else getattr(self.base, "bias", None)

    def merge(self, names: Sequence[str] | None = None) -> None:
        """Let the base do the work of some adapters (None: of the active ones); its own weight is kept for `unmerge`.

        The sum is a weight of its own, so that others who share the base's, such as a tied head, keep theirs; above
        blocks of few bits it is of numbers.
        """
        if self.merged:
            raise RuntimeError(f"merge: {', '.join(self.merged)} are merged already; unmerge first.")
        chosen = tuple(n for n in (self.active if names is None else names) if n in self.adapters)
        if chosen:
            self._before = {n: self.base._parameters.get(n) for n in ("weight", "bias")}
            self._hold(chosen)
            self.merged = chosen

    def unmerge(self) -> None:
        """Give the base its own weight and bias back: the very same ones."""
        if self.merged:
            self.base._parameters.update(self._before)
            self._before, self.merged = {}, ()

    def plain(self, names: Sequence[str] | None = None) -> Module:
        """The base with some adapters (None: those in force) merged for good."""
        chosen = [n for n in (self._in_force() if names is None else names) if n in self.adapters]
        if chosen:
            self.unmerge()
            self._hold(chosen)
        return self.base

    def _hold(self, names: Sequence[str]) -> None:
        with votive.no_grad():
            weight, bias = self._sum(names)
        self.base._parameters["weight"] = Parameter(weight.detach().contiguous(), requires_grad=False)
        if bias is not None and bias is not self.base._parameters.get("bias"):
            self.base._parameters["bias"] = Parameter(bias.detach(), requires_grad=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            base = self.__dict__.get("_modules", {}).get("base")
            if base is None or name.startswith("_"):
                raise
            if name in ("in_features", "out_features") and not hasattr(base, name):
                return self.place.shape[name == "in_features"]
            return getattr(base, name)

    def extra_repr(self) -> str:
        said = f"active={list(self.active)}" + (", disabled" if self.disabled else "")
        return said + (f", merged={list(self.merged)}" if self.merged else "")


def _refuse_merged(layer: AdaptedLayer, prefix: str, keep_vars: bool) -> None:
    if layer.merged:
        raise RuntimeError(
            f"state_dict: {prefix.rstrip('.') or 'the layer'} is merged, and loading its weights would add "
            "the adaptation twice; unmerge first, or merge for good with merge_and_unload."
        )
