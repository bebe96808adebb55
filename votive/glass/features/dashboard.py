"""What a feature is about: where it fires most, how strongly, what it writes, which others are near. Knows decoders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import votive

from ...nn import Module
from ...tensor import Tensor
from .. import values
from ..capture import capture
from ..display import Displayable, Pictures
from ..frozen_norm import freeze
from ..parts import parts_of
from ..plots import Bars
from ..sweep_runs import inputs_of
from ..table import Table
from .coder import SAE
from .measures import tokens_of

_BINS = 16


@dataclass(frozen=True)
class Example:
    """A text in which a feature fires: the tokens around the strongest place, and the feature's value at each."""

    text: int
    position: int
    value: float
    tokens: list[str]
    values: list[float]

    def line(self) -> str:
        """The tokens in a row, those at which it fires in brackets."""
        return "".join(f"[{t}]" if v > 0 else t for t, v in zip(self.tokens, self.values, strict=True)).replace(
            "\n", "⏎"
        )


@dataclass(frozen=True)
class FeatureView(Displayable):
    """One feature: examples, strongest first; how often it fires; what it writes; which features are near.

    `counts` are of values from 0 to `top` in bins of the same width; `similar` are cosines of decoder rows, `together`
    shares of the places where either fires at which both do.

    >>> view = votive.glass.features.FeatureView(3, [], 0.0, 0.0, [], 0.0)
    >>> print(view.text().splitlines()[0])
    feature 3: fires at 0.00 % of 0 places, at most 0
    """

    feature: int
    examples: list[Example]
    rate: float
    top: float
    counts: list[int]
    mean: float
    places: int = 0
    promoted: list[tuple[str, float]] = field(default_factory=list)
    suppressed: list[tuple[str, float]] = field(default_factory=list)
    similar: list[tuple[int, float]] = field(default_factory=list)
    together: list[tuple[int, float]] = field(default_factory=list)

    def text(self) -> str:
        """All of it as lines of text."""
        lines = [
            f"feature {self.feature}: fires at {self.rate:.2%} of {self.places} places, at most {self.top:.3g}".replace(
                "%", " %"
            )
        ]
        lines += [f"{e.value:8.3g}  {e.line()}" for e in self.examples]
        for name, found in (("promotes", self.promoted), ("suppresses", self.suppressed)):
            if found:
                lines.append(f"{name}: " + ", ".join(f"{t!r} {v:+.2f}" for t, v in found))
        for name, near in (("similar", self.similar), ("fires together with", self.together)):
            if near:
                lines.append(f"{name}: " + ", ".join(f"{i} ({v:.2f})" for i, v in near))
        return "\n".join(lines)

    __str__ = text

    def table(self) -> Table:
        """The examples as a table."""
        rows = [[e.line(), e.value, e.text, e.position] for e in self.examples]
        return Table(["text", ">value", ">sample", ">position"], rows, f"feature {self.feature}")

    def histogram(self) -> Bars:
        """How often it has which strength."""
        width = self.top / max(1, len(self.counts))
        names = [f"{i * width:.3g}" for i in range(len(self.counts))]
        return Bars([float(c) for c in self.counts], names, title=f"feature {self.feature}: strength", x_name="places")

    def effects(self) -> Table:
        """What it makes likelier and less likely."""
        rows = [[t, v] for t, v in (*self.promoted, *self.suppressed)]
        return Table(["token", ">logit"], rows, f"feature {self.feature}: effect on logits")

    def neighbours(self) -> Table:
        """Which features are near, by what they write and by where they fire."""
        rows = [[i, "cosine of decoders", v] for i, v in self.similar]
        rows += [[i, "fires together", v] for i, v in self.together]
        return Table([">feature", "how", ">how much"], rows, f"feature {self.feature}: neighbours")

    def pictures(self) -> Pictures:
        return {
            "feature": lambda: [self.table(), self.histogram(), self.effects(), self.neighbours()],
            "examples": lambda: [self.table()],
            "histogram": lambda: [self.histogram()],
        }

    def html(self) -> str:
        """All of it as HTML that needs no script: tokens in the colour of their strength."""
        lines = []
        for e in self.examples:
            marks = "".join(
                f'<span title="{v:.3g}" style="background: rgba(213, 94, 0, {min(v / (self.top or 1.0), 1.0):.2f})">'
                f"{escape(t)}</span>"
                for t, v in zip(e.tokens, e.values, strict=True)
            )
            lines.append(f'<li style="white-space: pre-wrap"><small>{e.value:.3g}</small> {marks}</li>')
        head = f"<h3>feature {self.feature}</h3><p>fires at {self.rate:.2%} of {self.places:,} places</p>"
        rest = self.histogram().svg() + self.effects().html() + self.neighbours().html()
        return f"<section>{head}<ul>{''.join(lines)}</ul>{rest}</section>"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Dashboard(Displayable):
    """Features by number, in the order asked for.

    >>> board = votive.glass.features.Dashboard({3: votive.glass.features.FeatureView(3, [], 0.0, 0.0, [], 0.0)})
    >>> list(board), board[3].feature
    ([3], 3)
    """

    views: dict[int, FeatureView]

    def __iter__(self) -> Iterator[int]:
        return iter(self.views)

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, feature: int) -> FeatureView:
        return self.views[feature]

    def table(self) -> Table:
        """A row per feature."""
        rows = [
            [
                v.feature,
                100 * v.rate,
                v.top,
                v.examples[0].line() if v.examples else "",
                ", ".join(t for t, _ in v.promoted),
            ]
            for v in self.views.values()
        ]
        return Table([">feature", ">% of places", ">at most", "strongest", "promotes"], rows, "features")

    def text(self) -> str:
        """All of it as text."""
        return "\n\n".join(v.text() for v in self.views.values())

    __str__ = text

    def html(self) -> str:
        """All of it as HTML that needs no script."""
        return "".join(v.html() for v in self.views.values())

    def pictures(self) -> Pictures:
        found: dict[str, Any] = {"features": lambda: [self.table()]}
        return found | {f"feature {i}": v.pictures()["feature"] for i, v in self.views.items()}


def dashboard(
    model: Module,
    sae: SAE,
    batches: Iterable[Any],
    features: Sequence[int] | None = None,
    *,
    tokenizer: Any = None,
    at: str | None = None,
    examples: int = 8,
    around: int = 10,
    near: int = 5,
    skip: int = 0,
) -> Dashboard:
    """What features are about, from one pass over batches of ids (samples, positions), or a model's named inputs.

    Without `features` it shows the ten with the strongest places among those that fire at fewer than one place in
    twenty. Each text gives one example at most, of `around` tokens to either side. Effects on logits are those of the
    decoder's row behind the last norm with its scale held at 1. `skip` leaves out the first positions, as `collect`
    does, and an `attention_mask` padding. Memory is bounded whatever the number of batches.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> sae = votive.glass.features.SAE(8, 16, "topk", k=2, site="layers.0")
    >>> board = votive.glass.features.dashboard(model, sae, [votive.tensor([[1, 2, 3]])], [0, 5])
    >>> list(board), board[5].places
    ([0, 5], 3)
    """
    site = at or sae.config.site
    if not site or sae.config.role == "crosscoder":
        raise ValueError("dashboard: the coder does not say where it reads one value; give at=, and no crosscoder.")
    if features is not None:
        bad = [i for i in features if not 0 <= i < sae.config.d_sae]
        if bad:
            raise IndexError(f"dashboard: features {bad} are outside 0..{sae.config.d_sae - 1}.")
    texts = [inputs_of(b) for b in batches]
    found = _Gathered(sae.config.d_sae, features, examples)
    for args, kwargs in texts:
        ids = tokens_of(args, kwargs)
        with votive.no_grad(), capture(model, site) as seen:
            model(*args, **kwargs)
        with votive.no_grad():
            value = values.first(seen[site])
            if value is None or tuple(value.shape[:2]) != tuple(ids.shape):
                raise ValueError(f"dashboard: {site!r} has no value for each sample and position.")
            mask = kwargs.get("attention_mask")
            text = mask.to("cpu") != 0 if isinstance(mask, Tensor) and mask.dim() == 2 else None
            found.add(sae.encode(value).float(), ids, skip, text)
    if not found.places:
        raise ValueError("dashboard: no batch was given.")
    chosen = list(features) if features is not None else found.notable(10)
    names = _Names(tokenizer)
    effects = logit_effects(model, sae, chosen, near)
    return Dashboard({f: found.view(f, i, sae, effects, names, around, near) for i, f in enumerate(chosen)})


class _Gathered:
    """What one pass keeps of every feature; of those asked for also strengths and what fires with them."""

    def __init__(self, many: int, chosen: Sequence[int] | None, examples: int) -> None:
        self.most = examples
        self.fired, self.sum = votive.zeros(many), votive.zeros(many)
        self.best = votive.zeros(0, many)
        self.where = votive.zeros(0, many, dtype=votive.int64)  # number of the text, times 2^32, plus the position
        self.tops = votive.ones(many)
        self.counts = votive.zeros(many, _BINS)
        self.both = votive.zeros(many, many) if chosen is None else votive.zeros(len(chosen), many)
        self.chosen = None if chosen is None else votive.tensor(list(chosen))
        self.kept: dict[int, tuple[list[int], Any]] = {}  # of texts that are among the best: ids and features
        self.texts = self.places = 0

    def add(self, f: Tensor, ids: Tensor, skip: int, text: Tensor | None = None) -> None:
        """Take in the features of a batch; `text` says which places are no padding."""
        f = f.cpu()
        if text is not None:
            f = f.masked_fill(~text.unsqueeze(-1), 0.0)
            self.places -= int((~text[:, skip:]).sum())
        if skip:
            f = f.clone()
            f[:, :skip] = 0
        flat = f[:, skip:].flatten(0, 1)
        on = (flat > 0).float()
        self.places += len(flat)
        self.fired += on.sum(0)
        self.sum += flat.sum(0)
        mine = on if self.chosen is None else on[:, self.chosen]
        self.both += mine.t() @ on
        self._count(flat)
        peaks, position = f.max(1)
        number = votive.arange(self.texts, self.texts + len(f)).unsqueeze(1)
        best = votive.cat([self.best, peaks])
        where = votive.cat([self.where, number * (1 << 32) + position])
        self.best, order = best.topk(min(self.most, len(best)), 0)
        self.where = where.gather(0, order)
        for i in range(len(f)):
            self.kept[self.texts + i] = (ids[i].tolist(), f[i].to(votive.float16).to_sparse())
        self.texts += len(f)
        # Only texts that are an example of a feature are kept.
        rows = self.where if self.chosen is None else self.where[:, self.chosen]
        needed = {int(n) >> 32 for n in rows.flatten().unique().tolist()}
        self.kept = {n: t for n, t in self.kept.items() if n in needed}

    def _count(self, flat: Tensor) -> None:
        """Strengths in bins; where a range is too small it doubles, and pairs of bins become one."""
        most = flat.max(0).values if len(flat) else self.tops
        while bool((most > self.tops).any()):
            small = most > self.tops
            halved = self.counts.reshape(len(self.tops), -1, 2).sum(-1)
            wider = votive.cat([halved, votive.zeros_like(halved)], 1)
            self.counts = votive.where(small.unsqueeze(1), wider, self.counts)
            self.tops = votive.where(small, self.tops * 2, self.tops)
        row, column = (flat > 0).nonzero(as_tuple=True)
        bins = (flat[row, column] / self.tops[column] * _BINS).ceil().to(votive.int64).clamp(1, _BINS) - 1
        found = votive.bincount(column * _BINS + bins, minlength=self.counts.numel())
        self.counts += found.reshape(self.counts.shape).to(self.counts.dtype)

    def notable(self, many: int) -> list[int]:
        """The features with the strongest places, but for those that fire nearly everywhere."""
        rare = (self.fired / self.places < 0.05) & (self.fired > 0)
        order = votive.where(rare, self.best[0], -1.0).argsort(descending=True)
        return [int(i) for i in order[: min(many, int(rare.sum()))].tolist()]

    def view(self, f: int, i: int, sae: SAE, effects: Any, names: _Names, around: int, near: int) -> FeatureView:
        examples = []
        for value, place in zip(self.best[:, f].tolist(), self.where[:, f].tolist(), strict=True):
            if value > 0:
                examples.append(self._example(f, value, place >> 32, place & 0xFFFFFFFF, names, around))
        fired = float(self.fired[f])
        both = self.both[f if self.chosen is None else i]
        either = self.fired + fired - both
        share = votive.where(either > 0, both / either.clamp(min=1.0), 0.0)
        rows = sae.directions().float()
        rows = rows / rows.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        up, down = effects[i] if effects else ([], [])
        return FeatureView(
            f,
            examples,
            fired / self.places,
            examples[0].value if examples else 0.0,
            [int(c) for c in self.counts[f].tolist()],
            float(self.sum[f]) / fired if fired else 0.0,
            self.places,
            [(names(t), v) for t, v in up],
            [(names(t), v) for t, v in down],
            _others((rows @ rows[f]).cpu(), f, near),
            [(j, v) for j, v in _others(share, f, near) if v > 0],
        )

    def _example(self, f: int, value: float, text: int, position: int, names: _Names, around: int) -> Example:
        ids, kept = self.kept[text]
        start, end = max(0, position - around), min(len(ids), position + around + 1)
        strengths = kept.to_dense()[start:end, f].float().tolist()
        strengths[position - start] = value
        return Example(text, position, value, [names(t) for t in ids[start:end]], strengths)


def _others(scores: Tensor, own: int, many: int) -> list[tuple[int, float]]:
    """The highest scores but one's own."""
    order = [int(i) for i in scores.argsort(descending=True)[: many + 1].tolist() if i != own]
    return [(i, float(scores[i])) for i in order[:many]]


def logit_effects(model: Module, sae: SAE, features: Sequence[int], many: int = 5) -> list[Any]:
    """The tokens that each feature makes likelier and less likely, with how much; empty where a model has no head.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> sae = votive.glass.features.SAE(8, 16, "relu")
    >>> from votive.glass.features.dashboard import logit_effects
    >>> up, down = logit_effects(model, sae, [0], 2)[0]
    >>> len(up), up[0][1] >= up[1][1] > down[0][1]
    (2, True)
    """
    try:
        parts = parts_of(model, None)
    except (LookupError, ValueError):
        return []
    head = getattr(parts.head, "weight", None)
    if not features or head is None or head.shape[-1] != sae.config.gives:
        return []
    with votive.no_grad():
        rows = sae.directions()[votive.tensor(list(features))].to(device=head.device, dtype=votive.float64)
        if parts.norm is not None:
            try:
                norm = freeze(parts.norm, votive.ones_like(rows[:1]).cumsum(-1).to(head.dtype))
            except ValueError:
                return []  # what stands before the head is no norm
            rows = (rows - rows.mean(-1, keepdim=True) if norm.centred else rows) * norm.weight
        found = (rows @ head.double().t()).cpu()
        many = min(many, found.shape[-1])
        up, down = found.topk(many, -1), found.topk(many, -1, largest=False)
    return [
        (list(zip(a, b, strict=True)), list(zip(c, d, strict=True)))
        for a, b, c, d in zip(
            up.indices.tolist(), up.values.tolist(), down.indices.tolist(), down.values.tolist(), strict=True
        )
    ]


class _Names:
    """The texts of tokens, each looked up once."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.known = tokenizer, dict[int, str]()

    def __call__(self, token: int) -> str:
        if token not in self.known:
            self.known[token] = f" {token}" if self.tokenizer is None else str(self.tokenizer.decode([token]))
        return self.known[token]
