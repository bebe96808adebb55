"""What a trainer runs for each batch, written as users write it: `votive.compile` traces it whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from votive import nn

F = nn.functional


def loss_and_output(model: Any, loss_fn: Callable[..., Any], *batch: Any) -> tuple[Any, Any]:
    """The loss of a batch `(input, ..., target)`, and what the model gave.

    >>> from votive.train.programs import loss_and_output
    >>> loss_and_output(votive.nn.Identity(), votive.nn.functional.l1_loss, votive.zeros(2), votive.ones(2))
    (tensor(1.), tensor([0., 0.]))
    """
    output = model(*batch[:-1])
    return loss_fn(output, batch[-1]), output


def next_token_step(model: nn.Module, batch: Any) -> Any:
    """The mean loss, in nats, of predicting each token of a window from those before it."""
    x, y = batch
    logits = model(x, use_cache=False).logits  # (B, T, V)
    return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())
