"""The command: reads the arguments, refuses what is taken, writes all files or none."""

from __future__ import annotations

import argparse
import keyword
import re
import subprocess
import sys
from pathlib import Path
from string import Template

import votive
from votive.ops.registry import COMPOSITES, OPS
from votive.ops.schema import Schema, parse

from .merging import defined, merged
from .words import without_stand_in, words_of

ROOT = Path(votive.__file__).resolve().parent.parent
TEMPLATES = Path(__file__).parent / "templates"
KINDS = ("pointwise", "structured", "view", "composite")
NEXT = """
It works as it stands: {path} {does}. Now
1. say in {ops} what it is: schema, {parts}, docstring;
{kernels}2. give {records} samples, an independent reference, dtypes and errors;
3. python scripts/generate.py
4. python -m pytest tests/ops/test_catalog.py tests/test_layers.py tests/test_examples.py -k {name}
docs/adding_an_op.md goes through all of it."""
KERNELS = "   and write its kernels in {files}\n   (the C++ one is used after the next build);\n"
PARTS = {
    "pointwise": "formula, dtypes",
    "structured": "shape rule, gradient",
    "view": "spec and offset of the result, gradient",
    "composite": "the operators that it is written with",
}


def main(argv: list[str]) -> int:
    """Write a new operator; what to do next is printed."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        schema = parse(args.schema or f"{args.name}(Tensor input)")
    except ValueError as e:
        parser.error(str(e))
    wrong = _wrong(args, schema)
    if wrong:
        parser.error(wrong)
    words = words_of(schema, args.kind, args.namespace)
    family = args.family or args.name
    made = files(words, args.kind, family)
    for path in made:
        if path.suffix == ".py" and path.exists() and args.name in defined(path.read_text()):
            parser.error(f'{path.relative_to(ROOT)} defines "{args.name}" already; choose another name or --family.')
    for path, text in made.items():
        if args.dry_run:
            print(f"==> {path.relative_to(ROOT)}\n{text}")
            continue
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")
    if args.dry_run:
        return 0
    subprocess.run([sys.executable, str(ROOT / "scripts" / "generate.py")], check=True)
    print(_next(words, args.kind, list(made)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m votive.new_op", description="Write a new operator into this checkout."
    )
    parser.add_argument("name", metavar="NAME", help="what the operator is called, such as squareplus")
    parser.add_argument("--kind", choices=KINDS, default="structured", help="how it is declared (default: %(default)s)")
    parser.add_argument("--schema", help='arguments, such as "NAME(Tensor input, int dim=-1)"')
    parser.add_argument("--family", metavar="STEM", help="the file in ops/, kernels and records (default: NAME)")
    parser.add_argument("--namespace", default="", help="such as nn.functional (default: votive itself and Tensor)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written")
    return parser


def _wrong(args: argparse.Namespace, schema: Schema) -> str | None:
    """Why these arguments are refused; None if they are not."""
    for word in (args.name, args.family or args.name):
        if not re.fullmatch(r"[a-z][a-z0-9_]*", word) or keyword.iskeyword(word):
            return f'"{word}" is no name for an operator or a file; use lower-case letters, digits and underscores.'
    if schema.name != args.name:
        return f'the schema declares "{schema.name}", not "{args.name}".'
    if {args.name, f"{args.namespace}.{args.name}"} & {*OPS, *COMPOSITES, *dir(votive.Tensor)}:
        return f'there is an operator "{args.name}" already; votive.explain("{args.name}") describes it.'
    if not schema.args or not schema.args[0].is_tensor or schema.args[0].is_list:
        return f"the first argument must be a tensor; got {schema}."
    if unclear := without_stand_in(schema):
        return f"give {', '.join(unclear)} a default value; no example can be made up without one."
    there = ROOT / "votive" / "ops" / f"{args.family or args.name}.py"
    declared = {op.defined_at[0] for op in OPS.values()} | {c.defined_at[0] for c in COMPOSITES.values()}
    if there.exists() and there.resolve() not in {Path(file).resolve() for file in declared}:
        return f"votive/ops/{there.name} holds no operators; choose another --family."
    return None


def files(words: dict[str, str], kind: str, family: str) -> dict[Path, str]:
    """The text of each file after the operator was added to it."""
    backends = ROOT / "votive" / "backends"
    wanted = {ROOT / "votive" / "ops" / f"{family}.py": f"ops_{kind}"}
    if kind == "structured":
        kernels = backends / "cuda" / "kernels"
        # A family with many kernels is a folder.
        folder = (kernels / family).is_dir()
        wanted |= {
            backends / "cpu" / "reference" / f"{family}.py": "reference",
            backends / "cpu" / "native" / f"{family}.py": "native",
            backends / "cpu" / "native" / "src" / "kernels" / f"{family}.cpp": "kernel",
            kernels / family / f"{words['name']}.py" if folder else kernels / f"{family}.py": "cuda",
        }
        words = {**words, "up": ".." if folder else "."}
    records = ROOT / "tests" / "ops" / "records" / f"{family}.py"
    words = {**words, "records": "RECORDS +=" if records.exists() else "RECORDS ="}
    wanted[records] = "record"
    found = {}
    for path, name in wanted.items():
        piece = Template((TEMPLATES / f"{name}.txt").read_text()).substitute(words)
        found[path] = merged(path.read_text() if path.exists() else None, piece, python=path.suffix == ".py")
    return found


def _next(words: dict[str, str], kind: str, made: list[Path]) -> str:
    ops, *kernels, records = (str(path.relative_to(ROOT)) for path in made)
    return NEXT.format(
        path=words["path"],
        does="gives the same memory" if kind == "view" else "doubles its input",
        ops=ops,
        parts=PARTS[kind],
        kernels=KERNELS.format(files=",\n   ".join(kernels)) if kernels else "",
        records=records,
        name=words["name"],
    )
