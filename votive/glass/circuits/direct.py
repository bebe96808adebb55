"""What every part of a decoder says directly, at all positions at once: no later part in between. Knows no family.

With the scale of the last norm held fast, a logit is a linear function of the stream, and so a sum over all that was
written into it: Elhage et al. 2021.
"""

from __future__ import annotations

import votive

from ...nn import Module
from ...tensor import Tensor
from ..frozen_norm import freeze
from ..head_weights import Weights, _gain
from ..labelled import Labelled
from ..sites import AllSites
from ..sweep_runs import inputs_of
from ..targets import uncompiled
from .edge_run import WriterRun
from .graph import graph

BY = ("part", "layer", "neuron")


def direct_logits(
    model: Module, given: object, target: object, against: object = None, *, by: str = "part", layer: int | None = None
) -> Labelled:
    """What each part adds to the logit of `target` at every position: (parts, samples, positions).

    `given` is inputs of the model. `target` is a token, one for each sample, or one for each position of each; with
    `against` it is a difference of two logits that is split. `by` is "part" (embedding, heads, MLPs, and "rest" for
    all biases; they add up to the logit before a cap), "layer" (what the logit would be if the model ended before
    each layer, and at the end) or "neuron" of the MLP in one `layer`.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model, ids = votive.models.LlamaForCausalLM(config).eval(), votive.tensor([[1, 2, 3]])
    >>> found = votive.glass.circuits.direct_logits(model, ids, 4)
    >>> found.dims["part"]
    ['embed', 'layers.0.head.0', 'layers.0.head.1', 'layers.0.mlp', 'rest']
    >>> votive.allclose(found.values.sum(0), model(ids).logits[..., 4], atol=1e-5)
    True
    """
    if by not in BY:
        raise ValueError(f"direct_logits: by must be one of {', '.join(BY)}, got {by!r}.")
    if (by == "neuron") != (layer is not None):
        raise ValueError("direct_logits: give layer= with by='neuron', and only with it.")
    model = uncompiled(model)
    of, weights = graph(model), Weights(model)
    if layer is not None and not -of.layers <= layer < of.layers:
        raise IndexError(f"direct_logits: layer {layer} is outside 0..{of.layers - 1}.")
    args, kwargs = inputs_of(given)
    with votive.no_grad():
        streams = (*(f"layers.{i}.resid_pre" for i in range(of.layers)), f"layers.{of.layers - 1}.resid_post")
        names = streams if layer is None else (*streams, f"layers.{layer % of.layers}.mlp.post")
        names = (*names, f"layers.{(layer or 0) % of.layers}.ln2_post.scale", "ln_final.normalized")
        seen, writers = AllSites(model, names), WriterRun(model, of)
        with seen, writers:
            model(*args, **kwargs)
        end = seen.values[streams[-1]]
        direction, constant = _direction(weights, end, target, against)
        norm = freeze(weights.parts.norm, end)
        _check_end(seen.values["ln_final.normalized"].double() * norm.weight, norm.part(end.double()), end)

        def said(x: Tensor) -> Tensor:
            """What vectors (..., samples, positions, features) say."""
            return (norm.part(x.double()) * direction).sum(-1)

        dims = {"sample": list(range(end.shape[0])), "position": list(range(end.shape[1]))}
        if by == "layer":
            # The lens: each stream is normed by itself.
            rows = [(weights.parts.norm(seen.values[s]).double() * direction).sum(-1) + constant for s in streams]
            return Labelled(votive.stack(rows).float(), {"layer": [*range(of.layers), "end"], **dims}, "logit")
        if layer is not None:
            at = layer % of.layers
            post, W = seen.values[f"layers.{at}.mlp.post"].double(), weights.W_out[at].double()  # (F, C)
            behind, W = weights._norms(at)[3], W * weights.parts.layers[at].residual_scale
            if behind is not None:
                W = W * _gain(behind).double()
                post = post / seen.values[f"layers.{at}.ln2_post.scale"].double()
            if norm.centred:
                W = W - W.mean(-1, keepdim=True)
            read = (direction * norm.scale * norm.weight) @ W.t()  # (B, T, F)
            values = (post * read).movedim(-1, 0)
            return Labelled(values.float(), {"neuron": list(range(values.shape[0])), **dims}, "logit")
        parts = said(writers.values)  # (W, B, T)
        rest = said(end.double() - writers.values.double().sum(0)) + constant + (norm.bias * direction).sum(-1)
        values = votive.cat([parts, rest.unsqueeze(0)])
        return Labelled(values.float(), {"part": [*of.writers, "rest"], **dims}, "logit")


def _check_end(got: Tensor, expected: Tensor, end: Tensor) -> None:
    """Raise where the logits are not made of the stream as the last layer leaves it."""
    off, size = float((got - expected).abs().max()), float(expected.abs().max())
    if not off <= (1e-4 + 4 * votive.finfo(end.dtype).eps) * max(size, 1e-30):
        raise ValueError(
            "direct_logits: something changes the stream behind the last layer, or in the last norm, so that logits "
            "are not the sum of what was written; edit the place layers.N.resid_post, or splice with the error term."
        )


def _direction(weights: Weights, end: Tensor, target: object, against: object) -> tuple[Tensor, Tensor]:
    """The vector (samples, positions, features) that a logit multiplies the normed stream with, and what is added."""
    scale = next(m for m in weights.model.modules() if hasattr(m, "stack")).design.logit_scale
    rows, bias = weights.W_U.t().double() * scale, weights.b_U.double() * scale
    chosen = _tokens("target", target, end, rows.shape[0])
    direction, constant = rows[chosen], bias[chosen]
    if against is not None:
        other = _tokens("against", against, end, rows.shape[0])
        direction, constant = direction - rows[other], constant - bias[other]
    return direction, constant


def _tokens(what: str, given: object, end: Tensor, vocabulary: int) -> Tensor:
    """Tokens (samples, positions)."""
    found = votive.as_tensor(given).long().to(end.device)
    shape = tuple(end.shape[:2])
    if found.dim() == 1 and found.shape[0] == shape[0]:
        found = found.unsqueeze(1)
    if not bool(((found >= 0) & (found < vocabulary)).all()):
        raise IndexError(f"direct_logits: {what} {found.flatten()[:4].tolist()} is outside 0..{vocabulary - 1}.")
    try:
        return found.expand(shape)
    except RuntimeError:
        raise ValueError(
            f"direct_logits: {what} must be a token, one for each of {shape[0]} samples, or {shape}; got "
            f"{tuple(found.shape)}."
        ) from None
