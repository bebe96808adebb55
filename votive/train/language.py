"""A language model from a text file: tokenizer, tokens, training, and a folder that can be run.

Knows the recipe and the trainer; the architecture is whatever the recipe's configuration names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import votive
from votive import nn

from ..data import DataLoader, Subset, TokenWindows
from ..data.randomness import seed_everything
from .adapter import base_model, base_tokenizer, recompute_layers, save_adapted
from .corpus import Corpus, prepare
from .evaluation import evaluate
from .history import History
from .programs import next_token_step
from .progress import Display
from .recipe import Recipe
from .settings import claim
from .trainer import Trainer

if TYPE_CHECKING:
    from ..text import Tokenizer


@dataclass
class Trained:
    """What a run made: the model, its tokenizer, the measured losses and where all of it lies.

    >>> made = votive.train.Trained(None, None, votive.train.History(), 3.5, "model")
    >>> made.held_out_loss, made.samples
    (3.5, [])
    """

    model: Any
    tokenizer: Any
    history: History
    held_out_loss: float | None
    folder: Path
    samples: list[str] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)


def train_language_model(
    text: str | os.PathLike[str],
    recipe: Recipe | Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] = "model",
    *,
    resume: bool = False,
    tokenizer: Tokenizer | None = None,
    device: votive.device | str | None = None,
    progress: Display | bool | None = None,
    callbacks: Sequence[Any] = (),
    prompts: Sequence[str] = (),
    distributed: str | None = None,
) -> Trained:
    """Train a language model on a text file and write a folder that `from_pretrained` reads.

    `out/training` holds the tokens, checkpoints, the history and the loss curve. With `resume` a
    run that was stopped goes on from its last checkpoint, and its losses are those of a run that
    was not. At the end the model continues each of `prompts`. A recipe with `base` and `lora` trains adapters for a
    model that exists; then the folder holds those, as PEFT has them, and its checkpoints hold nothing of the base.

    `distributed` is the trainer's: "data" or "sharded", under `votive launch`; `batch_size` is that of each rank. The
    first rank prepares the text and writes the folder, and it alone gives the held-out loss and samples.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "text.txt").write_text("the cat sat on the mat\\n" * 100)
    >>> made = votive.train.train_language_model(
    ...     folder / "text.txt",
    ...     {"vocab_size": 270, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    ...      "context": 8, "max_steps": 2},
    ...     folder / "model", progress=False)
    >>> len(made.history), sorted(p.name for p in made.folder.glob("*.safetensors"))
    (2, ['model.safetensors'])
    """
    if not isinstance(recipe, Recipe):
        recipe = Recipe.from_dict(recipe or {})
    text, out = Path(text), Path(out)
    folder = out / "training"
    if not text.is_file():
        raise FileNotFoundError(f"{text} is no file; give a text file to train on.")
    if recipe.base is not None:
        if tokenizer is not None:
            raise ValueError("train_language_model: a base has its own tokenizer; leave out tokenizer=.")
        tokenizer = base_tokenizer(recipe)

    def prepared(unchanged: bool) -> Corpus:
        return prepare(
            text,
            folder,
            vocab_size=recipe.vocab_size,
            held_out=recipe.held_out,
            separator=recipe.separator,
            tokenizer=tokenizer,
            unchanged=unchanged,
        )

    if distributed is not None:
        from .ranks import first_then_others

        def begin() -> Corpus:
            claim(folder, recipe, resume)
            return prepared(resume)

        corpus = first_then_others(begin, lambda: prepared(True))
    else:
        claim(folder, recipe, resume)
        corpus = prepared(resume)
    seed_everything(recipe.seed)
    model = make_model(recipe, corpus.tokenizer, device)
    trainer = make_trainer(
        model, recipe, corpus, folder, progress=progress, callbacks=callbacks, distributed=distributed
    )
    history = trainer.fit(resume=True)
    if distributed is not None:
        from .ranks import gathered

        whole = gathered(model, lambda: make_model(recipe, corpus.tokenizer, device))
        if whole is None:  # the first rank has it
            return Trained(model, corpus.tokenizer, history, None, out)
        model = whole
    model.eval()
    loss = held_out_loss(model, recipe, corpus)
    if recipe.base is None:
        save_model(model, corpus.tokenizer, out, recipe.save_dtype)
    else:
        save_adapted(model, corpus.tokenizer, out)
    history.plot(folder / "curve.svg")
    made = Trained(model, corpus.tokenizer, history, loss, out)
    made.samples = [write(made, prompt, seed=recipe.seed) for prompt in prompts]
    return made


def make_model(recipe: Recipe, tokenizer: Tokenizer, device: votive.device | str | None = None) -> Any:
    """A model of the recipe's shape with start values, or its base with adapters."""
    if recipe.base is not None:
        return base_model(recipe, device)
    from ..models import AutoModelForCausalLM

    config = recipe.config(len(tokenizer), tokenizer.eos_token_id)
    model = AutoModelForCausalLM.from_config(config)
    if recipe.gradient_checkpointing:
        recompute_layers(model)
    return model if device is None else model.to(device)


def make_trainer(
    model: nn.Module,
    recipe: Recipe,
    corpus: Corpus,
    folder: Path | None,
    *,
    progress: Display | bool | None = None,
    callbacks: Sequence[Any] = (),
    distributed: str | None = None,
) -> Trainer:
    """The trainer of a recipe: random windows of the text, AdamW, a cosine."""
    windows = TokenWindows(corpus.train, recipe.context, recipe.stride)
    if not len(windows):
        raise ValueError(
            f"the text has {len(corpus.train)} tokens to train on, which is less than a window of "
            f"context={recipe.context}; shorten the context or give more text."
        )
    batch = min(recipe.batch_size, len(windows))
    optimizer, schedule = recipe.optimizer(model)
    return Trainer(
        model,
        optimizer,
        train_data=DataLoader(windows, batch, shuffle=True, drop_last=True),
        eval_data=_held_out(recipe, corpus, recipe.eval_batches),
        step=next_token_step,
        scheduler=schedule,
        max_steps=recipe.max_steps,
        accumulate=recipe.accumulate,
        amp=recipe.amp_dtype,
        scaler=recipe.scaler(next(model.parameters()).device.type),
        compile=recipe.compile,
        clip_grad_norm=recipe.clip_grad_norm,
        eval_every=recipe.eval_every or recipe.max_steps,
        log_every=recipe.log_every,
        folder=folder,
        checkpoint_every=recipe.checkpoint_every,
        keep_last=recipe.keep_last,
        progress=progress,
        unit="tokens",
        callbacks=callbacks,
        checkpoint_frozen=recipe.base is None,
        distributed=distributed,
        seed=None if distributed is None else recipe.seed,
    )


def held_out_loss(model: nn.Module, recipe: Recipe, corpus: Corpus) -> float | None:
    """The loss on all that was held out, or None if that is less than a window."""
    data = _held_out(recipe, corpus, None)
    if data is None:
        return None
    measured = evaluate(model, data, lambda m, b: {"loss": next_token_step(m, b)}, model.device)
    return measured["loss"]


def _held_out(recipe: Recipe, corpus: Corpus, batches: int | None) -> Any:
    windows: Any = TokenWindows(corpus.held_out, recipe.context)
    if not len(windows):
        return None
    if batches is not None and len(windows) > batches * recipe.batch_size:
        # Spread over the whole part: neighbours are alike.
        wanted = batches * recipe.batch_size
        windows = Subset(windows, [i * len(windows) // wanted for i in range(wanted)])
    return DataLoader(windows, recipe.batch_size)


def save_model(model: nn.Module, tokenizer: Tokenizer, out: Path, dtype: str | None = None) -> None:
    """Write configuration, weights, tokenizer and settings of generation into a folder."""
    model.generation_config = {
        "do_sample": True,
        "temperature": 0.8,
        "top_p": 0.95,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if dtype is not None and getattr(votive, dtype) is not model.dtype:
        # A copy: whoever goes on training keeps full precision.
        kept = model.state_dict()
        model = type(model)(model.config)
        model.load_state_dict(kept)
        model.to(dtype=getattr(votive, dtype))
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def write(made: Trained, prompt: str, *, max_new_tokens: int = 120, seed: int = 0) -> str:
    """The prompt and how the model goes on, sampled at temperature 0.8."""
    ids = made.tokenizer.encode(prompt or "\n", return_tensors="vt")
    config = made.model.config
    # Where positions are learned, there are none beyond those that were.
    places = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", 0)
    room = places - ids.shape[1] if places else max_new_tokens
    if room < 1:
        return prompt
    settings = {"do_sample": True, "temperature": 0.8, "top_p": 0.95, "seed": seed}
    found = made.model.generate(ids.to(made.model.device), max_new_tokens=min(max_new_tokens, room), **settings)
    return made.tokenizer.decode(found[0], skip_special_tokens=True)
