"""Fine-tuning as people call it: a function for each method, from data and a model to a folder that runs.

Knows the recipes and what makes a job of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import votive
from votive import nn

from . import classification, embedding, policy, preference, supervised
from .examples import Data
from .finetuning import Name, begin, run
from .language import Trained
from .progress import Display
from .rewards import Rewards
from .tuning import ClassifyRecipe, DPORecipe, EmbedRecipe, GRPORecipe, SFTRecipe

if TYPE_CHECKING:
    from ..text import Tokenizer


def sft(
    data: Data,
    model: Name | nn.Module,
    out: Name = "model",
    *,
    eval_data: Data | None = None,
    tokenizer: Tokenizer | None = None,
    device: votive.device | str | None = None,
    resume: bool = False,
    progress: Display | bool | None = None,
    callbacks: Sequence[Any] = (),
    **settings: Any,
) -> Trained:
    """Teach a model chats, completions or texts; `settings` are those of `SFTRecipe`.

    `data` is a file of JSON lines or a list of dicts: {"messages": [...]}, {"prompt", "completion"} or {"text"}.
    `out` becomes a folder that `from_pretrained` reads, or with `lora` an adapter as PEFT has them; `out/training`
    holds checkpoints, history and loss curve. With `resume` a run that was stopped goes on exactly.

    >>> import tempfile
    >>> data = [{"prompt": "The king", "completion": " had three sons."}] * 8
    >>> made = votive.train.sft(data, "tales", tempfile.mkdtemp(), lora=2, max_steps=2, progress=False, held_out=0.0)
    >>> len(made.history), made.model.active_adapters()
    (2, ['default'])
    """
    start = begin(
        SFTRecipe,
        data,
        model,
        out,
        settings,
        eval_data=eval_data,
        tokenizer=tokenizer,
        device=device,
        resume=resume,
        progress=progress,
        callbacks=callbacks,
    )
    return run(start, supervised.job(start))


def dpo(
    data: Data,
    model: Name | nn.Module,
    out: Name = "model",
    *,
    eval_data: Data | None = None,
    tokenizer: Tokenizer | None = None,
    device: votive.device | str | None = None,
    resume: bool = False,
    progress: Display | bool | None = None,
    callbacks: Sequence[Any] = (),
    **settings: Any,
) -> Trained:
    """Teach a model which of two answers is preferred; `settings` are those of `DPORecipe`, the rest is as for `sft`.

    `data` are {"prompt", "chosen", "rejected"}, texts or messages. The reference is the model as it was: with `lora`
    the model without its adapter, else a copy.

    >>> import tempfile
    >>> data = [{"prompt": "The king", "chosen": " smiled.", "rejected": " wept."}] * 4
    >>> made = votive.train.dpo(data, "tales", tempfile.mkdtemp(), lora=2, max_steps=1, progress=False, held_out=0.0)
    >>> round(made.history["loss"][0], 4)  # log 2: at first the model is its reference
    0.6931
    """
    start = begin(
        DPORecipe,
        data,
        model,
        out,
        settings,
        eval_data=eval_data,
        tokenizer=tokenizer,
        device=device,
        resume=resume,
        progress=progress,
        callbacks=callbacks,
    )
    return run(start, preference.job(start))


def grpo(
    data: Data,
    model: Name | nn.Module,
    out: Name = "model",
    *,
    reward: Rewards,
    eval_data: Data | None = None,
    tokenizer: Tokenizer | None = None,
    device: votive.device | str | None = None,
    resume: bool = False,
    progress: Display | bool | None = None,
    callbacks: Sequence[Any] = (),
    **settings: Any,
) -> Trained:
    """Teach a model by a reward of what it writes; `settings` are those of `GRPORecipe`, the rest is as for `sft`.

    `data` are {"prompt"}, a text or messages, and whatever else `reward` wants to know. `reward(prompts, completions,
    ...)` gives a number for each completion; it is called by name with those of `prompts`, `completions`,
    `completion_ids` and the data's other fields that it takes. Several add up; "file.py:name" names one in a file.

    >>> import tempfile
    >>> def short(completions):
    ...     return [-len(text) for text in completions]
    >>> made = votive.train.grpo([{"prompt": "The king"}], "tales", tempfile.mkdtemp(), reward=short, lora=2,
    ...     max_steps=1, num_generations=2, max_new_tokens=4, progress=False)
    >>> made.history.beside()["reward"] < 0
    True
    """
    start = begin(
        GRPORecipe,
        data,
        model,
        out,
        settings,
        eval_data=eval_data,
        tokenizer=tokenizer,
        device=device,
        resume=resume,
        progress=progress,
        callbacks=callbacks,
    )
    return run(start, policy.job(start, reward))


def embed(
    data: Data,
    model: Name | nn.Module,
    out: Name = "model",
    *,
    eval_data: Data | None = None,
    tokenizer: Tokenizer | None = None,
    device: votive.device | str | None = None,
    resume: bool = False,
    progress: Display | bool | None = None,
    callbacks: Sequence[Any] = (),
    **settings: Any,
) -> Trained:
    """Teach an encoder which texts belong together; `settings` are those of `EmbedRecipe`, the rest is as for `sft`.

    `data` are {"anchor", "positive"}, and "negative", a text or a list of them, where there are hard ones. `model` is a
    folder of a sentence encoder or of any model of texts; `out` becomes one that `SentenceEncoder` reads.

    >>> import tempfile
    >>> config = votive.models.BertConfig(vocab_size=300, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> tok = votive.text.train_bpe(["a cat"], vocab_size=257, progress=False)
    >>> encoder = votive.models.SentenceEncoder(votive.models.BertModel(config), tok)
    >>> data = [{"anchor": "one", "positive": "1"}, {"anchor": "two", "positive": "2"}]
    >>> made = votive.train.embed(data, encoder, tempfile.mkdtemp(), max_steps=1, progress=False, held_out=0.0)
    >>> votive.models.SentenceEncoder.from_pretrained(made.folder).encode(["one"]).shape
    votive.Size([1, 8])
    """
    start = begin(
        EmbedRecipe,
        data,
        model,
        out,
        settings,
        eval_data=eval_data,
        tokenizer=tokenizer,
        device=device,
        resume=resume,
        progress=progress,
        callbacks=callbacks,
    )
    return run(start, embedding.job(start))


def classify(
    data: Data,
    model: Name | nn.Module,
    out: Name = "model",
    *,
    eval_data: Data | None = None,
    tokenizer: Tokenizer | None = None,
    device: votive.device | str | None = None,
    resume: bool = False,
    progress: Display | bool | None = None,
    callbacks: Sequence[Any] = (),
    **settings: Any,
) -> Trained:
    """Teach a model classes of texts; `settings` are those of `ClassifyRecipe`, the rest is as for `sft`.

    `data` are {"text", "label"}, and "text_pair" where two texts are compared; labels are names or numbers. A model
    without a head for so many classes gets a new one.

    >>> import tempfile
    >>> config = votive.models.BertConfig(vocab_size=300, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, num_labels=2)
    >>> model = votive.models.BertForSequenceClassification(config)
    >>> tok = votive.text.train_bpe(["a cat"], vocab_size=257, progress=False)
    >>> data = [{"text": "fine", "label": 1}, {"text": "bad", "label": 0}]
    >>> made = votive.train.classify(data, model, tempfile.mkdtemp(), tokenizer=tok, max_steps=1, progress=False,
    ...     held_out=0.0)
    >>> len(made.history)
    1
    """
    start = begin(
        ClassifyRecipe,
        data,
        model,
        out,
        settings,
        eval_data=eval_data,
        tokenizer=tokenizer,
        device=device,
        resume=resume,
        progress=progress,
        callbacks=callbacks,
    )
    return run(start, classification.job(start))
