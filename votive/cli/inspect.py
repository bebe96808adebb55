"""`votive inspect`: what is in a file or folder, from its header; numbers only when asked for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from . import Commands, UsageError, command
from .model_options import one_model
from .numbers import whole
from .terminal import number, paint, print_json, progress, size, table, width

if TYPE_CHECKING:
    from ..data.tokens import TokenFile
    from ..io import WeightSource
    from .inputs import Found


_BLOCKS = " ▁▂▃▄▅▆▇█"


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "inspect",
        description="List tensors, shapes, types, sizes and metadata of weights in any format\n"
        "(safetensors, sharded, GGUF, .pt, .npz, .npy, llama2.c), of a model folder,\n"
        "a token file, a configuration or a tokenizer. Only headers are read, unless\n"
        "statistics are asked for; those are made part by part in little memory.",
        examples="  votive inspect model.safetensors\n"
        "  votive inspect folder --tree 2\n"
        "  votive inspect model.gguf --metadata\n"
        "  votive inspect folder --stats --tensor 'model.layers.*.mlp.*'\n"
        "  votive inspect folder --histogram --tensor lm_head.weight\n"
        "  votive inspect model.gguf --tensor blk.0.ffn_down.weight --block 7",
    )
    p.add_argument("path", metavar="PATH", nargs="?", help="a file, a folder or a bundled model's name")
    p.add_argument("--model", metavar="PATH", help="the same as PATH")
    p.add_argument(
        "--tensor",
        metavar="GLOB",
        action="append",
        help="only tensors whose names match, such as 'layers.*.mlp*'; may be repeated",
    )
    p.add_argument(
        "--stats", action="store_true", help="statistics of each tensor: min, max, mean, std, norms, zeros, nan, inf"
    )
    p.add_argument("--histogram", action="store_true", help="a histogram of the values")
    p.add_argument("--bins", metavar="N", type=whole(1, 10_000), help="bars of the histogram (default 40)")
    p.add_argument("--block", metavar="I", type=whole(), help="one block of a quantized tensor: scales, codes, numbers")
    p.add_argument(
        "--tree",
        metavar="DEPTH",
        type=whole(1),
        nargs="?",
        const=2,
        help="parameters summed by prefix, DEPTH names deep (default 2)",
    )
    p.add_argument("--metadata", action="store_true", help="all metadata, in full")
    p.add_argument(
        "--sort",
        choices=("file", "name", "size"),
        default="file",
        help="order of the tensors (default: as in the file)",
    )
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Describe what is there."""
    from .inputs import open_path

    if args.bins is not None and not args.histogram:
        raise UsageError("--bins goes with --histogram")
    args.path = one_model(args.path, args.model)
    if args.path is None:
        raise UsageError("PATH is missing: name a file, a folder or a bundled model")
    found = open_path(args.path)
    try:
        if found.source is None and (args.tensor or args.histogram or args.tree is not None):
            raise UsageError(f"{args.path} holds no tensors")
        if args.stats and found.source is None and found.tokens is None:
            raise UsageError(f"{args.path} holds nothing to measure")
        if args.block is not None:
            return _one_block(args, found)
        report = gathered(args, found)
    finally:
        if found.source is not None:
            found.source.close()
    if args.json:
        print_json(report)
        return 0
    print("\n".join(_page(args, report)))
    return 0


def _one_block(args: argparse.Namespace, found: Found) -> int:
    """Show a block of the one tensor that was named."""
    from ..quant import open_block
    from .inputs import matching_names

    if found.source is None:
        raise UsageError(f"{args.path} holds no tensors")
    if args.stats or args.histogram or args.tree is not None or args.metadata:
        raise UsageError("--block shows a block alone; leave out --stats, --histogram, --tree and --metadata")
    names = matching_names(found.source.names(), args.tensor)
    if args.tensor is None or len(names) != 1:
        raise UsageError(f"--block needs one tensor: name it with --tensor ({len(names)} match)")
    tensor = found.source.blocks(names[0])
    if tensor is None:
        stored = found.source.info(names[0]).stored
        raise ValueError(f"{names[0]} is stored as {stored}, not in blocks of few bits.")
    block = open_block(tensor, args.block)
    if args.json:
        print_json({"tensor": names[0], **block.to_dict()})
    else:
        print(f"{paint(names[0], 'bold')}\n{block}")
    return 0


def gathered(args: argparse.Namespace, found: Found) -> dict[str, Any]:
    """All facts, as JSON has them."""
    report: dict[str, Any] = {
        "path": str(found.path),
        "format": found.kind,
        "files": [p.name for p in found.files],
        "nbytes": found.nbytes,
    }
    for name in ("config", "tokenizer", "content"):
        value = getattr(found, name)
        if value is not None and not (name == "content" and found.config is not None):
            report[name] = value
    if found.tokens is not None:
        report["tokens"] = _tokens(found.tokens, args.stats)
    if found.source is not None:
        report.update(_weights(args, found.source))
    return report


def _weights(args: argparse.Namespace, source: WeightSource) -> dict[str, Any]:
    from .inputs import matching_names

    names = matching_names(source.names(), args.tensor)
    infos = [source.info(n) for n in names]
    if args.sort == "name":
        infos.sort(key=lambda i: i.name)
    elif args.sort == "size":
        infos.sort(key=lambda i: -i.nbytes)
    rows: list[dict[str, Any]] = [
        {
            "name": i.name,
            "shape": list(i.shape),
            "stored": i.stored,
            "dtype": str(i.dtype).removeprefix("votive."),
            "numel": i.numel,
            "nbytes": i.nbytes,
            "file": i.file.name if i.file is not None else None,
        }
        for i in infos
    ]
    if args.stats or args.histogram:
        _measure(args, source, rows)
    out = {"parameters": sum(r["numel"] for r in rows), "tensors": rows, "metadata": dict(source.metadata)}
    if args.tree is not None:
        out["tree"] = tree(rows, args.tree)
    return out


def _measure(args: argparse.Namespace, source: WeightSource, rows: list[dict[str, Any]]) -> None:
    from .tensor_stats import histogram, statistics

    total = sum(r["nbytes"] for r in rows)
    with progress(args, "reading", total, nbytes=True) as bar:
        for row in rows:
            bar.label(row["name"])
            found = statistics(source, row["name"])
            row["stats"] = found.to_dict()
            if args.histogram and row["stats"]["min"] is not None:
                counts = histogram(source, row["name"], found.min, found.max, args.bins or 40)
                row["histogram"] = {"low": found.min, "high": found.max, "counts": counts}
            bar.advance(row["nbytes"])


def tree(rows: list[dict[str, Any]], depth: int) -> list[dict[str, Any]]:
    """Sums over the tensors below each prefix of at most `depth` names.

    >>> from votive.cli.inspect import tree
    >>> rows = [{"name": f"layers.{i}.w", "numel": 4, "nbytes": 16} for i in (0, 1)]
    >>> [(r["prefix"], r["parameters"]) for r in tree(rows, 1)]
    [('layers', 8)]
    """
    sums: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        path = tuple(row["name"].split("."))
        for n in range(1, min(depth, len(path)) + 1):
            at = sums.setdefault(path[:n], [0, 0, 0])
            at[0] += 1
            at[1] += row["numel"]
            at[2] += row["nbytes"]
    # A parent directly before its children, in the order of the file.
    first: dict[tuple[str, ...], int] = {path: i for i, path in enumerate(sums)}
    order = sorted(sums, key=lambda p: [first[p[: n + 1]] for n in range(len(p))])
    return [
        {"prefix": ".".join(p), "level": len(p), "tensors": sums[p][0], "parameters": sums[p][1], "nbytes": sums[p][2]}
        for p in order
    ]


def _tokens(tokens: TokenFile, stats: bool) -> dict[str, Any]:
    out: dict[str, Any] = {"count": len(tokens), "dtype": str(tokens.dtype)}
    if stats and len(tokens):
        import numpy as np

        counts = np.zeros(0, np.int64)
        for start in range(0, len(tokens), 1 << 22):
            part = np.bincount(tokens[start : start + (1 << 22)])
            counts = np.pad(counts, (0, max(0, part.size - counts.size)))
            counts[: part.size] += part
        seen = np.flatnonzero(counts)
        shares = counts[seen] / len(tokens)
        top = seen[np.argsort(-counts[seen], kind="stable")[:10]]
        out["stats"] = {
            "min": int(seen[0]),
            "max": int(seen[-1]),
            "distinct": int(seen.size),
            "entropy_bits": float(-(shares * np.log2(shares)).sum()),
            "most_common": [[int(i), int(counts[i])] for i in top],
        }
    return out


# --- as text ----------------------------------------------------------------------------------


def _page(args: argparse.Namespace, report: dict[str, Any]) -> list[str]:
    many = f", {len(report['files'])} files" if len(report["files"]) > 1 else ""
    facts = [f"{report['format']}{many}", size(report["nbytes"])]
    if "tensors" in report:
        facts += [f"{len(report['tensors'])} tensors", f"{report['parameters']:,} parameters"]
    lines = [f"{paint(report['path'], 'bold')}: {', '.join(facts)}"]
    for name in ("config", "content"):
        if name in report:
            lines += ["", *_values(name, report[name], True)]
    if "tokenizer" in report:
        lines += ["", *_values("tokenizer", report["tokenizer"], True)]
    if "tokens" in report:
        lines += ["", *_values("tokens", report["tokens"], True)]
    if report.get("metadata"):
        lines += ["", *_values("metadata", report["metadata"], args.metadata)]
    if "tree" in report:
        return [*lines, "", *_tree_lines(report["tree"])]
    if report.get("tensors"):
        lines += ["", *_types(report["tensors"]), "", *_tensor_lines(args, report["tensors"])]
    return lines


def _values(title: str, values: dict[str, Any], full: bool) -> list[str]:
    """Names and values; long ones are cut unless all is asked for."""
    if title == "tokenizer" and len(values["special_tokens"]) > 8:
        rest = len(values["special_tokens"]) - 8
        values = {**values, "special_tokens": [*values["special_tokens"][:8], f"… {rest} more"]}
    lines = [paint(title, "bold")]
    limit = max(40, width() - 6 - max((len(str(k)) for k in values), default=0))
    for key, value in values.items():
        text = value if isinstance(value, str) else _short(value, full)
        if not full:
            text = text.replace("\n", "\\n")
            if len(text) > limit:
                text = text[: limit - 1] + "…"
        lines.append(f"  {key}: {text}")
    return lines


def _short(value: object, full: bool) -> str:
    if isinstance(value, (list, tuple)) and len(value) > 8 and not full:
        inner = ", ".join(repr(v) for v in value[:4])
        return f"[{inner}, …] ({len(value)} values)"
    return str(value)


def _types(rows: list[dict[str, Any]]) -> list[str]:
    sums: dict[str, list[int]] = {}
    for row in rows:
        at = sums.setdefault(row["stored"], [0, 0, 0])
        at[0] += 1
        at[1] += row["numel"]
        at[2] += row["nbytes"]
    cells = [(t, n, f"{p:,}", size(b)) for t, (n, p, b) in sums.items()]
    return list(table(cells, ["stored as", "tensors", "parameters", "size"], right="lrrr"))


def _tree_lines(rows: list[dict[str, Any]]) -> list[str]:
    cells = [
        (
            "  " * (r["level"] - 1) + r["prefix"].rsplit(".", 1)[-1],
            r["tensors"],
            f"{r['parameters']:,}",
            size(r["nbytes"]),
        )
        for r in rows
    ]
    return list(table(cells, ["prefix", "tensors", "parameters", "size"], right="lrrr"))


def _tensor_lines(args: argparse.Namespace, rows: list[dict[str, Any]]) -> list[str]:
    headers, right = ["name", "stored", "shape", "size"], "lllr"
    cells = [[r["name"], r["stored"], "×".join(map(str, r["shape"])) or "scalar", size(r["nbytes"])] for r in rows]
    if args.stats:
        headers += ["min", "max", "mean", "std", "norm", "zeros", "nan", "inf"]
        right += "rrrrrrrr"
        for cell, row in zip(cells, rows):
            s = row["stats"]
            zeros = "-" if s["zero_fraction"] is None else f"{s['zero_fraction']:.1%}"
            cell += [number(s[k]) for k in ("min", "max", "mean", "std", "l2")]
            cell += [zeros, str(s["nan"]), str(s["inf"])]
    lines = list(table(cells, headers, right=right))
    if args.histogram:
        for row in rows:
            lines += ["", *_histogram_lines(row)]
    return lines


def _histogram_lines(row: dict[str, Any], height: int = 8) -> list[str]:
    h = row.get("histogram")
    if h is None:
        return [f"{row['name']}: no finite values"]
    top = max(h["counts"])
    lines = [paint(row["name"], "bold")]
    for level in range(height - 1, -1, -1):
        # Eighths of a line above `level` full ones; what is there at all shows at least one.
        cells = [
            min(8, max(0, round(c / top * height * 8) - level * 8, int(c > 0 and level == 0))) for c in h["counts"]
        ]
        label = f"{top:,}" if level == height - 1 else ""
        lines.append(f"{label:>12} │" + "".join(_BLOCKS[c] for c in cells))
    left, right = number(h["low"]), number(h["high"])
    lines.append(" " * 13 + "└" + "─" * len(h["counts"]))
    lines.append(" " * 14 + left + right.rjust(max(1, len(h["counts"]) - len(left))))
    return lines
