"""The part of `votive train` that fine-tunes: options of methods become a recipe; the library does the rest."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import UsageError
from .numbers import number, whole
from .terminal import note, print_json, size

METHODS = ("sft", "dpo", "grpo", "embed", "classify")

# Option, setting of the recipe, metavar, type, help.
_OPTIONS: list[tuple[str, str, str, Any, str]] = [
    ("--epochs", "epochs", "N", whole(1), "times through the data, unless --steps says how long (1)"),
    ("--chat-template", "chat_template", "FILE", str, "Jinja template of chats (the tokenizer's)"),
    ("--truncation", "truncation", "RULE", str, "of what is too long: keep_start, keep_end, drop or error"),
    ("--best", "best", "NAME", str, "write the weights that measured best by loss, accuracy, … (the last ones)"),
    ("--loss-on", "loss_on", "PART", str, "sft: learn what the assistant says, or all (assistant)"),
    ("--beta", "beta", "X", number(0), "dpo, grpo: how much the model is held near what it was (0.1; 0.04)"),
    ("--loss-type", "loss_type", "NAME", str, "dpo: sigmoid, ipo, hinge (sigmoid); grpo: grpo, dapo, dr_grpo (grpo)"),
    ("--label-smoothing", "label_smoothing", "X", number(0, 0.49), "dpo: share of pairs the wrong way round (0)"),
    ("--num-generations", "num_generations", "N", whole(2), "grpo: answers to each prompt (8)"),
    ("--max-new-tokens", "max_new_tokens", "N", whole(1), "grpo: longest answer (128)"),
    ("--num-iterations", "num_iterations", "N", whole(1), "grpo: steps on the same answers (1)"),
    ("--temperature", "temperature", "X", number(above=0), "grpo: of sampling (1); embed: of the loss (0.05)"),
    ("--pooling", "pooling", "NAME", str, "embed: mean_tokens, cls_token or lasttoken (the folder's, or the mean)"),
    (
        "--problem",
        "problem",
        "KIND",
        str,
        "classify: single_label_classification, multi_label_classification, regression",
    ),
    ("--labels", "labels", "NAMES", str, "classify: classes in their order, with commas (those of the data, sorted)"),
]
_FLAGS: list[tuple[str, str, str]] = [
    ("--packing", "packing", "sft: several examples in a row, unseen by each other (yes)"),
    ("--reference-free", "reference_free", "dpo: compare with no reference"),
    ("--symmetric", "symmetric", "embed: find anchors from positives, too"),
]


def add(p: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    group = p.add_argument_group(
        "fine-tuning (docs/training.md)",
        "The settings above hold here, too, but those of a new model's size. Where not given, --context is 512, "
        "--batch-size 8 (grpo 1; embed, classify 32), --steps what --epochs needs, --lr 2e-5 (sft, embed), 1e-6 "
        "(dpo, grpo) or 5e-5 (classify), and ten times that with --lora.",
    )
    group.add_argument("--method", choices=METHODS, help="what to do with --model and a file of examples")
    group.add_argument("--model", help="the model to start from: a folder, a GGUF file or a bundled name")
    group.add_argument(
        "--eval", metavar="FILE", help="examples to evaluate on (default: a part of the data, drawn with --seed)"
    )
    group.add_argument(
        "--reward", metavar="FILE:NAME", action="append", help="grpo: a function of a Python file; several add up"
    )
    for option, setting, meta, kind, text in _OPTIONS:
        group.add_argument(option, dest=setting, metavar=meta, type=kind, help=text)
    for option, setting, text in _FLAGS:
        group.add_argument(option, dest=setting, action=argparse.BooleanOptionalAction, default=None, help=text)


def given(args: argparse.Namespace) -> dict[str, str]:
    """The options of fine-tuning that were given, by their settings."""
    named = {setting: option for option, setting, *_ in (*_OPTIONS, *_FLAGS)}
    named |= {"model": "--model", "eval": "--eval", "reward": "--reward"}
    return {setting: option for setting, option in named.items() if getattr(args, setting) is not None}


def method_of(args: argparse.Namespace, out: Path) -> str | None:
    """The method that was named, or that of the run that is resumed."""
    if args.method is not None:
        return str(args.method)
    saved = out / "training" / "recipe.json"
    if args.resume and saved.is_file():
        found = json.loads(saved.read_bytes()).get("method")
        return None if found is None else str(found)
    return None


def run(
    args: argparse.Namespace, method: str, out: Path, options: dict[str, str], settings: dict[str, Any], display: Any
) -> int:
    """Fine-tune and report. `options` are those of the command by their settings, `settings` what they ask for."""
    from .. import train
    from ..train.tuning import RECIPES

    kind = RECIPES[method]
    known = {f.name for f in dataclasses.fields(kind)}
    for setting, option in {**options, **given(args)}.items():
        if setting in ("eval", "reward") or setting in known:
            continue
        if setting == "base":
            raise UsageError("--base is for adapters from a text; with --method, the model to begin with is --model")
        others = [name for name, other in RECIPES.items() if setting in {f.name for f in dataclasses.fields(other)}]
        whose = f"for --method {' or '.join(others)}" if others else "for training a new model on a text"
        raise UsageError(f"{option} is {whose}, not for --method {method}")
    if method == "grpo" and not args.reward:
        raise UsageError("grpo learns from a reward: add --reward file.py:function")
    if method != "grpo" and args.reward:
        raise UsageError(f"--reward is for --method grpo, not for --method {method}")
    if args.prompt and method in ("embed", "classify"):
        raise UsageError(f"--prompt is what samples begin with; --method {method} writes none")
    for _, setting, *_ in (*_OPTIONS, *_FLAGS):
        if getattr(args, setting) is not None:
            settings[setting] = getattr(args, setting)
    settings.pop("data", None)
    settings.pop("method", None)
    named = settings.pop("model", None)
    model = args.model or named
    if isinstance(named, dict):
        raise UsageError("--set model.NAME is for training a new model; one that exists has its configuration")
    if model is None:
        raise UsageError(f"--method {method} begins with a model: add --model FOLDER")
    common: dict[str, Any] = {"eval_data": args.eval, "device": args.device, "resume": args.resume, "progress": display}
    if method == "grpo":
        common["reward"] = args.reward
    call: Callable[..., Any] = getattr(train, method)
    began = time.perf_counter()
    try:
        made = call(args.text, model, out, **common, **settings)
    except KeyboardInterrupt:
        if any((out / "training").glob("step-*.safetensors")):
            more = "".join(f" --reward {r}" for r in args.reward or ()) + (f" --eval {args.eval}" if args.eval else "")
            note(args, f"Stopped; continue with: votive train {args.text} --out {out} --resume{more}")
        raise
    if args.curve:
        made.history.plot(args.curve, title=Path(args.text).name)
    for prompt in args.prompt or ():
        made.samples.append(train.language.write(made, prompt))
    _report(args, method, made, time.perf_counter() - began)
    return 0


_NEXT = {
    "embed": 'votive embed --model {} "…"',
    "classify": "votive.models.AutoModelForSequenceClassification.from_pretrained({!r})",
}


def _report(args: argparse.Namespace, method: str, made: Any, seconds: float) -> None:
    """Tell what was made."""
    trained = sum(p.numel() for p in made.model.parameters() if p.requires_grad)
    facts = {
        "folder": str(made.folder),
        "method": method,
        "parameters": sum(p.numel() for p in made.model.parameters()),
        "trained": trained,
        "steps": len(made.history),
        "seconds": seconds,
        "loss": made.history["loss"][-1],
        "last": made.history.beside(),
        "metrics": made.metrics,
        "evals": made.history.evals,
        "recipe": json.loads((made.folder / "training" / "recipe.json").read_bytes()),
        "curve": str(args.curve or made.folder / "training" / "curve.svg"),
        "samples": made.samples,
    }
    if args.json:
        print_json(facts)
        return
    weights = sum(p.stat().st_size for p in made.folder.glob("*.safetensors"))
    print(f"{made.folder}: {method}, {trained:,} of {facts['parameters']:,} parameters trained, {size(weights)}")
    last = "".join(f", {name} {value:.4g}" for name, value in made.history.beside().items())
    print(f"steps {facts['steps']}, {seconds:.0f} s; in the last one loss {facts['loss']:.4g}{last}")
    if made.metrics:
        print("measured: " + ", ".join(f"{name} {value:.4g}" for name, value in made.metrics.items()))
    print(f"loss curve {facts['curve']}")
    for sample in made.samples:
        print(f"\n--- sample\n{sample}")
    chats = getattr(made.tokenizer, "chat_template", None) is not None
    words = _NEXT.get(method, "votive chat --model {}" if chats else 'votive generate --model {} "…"')
    if method == "classify" and not (made.folder / "config.json").is_file():
        # The folder of an adapter has no configuration that could name classes.
        words = f"{words[:-1]}, id2label={made.model.config.id2label!r})".replace("{!r}", repr(str(made.folder)))
    else:
        words = words.format(str(made.folder))
    print(f"\nrun it: {words}")
