"""One run of fine-tuning, whatever the method: the model it begins with, the trainer, what is written.

Knows recipes, models and the trainer; a method is a `Job`.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import votive
from votive import nn

from ..data.randomness import seed_everything
from .adapter import recompute_layers, save_adapted
from .examples import Data, Example, apart, fingerprint, read_examples
from .language import Trained
from .progress import Display
from .settings import claim
from .trainer import Trainer
from .tuning import Tuning

if TYPE_CHECKING:
    from ..text import Tokenizer

Name = str | os.PathLike[str]


@dataclass
class Start:
    """What a method begins with."""

    recipe: Any
    train: list[Example]
    held_out: list[Example]
    out: Path
    source: Any  # a name, or the model itself
    device: votive.device | str | None = None
    own_tokenizer: Any = None
    progress: Display | bool | None = None
    callbacks: Sequence[Any] = ()
    resume: bool = False
    adapted: bool = field(default=False, init=False)  # whether an adapter is trained, and not the model

    def tokenizer(self) -> Any:
        """The tokenizer that was given, or that comes with the model."""
        found = self.own_tokenizer
        if found is None:
            found = _tokenizer(self.recipe.model)
        template = self.recipe.chat_template
        if template is not None:
            path = Path(template)
            one_line = "\n" not in template and len(template) < 1000
            found.chat_template = path.read_text(encoding="utf-8") if one_line and path.is_file() else template
        return found

    def model(self, auto: Any, **changes: Any) -> Any:
        """The model, by a class that chooses one."""
        from ..models.adapter_files import is_adapter

        if isinstance(self.source, nn.Module):
            return self.source
        recipe = self.recipe
        # Adapters stand above weights in blocks; what is trained itself must be numbers.
        blocks = recipe.lora is not None or is_adapter(Path(recipe.model))
        return auto.from_pretrained(recipe.model, dtype="float32", device=self.device, dequantize=not blocks, **changes)

    def prepared(self, model: Any, task_type: str | None, whole: Sequence[str] = ()) -> Any:
        """The model with what is trained ready: a new adapter, one that it has, or all of it.

        `whole` are parts that are trained and saved as they are beside an adapter.
        """
        from ..models.adapter_layers import adapters_of
        from ..models.peft_config import LoraConfig

        recipe = self.recipe
        there = adapters_of(model) is not None
        self.adapted = there or recipe.lora is not None
        if recipe.lora is None:
            return model
        if there:
            raise ValueError(
                f"{recipe.model} has an adapter, which goes on learning as it is; leave out lora, or merge it first "
                "(merge_and_unload)."
            )
        model.add_adapter(
            LoraConfig(
                task_type=task_type,
                base_model_name_or_path=recipe.model,
                r=recipe.lora,
                lora_alpha=2 * recipe.lora if recipe.lora_alpha is None else recipe.lora_alpha,
                lora_dropout=recipe.lora_dropout,
                target_modules="all-linear" if recipe.lora_targets is None else list(recipe.lora_targets),
                modules_to_save=list(whole) or None,
            )
        )
        return model


@dataclass
class Job:
    """What a method makes of its data: batches, what is computed of them, and what is written at the end."""

    model: Any
    tokenizer: Any
    train: Any
    held_out: Iterable[Any] | None
    step: Callable[[Any, Any], Any]
    measure: Callable[[Any, Any], dict[str, Any]] | None = None
    save: Callable[[Path], None] | None = None
    unit: str = "items"


def begin(
    kind: type[Tuning],
    data: Data,
    model: Name | nn.Module,
    out: Name,
    settings: Mapping[str, Any],
    *,
    eval_data: Data | None,
    tokenizer: Tokenizer | None,
    device: votive.device | str | None,
    resume: bool,
    progress: Display | bool | None,
    callbacks: Sequence[Any],
) -> Start:
    """Read the data, make the folder this run's own, and start the random numbers."""
    if isinstance(model, nn.Module):
        name = getattr(model, "name_or_path", "") or type(model).__name__
        if tokenizer is None and not hasattr(model, "tokenizer"):
            raise ValueError(f"{kind.method}: a model that is given itself needs tokenizer=.")
    else:
        path = Path(model).expanduser()
        name = str(path.resolve()) if path.exists() else str(model)
        if path.is_dir() and path.resolve() == Path(out).resolve():
            raise ValueError(f"{kind.method}: {path} holds the model to begin with; write the new one elsewhere.")
    recipe = kind.from_dict({**settings, "model": name})
    examples = read_examples(data)
    if eval_data is None:
        train, held_out = apart(examples, recipe.held_out, recipe.seed)
    else:
        train, held_out = examples, read_examples(eval_data)
    out = Path(out)
    claim(out / "training", recipe, resume, {"data": fingerprint(train, held_out)})
    seed_everything(recipe.seed)
    return Start(recipe, train, held_out, out, model, device, tokenizer, progress, callbacks, resume)


def run(start: Start, job: Job) -> Trained:
    """Train to the end, measure, and write the folder."""
    recipe, folder = start.recipe, start.out / "training"
    if not len(job.train):
        raise ValueError("there is no example left to train on.")
    if recipe.best is not None and job.held_out is None:
        raise ValueError("best: there is nothing to measure on; hold examples out, or give others (eval_data, --eval).")
    if recipe.gradient_checkpointing:
        recompute_layers(job.model)
    steps = recipe.max_steps or recipe.epochs * math.ceil(len(job.train) / recipe.accumulate)
    optimizer, schedule = recipe.optimizer(job.model, steps, adapted=start.adapted)
    trainer = Trainer(
        job.model,
        optimizer,
        train_data=job.train,
        eval_data=job.held_out,
        step=job.step,
        eval_step=job.measure,
        scheduler=schedule,
        max_steps=steps,
        accumulate=recipe.accumulate,
        amp=recipe.amp_dtype,
        scaler=recipe.scaler(next(job.model.parameters()).device.type),
        compile=recipe.compile,
        clip_grad_norm=recipe.clip_grad_norm,
        eval_every=recipe.eval_every or steps,
        log_every=recipe.log_every,
        folder=folder,
        checkpoint_every=recipe.checkpoint_every or steps,
        keep_last=recipe.keep_last,
        best=recipe.best,
        best_mode="min" if recipe.best is None else recipe.metrics[recipe.best],
        progress=start.progress,
        unit=job.unit,
        callbacks=start.callbacks,
        checkpoint_frozen=not start.adapted,
    )
    history = trainer.fit(resume=True)
    measured = history.evals[-1] if history.evals else {}
    if recipe.best is not None:
        best = trainer.load_best()
        measured = next(found for found in history.evals if found["step"] == best)
    metrics = {name: value for name, value in measured.items() if name != "step"}
    job.model.eval()
    if job.save is not None:
        job.save(start.out)
    elif start.adapted:
        save_adapted(job.model, job.tokenizer, start.out)
    else:
        save_whole(job.model, job.tokenizer, start.out, recipe.save_dtype)
    history.plot(folder / "curve.svg")
    return Trained(job.model, job.tokenizer, history, metrics.get("loss"), start.out, metrics=metrics)


def save_whole(model: Any, tokenizer: Any, out: Path, dtype: str | None = None) -> None:
    """Write a model that was trained as a whole, and its tokenizer, in the type that is named.

    >>> import tempfile, pathlib
    >>> config = votive.models.LlamaConfig(vocab_size=257, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> tok = votive.text.train_bpe(["ab"], vocab_size=257, progress=False)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> votive.train.finetuning.save_whole(votive.models.LlamaForCausalLM(config), tok, folder, "bfloat16")
    >>> votive.models.AutoModelForCausalLM.from_pretrained(folder).dtype
    votive.bfloat16
    """
    if any(p.is_floating_point() and not bool(p.isfinite().all()) for p in model.parameters()):
        raise FloatingPointError("the weights hold infinities or NaN; lower the learning rate.")
    wanted = model.dtype if dtype is None else getattr(votive, dtype)
    if wanted is not model.dtype:
        # A copy: whoever goes on training keeps full precision.
        kept, settings = model.state_dict(), model.generation_config
        model = type(model)(copy.deepcopy(model.config))
        model.load_state_dict(kept)
        model.to(dtype=wanted)
        model.generation_config = settings
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def _tokenizer(name: str) -> Tokenizer:
    """The tokenizer beside a model; that of an adapter lies beside it, or beside the model below."""
    from ..models.adapter_files import base_of, is_adapter
    from ..models.checkpoint import Checkpoint
    from ..text import Tokenizer

    path = Path(name)
    if is_adapter(path):
        if any(path.glob("tokenizer*.json")):
            return Tokenizer.from_pretrained(path)
        name = base_of(path) or name
    return Tokenizer.from_pretrained(Checkpoint.find(name).tokenizer)
