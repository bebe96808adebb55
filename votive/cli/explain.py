"""`votive explain`: what an operator is and how it runs."""

from __future__ import annotations

import argparse

from . import Commands, command
from .terminal import print_json


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "explain",
        description="Show an operator's schema, formula, derived gradient and kernels.",
        examples="  votive explain gelu\n  votive explain nn.functional.softmax\n  votive explain --list | grep norm",
    )
    p.add_argument("op", metavar="OP", nargs="?", help="a name, such as gelu or linalg.svd")
    p.add_argument("--list", action="store_true", help="list the names of all operators")
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Print the explanation."""
    from .. import explanation
    from . import UsageError

    if args.list == (args.op is not None):
        raise UsageError("name one operator, or pass --list")
    if args.list:
        names = operators()
        print_json(names) if args.json else print("\n".join(names))
        return 0
    text = explanation(args.op)
    print_json({"op": args.op, "explanation": text}) if args.json else print(text)
    return 0


def operators() -> list[str]:
    """The names of all public operators."""
    from ..ops.registry import COMPOSITES, OPS

    return sorted(n for n in {*OPS, *COMPOSITES} if not n.startswith("_"))
