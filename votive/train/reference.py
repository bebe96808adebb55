"""How likely a model finds tokens, and what it was before training: the reference of DPO and GRPO. Knows no method."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .objective import autocast_for


def token_logps(model: Any, batch: Mapping[str, Any], temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """The log-probability of each label after the first, (batch, positions - 1), and where there is one.

    Where a label is -100, it is 0.

    >>> config = votive.models.LlamaConfig(vocab_size=4, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=2, initializer_range=0.0)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> ids = votive.tensor([[1, 2, 3]])
    >>> batch = {"input_ids": ids, "labels": votive.tensor([[-100, 2, 3]]), "attention_mask": ids.ne(0).long()}
    >>> votive.train.reference.token_logps(model, batch)[0].detach()
    tensor([[-1.3863, -1.3863]])
    """
    logits = model(batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False).logits
    logits = logits[:, :-1].float()
    if temperature != 1.0:
        logits = logits / temperature
    labels = batch["labels"][:, 1:]
    losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="none")
    return -losses.view(labels.shape), labels != -100


class Reference:
    """A model as it is now, whatever is trained later.

    With `adapter`, what is trained is an adapter that begins as nothing: the reference is the model without it. Else it
    is a copy, which shares with the model what is frozen. It computes in the mixed precision `amp` that the model is
    trained in.

    >>> net = votive.nn.Linear(1, 1, bias=False)
    >>> reference, before = votive.train.reference.Reference(net), net.weight.item()
    >>> _ = net.weight.data.add_(1)
    >>> reference(lambda model: model.weight.item()) == before
    True
    """

    def __init__(self, model: nn.Module, *, adapter: bool = False, amp: votive.dtype | None = None) -> None:
        self.adapter = adapter
        self.model = model
        self.autocast = autocast_for(amp, next(model.parameters()).device.type)
        if not adapter:
            frozen = {id(p): p for p in model.parameters() if not p.requires_grad}
            self.model = copy.deepcopy(model, frozen).requires_grad_(False).eval()

    def __call__(self, fn: Callable[[Any], Any]) -> Any:
        """What a function gives of the reference, without gradients and without dropout."""
        with votive.no_grad(), self.autocast(), self._without_adapter():
            return fn(self.model)

    @contextmanager
    def _without_adapter(self) -> Iterator[None]:
        if not self.adapter:
            yield
            return
        training = self.model.training
        self.model.eval()
        try:
            with self.model.disabled_adapters():
                yield
        finally:
            self.model.train(training)
