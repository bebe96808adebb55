"""`votive quantize`: a model with its weights in blocks of few bits, and what that does to it."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from . import Commands, UsageError, command
from .numbers import whole
from .terminal import note, number, paint, print_json, progress, size, table

METHODS = ("rtn", "gptq", "awq", "hqq")
# llama.cpp's mixtures, and the formats that votive encodes; others that it learns to write are taken as well.
TYPES = ("q2_k", "q3_k_s", "q3_k_m", "q4_0", "q4_1", "q4_k_s", "q4_k_m", "q5_0", "q5_1", "q5_k_s", "q5_k_m", "q6_k")
_MORE = ("q8_0", "mxfp4", "tq1_0", "tq2_0")


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "quantize",
        description="Quantize the weights of a model to blocks of a few bits, by llama.cpp's types and\n"
        "mixtures. OUT is a .gguf file, or a folder as Hugging Face has it with blocks in\n"
        "safetensors files. rtn and hqq read and write one tensor after the other; gptq and\n"
        "awq hold the model in memory, as they run it on the text of --calibrate.",
        examples="  votive quantize folder model-q4.gguf --type q4_k_m\n"
        "  votive quantize folder small --type q4_k_m --calibrate text.txt --report\n"
        "  votive quantize model.gguf less.gguf --type q3_k_m --imatrix imatrix.gguf\n"
        "  votive quantize folder model.gguf --type q4_0 --method gptq --calibrate text.txt --report=full",
    )
    p.add_argument("source", metavar="IN", help="a folder, a file or a bundled model's name")
    p.add_argument("out", metavar="OUT", help="a .gguf file, or a folder")
    known = ", ".join((*TYPES, *_MORE))
    p.add_argument("--type", metavar="NAME", required=True, type=str.lower, help=f"{known}")
    p.add_argument("--method", choices=METHODS, default="rtn", help="how weights are rounded (rtn)")
    importance = p.add_mutually_exclusive_group()
    importance.add_argument(
        "--calibrate", metavar="FILE", help="a text to run, so that errors are weighed by what each layer receives"
    )
    importance.add_argument("--imatrix", metavar="FILE", help="an importance matrix from a file")
    p.add_argument("--save-imatrix", metavar="FILE", help="save the importance matrix that --calibrate finds")
    p.add_argument(
        "--report",
        nargs="?",
        const="short",
        choices=("short", "full"),
        help="compare with the original; full: also each layer quantized alone",
    )
    p.add_argument("--text", metavar="FILE", help="the text that --report compares on (a bundled one)")
    p.add_argument(
        "--tokens", metavar="N", type=whole(2), help="use at most N tokens of a text (4096; 16384 to calibrate)"
    )
    p.add_argument("--tokenizer", metavar="PATH", help="take the tokenizer from here")
    p.add_argument("--threads", metavar="N", type=whole(1, 4096), help="threads for operators")
    p.add_argument("-f", "--force", action="store_true", help="overwrite existing files")
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Quantize, and tell what was written."""
    from .model_options import use_threads
    from .quantizing import Job, check_out, quantize

    use_threads(args)
    _check(args)
    kind, out = check_out(args.out, args.force)
    job = Job(
        args.source,
        out,
        kind,
        args.type,
        args.method,
        args.calibrate,
        args.imatrix,
        args.save_imatrix,
        args.tokens,
        args.tokenizer,
        lambda text: note(args, text),
    )
    began = time.perf_counter()
    made = quantize(job, lambda title, total: progress(args, title, total))
    facts: dict[str, Any] = {
        "in": args.source,
        "out": args.out,
        "format": kind,
        "type": args.type,
        "method": args.method,
        **made,
        "seconds": time.perf_counter() - began,
    }
    if args.report is not None:
        from .quantization_report import report

        facts["report"] = report(args, job)
    if args.json:
        print_json(facts)
    else:
        print("\n".join(_page(facts)))
    return 0


def _check(args: argparse.Namespace) -> None:
    from ..quant.known import known_types

    if args.type not in known_types():
        from ..core.similar import did_you_mean

        known = known_types()
        raise UsageError(f"--type takes {', '.join(known)}; not {args.type!r}.{did_you_mean(args.type, known)}")
    if args.method in ("gptq", "awq") and args.calibrate is None:
        raise UsageError(f"--method {args.method} needs --calibrate FILE, a text to run the model on")
    if args.save_imatrix is not None and args.calibrate is None:
        raise UsageError("--save-imatrix goes with --calibrate")
    if args.save_imatrix is not None and args.method in ("gptq", "awq"):
        raise UsageError(f"--method {args.method} makes no importance matrix to save")
    if args.text is not None and args.report is None:
        raise UsageError("--text goes with --report")
    if args.tokens is not None and args.report is None and args.calibrate is None:
        raise UsageError("--tokens goes with --calibrate and --report")
    from .inputs import check_files

    check_files([p for p in (args.calibrate, args.imatrix, args.text) if p is not None])
    if args.save_imatrix is not None and Path(args.save_imatrix).exists() and not args.force:
        raise FileExistsError(f"{args.save_imatrix} already exists; --force replaces it.")


def _page(facts: dict[str, Any]) -> list[str]:
    formats = ", ".join(f"{n} {name}" for name, n in facts["formats"].items())
    lines = [
        f"{paint(facts['out'], 'bold')}: {facts['format']}, {facts['type']} by {facts['method']}, "
        f"{size(facts['nbytes_before'])} -> {size(facts['nbytes'])}, "
        f"{facts['bits_per_weight']:.3f} bits per weight, {facts['seconds']:.1f} s",
        f"tensors: {formats}",
    ]
    found = facts.get("report")
    if found is None:
        return lines
    lines += ["", *_layers(found)]
    worst = [(s["name"], s["format"], _share(s["weight"]), _share(s["output"])) for s in found["worst"]]
    lines += ["", *table(worst, ["furthest off", "format", "weights", "output"], right="llrr")]
    if found["kl"] is not None:
        lines += [
            "",
            f"{found['tokens']:,} tokens of {found['text']}: perplexity {number(found['perplexity_original'])} -> "
            f"{number(found['perplexity'])}, KL divergence {number(found['kl'], 3)}, "
            f"same first choice {found['same_top']:.1%}",
        ]
    return lines


def _layers(found: dict[str, Any]) -> list[str]:
    full = any(x["kl"] is not None for x in found["layers"])
    rows = [
        (x["name"], _share(x["weight"]), _share(x["stream"]), *((number(x["kl"], 3),) if full else ()))
        for x in found["layers"]
    ]
    return list(table(rows, ["layer", "weights", "stream", *(["KL alone"] if full else [])], right="lrrr"))


def _share(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.2%}"
