"""The tuned lens: an affine map for each layer, learned to say early what the model says at last.

Belrose et al. 2023, arXiv:2303.08112: `logits = unembed(norm(h + A h + b))`, trained on the
divergence from the final distribution. Knows no model class.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import votive

from .. import nn
from ..nn import Module
from ..nn import functional as F
from ..optim import Adam
from ..tensor import Tensor
from .parts import Parts, parts_of
from .residual_stream import ResidualStream, Unembed, logits_of, run_stream
from .sweep_runs import inputs_of


class TunedLens(nn.Module):
    """Translators of the states before the last: `lens(state, row)`, where row 0 is the embedding.

    New ones change nothing: the tuned lens begins as the logit lens.

    >>> lens = votive.glass.TunedLens(rows=2, width=3)
    >>> bool((lens(votive.ones(1, 3), 0) == 1).all())
    True
    """

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.translators = nn.ModuleList(nn.Linear(width, width) for _ in range(rows))
        self.width = width
        self.history: list[float] = []
        for t in self.translators:
            nn.init.zeros_(t.weight)
            nn.init.zeros_(t.bias)

    def forward(self, state: Tensor, row: int) -> Tensor:
        if row == len(self.translators):
            return state  # the last state is what is learned from
        if not 0 <= row < len(self.translators) or state.shape[-1] != self.width:
            raise ValueError(
                f"TunedLens: it has {len(self.translators)} rows of width {self.width}, got row "
                f"{row} and a state {tuple(state.shape)}; it was made for another model."
            )
        found = self.translators[row](state.to(self.translators[row].weight.dtype))
        return state + found.to(state.dtype)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file."""
        fields = {"rows": len(self.translators), "width": self.width, "history": self.history}
        votive.save({"tuned_lens": fields, "state": self.state_dict()}, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TunedLens:
        """Read what `save` wrote."""
        found = votive.load(path)
        if not isinstance(found, dict) or "tuned_lens" not in found:
            raise ValueError(f"TunedLens.load: {os.fspath(path)} holds no tuned lens.")
        fields = found["tuned_lens"]
        lens = cls(fields["rows"], fields["width"])
        lens.load_state_dict(found["state"])
        lens.history = list(fields["history"])
        return lens


def train_tuned_lens(
    model: Module,
    batches: Iterable[Any],
    *,
    tokenizer: Any = None,
    epochs: int = 1,
    lr: float = 1e-3,
    lens: TunedLens | None = None,
    parts: Parts | Mapping[str, Any] | None = None,
    max_grad_norm: float = 1.0,
    **kwargs: object,
) -> TunedLens:
    """Learn translators for a model, which itself stays as it is.

    `batches` are tensors of ids (samples, positions), dicts of the model's arguments, or with a
    `tokenizer` texts. Each is a step of Adam, whose rate falls linearly to 0; `history` has the
    mean divergence of each step. `kwargs` are passed to the model. Give `lens` to train one on.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=2, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> lens = votive.glass.train_tuned_lens(model, [votive.tensor([[1, 2, 3]])], epochs=2)
    >>> len(lens.history), len(lens.translators)
    (2, 2)
    """
    known = parts_of(model, parts)
    steps = [_arguments(b, tokenizer) for b in batches]
    if not steps:
        raise ValueError("train_tuned_lens: no batch was given.")
    optimizer: Any = None
    count = epochs * len(steps)
    frozen = [p for p in model.parameters() if p.requires_grad]
    for p in frozen:
        p.requires_grad_(False)
    try:
        for i in range(count):
            args, named = steps[i % len(steps)]
            named = {**kwargs, **named}
            with votive.no_grad():
                stream = run_stream(known, args, named)
                tail = Unembed(stream, args, named)
                final = F.log_softmax(logits_of(stream.result).float(), -1)
            if lens is None:
                lens = TunedLens(len(stream.states) - 1, stream.states[0].shape[-1])
            if optimizer is None:
                optimizer = Adam(lens.parameters(), lr=lr)
            for group in optimizer.param_groups:
                group["lr"] = lr * (1 - i / count)
            optimizer.zero_grad()
            lens.history.append(_divergences(lens, stream, tail, final))
            nn.utils.clip_grad_norm_(lens.parameters(), max_grad_norm)
            optimizer.step()
    finally:
        for p in frozen:
            p.requires_grad_(True)
    assert lens is not None
    return lens


def _divergences(lens: TunedLens, stream: ResidualStream, tail: Unembed, final: Tensor) -> float:
    """Gradients of the mean divergence of all rows; one row's scores are held at a time."""
    rows = len(stream.states) - 1
    total = 0.0
    with votive.enable_grad():
        for row in range(rows):
            scores = tail(lens(stream.states[row].detach(), row))
            logs = F.log_softmax(scores.float(), -1)
            loss = (final.exp() * (final - logs)).sum(-1).mean() / rows
            loss.backward()
            total += float(loss.detach())
    return total


def _arguments(batch: object, tokenizer: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(batch, str):
        if tokenizer is None:
            raise ValueError("train_tuned_lens: texts need a tokenizer.")
        ids = tokenizer.encode(batch)
        return (votive.tensor([list(getattr(ids, "ids", ids))]),), {}
    return inputs_of(batch)
