"""`votive train`: arguments become a recipe for a language model; the library does the rest.

With --method, a model that exists is fine-tuned: `train_methods.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import Commands, UsageError, command, train_methods
from .numbers import number, whole
from .sampling_options import unescaped
from .terminal import is_terminal, note, print_json, size

if TYPE_CHECKING:
    from ..train import Recipe


# Option, setting of the recipe, metavar, type, help.
_SETTINGS: list[tuple[str, str, str, Any, str]] = [
    ("--model-type", "model_type", "NAME", str, "qwen3, llama, qwen2, mistral, gpt2 (qwen3)"),
    ("--hidden-size", "hidden_size", "N", whole(1), "width of the model (128)"),
    ("--layers", "num_hidden_layers", "N", whole(1), "number of layers (4)"),
    ("--heads", "num_attention_heads", "N", whole(1), "attention heads (4)"),
    ("--kv-heads", "num_key_value_heads", "N", whole(1), "key and value heads (2)"),
    ("--context", "context", "N", whole(1), "tokens in a training window (128)"),
    ("--vocab-size", "vocab_size", "N", whole(1), "tokens of the tokenizer trained first (1024)"),
    ("--steps", "max_steps", "N", whole(1), "optimizer steps (300)"),
    ("--batch-size", "batch_size", "N", whole(1), "windows in a batch (8)"),
    ("--accumulate", "accumulate", "N", whole(1), "batches in a step (1)"),
    ("--lr", "lr", "X", number(above=0), "highest learning rate (0.002; 0.0002 for adapters)"),
    (
        "--held-out",
        "held_out",
        "X",
        number(0, 0.99),
        "share to evaluate on: the end of a text, or some of the examples (0.05)",
    ),
    ("--separator", "separator", "TEXT", str, "text between documents, such as '\\n\\n\\n' (none)"),
    ("--amp", "amp", "NAME", str, "mixed precision: bfloat16 or float16 (none)"),
    ("--dtype", "save_dtype", "NAME", str, "type of the weights that are written (float32)"),
    ("--eval-every", "eval_every", "N", whole(1), "steps between measurements (100)"),
    ("--checkpoint-every", "checkpoint_every", "N", whole(1), "steps between checkpoints (100)"),
    ("--seed", "seed", "N", whole(), "random seed (0)"),
    ("--optimizer", "optimizer_name", "NAME", str, "adamw, adamw8bit, lion or lion8bit (adamw)"),
]
# Those of adapters.
_ADAPTERS: list[tuple[str, str, str, Any, str]] = [
    ("--base", "base", "MODEL", str, "train adapters for this model: a folder, a GGUF file or a bundled name"),
    ("--lora", "lora", "RANK", whole(1), "rank of the adapters"),
    ("--lora-targets", "lora_targets", "NAMES", str, "layers that get one, with commas (all of attention and MLP)"),
    ("--lora-alpha", "lora_alpha", "X", number(above=0), "adapters are scaled by this over the rank (twice the rank)"),
    ("--lora-dropout", "lora_dropout", "X", number(0, 0.99), "share of an adapter's inputs that is dropped (0)"),
]


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "train",
        description="Train a tokenizer and a language model on a text file, and write a folder\n"
        "that `votive generate --model FOLDER` runs. FOLDER/training holds tokens,\n"
        "checkpoints, the history and the loss curve; Ctrl-C writes a checkpoint first.\n"
        "With --method, fine-tune a model on examples: chats, preferences, prompts with a\n"
        "reward, pairs of texts, texts with labels.",
        examples="  votive train tales.txt\n"
        "  votive train tales.txt --out tales --steps 2000 --layers 6 --separator '\\n\\n\\n'\n"
        "  votive train tales.txt --out tales --resume\n"
        "  votive train tales.txt --config recipe.toml --set weight_decay=0.05\n"
        "  votive train tales.txt --base model-q4.gguf --lora 16 --optimizer adamw8bit --out adapter\n"
        "  votive train chats.jsonl --method sft --model folder --lora 16 --out tuned\n"
        "  votive train pairs.jsonl --method dpo --model folder --out better\n"
        "  votive train prompts.jsonl --method grpo --model folder --reward reward.py:score --out better\n"
        "  votive train pairs.csv --method embed --model encoder --out near\n"
        "  votive train reviews.csv --method classify --model encoder --best accuracy --out classifier",
    )
    p.add_argument(
        "text", metavar="FILE", help="UTF-8 text to train on; with --method, examples: .jsonl, .json, .csv, .tsv"
    )
    p.add_argument("--out", metavar="FOLDER", help="where to write the model (default: named after the text)")
    p.add_argument("--config", metavar="FILE", help="settings as JSON or TOML")
    p.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
    settings = p.add_argument_group("settings (defaults in brackets)")
    for option, setting, meta, kind, text in _SETTINGS:
        settings.add_argument(option, dest=setting, metavar=meta, type=kind, help=text)
    adapters = p.add_argument_group("adapters")
    for option, setting, meta, kind, text in _ADAPTERS:
        adapters.add_argument(option, dest=setting, metavar=meta, type=kind, help=text)
    adapters.add_argument(
        "--gradient-checkpointing",
        action="store_true",
        default=None,
        help="compute layers again in backward: less memory, more time",
    )
    train_methods.add(p)
    settings.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        help="run forward and loss as a graph of fused kernels (on GPUs)",
    )
    settings.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="any other setting of votive.train.Recipe (or SFTRecipe, …), or model.NAME of the configuration",
    )
    p.add_argument("--device", help="the device to train on (cpu)")
    p.add_argument("--threads", metavar="N", type=whole(1, 4096), help="threads for operators")
    p.add_argument(
        "--distributed", choices=("data", "sharded"),
        help="under `votive launch`, share each step among the ranks: copies of the model, or shards of it",
    )  # fmt: skip
    p.add_argument(
        "--prompt",
        metavar="TEXT",
        action="append",
        help="the start of a sample written at the end; may be repeated (the text's first words)",
    )
    p.add_argument("--no-samples", action="store_true", help="write no samples at the end")
    p.add_argument("--curve", metavar="FILE", help="also draw the loss curve here, .svg or .png")
    p.add_argument("--json", action="store_true", help="write the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Train and report."""
    from .. import set_num_threads
    from ..train import train_language_model

    if args.threads is not None:
        set_num_threads(args.threads)
    if args.curve and Path(args.curve).suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"--curve must end in .svg or .png, got {args.curve}")
    if args.no_samples and args.prompt:
        raise UsageError("--prompt and --no-samples exclude each other")
    text = Path(args.text)
    out = Path(args.out or text.stem)
    method = train_methods.method_of(args, out)
    if method is not None and args.distributed:
        raise UsageError("--distributed is for training on a text; fine-tuning by --method runs in one process")
    if method is not None:
        return train_methods.run(args, method, out, _options(args), settings_of(args, out), _display(args))
    for option in train_methods.given(args).values():
        raise UsageError(f"{option} is for fine-tuning; add --method {', '.join(train_methods.METHODS)}")
    recipe = recipe_of(args, out)
    prompts = [] if args.no_samples else args.prompt or [_beginning(text)]
    began = time.perf_counter()
    try:
        made = train_language_model(
            text, recipe, out, resume=args.resume, device=args.device, progress=_display(args), prompts=prompts,
            distributed=args.distributed,
        )  # fmt: skip
    except KeyboardInterrupt:
        if any((out / "training").glob("step-*.safetensors")):
            note(args, f"Stopped; continue with: votive train {text} --out {out} --resume")
        raise
    if args.distributed and not _is_first():
        return 0
    if args.curve:
        made.history.plot(args.curve, title=text.name)
    report(args, made, recipe, time.perf_counter() - began)
    return 0


def _is_first() -> bool:
    from ..distributed import get_rank

    return get_rank() == 0


def _options(args: argparse.Namespace) -> dict[str, str]:
    """The options that were given, by their settings."""
    return {setting: option for option, setting, *_ in (*_SETTINGS, *_ADAPTERS) if getattr(args, setting) is not None}


def recipe_of(args: argparse.Namespace, out: Path) -> Recipe:
    """The recipe of a resumed run or of the file, with what the options change."""
    from ..train import Recipe

    values = settings_of(args, out)
    if values.get("base") is not None:
        values.setdefault("lr", 2e-4)
    return Recipe.from_dict(values)


def settings_of(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Settings of a resumed run or of the file, with what the options change."""
    values: dict[str, Any] = {}
    saved = out / "training" / "recipe.json"
    if args.resume and saved.is_file() and args.config is None:
        values = json.loads(saved.read_bytes())
    elif args.config is not None:
        values = _read(Path(args.config))
    before = values.get("model")  # fields of a new model's configuration, or the name of one to fine-tune
    model = dict(before) if isinstance(before, dict) else {}
    for _, setting, *_ in (*_SETTINGS, *_ADAPTERS):
        given = getattr(args, setting)
        if given is not None:
            values[setting] = given
    if args.compile is not None:
        values["compile"] = args.compile
    if args.gradient_checkpointing is not None:
        values["gradient_checkpointing"] = True
    for text in args.set:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UsageError(f"--set takes NAME=VALUE, got {text!r}")
        target = model if name.startswith("model.") else values
        target[name.removeprefix("model.")] = _value(value)
    if args.separator is not None:
        values["separator"] = unescaped(args.separator)
    if model:
        values["model"] = model
    return values


def _read(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    try:
        if path.suffix.lower() == ".toml":
            import tomllib

            return tomllib.loads(raw.decode())
        found = json.loads(raw)
    except ValueError as e:
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON"
        raise ValueError(f"{path} is not valid {kind}: {e}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds a {type(found).__name__}, not settings.")
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _beginning(path: Path) -> str:
    """The first words of a text."""
    if not path.is_file():
        return ""
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.strip():
                return " ".join(line.split()[:3])
    return ""


def _display(args: argparse.Namespace) -> Any:
    """Where training shows itself: on stderr, since stdout is for the result."""
    from ..train.progress import Lines, Live

    if args.quiet:
        return False
    if is_terminal(sys.stderr):
        from rich.console import Console

        return Live(Console(stderr=True))

    class Stderr(Lines):
        def note(self, text: str) -> None:
            print(text, file=sys.stderr, flush=True)

    return Stderr()


def report(args: argparse.Namespace, made: Any, recipe: Recipe, seconds: float) -> None:
    """Tell what was made."""
    import math

    curve = made.folder / "training" / "curve.svg"
    weights = sum(p.stat().st_size for p in made.folder.glob("*.safetensors"))
    what = f"{recipe.model_type}, {made.model.num_parameters():,} parameters"
    if recipe.base is not None:
        trained = sum(p.numel() for p in made.model.parameters() if p.requires_grad)
        what = f"adapters of rank {recipe.lora} for {recipe.base}, {trained:,} parameters"
    facts = {
        "folder": str(made.folder),
        "parameters": made.model.num_parameters(),
        "steps": len(made.history),
        "seconds": seconds,
        "loss": made.history["loss"][-1],
        "held_out_loss": made.held_out_loss,
        "evals": made.history.evals,
        "recipe": recipe.to_dict(),
        "curve": str(args.curve or curve),
        "samples": made.samples,
    }
    if args.json:
        print_json(facts)
        return
    print(f"{made.folder}: {what}, {size(weights)}, {len(made.tokenizer)} tokens")
    print(f"steps {facts['steps']}, {seconds:.0f} s, training loss {facts['loss']:.3f}")
    if made.held_out_loss is not None:
        print(
            f"held-out loss {made.held_out_loss:.3f} nats per token "
            f"(perplexity {math.exp(min(made.held_out_loss, 700)):.1f})"
        )
    print(f"loss curve {facts['curve']}")
    for sample in made.samples:
        print(f"\n--- sample\n{sample}")
    print(f'\nrun it: votive generate --model {made.folder} "…"')
