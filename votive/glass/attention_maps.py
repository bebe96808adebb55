"""Attention weights, rebuilt from fused attention when they are asked for. Knows no model class.

The fused operator gives the log-sum-exp of each row of scores with its result, so that any weight
is `exp(scale * q . k + mask - lse)`: one head and one query cost one row. Where a model writes its
weights out with softmax, they are taken as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import votive

from ..core.dtype import bool_
from ..nn import Module
from ..tensor import Tensor
from .address import Address, PatternLike, Patterns
from .attention_scores import Scores
from .heatmap import Heatmap
from .labels import TokenNames, token_labels
from .plots import Plottable
from .probe import Frame, Probe
from .residual_stream import ids_of
from .targets import modules_for, no_match, patterns

# How many weights are held at once when all of them are only averaged.
CHUNK = 1 << 22


@dataclass(frozen=True)
class AttentionMap(Plottable):
    """The attention of one call, of which any part can be rebuilt.

    `first_query` and `first_key` are the positions of its first query and key in the text: a cache
    holds keys that have no queries in this run.
    """

    address: str
    query: Any  # (batch, heads, queries, features)
    key: Any  # (batch, key heads, keys, features)
    mask: Any
    lse: Any  # (batch, heads, queries)
    scale: float
    is_causal: bool
    offset: int
    first_query: int
    first_key: int
    made: Any = None  # weights that the model made itself
    tokens: Any = None  # (batch, keys)
    tokenizer: Any = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(batch, heads, queries, keys)."""
        if self.made is not None:
            return tuple(self.made.shape)
        return (*self.query.shape[:3], self.key.shape[2])

    def weights(
        self,
        heads: int | Iterable[int] | None = None,
        queries: int | Iterable[int] | None = None,
        samples: int | Iterable[int] | None = None,
    ) -> Tensor:
        """The weights (samples, heads, queries, keys) of what is chosen; None means all.

        A number chooses one and a list several; dimensions are kept either way. Rows that see
        nothing are zero.
        """
        b = _chosen("samples", samples, self.shape[0])
        h = _chosen("heads", heads, self.shape[1])
        t = _chosen("queries", queries, self.shape[2])
        with votive.no_grad():
            if self.made is not None:
                return self.made[b][:, h][:, :, t].nan_to_num(0.0)
            return self._rebuilt(b, h, t)

    def _rebuilt(self, b: list[int], h: list[int], t: list[int]) -> Tensor:
        wide = votive.float64 if self.query.dtype == votive.float64 else votive.float32
        group = self.query.shape[1] // self.key.shape[1]
        q = self.query[b][:, h][:, :, t].to(wide)
        k = self.key[b][:, [i // group for i in h]].to(wide)
        scores = (q @ k.transpose(-2, -1)) * self.scale
        if self.mask is not None:
            mask = self.mask.expand(self.shape)[b][:, h][:, :, t]
            hides = mask.dtype == bool_
            scores = scores.masked_fill(~mask, -math.inf) if hides else scores + mask
        if self.is_causal:
            at = votive.tensor(t, device=q.device).unsqueeze(1) + self.offset
            seen = votive.arange(k.shape[2], device=q.device) <= at
            scores = scores.masked_fill(~seen, -math.inf)
        lse = self.lse[b][:, h][:, :, t].unsqueeze(-1).to(wide)
        inactive = lse == -math.inf
        found = (scores - lse.masked_fill(inactive, 0.0)).exp().masked_fill(inactive, 0.0)
        # The log-sum-exp is rounded to its type: a large one leaves sums a little beside 1.
        return found / found.sum(-1, keepdim=True).masked_fill(inactive, 1.0)

    def pieces(self) -> Iterator[tuple[int, int, list[int], Any]]:
        """All weights, a few rows of one sample and head at a time, for what only sums them."""
        B, H, T, S = self.shape
        size = max(1, CHUNK // max(S, 1))
        for b in range(B):
            for h in range(H):
                for start in range(0, T, size):
                    rows = list(range(start, min(start + size, T)))
                    yield b, h, rows, self.weights(h, rows, b)[0, 0]

    def figure(
        self, head: int = 0, sample: int = 0, tokenizer: TokenNames | None = None, tokens: Tensor | None = None
    ) -> Heatmap:
        """The matrix of one head, queries down and keys across."""
        found = self.weights(head, None, sample)[0, 0]
        tokens = self.tokens if tokens is None else tokens
        tokenizer = self.tokenizer if tokenizer is None else tokenizer
        T, S = found.shape
        columns = [str(self.first_key + j) for j in range(S)]
        rows = [str(self.first_query + i) for i in range(T)]
        if tokens is not None and tokens.shape[1] >= self.first_key + S:
            named = token_labels(tokens[sample].tolist(), tokenizer)
            columns = named[self.first_key : self.first_key + S]
            rows = named[self.first_query : self.first_query + T]
        return Heatmap(
            found.tolist(),
            rows,
            columns,
            title=f"{self.address} head {head}",
            x_name="key",
            y_name="query",
            legend="weight",
            low=0.0,
            high=1.0,
        )

    def __repr__(self) -> str:
        return f"<attention at {self.address}: (batch, heads, queries, keys) = {self.shape}>"


def _chosen(what: str, given: int | Iterable[int] | None, size: int) -> list[int]:
    if given is None:
        return list(range(size))
    given = [given] if isinstance(given, int) else [int(i) for i in given]
    bad = [i for i in given if not -size <= i < size]
    if bad:
        raise IndexError(f"weights: {what} {bad} are outside 0..{size - 1}.")
    return [i % size for i in given]


@dataclass(frozen=True)
class AttentionMaps(Scores, Plottable):
    """The attention of each call that matched, in the order of the calls; by number or address."""

    maps: list[AttentionMap] = field(default_factory=list)
    tokens: Any = None  # (batch, positions so far), where they are known
    tokenizer: Any = None

    def __len__(self) -> int:
        return len(self.maps)

    def __iter__(self) -> Iterator[AttentionMap]:
        return iter(self.maps)

    def __getitem__(self, at: int | PatternLike) -> AttentionMap:
        if isinstance(at, int):
            return self.maps[at]
        (wanted,) = patterns(at)
        hits = [
            m
            for m in self.maps
            if m.address == str(at)
            or wanted.matches(Address.parse(m.address))
            or wanted.matches(Address.parse(m.address.partition("/")[0]))
        ]
        if len(hits) != 1:
            raise KeyError(f"{at!r} means {len(hits)} of the maps at {[m.address for m in self.maps][:8]}.")
        return hits[0]

    def to_dict(self) -> dict[str, Any]:
        """All weights as lists: for short texts."""
        return {m.address: m.weights().tolist() for m in self.maps}

    def __repr__(self) -> str:
        return f"<attention maps of {len(self)} calls>"


class _Seen(Probe):
    def __init__(self, model: Module, at: Patterns | None) -> None:
        self.wanted = None if at is None else patterns(at)
        if self.wanted is not None:
            modules_for(model, self.wanted)
        super().__init__(model, ops=True)
        self.fused: list[AttentionMap] = []
        self.plain: list[AttentionMap] = []
        self.last: Tensor | None = None  # weights that softmax gave

    def left(self, frame: Frame) -> None:
        op = frame.address.op
        if op == "masked_fill" and self.last is not None and frame.args[0] is self.last:
            # Rows that see nothing are made zero behind softmax, which has no numbers for them.
            self.plain[-1] = replace(self.plain[-1], made=frame.output.detach())
        if op not in ("attention", "softmax"):
            return
        if self.wanted is not None and not any(
            p.matches(frame.address, frame) or p.matches(frame.address._replace(op=None, index=0), frame)
            for p in self.wanted
        ):
            return
        if op == "attention":
            self.fused.append(self._fused(frame))
        elif frame.output.dim() == 4:
            shape, kept, self.last = frame.output.shape, frame.output.detach(), frame.output
            first = self.past + shape[2] - shape[3]
            self.plain.append(
                AttentionMap(str(frame.address), None, None, None, None, 1.0, False, 0, self.past, max(first, 0), kept)
            )

    def _fused(self, frame: Frame) -> AttentionMap:
        q, k, _, mask, _, _, offset, _, causal, scale = frame.args
        if scale is None:
            scale = 1 / math.sqrt(q.shape[3]) if q.shape[3] else 1.0
        _, lse = frame.output
        mask = None if mask is None else mask.detach()
        # A cache with a window has forgotten the first keys.
        first = max(self.past + q.shape[2] - k.shape[2], 0)
        return AttentionMap(
            str(frame.address), q.detach(), k.detach(), mask, lse.detach(), scale, causal, int(offset), self.past, first
        )

    def found(self) -> list[AttentionMap]:
        # Weights that a model makes only to show them stand beside the fused ones.
        fused = {m.address.partition("/")[0] for m in self.fused}
        rest = [m for m in self.plain if m.address.partition("/")[0] not in fused]
        return self.fused + rest if self.wanted is not None or self.fused else rest


def attention_maps(
    model: Module,
    *args: object,
    at: Patterns | None = None,
    tokens: object = None,
    tokenizer: TokenNames | None = None,
    **kwargs: object,
) -> AttentionMaps:
    """Run a model and give its attention, of which weights are rebuilt when they are asked for.

    `at` are patterns of calls, such as "layers.3.self_attn" or "layers.{3,5}.**/attention"; the
    default is all attention. `tokens` are the ids of the whole text, when a cache holds its
    beginning. Weights are those before dropout.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=2, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> maps = votive.glass.attention_maps(model, votive.tensor([[1, 2, 3]]))
    >>> len(maps), maps[1].weights(heads=0, queries=-1).shape
    (2, votive.Size([1, 1, 1, 3]))
    """
    probe = _Seen(model, at)
    with votive.no_grad(), probe:
        model(*args, **kwargs)
    found = probe.found()
    if not found:
        if probe.wanted is not None:
            raise no_match(probe.wanted[0], [n for n, _ in model.named_modules()])
        raise LookupError(f"{type(model).__name__} ran no attention that could be rebuilt.")
    tokens = ids_of(args, kwargs) if tokens is None else votive.as_tensor(tokens)
    if tokens is not None and tokens.dim() == 1:
        tokens = tokens.unsqueeze(0)
    named = [_with_tokens(m, tokens, tokenizer) for m in found]
    return AttentionMaps(named, tokens, tokenizer)


def _with_tokens(found: AttentionMap, tokens: Tensor | None, tokenizer: TokenNames | None) -> AttentionMap:
    fits = tokens is not None and tokens.shape == (found.shape[0], found.first_key + found.shape[3])
    return replace(found, tokens=tokens if fits else None, tokenizer=tokenizer)
