"""`votive diff`: in which names, shapes, types and values two sets of weights differ."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from . import Commands, command
from .numbers import number as real
from .terminal import number, paint, print_json, progress, table

if TYPE_CHECKING:
    from ..io import WeightSource


TROUBLE = 2  # 1 says that they differ


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "diff",
        description="Compare the weights of two files or folders, of any formats, tensor by\n"
        "tensor and part by part. Exit code: 0 equal, 1 different, 2 trouble.",
        examples="  votive diff before.safetensors after.safetensors\n"
        "  votive diff folder model.gguf --model --tolerance 1e-2\n"
        "  votive diff a.pt b.npz --ignore-dtype --all",
    )
    p.add_argument("a", metavar="A", help="a file, a folder or a bundled model's name")
    p.add_argument("b", metavar="B", help="the one to compare it with")
    p.add_argument(
        "--tolerance",
        "--atol",
        metavar="X",
        type=real(0),
        default=0.0,
        help="absolute difference that counts as equal (default 0)",
    )
    p.add_argument(
        "--rtol",
        metavar="X",
        type=real(0),
        default=0.0,
        help="difference relative to B that counts as equal (default 0)",
    )
    p.add_argument("--tensor", metavar="GLOB", action="append", help="only tensors whose names match; may be repeated")
    p.add_argument("--ignore-dtype", action="store_true", help="compare values, not types")
    p.add_argument(
        "--model", action="store_true", help="compare as models: a GGUF's tensors under their Hugging Face names"
    )
    p.add_argument("--all", action="store_true", help="list equal tensors too")
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Compare; 0 if nothing differs, else 1."""
    with opened(args.a, args.model) as a, opened(args.b, args.model) as b:
        report = compared(args, a, b)
    if args.json:
        print_json(report)
    else:
        print("\n".join(_page(args, report)))
    return 0 if report["equal"] else 1


def opened(path: str, as_model: bool) -> Any:
    """The weights at a path; as those of a model if asked."""
    from .inputs import open_path

    if as_model:
        from ..models.checkpoint import Checkpoint

        return Checkpoint.find(path, local_files_only=True).weights()
    found = open_path(path)
    if found.source is None:
        raise ValueError(f"{path}: {found.kind} holds no tensors to compare.")
    return found.source


def compared(args: argparse.Namespace, a: WeightSource, b: WeightSource) -> dict[str, Any]:
    """What differs, as JSON has it."""
    from .inputs import matching_names
    from .tensor_stats import difference

    every = list(dict.fromkeys([*a.names(), *b.names()]))
    names = matching_names(every, args.tensor)
    common = [n for n in names if n in a and n in b]
    only_a = [n for n in names if n not in b]
    only_b = [n for n in names if n not in a]
    rows: list[dict[str, Any]] = []
    total = sum(a.info(n).nbytes for n in common)
    with progress(args, "comparing", total, nbytes=True) as bar:
        for name in common:
            bar.label(name)
            rows.append(_row(args, name, a, b, difference))
            bar.advance(a.info(name).nbytes)
    equal = not only_a and not only_b and all(r["equal"] for r in rows)
    return {
        "a": args.a,
        "b": args.b,
        "equal": equal,
        "only_a": only_a,
        "only_b": only_b,
        "compared": len(rows),
        "different": sum(not r["equal"] for r in rows),
        "tensors": rows,
    }


def _row(args: argparse.Namespace, name: str, a: WeightSource, b: WeightSource, difference: Any) -> dict[str, Any]:
    x, y = a.info(name), b.info(name)
    types = [str(i.dtype).removeprefix("votive.") for i in (x, y)]
    row: dict[str, Any] = {
        "name": name,
        "shape": [list(x.shape), list(y.shape)],
        "dtype": types,
        "stored": [x.stored, y.stored],
        "equal": False,
    }
    if tuple(x.shape) != tuple(y.shape):
        row["why"] = "shape"
        return row
    d = difference(a, b, name, atol=args.tolerance, rtol=args.rtol)
    row.update(
        max_abs=d.max_abs,
        max_rel=d.max_rel,
        cosine=d.cosine,
        different_fraction=d.different / d.count if d.count else 0.0,
    )
    if not d.close:
        row["why"] = "values"
    elif types[0] != types[1] and not args.ignore_dtype:
        row["why"] = "dtype"
    else:
        row["equal"] = True
    return row


def _page(args: argparse.Namespace, report: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for side, style in (("a", "red"), ("b", "green")):
        names = report[f"only_{side}"]
        if names:
            lines.append(paint(f"only in {report[side]} ({len(names)}):", "bold"))
            lines += [paint(f"  {'-' if side == 'a' else '+'} {n}", style) for n in names] + [""]
    shown = [r for r in report["tensors"] if args.all or not r["equal"]]
    if shown:
        cells = [
            (
                r["name"],
                "=" if r["equal"] else r["why"],
                _pair(r["stored"]),
                _pair(["×".join(map(str, s)) or "scalar" for s in r["shape"]]),
                number(r.get("max_abs")),
                number(r.get("max_rel")),
                number(r.get("cosine"), 7),
                f"{r['different_fraction']:.1%}" if "different_fraction" in r else "-",
            )
            for r in shown
        ]
        headers = ["name", "differs in", "stored", "shape", "max abs", "max rel", "cosine", "share"]
        lines += [*table(cells, headers, right="llllrrrr"), ""]
    if report["equal"]:
        within = args.tolerance or args.rtol
        lines.append(f"{report['compared']} tensors are equal{' within the tolerance' if within else ''}.")
    else:
        missing = len(report["only_a"]) + len(report["only_b"])
        lines.append(
            f"{report['different']} of {report['compared']} common tensors differ, {missing} are on one side only."
        )
    return lines


def _pair(values: list[str]) -> str:
    return values[0] if values[0] == values[1] else f"{values[0]} → {values[1]}"
