"""How good a coder is: how many features fire, what they explain, what the model loses. Knows rows and losses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import votive

from ...core.dtype import bool_
from ...nn import Module
from ...nn import functional as F
from ...tensor import Tensor
from ..display import Displayable, Pictures
from ..sweep_runs import inputs_of
from ..table import Table
from .coder import SAE
from .splice import splice
from .store import Rows


@dataclass(frozen=True)
class Quality(Displayable):
    """The measures of a coder on some rows; losses are None where no model was run.

    `explained_variance` is 1 minus squared errors over squared distances from the mean, `dead` the share of features
    that fired at no row. `recovered` is how much of the loss comes back: 1 is the model's own, 0 that with zeros.

    >>> quality = votive.glass.features.Quality(10, 4.0, 0.9, 0.1, 0.0)
    >>> quality.recovered is None, quality.to_dict()["l0"]
    (True, 4.0)
    """

    rows: int
    l0: float
    explained_variance: float
    error: float
    dead: float
    loss: float | None = None
    loss_with: float | None = None
    loss_zero: float | None = None

    @property
    def recovered(self) -> float | None:
        """(loss with zeros - loss with the coder) / (loss with zeros - the model's loss)."""
        if self.loss is None or self.loss_with is None or self.loss_zero is None:
            return None
        return (self.loss_zero - self.loss_with) / (self.loss_zero - self.loss)

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name."""
        return {**self.__dict__, "recovered": self.recovered}

    def table(self) -> Table:
        """The numbers as a table."""
        return Table(["measure", ">value"], [[n, v] for n, v in self.to_dict().items() if v is not None])

    def pictures(self) -> Pictures:
        return {"quality": lambda: [self.table()]}


def measure(
    sae: SAE,
    data: Rows | Tensor | tuple[Tensor, ...],
    *,
    model: Module | None = None,
    batches: Iterable[Any] = (),
    batch_size: int = 4096,
) -> Quality:
    """The measures of a coder on rows, and with a model and batches of its tokens the losses too.

    >>> sae = votive.glass.features.SAE(4, 8, "topk", k=2)
    >>> found = votive.glass.features.measure(sae, votive.randn(100, 4))
    >>> found.l0 <= 2, found.rows, found.loss is None
    (True, 100, True)
    """
    rows = data if isinstance(data, Rows) else Rows(*((data,) if isinstance(data, Tensor) else data))
    many, fired, error, mean, spread = 0, 0.0, 0.0, None, None
    seen = votive.zeros(sae.config.d_sae, dtype=bool_)
    with votive.no_grad():
        for batch in rows.epoch(batch_size, shuffle=False):
            moved = [t.to(device=sae.W_enc.device, dtype=sae.W_enc.dtype) for t in batch]
            x = votive.stack(moved, 1) if sae.config.role == "crosscoder" and len(moved) > 1 else moved[0]
            target = (moved[1] if sae.config.role == "transcoder" else x).double()
            features = sae.encode(x)
            wrong = (target - sae.decode(features, x).double()).flatten(1)
            target = target.flatten(1)
            on = features != 0
            seen |= on.any(0).to("cpu")
            fired += float(on.sum())
            error += float(wrong.square().sum())
            many, mean, spread = _spread(many, mean, spread, target)
    if not many or spread is None:
        raise ValueError("measure: there are no rows.")
    total = float(spread.sum())
    explained = 1 - error / total if total > 0 else float("nan")
    dead = 1 - float(seen.float().mean())
    if model is None:
        return Quality(many, fired / many, explained, error / many, dead)
    return Quality(many, fired / many, explained, error / many, dead, *model_losses(model, sae, batches))


def _spread(many: int, mean: Tensor | None, spread: Tensor | None, x: Tensor) -> tuple[int, Tensor, Tensor]:
    """Counts, means and squared distances from them, with more rows (Chan et al. 1979)."""
    here = x.mean(0)
    apart = (x - here).square().sum(0)
    if mean is None or spread is None:
        return len(x), here, apart
    total = many + len(x)
    step = here - mean
    return total, mean + step * (len(x) / total), spread + apart + step.square() * (many * len(x) / total)


def model_losses(model: Module, sae: SAE, batches: Iterable[Any], *, at: str | None = None) -> tuple[float, ...]:
    """A language model's mean loss per token: its own, with a coder in place of the value, with zeros there.

    `batches` are ids (samples, positions) or a model's named inputs; `at` is where, if the coder does not say. Tokens
    that an `attention_mask` leaves out do not count.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> sae = votive.glass.features.SAE(8, 16, "relu", site="layers.0")
    >>> len(votive.glass.features.measures.model_losses(model, sae, [votive.tensor([[1, 2, 3]])]))
    3
    """
    from ..patch import patch

    sums, many = [0.0, 0.0, 0.0], 0
    with votive.no_grad():
        for batch in batches:
            args, kwargs = inputs_of(batch)
            ids = tokens_of(args, kwargs)
            sums[0] += _loss(model, args, kwargs, ids)
            with splice(model, at, sae, error=False) as place:
                sums[1] += _loss(model, args, kwargs, ids)
            with patch(model, {place.target: 0.0}, measure=False):
                sums[2] += _loss(model, args, kwargs, ids)
            mask = _counted(kwargs, ids)
            many += ids.shape[0] * (ids.shape[1] - 1) if mask is None else int(mask.sum())
    if not many:
        raise ValueError("measure: no batch of tokens was given, so there is no loss.")
    return tuple(s / many for s in sums)


def tokens_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """The ids among a model's inputs: (samples, positions).

    >>> from votive.glass.features.measures import tokens_of
    >>> tokens_of((), {"input_ids": votive.tensor([[1, 2]])}).tolist()
    [[1, 2]]
    """
    ids = kwargs.get("input_ids", args[0] if args else None)
    if not isinstance(ids, Tensor) or ids.dim() != 2 or ids.is_floating_point():
        raise ValueError("a batch is ids (samples, positions), or a model's inputs with input_ids=.")
    return ids


def _loss(model: Module, args: tuple[Any, ...], kwargs: dict[str, Any], ids: Tensor) -> float:
    out = model(*args, **kwargs)
    logits = getattr(out, "logits", out)[:, :-1]
    mask = _counted(kwargs, ids)
    after = ids[:, 1:] if mask is None else ids[:, 1:].masked_fill(~mask, -100)
    return float(F.cross_entropy(logits.flatten(0, 1).float(), after.flatten().to(logits.device), reduction="sum"))


def _counted(kwargs: dict[str, Any], ids: Tensor) -> Tensor | None:
    """Which tokens are to be foretold, (samples, positions - 1): text that follows text; None for all."""
    mask = kwargs.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.dim() != 2:
        return None
    mask = mask.to(ids.device) != 0
    return mask[:, 1:] & mask[:, :-1]
