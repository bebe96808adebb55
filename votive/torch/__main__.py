"""`python -m votive.torch script.py arguments…` and `-m module arguments…`: run a PyTorch program on votive."""

from __future__ import annotations

import os
import runpy
import sys

from .finder import install

USAGE = """usage: python -m votive.torch script.py [arguments...]
       python -m votive.torch -m module [arguments...]
       python -m votive.torch -c code [arguments...]

Run a PyTorch program as it is: inside it `import torch`, `torchvision` and `torchaudio` lead to votive."""


def main(arguments: list[str]) -> int | None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    first, *rest = arguments
    if first in ("-m", "-c") and not rest:
        print(f"{first} needs what to run.\n{USAGE}", file=sys.stderr)
        return 2
    install()
    if first == "-m":
        sys.argv = rest
        sys.path[0] = os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    else:
        if not os.path.exists(first):
            print(f"There is no file {first!r} to run.", file=sys.stderr)
            return 2
        sys.argv = arguments
        # A program finds the files beside it, as it does without the alias.
        sys.path[0] = first if os.path.isdir(first) else os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
