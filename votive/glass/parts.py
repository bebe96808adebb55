"""Which modules of a model are its layers, last norm, head and embedding. Knows no model class.

A model may say so itself in a method `glass_parts()` that gives a dict of modules or names, and a
user may name them; else they are found by what they look like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..nn import Module, ModuleList, Sequential
from ..tensor import Tensor
from .address import Address, Pattern
from .targets import NoMatch, no_match

_NAMES = ("layers", "norm", "head", "embedding")


@dataclass(frozen=True)
class Parts:
    """The parts of a decoder; `norm`, `head` and `embedding` are None where there is none."""

    model: Any
    layers: tuple[Any, ...]
    names: tuple[str, ...]  # of the layers
    norm: Any = None
    head: Any = None
    embedding: Any = None

    def inner(self) -> Parts | None:
        """The same with the modules inside the layers as layers: for layers that only hold them."""
        inside: list[Any] = []
        for layer in self.layers:
            for child in layer.children():
                inside += list(child) if isinstance(child, ModuleList) else [child]
        if not inside:
            return None
        by_id = {id(m): n for n, m in self.model.named_modules()}
        return replace(self, layers=tuple(inside), names=tuple(by_id[id(m)] for m in inside))

    def named(self) -> dict[str, Any]:
        """The names of the parts in the model.

        >>> net = votive.nn.Sequential(votive.nn.Embedding(5, 2),
        ...     votive.nn.ModuleList([votive.nn.Linear(2, 2)]))
        >>> votive.glass.find_parts(net).named()
        {'layers': ('1.0',), 'norm': None, 'head': None, 'embedding': '0'}
        """
        by_id = {id(m): n for n, m in self.model.named_modules()}
        rest = {n: by_id.get(id(getattr(self, n))) for n in _NAMES[1:]}
        return {"layers": self.names, **rest}


def find_parts(
    model: Module,
    *,
    layers: object = None,
    norm: Module | str | None = None,
    head: Module | str | None = None,
    embedding: Module | str | None = None,
) -> Parts:
    """Find the parts of a decoder; each may be named, layers by a pattern such as "blocks.*".

    >>> config = votive.models.GPT2Config(vocab_size=9, n_positions=4, n_embd=4, n_layer=2,
    ...     n_head=2)
    >>> votive.glass.find_parts(votive.models.GPT2LMHeadModel(config)).named()["norm"]
    'transformer.ln_f'
    """
    given: dict[str, Any] = {"layers": layers, "norm": norm, "head": head, "embedding": embedding}
    declared = model.glass_parts() if hasattr(model, "glass_parts") else {}
    unknown = sorted(set(declared) - set(_NAMES))
    if unknown:
        raise ValueError(f"{type(model).__name__}.glass_parts: unknown parts {unknown}; known: {_NAMES}.")
    given = {k: declared.get(k) if v is None else v for k, v in given.items()}
    found, names = _layers(model, given["layers"])
    inside = {id(m) for layer in found for m in layer.modules()}
    outside = [(n, m) for n, m in model.named_modules() if id(m) not in inside]
    table = _named(model, given["embedding"]) or _embedding(model, outside)
    scores = _named(model, given["head"]) or _head(model, outside, table)
    last = _named(model, given["norm"]) or _norm(outside, found, names)
    return Parts(model, found, names, last, scores, table)


def _named(model: Module, given: Module | str | None) -> Module | None:
    if given is None or isinstance(given, Module):
        return given
    hits = _matching(model, given)
    if len(hits) != 1:
        raise NoMatch(f"{given!r} means {len(hits)} modules ({[n for n, _ in hits]}); name one.")
    return hits[0][1]


def _matching(model: Module, given: str) -> list[tuple[str, Any]]:
    pattern = Pattern(given)
    known = [(n, m) for n, m in model.named_modules() if n]
    # The very name first: "norm" is not also every norm inside the layers.
    hits = [(n, m) for n, m in known if n == given]
    hits = hits or [(n, m) for n, m in known if pattern.matches(Address(n))]
    if not hits:
        raise no_match(pattern, [n for n, _ in known])
    return hits


def _layers(model: Module, given: object) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    by_id = {id(m): n for n, m in model.named_modules()}
    if isinstance(given, str):
        hits = _matching(model, given)
        if len(hits) == 1 and isinstance(hits[0][1], (ModuleList, Sequential)):
            given = list(hits[0][1])
        else:
            given = [m for _, m in hits]
    elif given is None:
        given = _largest_list(model)
    elif not isinstance(given, Iterable):
        raise TypeError(f"layers: give a pattern or modules, got {type(given).__name__}.")
    chosen = tuple(m if isinstance(m, Module) else _named(model, m) for m in given)
    if not chosen:
        raise ValueError("layers: no module was given.")
    return chosen, tuple(by_id.get(id(m), type(m).__name__) for m in chosen)


def _largest_list(model: Module) -> list[Any]:
    """The list of modules that holds most parameters; of nested ones the outer."""
    best, most = None, -1
    for _, m in model.named_modules():
        if isinstance(m, Sequential):
            alike = len(m) > 1 and len({type(c) for c in m}) == 1
            if not alike or not any(True for _ in m[0].children()):
                continue
        elif not isinstance(m, ModuleList):
            continue
        size = sum(p.numel() for p in m.parameters())
        if len(m) and size > most:
            best, most = m, size
    if best is None:
        raise LookupError(
            f"{type(model).__name__} holds no list of layers; name them, such as "
            "layers='blocks.*', or give the model a method glass_parts()."
        )
    return list(best)


def _weight(module: Module, dims: int) -> Tensor | None:
    found = getattr(module, "weight", None)
    return found if getattr(found, "ndim", None) == dims else None


def _is_table(module: Module) -> bool:
    return hasattr(module, "num_embeddings") and _weight(module, 2) is not None


def _embedding(model: Module, outside: list[tuple[str, Any]]) -> Module | None:
    if hasattr(model, "get_input_embeddings"):
        table = model.get_input_embeddings()
        # What makes vectors of patches is no table of tokens.
        return table if _weight(table, 2) is not None else None
    return next((m for _, m in outside if _is_table(m)), None)


def _head(model: Module, outside: list[tuple[str, Any]], table: Module | None) -> Module | None:
    """What turns features into scores: the last matrix with a row for each token."""
    tokens = table.weight.shape[0] if table is not None else None
    fits = [
        m
        for _, m in outside
        if not _is_table(m) and _weight(m, 2) is not None and (tokens is None or tokens in m.weight.shape)
    ]
    return fits[-1] if fits else None


def _norm(outside: list[tuple[str, Any]], layers: tuple[Any, ...], names: tuple[str, ...]) -> Module | None:
    """The last module with a vector of weights, beside the layers and after them."""
    holder = names[-1].rpartition(".")[0].rpartition(".")[0] if names else ""
    fits = [
        (n, m) for n, m in outside if hasattr(m, "eps") or hasattr(m, "variance_epsilon") or _weight(m, 1) is not None
    ]
    beside = [m for n, m in fits if n.rpartition(".")[0] == holder]
    chosen = beside or [m for _, m in fits]
    return chosen[-1] if chosen else None


def parts_of(model: Module, given: Parts | Mapping[str, Any] | None) -> Parts:
    """Parts that are given as such, as a dict of names, or to be found."""
    if isinstance(given, Parts):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"parts: give what find_parts gave, or a dict; got {type(given).__name__}.")
    return find_parts(model, **(given or {}))
