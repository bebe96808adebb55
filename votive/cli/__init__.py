"""The command line: finds the command, reads its arguments, turns errors into one line.

Each command is a file here with `add(commands)`, which declares its arguments, and `run(args)`,
which returns the exit code. Only the one that is called is imported. Knows no command's content.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import re
import sys
import warnings
from importlib import import_module
from typing import Any, NoReturn, TypeAlias

from ..core.similar import did_you_mean, similar

__all__ = ["Commands", "main"]

# Every command and what `votive --help` says of it; the file of a command bears its name.
COMMANDS = {
    "generate": "continue a text with a language model",
    "chat": "talk with a language model",
    "embed": "turn sentences into vectors and compare them",
    "classify": "say what a picture shows",
    "ocr": "read the text in a picture of a line",
    "transcribe": "turn speech into text or subtitles",
    "studio": "watch and change a language model in the browser",
    "serve": "answer requests for language models over HTTP",
    "device": "let programs elsewhere use this machine as a device",
    "train": "train a language model on a text file",
    "launch": "run a script on several processes",
    "plan": "forecast memory, messages and time of a training on many GPUs",
    "debug": "step through a model, look at values and change them",
    "inspect": "list tensors, shapes, statistics and metadata of a file or folder",
    "diff": "compare the weights of two files or folders",
    "convert": "write weights in another format, dtype or quantization",
    "quantize": "put a model's weights in blocks of few bits",
    "explain": "show what an operator is and how it runs",
    "bench": "measure how fast votive computes on this machine",
    "env": "show versions, devices and operators",
    "demo": "a short tour: train a small network, explain an operator",
    "completion": "print a script that completes commands in your shell",
}

OK, ERROR, USAGE, INTERRUPTED = 0, 1, 2, 130
# What a shell reports of a program that was ended by writing to a closed pipe.
BROKEN_PIPE = 141

_EXAMPLES = """\
examples:
  votive generate "Once upon a time"        continue a text with the bundled model
  votive inspect model.safetensors          what is in a file
  votive convert folder model.gguf --quantize q8_0
  votive COMMAND --help                     arguments and examples of a command

exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted.
"""


# What the `add` of a command is given: where its parser goes.
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


class UsageError(Exception):
    """Arguments that do not go together; ends like a wrong option, with exit code 2."""


# How argparse says it, and how a person would.
_PLAIN = (
    (r"^argument (\S+): expected one argument", r"\1 needs a value after it."),
    (r"^argument (\S+): expected at least one argument", r"\1 needs at least one value."),
    (r"^argument (\S+): ignored explicit argument (.*)", r"\1 takes no value, but got \2."),
    (r"^argument (\S+): ", r"\1 "),
    (r"^the following arguments are required: ([^,]*)$", r"\1 is missing."),
    (r"^the following arguments are required: (.*)", r"\1 are missing."),
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors begin like all others of the program, in plain words."""

    def error(self, message: str) -> NoReturn:
        for argparse_text, plain in _PLAIN:
            message = re.sub(argparse_text, plain, message)
        self.exit(USAGE, f"votive: {message}\nTry '{self.prog} --help'.\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """What argparse calls to see that a value is one of an argument's choices."""
        if action.choices is not None and value not in action.choices:
            known = [str(c) for c in action.choices]
            listed = f"takes {', '.join(known)}; not {str(value)!r}."
            raise argparse.ArgumentError(action, listed + did_you_mean(str(value), known))

    def unknown(self, words: list[str]) -> NoReturn:
        """End because of words that no argument takes; says what may have been meant."""
        options = [w.split("=")[0] for w in words if w.startswith("-") and len(w) > 1]
        name = self.prog.removeprefix("votive").strip() or "votive"
        if options:
            # Without their dashes, which all have in common.
            known = {o.lstrip("-"): o for a in self._actions for o in a.option_strings}
            if options[0] in known.values():
                self.error(f"put {options[0]} after the command: {self.prog} … {options[0]} …")
            near = [known[n] for n in similar(options[0].lstrip("-"), known, 3)]
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            self.error(f"{name} has no option {options[0]}.{hint}")
        # Only one text is taken: more words mostly are a text without quotes.
        many = " ".join(words)
        hint = " Put a text in quotes." if self._get_positional_actions() else ""
        self.error(f"{name} takes no more arguments, but got: {many}.{hint}")


class Help(argparse.RawDescriptionHelpFormatter):
    """Help with examples as they are written, and room for the names of options."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{**options, "max_help_position": 28})


def common() -> Parser:
    """Options that every command takes, before or after its name."""
    shared = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = shared.add_argument_group("general options")
    group.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    group.add_argument("-q", "--quiet", action="store_true", help="no progress, no notes")
    return shared


def command(commands: Commands, name: str, *, description: str, examples: str = "") -> argparse.ArgumentParser:
    """The parser of one command, for its `add`."""
    return commands.add_parser(
        name,
        help=COMMANDS[name],
        description=description,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=Help,
        parents=[common()],
        # A shortened option would come to mean another one when that is added.
        allow_abbrev=False,
    )


def parser(only: str | None = None) -> Parser:
    """The whole parser, or one that knows the arguments of a single command."""
    from .._version import __version__

    top = Parser(
        prog="votive",
        description="A glass-box, PyTorch-style deep-learning framework.",
        epilog=_EXAMPLES,
        formatter_class=Help,
        parents=[common()],
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"votive {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name, summary in COMMANDS.items():
        if only is None or name == only:
            import_module(f".{name}", __package__).add(commands)
        else:
            commands.add_parser(name, help=summary)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code; errors become one line on stderr.

    >>> from votive.cli import main
    >>> main(["explain", "no_such_operator"])
    1
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    name = next((a for a in argv if not a.startswith("-")), "")
    _let_anything_be_printed()
    if not argv:
        parser("").print_help(sys.stderr)
        return USAGE
    if name and name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS)
        print(f"votive: there is no command {name!r}.{hint}", file=sys.stderr)
        print("Try 'votive --help'.", file=sys.stderr)
        return USAGE
    try:
        args = parsed(name, argv)
    except SystemExit as e:  # --help and wrong usage: what is to say has been said
        return e.code if isinstance(e.code, int) else USAGE
    except KeyboardInterrupt:
        return _stopped()
    module = import_module(f".{args.command}", __package__)
    # As for `diff` and `cmp`: where 1 is an answer, trouble is 2.
    trouble = getattr(module, "TROUBLE", ERROR)
    shown = warnings.showwarning
    warnings.showwarning = _warn
    try:
        code = module.run(args)
        if sys.stdout is not None:  # None where it was closed before the program began
            sys.stdout.flush()
        return int(code or OK)
    except KeyboardInterrupt:
        return _stopped()
    except BrokenPipeError:
        _write_no_more()
        return BROKEN_PIPE
    except UsageError as e:
        print(f"votive: {e}\nTry 'votive {args.command} --help'.", file=sys.stderr)
        return USAGE
    except Exception as e:
        if args.debug:
            raise
        print(f"votive: {error_message(e)}", file=sys.stderr)
        if isinstance(e, OSError) and e.filename is None:
            _write_no_more()  # it may have been stdout that failed
        return trouble
    finally:
        warnings.showwarning = shown


def parsed(name: str, argv: list[str]) -> argparse.Namespace:
    """The arguments of a command."""
    top = parser(name)
    args, left = top.parse_known_args(argv)
    if left:
        subs = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction))
        subs.choices.get(args.command, top).unknown(left)
    if args.command is None:
        top.error("name a command, such as: votive generate 'Once upon a time'")
    for option in ("debug", "quiet"):
        setattr(args, option, getattr(args, option, False))
    return args


def _stopped() -> int:
    # A line that was begun stays as it is.
    print("\nStopped by Ctrl-C.", file=sys.stderr)
    return INTERRUPTED


def _write_no_more() -> None:
    """What is left for stdout is dropped, or the interpreter would fail to flush it at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _let_anything_be_printed() -> None:
    """Where the terminal lacks a character, another stands for it instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        if (getattr(stream, "encoding", None) or "utf-8").lower() not in ("utf-8", "utf8"):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


# Errors of the library begin with the class or function that raises them: a programmer's word.
_NAMED = re.compile(r"([A-Z][a-z]+\w*(?:\.\w+)?|[a-z]+(?:_[a-z0-9]+)+): (?=.)")
# What to do about some errors of the system.
_NEXT = {
    errno.ENOSPC: "; free some space, or write elsewhere",
    errno.EACCES: "; see who may read and write it, or choose another place",
    errno.EROFS: "; choose another place to write to",
}


def error_message(error: BaseException) -> str:
    """An error as a user reads it.

    >>> from votive.cli import error_message
    >>> error_message(KeyError("no tensor 'w'")), error_message(FileNotFoundError(2, "No such file", "x.txt"))
    ("no tensor 'w'", 'x.txt: No such file')
    >>> error_message(ValueError("SentenceEncoder: unknown similarity 'near'."))
    "unknown similarity 'near'."
    """
    if isinstance(error, OSError) and error.strerror:
        # A file that is being written has another name until it is whole.
        name = re.sub(r"(^|/)\.([^/]+)\.[0-9a-f]{12}\.tmp$", r"\1\2", str(error.filename))
        where = "" if error.filename is None else f"{name}: "
        return f"{where}{error.strerror}{_NEXT.get(error.errno or 0, '')}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory{f' ({error})' if str(error) else ''}."
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if not text.strip():
        return f"{type(error).__name__} (--debug shows where)"
    first, *more = text.strip().splitlines()
    named = _NAMED.match(first)
    if named is not None and not os.path.exists(named.group(1)):
        first = first[named.end() :]
    return "\n".join([first, *(f"  {line}" for line in more)])


def _warn(message: object, category: object, *_: object, **__: object) -> None:
    print(f"votive: warning: {message}", file=sys.stderr)
