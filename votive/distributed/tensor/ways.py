"""Ways in which an operator may run on parts, and the choice among them. Knows shapes and placements, no messages.

A way says, for one dimension of a mesh, how each tensor argument and each result lies. Dimensions of a mesh are
decided one after the other; that all is whole on every rank is a way for every operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import UnsupportedError
from ...core.layout import Spec, broadcast_shapes
from ...ops.operator import Op
from .placement_types import Partial, Placement, Placements, Replicate, Shard

R = Replicate()
P = Partial()


@dataclass(frozen=True)
class Way:
    """How arguments and results lie on one dimension of the mesh."""

    ins: Placements
    outs: Placements
    # (argument, dimension, size): these cuts must be equal, which `size` divided by the ranks tells.
    even: tuple[tuple[int, int, int], ...] = ()


@dataclass
class Call:
    """A call of an operator as rules see it: whole shapes, and the tensors among the arguments in their order."""

    op: Op
    given: tuple[Any, ...]  # arguments in schema order
    leaves: list[Any]  # the tensors among them
    tracked: bool  # whether gradients are recorded
    static: tuple[Any, ...] = ()  # arguments with specs for tensors, as the operator itself writes them
    outs: list[Spec] = field(default_factory=list)

    def __post_init__(self) -> None:
        specs = tuple(_specs(v) for v in self.given)
        if self.op.kind == "pointwise":
            self.static = specs
            shapes = [s.shape for s in specs if isinstance(s, Spec)]
            first = next(s for s in specs if isinstance(s, Spec))
            self.outs = [first.like(broadcast_shapes(self.op.name, *shapes))]
            return
        self.static = specs if self.op.canon is None else tuple(self.op.canon(*specs))
        assert self.op.infer is not None
        made = self.op.infer(*self.static)
        if self.op.kind == "view":
            made = made[0]
        self.outs = [] if made is None else [made] if isinstance(made, Spec) else list(made)

    @staticmethod
    def again(
        op: Op, given: tuple[Any, ...], leaves: list[Any], tracked: bool, static: tuple[Any, ...], outs: list[Spec]
    ) -> Call:
        """A call like one that was made before, of which this is known."""
        c = object.__new__(Call)
        c.op, c.given, c.leaves, c.tracked, c.static, c.outs = op, given, leaves, tracked, static, outs
        return c

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("op", "static"):
            raise AttributeError(name)
        try:
            return self.static[self.op.schema.names.index(name)]
        except ValueError:
            raise AttributeError(name) from None

    def shapes(self) -> list[tuple[int, ...]]:
        """Of the tensors among the arguments."""
        return [t._spec.shape for t in self.leaves]

    def given_at(self, *names: str) -> list[int]:
        """Where arguments are among the leaves; -1 for those that are absent."""
        at, found = 0, {}
        for name, v in zip(self.op.schema.names, self.given, strict=True):
            if v.__class__ in (tuple, list):
                at += sum(hasattr(x, "_spec") for x in v)
            elif hasattr(v, "_spec"):
                found[name] = at
                at += 1
        return [found.get(name, -1) for name in names]

    def way(self, ins: dict[int, int | Placement], outs: Sequence[int | Placement | None], even: Any = ()) -> Way:
        """A way from the dimension along which each argument is cut; others are whole."""
        places = [_place(ins.get(i, R)) for i in range(len(self.leaves))]
        return Way(tuple(places), tuple(_place(R if o is None else o) for o in outs), tuple(even))


def _place(p: int | Placement) -> Placement:
    return Shard(p) if isinstance(p, int) else p


def _specs(v: Any) -> Any:
    if v.__class__ in (tuple, list):
        return tuple(_specs(x) for x in v)
    return getattr(v, "_spec", v)


Rule = Callable[[Call], list[Way]]
Run = Callable[..., Any]
RULES: dict[str, tuple[Rule, Run | None]] = {}


def rule(word: str, run: Run | None = None) -> Callable[[Rule], Rule]:
    """Let a function give the ways of operators whose declaration says this word; `run` runs them on parts."""

    def enter(fn: Rule) -> Rule:
        RULES[word] = (fn, run)
        return fn

    return enter


# --- the choice -----------------------------------------------------------------------------------


def cost(p: Placement, t: Placement, size: float, ranks: int) -> float:
    """What it takes to bring `size` numbers from one placement to another, in numbers sent."""
    if p == t:
        return 0.0
    if isinstance(p, Replicate):
        return 0.01 * size + 0.001
    if isinstance(p, Shard):
        return math.inf if isinstance(t, Partial) else size + 1 if isinstance(t, Replicate) else size / ranks + 1
    # Of parts of a sum, the whole is what most operators need next; pieces are for those who ask for nothing else.
    return 2 * size + 2 if isinstance(t, Replicate) else 2.5 * size + 2.5 if isinstance(t, Shard) else math.inf


def choose(c: Call, have: Sequence[Placements], mesh: Sequence[int]) -> list[Way]:
    """The cheapest way for each dimension of a mesh of this shape; `have` is how the tensors lie."""
    word = c.op.placement or ("elementwise" if c.op.kind == "pointwise" else "")
    every = Way((R,) * len(c.leaves), (R,) * len(c.outs))
    whole = all(isinstance(p, Replicate) for lies in have for p in lies)
    if word not in RULES:
        if whole:
            return [every] * len(mesh)
        raise UnsupportedError(_without_rule(c, have))
    if whole:
        return [every] * len(mesh)
    ways = [every, *RULES[word][0](c)]
    sizes = [float(t._spec.numel) for t in c.leaves]
    cuts: dict[tuple[int, int], int] = {}
    found = []
    for i, ranks in enumerate(mesh):
        best, least = every, math.inf
        for way in ways:
            if any(size % (cuts.get((leaf, d), 1) * ranks) for leaf, d, size in way.even):
                continue
            price = sum(cost(lies[i], t, n, ranks) for lies, t, n in zip(have, way.ins, sizes, strict=True))
            if price < least:
                best, least = way, price
        if math.isinf(least):
            raise UnsupportedError(_without_rule(c, have))
        for leaf, d, _ in best.even:
            cuts[leaf, d] = cuts.get((leaf, d), 1) * ranks
        found.append(best)
    return found


def _without_rule(c: Call, have: Sequence[Placements]) -> str:
    name = c.op.name.lstrip("_")
    lies = ", ".join("(" + ", ".join(map(str, one)) + ")" for one in have)
    return (
        f"{name}: there is no rule how it computes on DTensors that lie as {lies}; redistribute them to Replicate(), "
        "or call it on .to_local() if each rank's part is what you mean."
    )
