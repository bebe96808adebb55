"""Group relative policy optimization: the clipped ratios of answers' tokens, the divergence from the reference.

Shao et al. 2024, arXiv:2402.03300, section 4.1. Knows the recipe and rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import votive

from ..data import DataLoader
from ..tensor import Tensor
from .feed import moved
from .finetuning import Job, Start
from .objective import autocast_for
from .packing import targets_of
from .reference import Reference, token_logps
from .rewards import Rewards, read_rewards
from .rollouts import Author, Batch, Judge, Prompt, Rollouts, prompts_of
from .tuning import GRPORecipe


def grpo_loss(
    logps: Tensor,
    old_logps: Tensor,
    advantages: Tensor,
    ref_logps: Tensor | None = None,
    *,
    beta: float = 0.04,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Of each token (answers, tokens): its loss, its divergence from the reference, whether its ratio was clipped.

    With the ratio ρ = π/π_old and the answer's advantage A, the loss is -min(ρA, clip(ρ, 1 - ε, 1 + ε_high) A) + β·KL;
    KL is estimated by r - log r - 1 with r = π_ref/π, as in equation 4 of the paper.

    >>> new, old = votive.tensor([[0.5]]), votive.tensor([[0.0]])
    >>> votive.train.grpo_loss(new, old, votive.tensor([2.0]), beta=0.0)
    (tensor([[-2.4000]]), None, tensor([[1.]]))
    """
    high = epsilon if epsilon_high is None else epsilon_high
    ratio = (logps - old_logps).exp()
    a = advantages.unsqueeze(1)
    losses = -votive.minimum(ratio * a, ratio.clamp(1 - epsilon, 1 + high) * a)
    clipped = ((ratio < 1 - epsilon) & (a < 0)) | ((ratio > 1 + high) & (a > 0))
    kl = None
    if ref_logps is not None:
        apart = ref_logps - logps
        kl = apart.exp() - apart - 1
        losses = losses + beta * kl
    return losses, kl, clipped.float()


def job(start: Start, reward: Rewards) -> Job:
    """The job of a `GRPORecipe`."""
    from ..models import AutoModelForCausalLM

    recipe: GRPORecipe = start.recipe
    tokenizer = start.tokenizer()
    model = start.prepared(start.model(AutoModelForCausalLM), "CAUSAL_LM")
    reference = None
    if recipe.beta:
        reference = Reference(model, adapter=recipe.lora is not None, amp=recipe.amp_dtype)
    method = Method(recipe, reference, model, Judge(Author(model, tokenizer, recipe), read_rewards(reward)))
    prompts = prompts_of(start.train, tokenizer, recipe)
    batches = loader(len(prompts), recipe, True)
    train = Rollouts(model, batches, prompts, method.judge, recipe, method.weigh, method.complete)
    held_out = None
    if start.held_out:
        method.measured = prompts_of(start.held_out, tokenizer, recipe)
        held_out = loader(len(method.measured), recipe, False)
    return Job(model, tokenizer, train, held_out, method.step, method.measure, unit="answers")


def loader(prompts: int, recipe: GRPORecipe, shuffle: bool) -> DataLoader:
    """Batches of numbers of prompts."""
    return DataLoader(list(range(prompts)), min(recipe.batch_size, prompts), shuffle=shuffle)


@dataclass
class Method:
    """What is computed of a batch of answers."""

    recipe: GRPORecipe
    reference: Reference | None
    model: Any
    judge: Judge
    measured: list[Prompt] | None = None

    def weigh(self, batch: Mapping[str, Any]) -> int:
        """What a batch counts among those of its step: tokens where each counts the same, else answers."""
        return targets_of(batch) if self.recipe.loss_type == "dapo" else int(batch["labels"].shape[0])

    def logps(self, model: Any, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Log-probabilities of tokens, of what was sampled from: the temperature's logits."""
        return token_logps(model, batch, self.recipe.temperature)

    def complete(self, batch: Batch) -> Batch:
        """A batch of answers with what the reference thinks of them, and the model that wrote them."""
        batch = moved(batch, self.model.device)
        if self.reference is not None:
            batch["reference"] = self.reference(lambda model: self.logps(model, batch)[0])
        if self.recipe.num_iterations > 1:
            training = self.model.training
            self.model.eval()
            try:
                with votive.no_grad(), autocast_for(self.recipe.amp_dtype, self.model.device.type)():
                    batch["old"] = self.logps(self.model, batch)[0]
            finally:
                self.model.train(training)
        return batch

    def step(self, model: Any, batch: Mapping[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        """The loss of a batch times its share, and how its answers are."""
        recipe = self.recipe
        logps, there = self.logps(model, batch)
        mask = there.float()
        losses, kl, clipped = grpo_loss(
            logps,
            batch.get("old", logps.detach()),
            batch["advantage"],
            batch.get("reference"),
            beta=recipe.beta,
            epsilon=recipe.epsilon,
            epsilon_high=recipe.epsilon_high,
        )
        tokens = mask.sum()
        rewards = batch["reward"].view(-1, recipe.num_generations)
        values = {
            "reward": rewards.mean(),
            "reward_std": rewards.std(1).mean(),
            "length": mask.sum(-1).mean(),
            "clipped": (clipped * mask).sum() / tokens,
        }
        if kl is not None:
            values["kl"] = (kl.detach() * mask).sum() / tokens
        return self._mean(losses * mask, mask) * batch["share"], values

    def _mean(self, losses: Tensor, mask: Tensor) -> Tensor:
        """Over a batch's answers of the means over their tokens, or as `loss_type` has it."""
        if self.recipe.loss_type == "dapo":
            return losses.sum() / mask.sum()
        if self.recipe.loss_type == "dr_grpo":
            return losses.sum() / (losses.shape[0] * self.recipe.max_new_tokens)
        return (losses.sum(-1) / mask.sum(-1)).mean()

    def measure(self, model: Any, batch: Any) -> dict[str, Any]:
        """How answers to prompts that were held out are rewarded."""
        assert self.measured is not None, "there are prompts to measure on"
        rows, rewards = self.judge.answers(model, [self.measured[i] for i in batch.tolist()])
        lengths = [sum(row.learned) for row in rows]
        return {"reward": sum(rewards) / len(rewards), "length": sum(lengths) / len(lengths)}
