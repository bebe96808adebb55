"""`votive chat`: reads what a user says, shows what a model answers. Knows no model."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..core.similar import did_you_mean
from . import Commands, UsageError, command
from .conversation import Conversation
from .inputs import checked_text
from .model_options import add_model_options, load_model, one_model
from .sampling_options import add_sampling_options, settings
from .terminal import is_terminal, json_line, note, paint

_HELP = """\
/help               this page
/reset              forget all that was said
/undo               take back the last question and its answer
/retry              answer the last question again
/system [TEXT]      set, or without TEXT remove, the system message; starts anew
/set NAME=VALUE     change a setting, such as temperature=0.7; without a value: the model's own
/settings           show the settings
/history            show the conversation
/save FILE          write the conversation as JSON
/load FILE          read one
/quit               leave (also Ctrl-D)
End a line with \\ to go on in the next, or put several between lines of \"\"\".
Ctrl-C stops an answer; what has come so far is kept."""


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "chat",
        description="Talk with a model in its own chat format; a model without one continues what\n"
        "you write. Piped input gets one answer per line. /help lists the commands.",
        examples="  votive chat\n"
        "  votive chat model.gguf --system 'Answer in one sentence.'\n"
        "  echo 'What is the capital of France?' | votive chat --model model.gguf --greedy\n"
        "  votive chat --model folder --json < questions.txt\n"
        "  votive chat --url http://127.0.0.1:8000                 with a model that `votive serve` serves",
    )
    p.add_argument("place", metavar="MODEL", nargs="?", help="the same as --model MODEL")
    p.add_argument("--system", metavar="TEXT", help="the system message")
    p.add_argument("--load", metavar="FILE", help="continue a saved conversation")
    p.add_argument(
        "--template-var",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a variable of the chat template, such as enable_thinking=false",
    )
    p.add_argument("--url", metavar="URL", help="talk with a model of a server; MODEL then is its name there")
    p.add_argument("--api-key", metavar="KEY", help="a key of that server (VOTIVE_API_KEY)")
    add_model_options(p)
    add_sampling_options(p, max_new_tokens=512)
    p.add_argument("--stats", action="store_true", help="show tokens per second after each answer")
    p.add_argument("--json", action="store_true", help="write a JSON object for each answer")


def run(args: argparse.Namespace) -> int:
    """Read, answer, until there is nothing more to read."""
    variables = dict(_assigned(text, "--template-var") for text in args.template_var)
    options = settings(args)
    name = one_model(args.place, args.model)
    talk = _begun(args, name, options, variables)
    loaded = talk.loaded
    if args.load is not None:
        _load(talk, args.load)
    if not talk.templated:
        note(args, f"{loaded.name} has no chat template: it continues what you write.")
    interactive = is_terminal(sys.stdin)
    if interactive:
        size = f"at {args.url}" if args.url else f"{loaded.model.num_parameters():,} parameters"
        note(args, f"{loaded.name}, {size}. /help for help.")
        with contextlib.suppress(ImportError):  # not on every system
            import readline  # noqa: F401  # gives input() arrows and a history
    return Session(args, talk, interactive).run()


def _begun(args: argparse.Namespace, name: str | None, options: dict[str, Any], variables: Any) -> Conversation:
    """A conversation with a model here, or with one of a server."""
    if args.url is None:
        if args.api_key is not None:
            raise UsageError("--api-key goes with --url")
        return Conversation(load_model(args, name, auto=None), options, args.system, variables)
    for option in ("tokenizer", "dtype", "device", "threads"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} is the server's business; leave it out with --url")
    from ..serve.client import Client
    from .served_conversation import ServedConversation, served_model

    client = Client(args.url, api_key=args.api_key or os.environ.get("VOTIVE_API_KEY"))
    return ServedConversation.begin(client, served_model(client, name), options, args.system, variables)


class Session:
    """One run of the program: lines in, answers out."""

    def __init__(self, args: argparse.Namespace, talk: Conversation, interactive: bool) -> None:
        self.args, self.talk, self.interactive = args, talk, interactive
        self.failed = False

    def run(self) -> int:
        """Until the input ends or the user leaves."""
        while True:
            try:
                text = self.read()
            except KeyboardInterrupt:
                if not self.interactive:
                    raise
                print("\n(Ctrl-D or /quit to leave)", file=sys.stderr)
                continue
            if text is None or text.strip() in ("/quit", "/exit"):
                if text is None and self.interactive:
                    print()
                break
            if not text.strip():
                continue
            try:
                if text.startswith("/"):
                    self.obey(text)
                else:
                    checked_text(text, "what you wrote")
                    self.show(partial(self.talk.say, text))
            except (ValueError, OSError, KeyError, UsageError) as e:
                if self.args.debug:
                    raise
                from . import error_message

                print(f"votive: {error_message(e)}", file=sys.stderr)
                self.failed = True
        # Somebody at a terminal has seen what went wrong; a script sees the code.
        return 1 if self.failed and not self.interactive else 0

    # --- in -----------------------------------------------------------------------------------

    def read(self) -> str | None:
        """What the user says next: a line, or several that belong together; None at the end."""
        line = self.line("> ")
        if line is None:
            return None
        if line.strip() == '"""':
            lines: list[str] = []
            while (line := self.line(". ")) is not None and line.strip() != '"""':
                lines.append(line)
            return "\n".join(lines)
        lines = [line]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            more = self.line(". ")
            if more is None:
                break
            lines.append(more)
        return "\n".join(lines)

    def line(self, sign: str) -> str | None:
        """One line, without its end."""
        if self.interactive:
            try:
                return input(sign)
            except EOFError:
                return None
        line = sys.stdin.readline() if sys.stdin is not None else ""
        return line.rstrip("\n").rstrip("\r") if line else None

    # --- out ----------------------------------------------------------------------------------

    def show(self, ask: Callable[[], Any]) -> None:
        """Print an answer while it comes; Ctrl-C ends it, not the program."""
        parts = ask()
        try:
            for part in parts:
                if not self.args.json:
                    print(part, end="", flush=True)
        except KeyboardInterrupt:
            parts.close()
            if not self.interactive:
                raise
        answer = self.talk.answer
        if self.args.json:
            facts = {"role": "assistant", "content": answer.text, **vars(answer)}
            del facts["text"]
            print(json_line(facts), flush=True)
        else:
            print(flush=True)
        if self.args.stats and answer.seconds > 0:
            note(
                self.args,
                f"{answer.tokens} tokens, {answer.tokens / answer.seconds:.1f}/s, "
                f"{answer.reused_tokens} of {answer.prompt_tokens} prompt tokens reused, "
                f"seed {answer.seed}",
            )

    def tell(self, text: str) -> None:
        """Say something that is no answer."""
        print(paint(text, "dim", sys.stderr), file=sys.stderr)

    # --- commands -----------------------------------------------------------------------------

    def obey(self, text: str) -> None:
        """Run a command of the user's."""
        name, _, rest = text[1:].partition(" ")
        known = _COMMANDS.get(name)
        if known is None:
            hint = did_you_mean(name, _COMMANDS)
            raise ValueError(f"there is no command /{name}.{hint} /help lists all.")
        known(self, rest.strip())

    def help(self, _: str) -> None:
        self.tell(_HELP)

    def reset(self, _: str) -> None:
        self.talk.reset()
        self.tell("a new conversation")

    def undo(self, _: str) -> None:
        self.tell("taken back" if self.talk.undo() else "there is nothing to take back")

    def retry(self, _: str) -> None:
        if not self.talk.take_back_answer():
            raise ValueError("there is no question to answer again yet.")
        self.show(self.talk.reply)

    def system(self, rest: str) -> None:
        if rest and not self.talk.templated:
            raise ValueError("the model has no chat template, so no system message.")
        self.talk.system = rest or None
        self.talk.reset()
        self.tell("a new conversation" + (" with this system message" if rest else ""))

    def set(self, rest: str) -> None:
        if not rest:
            return self.settings("")
        for word in rest.split():
            name, value = _assigned(word, "/set")
            self.talk.change(name.replace("-", "_"), None if value == "" else value)
        return None

    def settings(self, _: str) -> None:
        self.tell("  ".join(f"{k}={v}" for k, v in sorted(self.talk.settings.items())))

    def history(self, _: str) -> None:
        for message in self.talk.all_messages():
            self.tell(f"{message['role']}: {message['content']}")

    def save(self, rest: str) -> None:
        if not rest:
            raise ValueError("/save needs the name of a file.")
        kept = json.dumps(self.talk.to_dict(), ensure_ascii=False, indent=2)
        Path(rest).expanduser().write_text(kept + "\n", encoding="utf-8")
        self.tell(f"saved {len(self.talk.messages)} messages in {rest}")

    def load(self, rest: str) -> None:
        if not rest:
            raise ValueError("/load needs the name of a file.")
        _load(self.talk, rest)
        self.tell(f"{len(self.talk.messages)} messages")


_COMMANDS: dict[str, Callable[[Session, str], Any]] = {
    "help": Session.help,
    "reset": Session.reset,
    "undo": Session.undo,
    "retry": Session.retry,
    "system": Session.system,
    "set": Session.set,
    "settings": Session.settings,
    "history": Session.history,
    "save": Session.save,
    "load": Session.load,
}


def _load(talk: Conversation, name: str) -> None:
    path = Path(name).expanduser()
    try:
        kept = json.loads(path.read_bytes())
    except ValueError as e:
        raise ValueError(f"{path} is not JSON: {e}") from None
    talk.restore(kept)


def _assigned(text: str, where: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"{where} takes NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
