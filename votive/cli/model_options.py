"""Options that say which model runs and how, and how it is found. Knows no command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import UsageError
from .terminal import note

DEFAULT = "tales"


def add_model_options(p: Any, *, default: str | None = DEFAULT) -> None:
    """Declare --model, --dtype, --device, --threads and --offline."""
    told = f"the bundled {default}" if default else "required"
    group = p.add_argument_group("model")
    group.add_argument(
        "--model",
        metavar="MODEL",
        help=f"a folder, a GGUF file, a bundled name or a repository id ({told})",
    )
    group.add_argument("--tokenizer", metavar="PATH", help="a tokenizer from elsewhere")
    group.add_argument("--dtype", metavar="NAME", help="compute in float32, bfloat16, … (file's)")
    group.add_argument("--device", help="where to compute (cpu)")
    group.add_argument("--threads", metavar="N", type=int, help="threads that operators use")
    group.add_argument("--offline", action="store_true", help="never ask the network for a model")


@dataclass
class Loaded:
    """A model and its tokenizer."""

    name: str
    model: Any
    tokenizer: Any
    seq2seq: bool = False


def resolved(args: Any, name: str | None) -> Any:
    """Where the model lies; a repository is asked only for what cannot be meant as a path."""
    from ..models.checkpoint import Checkpoint, bundled, is_repo_id

    if name is None:
        if DEFAULT not in bundled():
            raise FileNotFoundError(
                f"the bundled model {DEFAULT!r} is not part of this installation; "
                "name a model with --model FOLDER."
            )
        name = DEFAULT
    path = Path(name).expanduser()
    here = path.exists() or name in bundled()
    # With its parent at hand, a missing path is more likely a slip than a repository.
    if not here and (path.parent != Path() and path.parent.is_dir()):
        raise FileNotFoundError(f"{name}: there is no such file or folder.")
    offline = getattr(args, "offline", False)
    if not here and is_repo_id(name) and not offline:
        note(args, f"{name} is not here: looking for it on the Hugging Face hub")
    return Checkpoint.find(name, local_files_only=offline)


def load_model(
    args: Any, name: str | None, *, auto: str | None = "AutoModelForCausalLM"
) -> Loaded:  # fmt: skip
    """The model of a name, ready to run, and its tokenizer.

    Without `auto`, one that writes: a decoder, or an encoder and a decoder.
    """
    from .. import models, set_num_threads

    if getattr(args, "threads", None) is not None:
        if args.threads < 1:
            raise UsageError(f"--threads must be positive, got {args.threads}")
        set_num_threads(args.threads)
    found = resolved(args, name)
    kind = found.config.get("model_type")
    if auto is None:
        uses = models.auto._family(kind)[1]
        auto = "AutoModelForSeq2SeqLM" if "seq2seq" in uses else "AutoModelForCausalLM"
    model = (
        getattr(models, auto)
        ._class_for(kind)
        .from_checkpoint(
            found, dtype=getattr(args, "dtype", None), device=getattr(args, "device", None)
        )
    )
    return Loaded(found.name, model, _tokenizer(args, found), auto == "AutoModelForSeq2SeqLM")


def _tokenizer(args: Any, found: Any) -> Any:
    from ..text import Tokenizer

    given = getattr(args, "tokenizer", None)
    try:
        return Tokenizer.from_pretrained(given or found.tokenizer)
    except FileNotFoundError as e:
        raise FileNotFoundError(
            f"{found.name} has no tokenizer beside it ({e}); name one with --tokenizer PATH."
        ) from None
