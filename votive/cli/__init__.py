"""The command line: `votive demo`, `votive explain OP`, `votive env`."""

from __future__ import annotations

import argparse
import sys

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="votive", description="A glass-box, PyTorch-style deep-learning framework."
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo", help="a short tour: train a small network, explain an operator"
    )
    demo.add_argument("--steps", type=int, default=400, help="training steps (default 400)")
    demo.add_argument("--seed", type=int, default=0, help="random seed (default 0)")
    explain = commands.add_parser("explain", help="show what an operator is and how it runs")
    explain.add_argument("op", help="an operator's name, such as gelu or nn.functional.softmax")
    commands.add_parser("env", help="show versions, devices and operators")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; errors become one line on stderr and exit code 1."""
    args = _parser().parse_args(argv)
    try:
        if args.command == "demo":
            from .demo import run

            run(args.steps, args.seed)
        elif args.command == "explain":
            from .. import explain

            explain(args.op)
        else:
            from .env import show

            show()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as e:
        if args.debug:
            raise
        message = e.args[0] if isinstance(e, KeyError) and e.args else e
        print(f"votive: {message}", file=sys.stderr)
        return 1
    return 0
