"""`votive convert`: weights, or whole models, from any format to any other."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import Commands, UsageError, command
from .terminal import note, print_json, progress, size

if TYPE_CHECKING:
    from ..io import WeightSource


FORMATS = ("safetensors", "folder", "gguf", "npz", "npy", "llama2c", "torch")
_DTYPES = ("float32", "float16", "bfloat16", "float64")


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "convert",
        description="Read weights in any format (safetensors, sharded, GGUF, .pt, .npz, .npy,\n"
        "llama2.c) and write them in another. Where the model is known, names, configuration\n"
        "and tokenizer are converted too. OUT's ending tells the format; without one it is a\n"
        "folder as Hugging Face has it. Tensors are read and written one after the other.",
        examples="  votive convert folder model.gguf --quantize q4_k_m\n"
        "  votive convert model.gguf folder --dtype bfloat16\n"
        "  votive convert model.pt model.safetensors\n"
        "  votive convert folder copy --max-shard-size 2GB\n"
        "  votive convert a.safetensors b.npz --tensor 'encoder.*' --rename '^encoder\\.='",
    )
    p.add_argument("source", metavar="IN", help="a file, a folder or a bundled model's name")
    p.add_argument("out", metavar="OUT", help="a file, or a folder")
    p.add_argument("--to", choices=FORMATS, help="the format, whatever the name of OUT")
    p.add_argument("--dtype", choices=_DTYPES, help="type of floating-point tensors (default: unchanged)")
    p.add_argument(
        "--quantize", metavar="TYPE", help="for GGUF: q8_0, q4_k_m, q6_k, iq4_xs, iq3_m, iq2_xs, … (as they are)"
    )
    p.add_argument("--imatrix", metavar="FILE", help="an importance matrix from a file, for --quantize")
    p.add_argument("--tensor", metavar="GLOB", action="append", help="only tensors whose names match")
    p.add_argument("--drop", metavar="GLOB", action="append", default=[], help="leave out tensors whose names match")
    p.add_argument(
        "--rename",
        metavar="REGEX=NEW",
        action="append",
        default=[],
        help="replace what matches in tensor names; may be repeated",
    )
    p.add_argument("--keep-names", action="store_true", help="copy tensors as they are, without building a model")
    p.add_argument("--tokenizer", metavar="PATH", help="take the tokenizer from here")
    p.add_argument("--max-shard-size", metavar="SIZE", help="largest size of a file in a folder (5GB)")
    p.add_argument("-f", "--force", action="store_true", help="overwrite existing files")
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Convert and tell what was written."""
    from .conversion import Request, format_of, open_input, write

    kind = format_of(args.out, args.to)
    out = Path(args.out)
    _check_free(out, kind, args.force)
    began = time.perf_counter()
    made = open_input(args.source, args.keep_names, lambda text: note(args, text))
    if args.tokenizer is not None:
        if kind not in ("folder", "gguf") or made.config is None:
            raise UsageError("--tokenizer is for models written as a folder or as GGUF")
        made.tokenizer = Path(args.tokenizer)
    with made.file:
        before = made.weights
        made.weights = selected(args, before)
        count = len(made.weights)
        parameters = sum(made.weights.info(n).numel for n in made.weights.names())
        total = sum(made.weights.info(n).nbytes for n in made.weights.names())
        with progress(args, "converting", total, nbytes=True) as bar:

            def report(name: str, nbytes: int) -> None:
                bar.label(name)
                bar.advance(nbytes)

            write(
                made,
                out,
                Request(
                    kind,
                    args.dtype,
                    args.quantize,
                    args.imatrix,
                    args.max_shard_size,
                    report,
                    lambda text: note(args, text),
                ),
            )
    facts = {
        "in": args.source,
        "out": args.out,
        "format": kind,
        "tensors": count,
        "parameters": parameters,
        "nbytes": _size(out),
        "seconds": time.perf_counter() - began,
    }
    if args.json:
        print_json(facts)
    else:
        print(
            f"{args.out}: {kind}, {count} tensors, {parameters:,} parameters, "
            f"{size(facts['nbytes'])}, {facts['seconds']:.1f} s"
        )
    return 0


def selected(args: argparse.Namespace, source: WeightSource) -> Any:
    """The source with tensors picked, dropped and renamed as asked."""
    from .inputs import matching_names

    if not (args.tensor or args.drop or args.rename):
        return source
    names = set(matching_names(source.names(), args.tensor))
    if args.drop:
        names -= set(matching_names(source.names(), args.drop))
    rules = []
    for text in args.rename:
        old, sign, new = text.rpartition("=")
        if not sign or not old:
            raise UsageError(f"--rename takes REGEX=NEW, got {text!r}")
        try:
            rules.append((re.compile(old), new))
        except re.error as e:
            raise UsageError(f"--rename {old!r}: {e}") from None

    def rule(name: str) -> str | None:
        if name not in names:
            return None
        for pattern, new in rules:
            name = pattern.sub(new, name)
        return name

    return source.renamed(rule)


def _check_free(out: Path, kind: str, force: bool) -> None:
    if kind == "folder":
        if out.is_file():
            raise FileExistsError(f"{out} is a file; the folder needs another name.")
        taken = any(out.glob("*.safetensors")) or (out / "config.json").exists()
        if taken and not force:
            raise FileExistsError(f"{out} already holds a model; --force replaces it.")
        return
    if out.is_dir():
        raise IsADirectoryError(f"{out} is a folder; name a file in it.")
    if out.exists() and not force:
        raise FileExistsError(f"{out} already exists; --force replaces it.")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out.parent}: there is no such folder.")


def _size(out: Path) -> int:
    if out.is_dir():
        return sum(p.stat().st_size for p in out.glob("*.safetensors"))
    return out.stat().st_size
