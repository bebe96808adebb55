"""Named places in a decoder's run where a value can be looked at and changed, the same in every family.

Knows the names and the order of dimensions there, and who asks; not who that is or what is done. Where nobody asks, a
place costs one look at an empty tuple, and fused kernels run.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol

from ..tensor import Tensor
from .module import Module

# By name below a layer: the order of dimensions. b: samples, t: positions, h: heads, c: features, q and k: queries
# and keys.
IN_LAYER = {
    "resid_pre": "btc",
    "attn_in": "btc",
    "q_input": "bthc",
    "k_input": "bthc",
    "v_input": "bthc",
    "ln1.scale": "btc",
    "ln1.normalized": "btc",
    "attn.q": "bthc",
    "attn.k": "bthc",
    "attn.v": "bthc",
    "attn.rot_q": "bthc",
    "attn.rot_k": "bthc",
    "attn.scores": "bhqk",
    "attn.pattern": "bhqk",
    "attn.z": "bthc",
    "attn.result": "bthc",
    "ln1_post.scale": "btc",
    "ln1_post.normalized": "btc",
    "attn_out": "btc",
    "resid_mid": "btc",
    "mlp_in": "btc",
    "ln2.scale": "btc",
    "ln2.normalized": "btc",
    "mlp.pre": "btc",
    "mlp.pre_linear": "btc",
    "mlp.post": "btc",
    "mlp.router_logits": "btc",
    "mlp.expert_weights": "btc",
    "ln2_post.scale": "btc",
    "ln2_post.normalized": "btc",
    "mlp_out": "btc",
    "resid_post": "btc",
}
BESIDE_LAYERS = {
    "embed": "btc",
    "pos_embed": "btc",
    "ln_final.scale": "btc",
    "ln_final.normalized": "btc",
    "logits": "btc",
}
_LAYER = re.compile(r"layers\.\d+\.")


class Point(Module):
    """A place, as a module that gives its input on; its address is the same in every family.

    >>> votive.nn.points.Point("layers.0.attn.z").layout
    'bthc'
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        name = _LAYER.sub("", address, count=1)
        self.layout = (BESIDE_LAYERS if name == address else IN_LAYER)[name]

    def forward(self, x: Tensor) -> Tensor:
        return x


class Watcher(Protocol):
    """Whoever asks for places."""

    def wants(self, address: str) -> bool: ...


class _Points:
    """Who asks, and how a place is shown to them."""

    def __init__(self) -> None:
        self.watchers: tuple[Watcher, ...] = ()
        self.show: Callable[[Point, Tensor], Tensor] = lambda at, x: x
        self.here = threading.local()
        self._lock = threading.Lock()

    def add(self, watcher: Watcher) -> None:
        with self._lock:
            self.watchers = (*self.watchers, watcher)

    def remove(self, watcher: Watcher) -> None:
        with self._lock:
            self.watchers = tuple(w for w in self.watchers if w is not watcher)


POINTS = _Points()


@lru_cache(maxsize=65536)
def _place(address: str) -> Point:
    return Point(address)


def wanted(*addresses: str) -> bool:
    """Whether anybody asks for one of these places.

    >>> votive.nn.points.wanted("layers.0.attn.z")
    False
    """
    watchers = POINTS.watchers
    return bool(watchers) and any(w.wants(a) for w in watchers for a in addresses)


def point(address: str, x: Tensor) -> Tensor:
    """The value at a place, which whoever asks for it may change.

    >>> votive.nn.points.point("logits", votive.ones(1))
    tensor([1.])
    """
    return POINTS.show(_place(address), x) if wanted(address) else x


def opens(layer: int) -> bool:
    """Whether anybody asks for a place in a layer, which is then run piece by piece.

    >>> votive.nn.points.opens(0)
    False
    """
    return bool(POINTS.watchers) and wanted(*(f"layers.{layer}.{name}" for name in IN_LAYER))


@contextmanager
def inside(at: str | None, reads: tuple[Tensor | None, ...] | None = None) -> Iterator[None]:
    """While the block runs, modules know the layer they are in, and what its heads read instead of their input.

    >>> with votive.nn.points.inside("layers.0"):
    ...     votive.nn.points.where()
    'layers.0'
    """
    before = POINTS.here.__dict__.copy()
    POINTS.here.at, POINTS.here.reads = at, reads
    try:
        yield
    finally:
        POINTS.here.__dict__.clear()
        POINTS.here.__dict__.update(before)


def where() -> str | None:
    """The layer that is run piece by piece; None elsewhere.

    >>> votive.nn.points.where() is None
    True
    """
    return getattr(POINTS.here, "at", None) if POINTS.watchers else None


def reads() -> tuple[Tensor | None, ...] | None:
    """What each head's queries, keys and values are made of, where that is not the same for all."""
    return getattr(POINTS.here, "reads", None)


def has_points(model: Any) -> bool:
    """Whether a model runs through such places.

    >>> votive.nn.points.has_points(votive.nn.Linear(1, 1))
    False
    """
    return any(getattr(m, "runs_through_points", False) for m in model.modules())
