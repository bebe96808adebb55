"""Direct preference optimization: pairs of answers, how likely a model and its reference find them, the losses.

Rafailov et al. 2023, arXiv:2305.18290. Knows the recipe and rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import votive
from votive.nn import functional as F

from ..data import DataLoader
from ..tensor import Tensor
from .conversations import Encoded, completed
from .examples import Example
from .feed import moved
from .finetuning import Job, Start
from .packing import Collate, Shares
from .reference import Reference, token_logps
from .supervised import padding_of
from .tuning import DPORecipe

# A pair of rows: the prompt with the answer that was preferred, and with the other one.
Pair = tuple[Encoded, Encoded]


def dpo_loss(
    chosen_logps: Tensor,
    rejected_logps: Tensor,
    ref_chosen_logps: Tensor,
    ref_rejected_logps: Tensor,
    *,
    beta: float = 0.1,
    loss_type: str = "sigmoid",
    label_smoothing: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each pair, and the rewards of its answers, β (log π - log π_ref), of log-probabilities of answers.

    With h = log π(c)/π_ref(c) - log π(r)/π_ref(r): "sigmoid" is -log σ(βh), "ipo" (h - 1/2β)², "hinge" max(0, 1 - βh).
    For "ipo", log-probabilities are means over an answer's tokens, else their sums.

    >>> a, b = votive.tensor([-1.0]), votive.tensor([-2.0])
    >>> votive.train.dpo_loss(a, b, b, b, beta=1.0)
    (tensor([0.3133]), tensor([1.]), tensor([0.]))
    """
    if loss_type not in ("sigmoid", "ipo", "hinge"):
        raise ValueError(f"dpo_loss: loss_type is one of sigmoid, ipo, hinge, got {loss_type!r}.")
    if label_smoothing and loss_type != "sigmoid":
        raise ValueError(f"dpo_loss: label_smoothing is for loss_type='sigmoid', not {loss_type!r}.")
    chosen, rejected = chosen_logps - ref_chosen_logps, rejected_logps - ref_rejected_logps
    h = chosen - rejected
    if loss_type == "ipo":
        losses = (h - 1 / (2 * beta)) ** 2
    elif loss_type == "hinge":
        losses = F.relu(1 - beta * h)
    else:
        losses = -F.logsigmoid(beta * h) * (1 - label_smoothing) - F.logsigmoid(-beta * h) * label_smoothing
    return losses, beta * chosen.detach(), beta * rejected.detach()


def job(start: Start) -> Job:
    """The job of a `DPORecipe`."""
    from ..models import AutoModelForCausalLM

    recipe: DPORecipe = start.recipe
    tokenizer = start.tokenizer()
    model = start.prepared(start.model(AutoModelForCausalLM), "CAUSAL_LM")
    reference = None
    if not recipe.reference_free:
        reference = Reference(model, adapter=recipe.lora is not None, amp=recipe.amp_dtype)
    method = Method(recipe, reference)
    batches = [
        Referred(loader(pairs_of(part, tokenizer, recipe), recipe, padding_of(tokenizer), shuffle), method, model)
        if part
        else None
        for part, shuffle in ((start.train, True), (start.held_out, False))
    ]
    train = Shares(batches[0], recipe.accumulate, lambda batch: batch["labels"].shape[0])
    return Job(model, tokenizer, train, batches[1], method.step, method.measure, unit="answers")


def pairs_of(examples: Sequence[Example], tokenizer: Any, recipe: DPORecipe) -> list[Pair]:
    """Prompts with their two answers; those that leave an answer no token are left out, and it is said how many."""
    found = [pair_of(example, tokenizer, recipe.context, recipe.truncation) for example in examples]
    kept = [pair for pair in found if pair is not None]
    if len(kept) < len(found):
        first = examples[found.index(None)].where
        warnings.warn(
            f"{len(found) - len(kept)} of {len(found)} pairs are left out (the first: {first}): they are longer than "
            f"context={recipe.context}.",
            stacklevel=2,
        )
    if not kept:
        raise ValueError(f"no pair of answers fits into context={recipe.context}.")
    return kept


def pair_of(example: Example, tokenizer: Any, context: int, truncation: str) -> Pair | None:
    """The rows of a pair within `context` tokens; None where it is to be left out.

    A prompt is cut where both do not fit, to what the longer answer leaves of the context, at least to half of it;
    answers are cut at their end.
    """
    values = _parted(example)
    sides = [completed(values, tokenizer, name) for name in ("chosen", "rejected")]
    prompt = sides[0][0]
    if not prompt:
        example.wrong('"prompt" is empty.')
    for name, (_, answer) in zip(("chosen", "rejected"), sides, strict=True):
        if not answer:
            example.wrong(f'"{name}" is empty.')
    longest = max(len(answer) for _, answer in sides)
    if len(prompt) + longest > context:
        if truncation == "error":
            example.wrong(f"has {len(prompt) + longest} tokens, more than context={context}.")
        if truncation == "drop" or context < 2:
            return None
        room = min(len(prompt), max(context - longest, context // 2))
        prompt = prompt[:room] if truncation == "keep_start" else prompt[-room:]
    rows = []
    for _, answer in sides:
        kept = answer[: context - len(prompt)]
        rows.append(Encoded(prompt + kept, [False] * len(prompt) + [True] * len(kept)))
    return rows[0], rows[1]


def _parted(example: Example) -> Example:
    """With the prompt apart, where two conversations tell it by their beginning."""
    for name in ("chosen", "rejected"):
        if name not in example:
            given = ", ".join(map(repr, example.values)) or "nothing"
            example.wrong(f'needs "prompt", "chosen" and "rejected"; it has {given}.')
    if "prompt" in example:
        return example
    if not isinstance(example.values["chosen"], list):
        example.wrong('"prompt" must be a text, got nothing.')
    chosen, rejected = example.messages("chosen"), example.messages("rejected")
    same = 0
    while same < min(len(chosen), len(rejected)) - 1 and chosen[same] == rejected[same]:
        same += 1
    if not same:
        example.wrong('"chosen" and "rejected" begin with different messages, so they answer no common prompt.')
    parts = {"prompt": chosen[:same], "chosen": chosen[same:], "rejected": rejected[same:]}
    return Example(example.where, {**example.values, **parts})


def loader(pairs: list[Pair], recipe: DPORecipe, pad: int, shuffle: bool) -> DataLoader:
    """Batches of pairs: the rows that were preferred, then the others in the same order."""
    rows = Collate(pad, packed=False)

    def collate(batch: Sequence[Pair]) -> dict[str, Tensor]:
        return rows([[pair[side]] for side in (0, 1) for pair in batch])

    return DataLoader(pairs, min(recipe.batch_size, len(pairs)), shuffle=shuffle, collate_fn=collate)


class Referred:
    """Batches of a loader with what the reference gives of them."""

    def __init__(self, loader: Any, method: Method, model: Any) -> None:
        self.loader, self.method, self.model = loader, method, model

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for batch in self.loader:
            batch = moved(batch, self.model.device)
            yield {**batch, "reference": self.method.referred(batch)}

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is."""
        found: dict[str, Any] = self.loader.state_dict()
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on there."""
        self.loader.load_state_dict(state_dict)


@dataclass
class Method:
    """What is computed of a batch of pairs."""

    recipe: DPORecipe
    reference: Reference | None

    def logps(self, model: Any, batch: Mapping[str, Any]) -> Tensor:
        """Of each answer: the sum of its tokens' log-probabilities, for "ipo" their mean."""
        found, there = token_logps(model, batch)
        total: Tensor = found.sum(-1)
        return total / there.sum(-1) if self.recipe.loss_type == "ipo" else total

    def referred(self, batch: Mapping[str, Any]) -> Tensor:
        """The same of the reference; without one, zeros."""
        if self.reference is None:
            return votive.zeros(batch["labels"].shape[0], device=batch["labels"].device)
        found: Tensor = self.reference(lambda model: self.logps(model, batch))
        return found

    def step(self, model: Any, batch: Mapping[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        """The mean loss of a batch's pairs times the batch's share, and how its answers are rewarded."""
        loss, values = self._of(model, batch)
        return loss * batch["share"], values

    def measure(self, model: Any, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The mean loss of pairs, how often the preferred answer has the higher reward, and by how much."""
        loss, values = self._of(model, batch)
        return {"loss": loss, **values, "weight": batch["labels"].shape[0] // 2}

    def _of(self, model: Any, batch: Mapping[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        logps, pairs = self.logps(model, batch), batch["labels"].shape[0] // 2
        reference = batch["reference"]
        losses, chosen, rejected = dpo_loss(
            logps[:pairs],
            logps[pairs:],
            reference[:pairs],
            reference[pairs:],
            beta=self.recipe.beta,
            loss_type=self.recipe.loss_type,
            label_smoothing=self.recipe.label_smoothing,
        )
        values = {
            "accuracy": (chosen > rejected).float().mean(),
            "margin": (chosen - rejected).mean(),
            "chosen": chosen.mean(),
            "rejected": rejected.mean(),
        }
        return losses.mean(), values
