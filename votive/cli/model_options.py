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
    from ..models.checkpoint import Checkpoint, bundled

    if name is None:
        if DEFAULT not in bundled():
            raise FileNotFoundError(
                f"the bundled model {DEFAULT!r} is not part of this installation; "
                "name a model with --model FOLDER."
            )
        name = DEFAULT
    local_or_asked(args, name)
    return Checkpoint.find(name, local_files_only=getattr(args, "offline", False))


def local_or_asked(args: Any, name: str) -> None:
    """See that a name is here, or is meant as that of a repository, and say so then."""
    from ..models.checkpoint import bundled, is_repo_id

    path = Path(name).expanduser()
    if path.exists() or name in bundled():
        return
    # With its parent at hand, a missing path is more likely a slip than a repository.
    if path.parent != Path() and path.parent.is_dir():
        raise FileNotFoundError(f"{name}: there is no such file or folder.")
    if is_repo_id(name) and not getattr(args, "offline", False):
        note(args, f"{name} is not here: looking for it on the Hugging Face hub")


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


def read_tokenizer(place: Any, vocab_size: int | None = None) -> Any:
    """The tokenizer at a place: a folder, one of its files, a GGUF, or one of llama2.c (.bin).

    In a folder without any other, that of llama2.c has the name tokenizer.bin or, for a small
    vocabulary, tok512.bin.
    """
    from ..io import llama2c
    from ..text import Tokenizer, from_llama2c

    path = Path(place)
    if path.is_file() and path.suffix == ".bin":
        return from_llama2c(*llama2c.tokenizer(path))
    try:
        return Tokenizer.from_pretrained(place)
    except FileNotFoundError:
        for name in (f"tok{vocab_size}.bin", "tokenizer.bin"):
            if (path / name).is_file():
                return from_llama2c(*llama2c.tokenizer(path / name))
        raise


def _tokenizer(args: Any, found: Any) -> Any:
    given = getattr(args, "tokenizer", None)
    try:
        return read_tokenizer(given or found.tokenizer, found.config.get("vocab_size"))
    except FileNotFoundError as e:
        raise FileNotFoundError(
            f"{found.name} has no tokenizer beside it ({e}); name one with --tokenizer PATH."
        ) from None
