"""What a trainer runs for each batch, written as users write it: `votive.compile` traces it whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import votive
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


def loss_and_values(
    model: Any, loss_fn: Callable[..., Any] | None, step: Any, batch: Any
) -> tuple[Any, dict[str, Any]]:
    """The loss of a batch, and values to record beside it."""
    if loss_fn is not None:
        return loss_and_output(model, loss_fn, *batch)[0], {}
    result = step(model, batch)
    return result if isinstance(result, tuple) else (result, {})


def gradients(
    model: Any, loss_fn: Callable[..., Any] | None, step: Any, amp: tuple[str, Any] | None, parts: int, batch: Any
) -> tuple[Any, dict[str, Any]]:
    """Add the gradients of the mean loss of several batches, for one of them; gives its part of the loss."""
    if amp is None:
        loss, values = loss_and_values(model, loss_fn, step, batch)
    else:
        with votive.autocast(amp[0], dtype=amp[1]):
            loss, values = loss_and_values(model, loss_fn, step, batch)
    loss = loss / parts if parts > 1 else loss
    loss.backward()
    return loss.detach(), values


def update(optimizer: Any, clip: float | None) -> Any:
    """Clip gradients and step; gives their norm if it was asked for."""
    norm = None
    if clip is not None:
        norm = nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], clip)
    optimizer.step()
    return norm


def whole_step(
    model: Any,
    optimizer: Any,
    loss_fn: Callable[..., Any] | None,
    step: Any,
    amp: tuple[str, Any] | None,
    clip: float | None,
    batch: Any,
) -> tuple[Any, dict[str, Any], Any]:
    """All of a training step: (loss, values beside it, norm of the gradients)."""
    optimizer.zero_grad()
    loss, values = gradients(model, loss_fn, step, amp, 1, batch)
    return loss, values, update(optimizer, clip)
