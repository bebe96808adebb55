"""What fine-tuning is told: a recipe for each method, with the settings of `Tuning`. Knows no model and no data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from votive import nn

from .conversations import TRUNCATIONS
from .settings import Settings

# What labels of texts are: a class each, several classes, a number.
PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")


@dataclass(frozen=True, kw_only=True)
class Tuning(Settings):
    """What all methods share.

    `model` is the one to begin with: a folder, a GGUF file, a bundled name, a repository id. With `lora`, adapters of
    that rank are trained in the layers that `lora_targets` name (None: all products but the head's), scaled by
    `lora_alpha` (twice the rank) over the rank, with `lora_dropout`; else the whole model is. `context` is how many
    tokens an example may have, `truncation` what is done with longer ones: "keep_start", "keep_end", "drop", "error".
    `max_steps` or `epochs` say how long; `held_out` is the part of the examples, drawn by `seed`, that is only measured
    on. `chat_template` replaces the tokenizer's. `lr=None` is what suits the method. With `best`, the name of one of
    `metrics`, the weights that measured best are written, not the last ones.

    >>> votive.train.DPORecipe(model="tales").rate, votive.train.DPORecipe(model="tales", lora=8).rate
    (1e-06, 1e-05)
    """

    method: ClassVar[str] = ""
    rates: ClassVar[tuple[float, float]] = (2e-5, 2e-4)  # of a whole model, of adapters
    counts: ClassVar[tuple[str, ...]] = (*Settings.counts, "context", "epochs")
    metrics: ClassVar[Mapping[str, str]] = {"loss": "min", "accuracy": "max"}  # what is measured, and what is better

    model: str = ""
    lora: int | None = None
    lora_targets: tuple[str, ...] | None = None
    lora_alpha: float | None = None
    lora_dropout: float = 0.0
    context: int = 512
    truncation: str = "keep_start"
    chat_template: str | None = None
    max_steps: int | None = None
    epochs: int = 1
    lr: float | None = None
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    best: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        if not self.model:
            raise ValueError(f"{name}: model= is missing: a folder, a GGUF file, a bundled name or a repository id.")
        for setting in ("lora", "max_steps", "eval_every", "checkpoint_every"):
            value = getattr(self, setting)
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name}: {setting} must be a positive integer, got {value!r}.")
        if self.lora is None:
            given = [n for n in ("lora_targets", "lora_alpha") if getattr(self, n) is not None]
            if given or self.lora_dropout:
                raise ValueError(f"{name}: {(given or ['lora_dropout'])[0]} is for adapters; give lora, their rank.")
        elif self.save_dtype is not None:
            raise ValueError(f"{name}: save_dtype is for whole models; adapters are saved as they are trained.")
        if not 0 <= self.lora_dropout < 1:
            raise ValueError(f"{name}: lora_dropout is a fraction below 1, got {self.lora_dropout}.")
        self._one_of("truncation", TRUNCATIONS)
        if self.best is not None:
            self._one_of("best", tuple(self.metrics))
        if self.lr is not None and not self.lr > 0:
            raise ValueError(f"{name}: lr must be above 0, got {self.lr}.")

    def _one_of(self, setting: str, known: tuple[str, ...]) -> None:
        if getattr(self, setting) not in known:
            raise ValueError(
                f"{type(self).__name__}: {setting} is one of {', '.join(known)}, got {getattr(self, setting)!r}."
            )

    def _above(self, *settings: str, zero: bool = False) -> None:
        for setting in settings:
            value = getattr(self, setting)
            if value is not None and not (value > 0 or (zero and value == 0)):
                bound = "0 or more" if zero else "above 0"
                raise ValueError(f"{type(self).__name__}: {setting} must be {bound}, got {value!r}.")

    def _of_texts(self) -> None:
        """Refuse what is for chats; texts alone are cut at their end, where special tokens are kept."""
        if self.chat_template is not None:
            raise ValueError(f"{type(self).__name__}: chat_template is for chats, and {self.method} takes texts.")
        self._one_of("truncation", tuple(rule for rule in TRUNCATIONS if rule != "keep_end"))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From the content of a file; a "method" in it must be this one."""
        given = dict(values)
        method = given.pop("method", cls.method)
        if method != cls.method:
            raise ValueError(f"{cls.__name__}: the settings are for method={method!r}, not {cls.method!r}.")
        return super().from_dict(given)

    def to_dict(self) -> dict[str, Any]:
        """What JSON holds, with the method's name."""
        return {"method": self.method, **super().to_dict()}

    @property
    def rate(self) -> float:
        """The highest learning rate."""
        return self.rates[self.lora is not None] if self.lr is None else self.lr

    def optimizer(self, model: nn.Module, steps: int, *, adapted: bool) -> tuple[Any, Any]:
        """The optimizer of what is trained, and the schedule of so many steps."""
        rate = self.rates[adapted] if self.lr is None else self.lr
        return self.optimizer_for(model, rate, steps, betas=self.betas, weight_decay=self.weight_decay)


@dataclass(frozen=True, kw_only=True)
class SFTRecipe(Tuning):
    """Supervised fine-tuning: the answers of chats, completions of prompts, texts.

    With `packing` several examples share a row of `context` tokens without seeing each other. `loss_on` is
    "assistant" (what the assistant says, or completions) or "all".

    >>> votive.train.SFTRecipe(model="tales", packing=False).method
    'sft'
    """

    method: ClassVar[str] = "sft"

    packing: bool = True
    loss_on: str = "assistant"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("loss_on", ("assistant", "all"))


@dataclass(frozen=True, kw_only=True)
class DPORecipe(Tuning):
    """Learning from pairs of answers, of which one was preferred: Rafailov et al. 2023, arXiv:2305.18290.

    `loss_type` is "sigmoid", "ipo" (Azar et al. 2023, arXiv:2310.12036) or "hinge" (Zhao et al. 2023,
    arXiv:2305.10425). `beta` holds the model near the reference, which is the model as it was; with `reference_free`
    there is none. `label_smoothing` is the share of pairs that are thought to be the wrong way round.

    >>> votive.train.DPORecipe(model="tales", loss_type="ipo").beta
    0.1
    """

    method: ClassVar[str] = "dpo"
    rates: ClassVar[tuple[float, float]] = (1e-6, 1e-5)
    metrics: ClassVar[Mapping[str, str]] = {"loss": "min", "accuracy": "max", "margin": "max"}

    truncation: str = "keep_end"  # of prompts; answers are cut at their end
    beta: float = 0.1
    loss_type: str = "sigmoid"
    label_smoothing: float = 0.0
    reference_free: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("loss_type", ("sigmoid", "ipo", "hinge"))
        self._above("beta")
        if not 0 <= self.label_smoothing < 0.5:
            raise ValueError(f"DPORecipe: label_smoothing is 0 or more and below 0.5, got {self.label_smoothing}.")
        if self.label_smoothing and self.loss_type != "sigmoid":
            raise ValueError(f"DPORecipe: label_smoothing is for loss_type='sigmoid', not {self.loss_type!r}.")


@dataclass(frozen=True, kw_only=True)
class GRPORecipe(Tuning):
    """Learning from a reward by groups of answers to the same prompt: Shao et al. 2024, arXiv:2402.03300.

    To each of the `batch_size` prompts of a batch the model writes `num_generations` answers of up to `max_new_tokens`
    tokens, sampled with `temperature`, `top_p` and `top_k`. An answer's advantage is its reward less its group's mean,
    over the group's deviation unless `scale_rewards=False`. Each batch is learned from `num_iterations` times; ratios
    are clipped at 1 - `epsilon` and 1 + `epsilon_high` (the same unless told). `beta` weighs the divergence from the
    model as it was; 0 leaves that out. `loss_type` says of what the loss is a mean: "grpo" of answers' means, "dapo" of
    all tokens of a step (Yu et al. 2025, arXiv:2503.14476), "dr_grpo" of answers' sums over `max_new_tokens` (Liu et
    al. 2025, arXiv:2503.20783; with `scale_rewards=False`).

    >>> votive.train.GRPORecipe(model="tales", num_generations=4).num_iterations
    1
    """

    method: ClassVar[str] = "grpo"
    rates: ClassVar[tuple[float, float]] = (1e-6, 1e-5)
    counts: ClassVar[tuple[str, ...]] = (*Tuning.counts, "num_generations", "max_new_tokens", "num_iterations")
    metrics: ClassVar[Mapping[str, str]] = {"reward": "max"}

    truncation: str = "keep_end"  # of prompts
    held_out: float = 0.0
    batch_size: int = 1
    num_generations: int = 8
    max_new_tokens: int = 128
    temperature: float = 1.0
    top_p: float | None = None
    top_k: int | None = None
    beta: float = 0.04
    epsilon: float = 0.2
    epsilon_high: float | None = None
    num_iterations: int = 1
    scale_rewards: bool = True
    loss_type: str = "grpo"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._one_of("loss_type", ("grpo", "dapo", "dr_grpo"))
        self._above("temperature", "epsilon", "epsilon_high", "top_p", "top_k")
        self._above("beta", zero=True)
        if self.num_generations < 2:
            raise ValueError("GRPORecipe: num_generations must be 2 or more: answers are compared with each other.")
        if self.max_new_tokens >= self.context:
            raise ValueError(
                f"GRPORecipe: max_new_tokens={self.max_new_tokens} leaves no room for a prompt in "
                f"context={self.context}."
            )


@dataclass(frozen=True, kw_only=True)
class EmbedRecipe(Tuning):
    """Vectors of texts, near for pairs and far for others: InfoNCE, van den Oord et al. 2018, arXiv:1807.03748.

    The positives of a batch's other rows are negatives, and so are those that rows name. Cosines are divided by
    `temperature`; with `symmetric`, anchors are found from positives, too. `pooling` says how the vectors of positions
    become one (None: as the folder says, else their mean).

    >>> votive.train.EmbedRecipe(model="encoder").temperature
    0.05
    """

    method: ClassVar[str] = "embed"

    batch_size: int = 32
    temperature: float = 0.05
    symmetric: bool = False
    pooling: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._of_texts()
        self._above("temperature")


@dataclass(frozen=True, kw_only=True)
class ClassifyRecipe(Tuning):
    """Classes of texts, or numbers. `labels` names classes in their order; None takes those of the data, sorted.

    `problem` says what labels are: "single_label_classification" (a class each), "multi_label_classification" (lists of
    classes) or "regression" (numbers); None sees it at the labels.

    >>> votive.train.ClassifyRecipe(model="encoder", labels=("bad", "good")).rate
    5e-05
    """

    method: ClassVar[str] = "classify"
    rates: ClassVar[tuple[float, float]] = (5e-5, 5e-4)

    batch_size: int = 32
    labels: tuple[str, ...] | None = None
    problem: str | None = None
    metrics: ClassVar[Mapping[str, str]] = {"loss": "min", "accuracy": "max", "error": "min"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._of_texts()
        if self.problem not in (None, *PROBLEMS):
            known = ", ".join(map(repr, PROBLEMS))
            raise ValueError(f"ClassifyRecipe: problem must be one of {known} or None, got {self.problem!r}.")
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(self.labels))
            if len(set(self.labels)) < max(2, len(self.labels)):
                raise ValueError(f"ClassifyRecipe: labels are two names or more, each once, got {self.labels!r}.")


RECIPES: dict[str, type[Tuning]] = {
    cls.method: cls for cls in (SFTRecipe, DPORecipe, GRPORecipe, EmbedRecipe, ClassifyRecipe)
}
