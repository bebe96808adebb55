"""Generating on a GPU with the step as a graph: what a token takes is recorded once and replayed,
so that Python and the launches of hundreds of kernels cost nothing. Chooses no tokens.
"""

from __future__ import annotations

from typing import Any, Protocol

import votive
from votive import nn
from votive.core.mode import mode
from votive.nn.fast_path import calls_observed, replayable
from votive.nn.snapshot import Snapshot

from ..tensor import Tensor
from .stepping import DecoderStepper, Model, StepOutput, Wanted, sees_part

# Recording takes as long as a few tokens; memory for a long text is not taken on suspicion.
WORTH, MOST = 16, 1 << 16


class FusedStep(Protocol):
    """What a model's `fused_decoder()` may give: one token in fewer launches."""

    def pays(self, rows: int) -> bool:
        """Whether it is faster than the model for so many rows."""

    def step(self, token: Tensor, position: Tensor, cache: nn.StaticCache) -> Tensor:
        """Logits (batch, 1, vocabulary) of a token (batch, 1) at `position`, a tensor of one index."""


def recordable(model: Model, wanted: Wanted | None) -> bool:
    """Whether the step of a model can be recorded: on a GPU, nobody looks inside, and no other code
    than votive's runs, which would miss the calls that are replayed.
    """
    device = getattr(model, "device", None)
    if not isinstance(model, nn.Module) or device is None or device.type != "cuda" or calls_observed():
        return False
    if wanted is not None and wanted != Wanted():
        return False
    if not hasattr(model, "config") or getattr(model.config, "sliding_window", None):
        return False
    return all(map(_steady, model.modules())) and replayable(model)


def _steady(part: nn.Module) -> bool:
    """Whether a module does the same for every token, wherever it stands in the text."""
    if part.training or sees_part(part) or getattr(part, "keeps_state", False):
        return False
    return not (isinstance(part, nn.RotaryEmbedding) and part.depends_on_length)


def graphable(model: Model, cache: nn.KVCache | None, wanted: Wanted | None) -> bool:
    """Whether steps can be recorded with this cache: numbers in memory that stays where it is."""
    return type(cache) is nn.StaticCache and cache.dtype is None and recordable(model, wanted)


def pays(rows: int, length: int, new: int) -> bool:
    """Whether recording is worth it for so many tokens to come, and memory for all is no waste."""
    return new >= WORTH and rows * length <= MOST


class GraphStepper(DecoderStepper):
    """A decoder whose single steps are replayed from a graph; the prompt runs as always.

    Whoever changes the model in the midst of a text, by a hook, a weight or whatever else, ends
    the replaying: from then on it is called for each token.
    """

    model: nn.Module
    cache: nn.StaticCache
    captured: votive.cuda.CUDAGraph | None = None
    fused: FusedStep | None = None
    recorded: Any = None  # what the model held when its step was captured
    changed = False
    expected = 0  # the position that the graph goes on with

    def advance(self, tokens: Tensor) -> StepOutput:
        if tokens.shape[1] != 1 or votive.is_grad_enabled():
            return super().advance(tokens)
        start = self.seen()
        if start >= self.cache.max_length:
            return super().advance(tokens)  # which says that the cache is full
        if self.captured is None:
            if self.changed or not recordable(self.model, self.wanted):
                self.changed = True
                return super().advance(tokens)
            with votive.cuda.device(tokens.device):
                self._capture(tokens, start)
        if self.expected != start:
            self.position.fill_(start)
            if self.positions is not None:
                self.place.copy_(self.positions[:, start : start + 1])
        self.token.copy_(tokens)
        assert self.captured is not None
        self.captured.replay()
        # Looked for while the GPU works. What the replay wrote of this token is written again.
        if not self._same():
            self.captured, self.fused, self.changed = None, None, True
            return super().advance(tokens)
        self.expected = start + 1
        self.cache._seen = [start + 1] * len(self.cache._seen)
        return StepOutput(self.logits)

    def _same(self) -> bool:
        """Whether a call of the model would still do what was captured."""
        lower, taken = self.recorded
        return not calls_observed() and mode.autocast == lower and taken.still()

    def _capture(self, tokens: Tensor, start: int) -> None:
        device, length = tokens.device, self.cache.max_length
        self.token = tokens.clone()
        self.position = votive.full((1, 1), start, dtype=votive.int64, device=device)
        self.keys = votive.arange(length, device=device)
        self.place = self.position.expand(tokens.shape)
        if self.positions is not None:  # padding: the text's own positions lag behind
            self.place = self.positions[:, start : start + 1].clone()
        for part in self.model.modules():  # tables must not grow later: the graph keeps the old
            if isinstance(part, nn.RotaryEmbedding):
                part.angles(length)
        fused = self.model.fused_decoder() if self.mask is None and hasattr(self.model, "fused_decoder") else None
        self.fused = fused if fused is not None and fused.pays(tokens.shape[0]) else None
        side = votive.cuda.Stream()
        side.wait_stream(votive.cuda.current_stream())
        with votive.cuda.stream(side):
            for _ in range(2):  # plans, kernels and algorithms are found before recording
                self._step()
        votive.cuda.current_stream().wait_stream(side)
        self.position.fill_(start)
        if self.positions is not None:
            self.place.copy_(self.positions[:, start : start + 1])
        self.captured = votive.cuda.CUDAGraph()
        with votive.cuda.graph(self.captured, stream=side):
            self.logits = self._step()
        self.expected = start
        self.recorded = mode.autocast, Snapshot(self.model)

    def _step(self) -> Tensor:
        """One token at the place that `position` says; moves it on."""
        if self.fused is not None:
            logits = self.fused.step(self.token, self.position.view(-1), self.cache)
            self.position.add_(1)
            return logits.float()
        mask = self.keys <= self.position  # (1, L)
        if self.mask is not None:
            mask = mask & self.mask[:, : self.keys.shape[0]].bool()
        with self.cache.at(self.position.view(-1)):
            out = self.model(
                self.token,
                attention_mask=mask[:, None, None, :],
                position_ids=self.place,
                past_key_values=self.cache,
                use_cache=True,
                logits_to_keep=1,
            )
        self.position.add_(1)
        if self.positions is not None:
            self.place.add_(1)
        return out.logits[:, -1:].float()
