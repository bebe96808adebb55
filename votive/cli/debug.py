"""`votive debug`: step through a model in the terminal. The glass engine stops; this reads keys."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from . import Commands, UsageError, command
from .inputs import check_files, checked_text
from .model_options import add_model_options, load_model
from .terminal import is_terminal


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "debug",
        description="Run a model and stop inside it: step into, over and out of calls, look at\n"
        "values, change them, go back. Without --model the bundled story-teller; with\n"
        "--script a Python file of yours that has a function `debug_case()` which returns\n"
        "a model and its inputs.",
        examples='  votive debug "Once upon a time"\n'
        "  votive debug --script net.py            net.py defines debug_case()\n"
        '  votive debug "Hello" --until layers.3.mlp --commands "p value.mean(); q"',
    )
    p.add_argument("prompt", metavar="PROMPT", nargs="?", help="the text that the model reads")
    p.add_argument("--script", metavar="FILE", help="a Python file with debug_case()")
    p.add_argument("--until", metavar="PATTERN", help="start at the first call that matches")
    p.add_argument("--commands", metavar="TEXT", help="run these commands, separated by ;, and quit")
    p.add_argument("--no-ops", action="store_true", help="stop at modules only")
    add_model_options(p)


def run(args: argparse.Namespace) -> int:
    """Load, open the debugger, read commands."""
    import votive
    from votive import glass
    from votive.glass.console import KEYS, until

    from .keys import lines

    model, inputs, kwargs = _case(args)
    given = iter([args.commands]) if args.commands else lines("(glass) ", KEYS)
    terminal = args.commands is None and is_terminal(sys.stdin)
    with votive.no_grad(), votive.debug(model, *inputs, ops=not args.no_ops, **kwargs) as d:
        if args.until:
            until(d, args.until)
        if terminal:
            print("h shows the commands; F11 steps in, F10 over, Shift-F11 out, F5 runs.")
        glass.interact(d, given, interruptible=terminal)
    return 0


def _case(args: argparse.Namespace) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The model and what it is called with."""
    import votive

    if args.script is not None:
        if args.prompt is not None:
            raise UsageError("--script brings its own inputs; leave out PROMPT")
        return _scripted(Path(args.script))
    if args.prompt is None:
        raise UsageError("give a PROMPT, or --script FILE")
    loaded = load_model(args, args.model, auto=None)
    ids = loaded.tokenizer.encode(checked_text(args.prompt, "the prompt"))
    if not ids:
        raise UsageError("the prompt is empty; give a text, such as 'Once upon a time'")
    return loaded.model, (votive.tensor([ids], device=loaded.model.device),), {}


def _scripted(path: Path) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    check_files([str(path)])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--script takes a Python file, whose name ends in .py; got {path}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    spec.loader.exec_module(module)
    case = getattr(module, "debug_case", None)
    if case is None:
        raise UsageError(f"{path} defines no debug_case() that returns a model and its inputs")
    model, *inputs = case()
    if len(inputs) == 1 and isinstance(inputs[0], tuple):
        inputs = list(inputs[0])
    kwargs = inputs.pop() if inputs and isinstance(inputs[-1], dict) else {}
    return model, tuple(inputs), kwargs
