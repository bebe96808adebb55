"""The logit lens: what a model would say if it stopped after a layer. Knows no model class.

nostalgebraist 2020, "interpreting GPT: the logit lens"; with translators it is the tuned lens of
Belrose et al. 2023, arXiv:2303.08112. Scores over the whole vocabulary exist for a few rows at a
time only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..nn import functional as F
from ..tensor import Tensor
from .heatmap import Heatmap
from .labels import TokenNames, token_labels
from .parts import Parts, parts_of
from .plots import Plottable
from .residual_stream import ResidualStream, Unembed, ids_of, logits_of, run_stream

# How many scores are held at once.
CHUNK = 1 << 22


@dataclass(frozen=True)
class Lens(Plottable):
    """What each row of a lens says: rows are the embedding and the layers that were asked for.

    `ids` and `probabilities` are (rows, samples, positions, k); `entropy`, in nats, `kl`, the
    divergence of the final distribution from the row's, and `rank` (0 is the likeliest) and
    `probability` of the target are (rows, samples, positions).
    """

    names: list[str]
    positions: list[int]
    tokens: Any  # (samples, positions), or None when the input is not of ids
    ids: Any
    probabilities: Any
    entropy: Any
    kl: Any
    target: Any = None
    rank: Any = None
    probability: Any = None
    tokenizer: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        tensors = {
            k: getattr(self, k)
            for k in ("tokens", "ids", "probabilities", "entropy", "kl", "target", "rank", "probability")
        }
        plain = {k: v.tolist() for k, v in tensors.items() if v is not None}
        return {"names": list(self.names), "positions": list(self.positions), **plain}

    def table(self, sample: int = 0, width: int = 10) -> str:
        """The likeliest token of each row at each position, as text."""
        ids = self.ids[:, sample, :, 0]
        head = ["", *self._labels(sample)]
        rows = [head]
        for name, row in zip(self.names, ids.tolist(), strict=True):
            rows.append([name, *token_labels(row, self.tokenizer)])
        left = max(len(r[0]) for r in rows)
        return "\n".join(
            f"{r[0]:<{left}}  " + " ".join(f"{_cut(c, width):<{width}}" for c in r[1:]).rstrip() for r in rows
        )

    def __str__(self) -> str:
        return self.table()

    def figure(self, what: str = "probability", sample: int = 0) -> Heatmap:
        """A heat map of rows and positions: "probability", "entropy", "kl" or "rank".

        "probability" is that of the target, or without one that of the likeliest token.
        """
        shown = {
            "probability": self.probability if self.probability is not None else self.probabilities[..., 0],
            "entropy": self.entropy,
            "kl": self.kl,
            "rank": self.rank,
        }.get(what)
        if shown is None:
            raise ValueError(f"Lens: {what!r} cannot be drawn; choose probability, entropy, kl, or with a target rank.")
        return Heatmap(
            shown[:, sample].tolist(),
            rows=list(self.names),
            columns=self._labels(sample),
            cells=[token_labels(r, self.tokenizer) for r in self.ids[:, sample, :, 0].tolist()],
            title=f"logit lens: {what}",
            x_name="position",
            y_name="layer",
            legend=what,
        )

    def _labels(self, sample: int) -> list[str]:
        if self.tokens is None:
            return [str(p) for p in self.positions]
        return token_labels(self.tokens[sample].tolist(), self.tokenizer)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def logit_lens(
    model: Module,
    *args: object,
    top_k: int = 5,
    target: object = None,
    layers: int | str | Iterable[int | str] | None = None,
    positions: int | Iterable[int] | None = None,
    translator: Callable[[Tensor, int], Tensor] | None = None,
    tokenizer: TokenNames | None = None,
    parts: Parts | Mapping[str, Any] | None = None,
    **kwargs: object,
) -> Lens:
    """Read the stream behind each layer with the model's own last norm and head.

    `args` and `kwargs` are the model's. `layers` are numbers, -1 the last one and "embedding" what
    goes into the first; `positions` count from the beginning of the text, also when a cache holds
    it; both default to all. `target` is a token, or one
    for each sample, or for each sample and position. `translator` is a tuned lens, `parts` what
    `find_parts` gave or its arguments as a dict.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=2, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> lens = votive.glass.logit_lens(model, votive.tensor([[1, 2, 3]]), top_k=2, target=4)
    >>> lens.names, lens.ids.shape
    (['embedding', 'model.layers.0', 'model.layers.1'], votive.Size([3, 1, 3, 2]))
    >>> float(lens.kl[-1].max())
    0.0
    """
    if top_k < 1:
        raise ValueError(f"logit_lens: top_k must be positive, got {top_k}.")
    with votive.no_grad():
        stream = run_stream(parts_of(model, parts), args, kwargs)
        tail = Unembed(stream, args, kwargs)
        final = logits_of(stream.result)
        _check_three(final)
        chosen = _rows(layers, len(stream.states))
        where = _positions(positions, final.shape[1], stream.past)
        final = final[:, where]
        goal = _goal(target, final.shape[:2], final.device)
        got = [_read(final, row, top_k, goal) for row in lens_rows(stream, tail, chosen, where, final, translator)]
        stacked = {k: votive.stack([g[k] for g in got]) for k in got[0]}
    tokens = ids_of(args, kwargs)
    if tokens is not None and tokens.shape[:2] == (final.shape[0], stream.states[0].shape[1]):
        tokens = tokens[:, where]
    else:
        tokens = None
    return Lens(
        [stream.names[i] for i in chosen],
        [p + stream.past for p in where],
        tokens,
        target=goal,
        tokenizer=tokenizer,
        **stacked,
    )


def lens_rows(
    stream: ResidualStream,
    tail: Unembed,
    chosen: Sequence[int],
    where: Sequence[int],
    final: Tensor,
    translator: Callable[[Tensor, int], Tensor] | None = None,
) -> Iterator[Iterator[tuple[slice, Any]]]:
    """For each row, pieces of (samples * positions) and their logits; the last row's are `final`.

    The last row is what the model said, not a second computation of it.
    """
    rows, size = final.shape[0] * final.shape[1], max(1, CHUNK // final.shape[-1])
    pieces = [slice(i, min(i + size, rows)) for i in range(0, rows, size)]
    flat_final = final.reshape(rows, -1)
    last = len(stream.states) - 1

    def row(index: int) -> Iterator[tuple[slice, Any]]:
        state = stream.states[index][:, where].reshape(rows, -1)
        for piece in pieces:
            if index == last:
                yield piece, flat_final[piece]
                continue
            part = state[piece]
            yield piece, tail(part if translator is None else translator(part, index))

    for index in chosen:
        yield row(index)


def _read(final: Tensor, row: Iterator[tuple[slice, Any]], k: int, goal: Tensor | None) -> dict[str, Any]:
    """The numbers of one row from its logits, piece by piece."""
    shape = final.shape[:2]
    flat = final.reshape(-1, final.shape[-1])
    wanted = None if goal is None else goal.reshape(-1)
    found: dict[str, list[Any]] = {}
    for piece, scores in row:
        scores = scores.float()
        logs = F.log_softmax(scores, -1)
        chances = logs.exp()
        last = F.log_softmax(flat[piece].float(), -1)
        top, ids = chances.topk(min(k, scores.shape[-1]), -1)
        numbers = {
            "ids": ids,
            "probabilities": top,
            "entropy": _sum_plogp(chances, logs),
            "kl": (last.exp() * (last - logs)).nan_to_num(0.0).sum(-1),
        }
        if wanted is not None:
            own = scores.gather(-1, wanted[piece].unsqueeze(-1))
            numbers["rank"] = (scores > own).sum(-1)
            numbers["probability"] = chances.gather(-1, wanted[piece].unsqueeze(-1)).squeeze(-1)
        for name, value in numbers.items():
            found.setdefault(name, []).append(value)
    return {n: votive.cat(v).reshape(*shape, *v[0].shape[1:]) for n, v in found.items()}


def _sum_plogp(chances: Tensor, logs: Tensor) -> Tensor:
    # A token that cannot come has the logarithm minus infinity, and adds nothing.
    return -(chances * logs).nan_to_num(0.0).sum(-1)


def _check_three(final: Tensor) -> None:
    if final.dim() != 3:
        raise ValueError(f"logit_lens: the logits must be (samples, positions, tokens), got {tuple(final.shape)}.")


def _rows(layers: int | str | Iterable[int | str] | None, count: int) -> list[int]:
    """Row numbers: 0 is the embedding."""
    if layers is None:
        return list(range(count))
    out = []
    for i in [layers] if isinstance(layers, (int, str)) else layers:
        if i == "embedding":
            out.append(0)
            continue
        if not isinstance(i, int) or not -(count - 1) <= i < count - 1:
            raise IndexError(f"logit_lens: layer {i!r} is none of 0..{count - 2} or 'embedding'.")
        out.append(1 + i % (count - 1))
    return out


def _positions(given: int | Iterable[int] | None, length: int, past: int) -> list[int]:
    if given is None:
        return list(range(length))
    given = [given] if isinstance(given, int) else [int(p) for p in given]
    bad = [p for p in given if not (past <= p < past + length or -length <= p < 0)]
    if bad:
        raise IndexError(f"logit_lens: positions {bad} are not among {past}..{past + length - 1}, those of this run.")
    return [p - past if p >= 0 else p + length for p in given]


def _goal(target: object, shape: Sequence[int], device: votive.device) -> Tensor | None:
    if target is None:
        return None
    goal = votive.as_tensor(target, device=device).long()
    if goal.dim() == 1:
        goal = goal.unsqueeze(1)
    try:
        return goal.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"logit_lens: target of shape {tuple(goal.shape)} fits no (samples, positions) {tuple(shape)}."
        ) from None
