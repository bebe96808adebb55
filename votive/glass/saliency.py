"""Token saliency: which tokens an output hangs on, from gradients at the embedding.

Knows an embedding by the module that makes it, and no model class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from . import values
from .heatmap import Heatmap
from .labels import TokenNames, token_labels
from .parts import find_parts, parts_of
from .plots import Plottable
from .probe import Frame, Probe, cache_of
from .probe_hub import CHANGES
from .residual_stream import ids_of, index_in_run, logits_of

METHODS = ("gradient", "gradient_x_input", "integrated_gradients")


@dataclass(frozen=True)
class Saliency(Plottable):
    """A score for each token, (samples, positions); signed but for plain gradients.

    `output` (samples,) is the number that is explained. For integrated gradients, `gap` is how far
    the scores' sum is from the difference of the output to that of the baseline.
    """

    method: str
    scores: Any
    output: Any
    tokens: Any = None
    gap: Any = None
    tokenizer: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        tensors = {"scores": self.scores, "output": self.output, "tokens": self.tokens, "gap": self.gap}
        plain = {k: v.tolist() for k, v in tensors.items() if v is not None}
        return {"method": self.method, **plain}

    def figure(self) -> Heatmap:
        """A row for each sample."""
        count, length = self.scores.shape
        labels = [str(i) for i in range(length)]
        cells = None
        if self.tokens is not None:
            cells = [token_labels(row, self.tokenizer) for row in self.tokens.tolist()]
            labels = cells[0] if count == 1 else labels
        return Heatmap(
            self.scores.tolist(),
            [str(i) for i in range(count)],
            labels,
            cells=cells if count > 1 else None,
            title=f"saliency: {self.method}",
            x_name="position",
            y_name="sample",
            legend="score",
            signed=self.method != "gradient",
        )


class _Embedding(Probe):
    """Puts another tensor in place of what the embedding gives."""

    order = CHANGES

    def __init__(self, model: Module, table: Module, change: Callable[[Any], Any]) -> None:
        super().__init__(model, only=[table])
        self.table, self.change = table, change
        self.found: Any = None

    def left(self, frame: Frame) -> None:
        # A table that also serves as the head, or for types, is called again.
        if frame.subject is self.table and self.found is None:
            with self.muted():
                self.found = self.change(values.first(frame.output))
            path = values.first_path(frame.output)
            assert path is not None
            frame.output = values.put(frame.output, path, self.found)


def saliency(
    model: Module,
    *args: object,
    target: object = None,
    position: int = -1,
    method: str = "gradient_x_input",
    metric: Callable[[Any], Any] | None = None,
    steps: int = 32,
    baseline: object = None,
    embedding: Module | str | None = None,
    tokenizer: TokenNames | None = None,
    **kwargs: object,
) -> Saliency:
    """How much each token matters for the logit of `target` at a position, or for a `metric`.

    "gradient" is the norm of the gradient at a token's embedding (Simonyan et al. 2013,
    arXiv:1312.6034), "gradient_x_input" its product with the embedding, "integrated_gradients" the
    mean gradient on the way from `baseline` (zeros), times that way (Sundararajan et al. 2017,
    arXiv:1703.01365). `position` counts from the beginning of the text, also when a cache holds its
    first part, or if negative from its end. `target` defaults to the likeliest token. `metric`
    gives a number for each sample of the model's output.

    >>> _ = votive.manual_seed(0)
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> votive.glass.saliency(model, votive.tensor([[1, 2, 3]]), target=4).scores.shape
    votive.Size([1, 3])
    """
    if method not in METHODS:
        raise ValueError(f"saliency: method must be one of {METHODS}, got {method!r}.")
    if metric is not None and target is not None:
        raise ValueError("saliency: give target or metric, not both.")
    if steps < 1:
        raise ValueError(f"saliency: steps must be positive, got {steps}.")
    if method == "integrated_gradients" and cache_of(args, kwargs) is not None:
        raise ValueError(
            f"saliency: {method!r} runs the text many times, and each run would fill the cache; "
            "give the whole text, without a cache."
        )
    table = _table(model, embedding)
    if metric is None:
        metric = _logit(target, index_in_run(position, args, kwargs, "saliency"))
    run = _Run(model, table, metric, args, kwargs)
    x, slope, output = run.at(None)
    if method == "integrated_gradients":
        start = votive.zeros_like(x) if baseline is None else _baseline(baseline, x)
        total = votive.zeros_like(x)
        for i in range(steps):
            # The midpoint rule: exact for a metric that is quadratic on the way.
            between = start + (i + 0.5) / steps * (x - start)
            total = total + run.at(between)[1]
        scores = ((x - start) * total / steps).sum(-1)
        ground = run.at(start)[2]
        gap = (scores.sum(-1) - (output - ground)).abs()
        return Saliency(method, scores, output, ids_of(args, kwargs), gap, tokenizer)
    scores = slope.norm(dim=-1) if method == "gradient" else (slope * x).sum(-1)
    return Saliency(method, scores, output, ids_of(args, kwargs), None, tokenizer)


class _Run:
    """The metric and its gradient as functions of the embeddings."""

    def __init__(
        self, model: Module, table: Module, metric: Callable[[Any], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.model, self.table, self.metric = model, table, metric
        self.args, self.kwargs = args, kwargs

    def at(self, given: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Embeddings, gradient and metric with other embeddings, or with the model's own."""

        def leaf(x: Tensor) -> Tensor:
            return (x if given is None else given).detach().requires_grad_(True)

        probe = _Embedding(self.model, self.table, leaf)
        with votive.enable_grad():
            with probe:
                result = self.model(*self.args, **self.kwargs)
            if probe.found is None:
                raise LookupError("saliency: the run did not call the embedding.")
            found = self.metric(result)
            if found.numel() != probe.found.shape[0]:
                raise ValueError(
                    f"saliency: metric must give a number for each of {probe.found.shape[0]} "
                    f"samples, got shape {tuple(found.shape)}."
                )
            (slope,) = votive.autograd.grad(found.sum(), [probe.found])
        return probe.found.detach(), slope, found.detach().reshape(-1)


def _logit(target: object, position: int) -> Callable[[Any], Any]:
    chosen: list[Any] = []

    def metric(result: object) -> Any:
        scores = logits_of(result)
        scores = scores[:, position] if scores.dim() == 3 else scores
        if not chosen:
            # The likeliest token of the true run, also on the way from a baseline.
            goal = scores.detach().argmax(-1) if target is None else votive.as_tensor(target)
            chosen.append(goal.long().reshape(-1).expand(scores.shape[0]))
        return scores.gather(-1, chosen[0].unsqueeze(-1)).squeeze(-1)

    return metric


def _table(model: Module, given: Module | str | None) -> Module:
    if given is not None:
        if isinstance(given, votive.nn.Module):
            return given
        try:
            return parts_of(model, {"embedding": given}).embedding
        except LookupError:
            # A model without layers may still have an embedding.
            return model.get_submodule(given)
    try:
        found = find_parts(model).embedding
    except LookupError:
        found = next((m for m in model.modules() if hasattr(m, "num_embeddings")), None)
    if found is None:
        raise LookupError(f"{type(model).__name__} has no embedding that could be found; name it with embedding=.")
    return found


def _baseline(given: object, x: Tensor) -> Tensor:
    found = votive.as_tensor(given).to(device=x.device, dtype=x.dtype)
    try:
        return found.expand(x.shape)
    except RuntimeError:
        raise ValueError(f"saliency: baseline of shape {tuple(found.shape)} does not fit {tuple(x.shape)}.") from None
