"""`votive embed`: sentences as vectors, and how near they are to each other."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from . import Commands, UsageError, command
from .inputs import checked_text, read_stdin, read_text
from .model_kinds import check_kind, require_model
from .model_options import add_model_options, model_path, use_threads
from .numbers import whole
from .terminal import is_terminal, print_json, table, width


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "embed",
        description="Turn sentences into vectors with a sentence encoder (BERT, MiniLM, …): a\n"
        "folder as sentence-transformers writes it, any encoder, whose positions are\n"
        "averaged, or a GGUF file. Texts are arguments, the lines of a file, or what is piped in.",
        examples="  votive embed --model minilm 'A cat sat.' 'A dog ran.' --similarity\n"
        "  votive embed --model minilm --file lines.txt --out vectors.npy\n"
        "  votive embed --model minilm 'A cat sat.' --json",
    )
    p.add_argument("texts", metavar="TEXT", nargs="*", help="sentences")
    p.add_argument("--file", metavar="FILE", help="one sentence per line; - is stdin")
    add_model_options(p, default=None)
    p.add_argument("--batch-size", metavar="N", type=whole(1), default=32, help="sentences per batch (32)")
    p.add_argument("--max-length", metavar="N", type=whole(1), help="cut sentences after N tokens (the model's limit)")
    p.add_argument("--prompt", metavar="TEXT", help="text to put before each sentence")
    for flag, text in (("--normalize", "scale to length one"), ("--no-normalize", "do not")):
        p.add_argument(flag, dest="normalize", action="store_const", const=flag == "--normalize", help=text)
    p.add_argument("--similarity", action="store_true", help="compare every sentence with every other")
    p.add_argument("--out", metavar="FILE", help="write the vectors as .npy")
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Encode and show."""
    from ..models import SentenceEncoder
    from ..text import Tokenizer

    require_model("embed", args.model)
    if args.out is not None and Path(args.out).suffix != ".npy":
        raise UsageError(f"--out must end in .npy, got {args.out}")
    if args.out is not None and not Path(args.out).absolute().parent.is_dir():
        raise FileNotFoundError(f"{Path(args.out).parent}: there is no such folder to write to.")
    texts = read_texts(args)
    use_threads(args)
    place = model_path(args, args.model)
    if place.is_file():
        encoder = _from_file(args, place)
    else:
        _check_folder(args, place)
        encoder_class: Any = SentenceEncoder
        encoder = encoder_class.from_pretrained(place, dtype=args.dtype, device=args.device)
    if args.tokenizer is not None:
        encoder.tokenizer = Tokenizer.from_pretrained(args.tokenizer)
    bar = not args.quiet and is_terminal(sys.stderr) and len(texts) > 256
    vectors = encoder.encode(
        texts,
        batch_size=args.batch_size,
        normalize=args.normalize,
        max_length=args.max_length,
        prompt=args.prompt,
        progress=bar,
    ).cpu()
    near = encoder.similarity(vectors, vectors) if args.similarity else None
    if args.out is not None:
        from ..io import npy

        npy.save(args.out, vectors.float())
        if not args.json:
            print(f"{args.out}: {vectors.shape[0]} vectors of {vectors.shape[1]} numbers")
    if args.json:
        report: dict[str, Any] = {"model": args.model, "dimensions": vectors.shape[1], "texts": texts}
        if args.out is None:
            report["embeddings"] = vectors.tolist()
        if near is not None:
            report["similarity"] = near.tolist()
        print_json(report)
    elif near is not None:
        print("\n".join(_matrix(texts, near.tolist())))
    elif args.out is None:
        for text, row in zip(texts, vectors.tolist()):
            first = ", ".join(f"{v:.4f}" for v in row[:6])
            print(f"{_cut(text, 40)}\t[{first}, … {len(row)} numbers]")
    return 0


# How a GGUF file says that positions become one vector (llama.cpp's numbers).
_POOLING = {1: "mean_tokens", 2: "cls_token", 3: "lasttoken"}


def _check_folder(args: argparse.Namespace, folder: Path) -> None:
    from ..models.config import NAME, read_json

    if (folder / NAME).is_file():
        check_kind("embed", args.model, read_json(folder / NAME), folder)


def _from_file(args: argparse.Namespace, place: Path) -> Any:
    """A sentence encoder from a GGUF file."""
    from ..io import open_weights
    from ..models import AutoModelForTextEncoding, SentenceEncoder
    from ..models.checkpoint import Checkpoint
    from ..text import Tokenizer

    with open_weights(place) as source:
        metadata = dict(source.metadata)
    kind = metadata.get("general.architecture")
    pooled = metadata.get(f"{kind}.pooling_type")
    pooling = _POOLING.get(1 if pooled is None else pooled)
    if kind is None or pooling is None:
        raise ValueError(f"{args.model} is not a sentence encoder; give a folder or a GGUF file.")
    if pooled is None:  # else the file itself says how it makes vectors
        check_kind("embed", args.model, Checkpoint.find(place).config)
    model = AutoModelForTextEncoding.from_pretrained(place, dtype=args.dtype, device=args.device)
    limit = metadata.get(f"{kind}.context_length")
    encoder_class: Any = SentenceEncoder
    return encoder_class(model, Tokenizer.from_pretrained(place), pooling=pooling, normalize=True, max_length=limit)


def read_texts(args: argparse.Namespace) -> list[str]:
    """The sentences, from wherever they come."""
    lines: list[str] = []
    if args.file is not None and args.file != "-":
        lines = read_text(args.file).splitlines()
    elif args.file == "-" or (not args.texts and not is_terminal(sys.stdin)):
        lines = read_stdin().splitlines()
    given = [checked_text(text, "the sentence") for text in args.texts]
    texts = [*given, *(line for line in lines if line.strip())]
    if not texts:
        raise UsageError("give sentences as arguments, as --file or through a pipe")
    return texts


def _cut(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _matrix(texts: list[str], rows: list[list[float]]) -> list[str]:
    room = max(12, min(40, width() - 8 * len(texts)))
    cells = [[i + 1, _cut(t, room), *(f"{v:.3f}" for v in row)] for i, (t, row) in enumerate(zip(texts, rows))]
    headers = ["", "text", *(str(i + 1) for i in range(len(texts)))]
    return list(table(cells, headers, right="rl" + "r" * len(texts)))
