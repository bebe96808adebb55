"""A model as the numbers that a plan needs: parameters by layer and kind, and what a pass keeps. Computes nothing.

The model may be on the meta device; what autograd keeps is counted there with the real sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...autograd.saved_hooks import saved_tensors_hooks
from ...nn.containers import ModuleList, Sequential
from ...nn.module import Module
from ...ops.registry import F
from ...tensor import Tensor


@dataclass(frozen=True)
class Weight:
    """A parameter: its shape, whether it is trained, the unit it is gathered with, and how it is divided.

    `kind` is "expert" (by experts), "matrix" (by tensor parallel ranks) or "whole".
    """

    name: str
    shape: tuple[int, ...]
    itemsize: int
    trained: bool
    unit: int
    kind: str

    @property
    def numel(self) -> int:
        """How many numbers it has."""
        count = 1
        for n in self.shape:
            count *= n
        return count


def layers_of(model: Module) -> list[Module]:
    """The modules that are gathered one after the other: those of lists and chains.

    >>> from votive.distributed.planning.pieces import layers_of
    >>> len(layers_of(votive.nn.Sequential(votive.nn.Linear(1, 1), votive.nn.ReLU(), votive.nn.Linear(1, 1))))
    2
    """
    found: list[Module] = []
    for m in model.modules():
        if isinstance(m, (ModuleList, Sequential)):
            inside = {id(inner) for one in found for inner in one.modules()}
            found += [c for c in m.children() if id(c) not in inside and any(True for _ in c.parameters())]
    return found


ROOT = 1 << 20  # the unit of what is outside of layers


def weights_of(model: Module, part: int = 0) -> list[Weight]:
    """All parameters, each once; units are numbered anew in each part of a pipeline."""
    first = 2 * part * ROOT
    layers = layers_of(model)
    unit_of = {id(p): i for i, layer in enumerate(layers) for p in layer.parameters()}
    found = []
    for name, p in model.named_parameters():
        kind = "whole"
        if "expert" in name and p.dim() >= 2:
            kind = "expert"
        elif p.dim() >= 2:
            kind = "matrix"
        unit = first + unit_of.get(id(p), ROOT)
        found.append(Weight(name, tuple(p.shape), p.dtype.itemsize, p.requires_grad, unit, kind))  # fmt: skip
    return found


@dataclass(frozen=True)
class Kept:
    """What autograd keeps of a forward pass: bytes that have the width of the stream, and all others; and results."""

    stream: int
    inner: int
    gives: tuple[tuple[int, ...], ...]
    given_bytes: int


def kept_by(model: Module, args: tuple[Any, ...], width: int | None, call: Callable[..., Any] | None = None) -> Kept:
    """What a forward pass keeps for backward, without parameters; each memory counts once.

    >>> from votive.distributed.planning.pieces import kept_by
    >>> with votive.device("meta"):
    ...     layer, x = votive.nn.Linear(4, 8), votive.ones(2, 4)
    >>> kept_by(layer, (x,), 4).stream  # the input
    32
    """
    own = {id(t._storage.root) for t in (*model.parameters(), *model.buffers())}
    seen: dict[int, tuple[Tensor, Any]] = {}

    def pack(t: Tensor) -> Tensor:
        root = t._storage.root
        if id(root) not in own:
            seen.setdefault(id(root), (t, root))
        return t

    routed: list[int] = []
    mixtures = [m for m in model.modules() if hasattr(m, "top_k") and hasattr(getattr(m, "design", None), "chosen")]
    for m in mixtures:
        m.__dict__["forward"] = _routed(m, routed)
    try:
        with saved_tensors_hooks(pack, lambda t: t):
            result = (call or model)(*args)
    finally:
        for m in mixtures:
            del m.__dict__["forward"]
    rows = [t for t, _ in seen.values()]
    stream = sum(t.nbytes for t in rows if width is not None and t.dim() and t.shape[-1] == width)
    results = list(result) if isinstance(result, (list, tuple)) else [getattr(result, "logits", result)]
    results = [getattr(r, "last_hidden_state", r) for r in results]
    tensors = [r for r in results if isinstance(r, Tensor)]
    inner = sum(t.nbytes for t in rows) - stream + sum(routed)
    return Kept(stream, inner, tuple(tuple(t.shape) for t in tensors),
                sum(t.nbytes for t in tensors))  # fmt: skip


def _routed(mixture: Any, kept: list[int]) -> Callable[..., Any]:
    """A mixture whose experts all get their even share: which they choose depends on numbers, and there are none."""
    e = mixture.design

    def forward(x: Tensor, *_: Any) -> Tensor:
        tokens, width = x.numel() // x.shape[-1], x.shape[-1]
        # What goes into an expert and comes out, two products, their gated product; scores of the router.
        kept.append(tokens * (e.chosen * (2 * width + 3 * e.inner) + e.count) * x.dtype.itemsize)
        return x * 1.0

    return forward


def batch_for(batch: int, sequence: int | None, sample: Any) -> tuple[Any, ...]:
    """A batch without values: like a sample with other rows, or of tokens."""
    if sample is not None:
        rows = sample if isinstance(sample, tuple) else (sample,)
        return tuple(
            F.empty((batch, *t.shape[1:]), dtype=t.dtype, device="meta") if isinstance(t, Tensor) else t for t in rows
        )
    if sequence is None:
        raise ValueError(
            "dry_run: give sequence=, the length of texts, or sample=, a batch for a model of other inputs."
        )
    from ...core import dtype as dt

    return (F.zeros((batch, sequence), dtype=dt.int64, device="meta"),)
