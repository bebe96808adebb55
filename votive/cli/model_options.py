"""Options that say which model runs and how, and how it is found. Knows no command."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import UsageError
from .model_kinds import check_kind
from .numbers import whole
from .terminal import note

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint


DEFAULT = "tales"
DTYPES = ("float32", "bfloat16", "float16", "float64")


def add_model_options(p: argparse.ArgumentParser, *, default: str | None = DEFAULT) -> None:
    """Declare --model, --dtype, --device, --threads and --offline."""
    fallback = f"the bundled {default}" if default else "required"
    group = p.add_argument_group("model")
    group.add_argument(
        "--model", metavar="MODEL", help=f"a folder, a GGUF file, a bundled name or a repository id ({fallback})"
    )
    group.add_argument("--tokenizer", metavar="PATH", help="take the tokenizer from here")
    group.add_argument("--dtype", metavar="NAME", choices=DTYPES, help=f"compute in {', '.join(DTYPES)} (file's)")
    group.add_argument("--device", help="the device to compute on (cpu)")
    group.add_argument("--threads", metavar="N", type=whole(1, 4096), help="threads for operators")
    group.add_argument("--offline", action="store_true", help="never download a model")


def one_model(placed: str | None, named: str | None) -> str | None:
    """The model that was given by its place or as --model; both are one too many.

    >>> from votive.cli.model_options import one_model
    >>> one_model(None, "tales"), one_model("tales", None)
    ('tales', 'tales')
    """
    if placed is not None and named is not None:
        raise UsageError(f"give one model: {placed!r} or --model {named!r}, not both")
    return named if placed is None else placed


@dataclass
class Loaded:
    """A model and its tokenizer."""

    name: str
    model: Any
    tokenizer: Any
    seq2seq: bool = False


def model_path(args: argparse.Namespace, name: str) -> Path:
    """Where a model lies; a repository is downloaded first, which is said."""
    from ..models.checkpoint import bundled, is_repo_id
    from ..models.missing import located

    offline = getattr(args, "offline", False)
    here = Path(name).expanduser().exists() or name in bundled()
    if not here and is_repo_id(name) and not offline:
        note(args, f"{name} is not here: looking for it on the Hugging Face hub")
    return located(name, offline=offline)


def find_model(args: argparse.Namespace, name: str | None) -> Checkpoint:
    """A model that a command can use, with its configuration read and its weights not."""
    from ..models.checkpoint import Checkpoint, bundled

    if name is None:
        if DEFAULT not in bundled():
            raise FileNotFoundError(
                f"the bundled model {DEFAULT!r} is not part of this installation; name a model with --model FOLDER."
            )
        name = DEFAULT
    found = Checkpoint.find(model_path(args, name))
    found.name = name
    folder = found.path if found.path.is_dir() else None
    check_kind(getattr(args, "command", "generate"), name, found.config, folder)
    return found


def use_threads(args: argparse.Namespace) -> None:
    """Compute with as many threads as --threads says."""
    from .. import set_num_threads

    if getattr(args, "threads", None) is not None:
        set_num_threads(args.threads)


def load_model(args: argparse.Namespace, name: str | None, *, auto: str | None = "AutoModelForCausalLM") -> Loaded:
    """The model of a name, ready to run, and its tokenizer.

    Without `auto`, one that writes: a decoder, or an encoder and a decoder.
    """
    from .. import models
    from ..models.adapter_files import base_of, is_adapter, load_adapter

    use_threads(args)
    adapter = Path(name).expanduser() if name is not None else None
    if adapter is not None and is_adapter(adapter):
        base = base_of(adapter)
        if base is None:
            raise ValueError(
                f"{name} is an adapter that does not name its base model; load it into a model with load_adapter."
            )
        made = load_model(args, base, auto=auto)
        load_adapter(made.model, adapter)
        return Loaded(str(name), made.model.eval(), made.tokenizer, made.seq2seq)
    found = find_model(args, name)
    kind = found.config.get("model_type")
    if auto is None:
        uses = models.auto._family(kind)[1]
        auto = "AutoModelForSeq2SeqLM" if "seq2seq" in uses else "AutoModelForCausalLM"
    model = (
        getattr(models, auto)
        ._class_for(kind)
        .from_checkpoint(found, dtype=getattr(args, "dtype", None), device=getattr(args, "device", None))
    )
    return Loaded(found.name, model, _tokenizer(args, found), auto == "AutoModelForSeq2SeqLM")


def read_tokenizer(place: str | os.PathLike[str], vocab_size: int | None = None) -> Any:
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


def _tokenizer(args: argparse.Namespace, found: Checkpoint) -> Any:
    from ..models.missing import not_here

    given = getattr(args, "tokenizer", None)
    if given is not None and not Path(given).expanduser().exists():
        raise FileNotFoundError(f"--tokenizer {given}: {not_here(given)}")
    try:
        return read_tokenizer(given or found.tokenizer, found.config.get("vocab_size"))
    except FileNotFoundError as e:
        raise FileNotFoundError(
            f"{found.name} has no tokenizer beside it ({e}); name one with --tokenizer PATH."
        ) from None
