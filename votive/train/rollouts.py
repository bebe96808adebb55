"""Answers that a model writes to prompts while it learns: groups of them, their rewards, their advantages.

Knows how a model generates and what a reward is; knows no loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import votive

from ..tensor import Tensor
from .conversations import Encoded, prompt_ids
from .examples import Example
from .packing import Collate, shared
from .rewards import Reward, rewarded
from .tuning import GRPORecipe

Batch = dict[str, Tensor]
# What is added to the deviation of a group's rewards: a group of almost equal ones must not shout.
_EPS = 1e-4


@dataclass(frozen=True)
class Prompt:
    """A prompt, its tokens, and what else its line holds."""

    example: Example
    ids: list[int]


def prompts_of(examples: Sequence[Example], tokenizer: Any, recipe: GRPORecipe) -> list[Prompt]:
    """The prompts of examples, each within what answers leave of the context."""
    room, found = recipe.context - recipe.max_new_tokens, []
    for example in examples:
        if "prompt" not in example:
            names = ", ".join(map(repr, example.values)) or "nothing"
            example.wrong(f'needs "prompt", a text or messages; it has {names}.')
        ids = prompt_ids(example, tokenizer)
        if not ids:
            example.wrong('"prompt" is empty.')
        if len(ids) > room:
            if recipe.truncation == "error":
                example.wrong(
                    f'"prompt" has {len(ids)} tokens; context={recipe.context} less max_new_tokens='
                    f"{recipe.max_new_tokens} leaves {room}."
                )
            if recipe.truncation == "drop":
                continue
            ids = ids[:room] if recipe.truncation == "keep_start" else ids[-room:]
        found.append(Prompt(example, ids))
    if len(found) < len(examples):
        warnings.warn(
            f"{len(examples) - len(found)} of {len(examples)} prompts are left out: they have over {room} tokens.",
            stacklevel=2,
        )
    if not found:
        raise ValueError("there is no prompt to answer.")
    return found


def advantages(rewards: Tensor, group: int, *, scale: bool = True) -> Tensor:
    """How much better each answer is than its group's mean, over the group's deviation (n - 1) if scaled.

    >>> votive.train.rollouts.advantages(votive.tensor([1.0, 0.0, 3.0, 3.0]), 2)
    tensor([ 0.7070, -0.7070,  0.0000,  0.0000])
    """
    rows = rewards.view(-1, group)
    apart = rows - rows.mean(1, keepdim=True)
    if scale:
        apart = apart / (rows.std(1, keepdim=True) + _EPS)
    found: Tensor = apart.flatten()
    return found


class Author:
    """Answers that a model writes, sampled as the recipe says, whatever its own generation settings are."""

    def __init__(self, model: Any, tokenizer: Any, recipe: GRPORecipe) -> None:
        self.tokenizer, self.recipe = tokenizer, recipe
        ends = model.generation_config.eos_token_id
        ends = getattr(model.config, "eos_token_id", None) if ends is None else ends
        ends = tokenizer.eos_token_id if ends is None else ends
        self.ends: list[int] = [] if ends is None else [ends] if isinstance(ends, int) else [int(i) for i in ends]
        pad = tokenizer.pad_token_id
        self.pad = int(pad if pad is not None else (self.ends or [0])[0])

    def __call__(self, model: Any, prompts: Sequence[list[int]]) -> list[list[int]]:
        """An answer to each prompt, up to and with its end."""
        length = max(map(len, prompts))
        ids = [[self.pad] * (length - len(p)) + p for p in prompts]
        mask = [[0] * (length - len(p)) + [1] * len(p) for p in prompts]
        recipe = self.recipe
        seed = int(votive.randint(0, 2**31 - 1, (1,)))  # so that where random numbers stand decides what is drawn
        with self._plain(model), votive.no_grad():
            found = model.generate(
                votive.tensor(ids, device=model.device),
                attention_mask=votive.tensor(mask, device=model.device),
                max_new_tokens=recipe.max_new_tokens,
                do_sample=True,
                temperature=recipe.temperature,
                top_p=1.0 if recipe.top_p is None else recipe.top_p,
                top_k=0 if recipe.top_k is None else recipe.top_k,
                seed=seed,
            )
        return [self._ended(row) for row in found[:, length:].tolist()]

    def _ended(self, row: list[int]) -> list[int]:
        at = next((i for i, token in enumerate(row) if token in self.ends), None)
        return row if at is None else row[: at + 1]

    @contextmanager
    def _plain(self, model: Any) -> Iterator[None]:
        """The model in evaluation mode; penalties and such of its own would make likelihoods other than sampled."""
        stored, training = model.generation_config, model.training
        model.generation_config = {"eos_token_id": self.ends or None, "pad_token_id": self.pad}
        model.eval()
        try:
            yield
        finally:
            model.generation_config = stored
            model.train(training)


@dataclass
class Judge:
    """Answers to prompts, with their rewards."""

    author: Author
    rewards: Sequence[Reward]

    def answers(self, model: Any, prompts: Sequence[Prompt]) -> tuple[list[Encoded], list[float]]:
        """A group of rows for each prompt, and how each is rewarded."""
        each = [p for p in prompts for _ in range(self.author.recipe.num_generations)]
        written = self.author(model, [p.ids for p in each])
        rows = [
            Encoded(p.ids + ids, [False] * len(p.ids) + [True] * len(ids)) for p, ids in zip(each, written, strict=True)
        ]
        texts = [self.author.tokenizer.decode(ids, skip_special_tokens=True) for ids in written]
        said = [
            [{"role": "assistant", "content": text}] if isinstance(p.example.values["prompt"], list) else text
            for p, text in zip(each, texts, strict=True)
        ]
        names = {name for p in prompts for name in p.example.values} - {"prompt", "prompts", "completions"}
        columns: dict[str, list[Any]] = {name: [p.example.values.get(name) for p in each] for name in sorted(names)}
        columns["completion_ids"] = list(written)
        found = rewarded(self.rewards, [p.example.values["prompt"] for p in each], said, **columns)
        return rows, found


class Rollouts:
    """Batches to learn from: prompts of a loader, answered anew by the model as it is.

    The `accumulate` batches of a step are answered together and come `num_iterations` times. What is left over at the
    end of an epoch and fills no step is left out.
    """

    def __init__(
        self,
        model: Any,
        loader: Any,
        prompts: Sequence[Prompt],
        judge: Judge,
        recipe: GRPORecipe,
        weigh: Callable[[Any], int],
        complete: Callable[[Batch], Batch],
    ) -> None:
        self.model, self.loader, self.prompts, self.judge, self.recipe = model, loader, prompts, judge, recipe
        self.weigh, self.complete = weigh, complete
        self._held: list[Batch] = []
        self._round = 0  # how often the held batches were learned from
        if len(loader) < recipe.accumulate:
            raise ValueError(
                f"a step takes accumulate={recipe.accumulate} batches of prompts, and there are {len(loader)} in all; "
                "accumulate fewer or give more prompts."
            )

    def __len__(self) -> int:
        accumulate = self.recipe.accumulate
        return len(self.loader) // accumulate * accumulate * self.recipe.num_iterations

    def __iter__(self) -> Iterator[Batch]:
        yield from self._rounds()  # of a run that goes on between them
        group: list[Any] = []
        for batch in self.loader:
            group.append(batch)
            if len(group) == self.recipe.accumulate:
                made = [self.complete(self._answered(numbers.tolist())) for numbers in group]
                self._held, self._round = shared(made, self.weigh), 0
                yield from self._rounds()
                group = []

    def _rounds(self) -> Iterator[Batch]:
        while self._round < self.recipe.num_iterations and self._held:
            self._round += 1
            yield from self._held
        self._held = []

    def _answered(self, numbers: list[int]) -> Batch:
        recipe = self.recipe
        rows, found = self.judge.answers(self.model, [self.prompts[i] for i in numbers])
        rewards = votive.tensor(found)
        batch = Collate(self.judge.author.pad, packed=False)([[row] for row in rows])
        batch["reward"] = rewards
        batch["advantage"] = advantages(rewards, recipe.num_generations, scale=recipe.scale_rewards)
        return batch

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is, and the batches that are to be learned from again."""
        again = self._round < self.recipe.num_iterations
        return {
            "loader": self.loader.state_dict(),
            "held": [dict(batch) for batch in self._held] if again else [],
            "round": self._round,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on there."""
        self.loader.load_state_dict(state_dict["loader"])
        self._held, self._round = list(state_dict["held"]), state_dict["round"]
