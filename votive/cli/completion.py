"""`votive completion`: scripts for bash, zsh and fish, made from the parser itself.

Knows parsers by what argparse keeps of them; knows no command.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from . import COMMANDS, Commands, command

# Arguments that are called so are completed with the names of files.
_PATHS = {"FILE", "FOLDER", "PATH", "MODEL", "IN", "OUT", "A", "B"}


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "completion",
        description="Print a script that lets your shell complete commands, options and files.",
        examples='  bash:  eval "$(votive completion bash)"      in ~/.bashrc\n'
        '  zsh:   eval "$(votive completion zsh)"       in ~/.zshrc, after compinit\n'
        "  fish:  votive completion fish > ~/.config/fish/completions/votive.fish",
    )
    p.add_argument("shell", choices=sorted(_SHELLS), help="the shell you use")


def run(args: argparse.Namespace) -> int:
    """Print the script of a shell."""
    from . import parser

    print(_SHELLS[args.shell](list(commands_of(parser()))), end="")
    return 0


@dataclass(frozen=True)
class Argument:
    """One argument of a command: its flags (none if positional) and what its value may be."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...] = ()
    is_path: bool = False
    many: bool = False
    name: str = ""


@dataclass(frozen=True)
class Command:
    """A command's name ("" for the program itself), its help and its arguments."""

    name: str
    help: str
    arguments: tuple[Argument, ...]

    def flags(self) -> list[str]:
        return [f for a in self.arguments for f in a.flags]

    def positionals(self) -> list[Argument]:
        return [a for a in self.arguments if not a.flags]


def commands_of(top: argparse.ArgumentParser) -> Iterator[Command]:
    """The program and its commands."""
    subs = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    own = tuple(_argument(a) for a in top._actions if a is not subs)
    yield Command("", "", own)
    for name, p in subs.choices.items():
        yield Command(name, COMMANDS[name], tuple(_argument(a) for a in p._actions))


def _argument(action: argparse.Action) -> Argument:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return Argument(
        tuple(action.option_strings),
        (action.help or "").replace("%%", "%").split(" (default")[0],
        action.nargs != 0,
        tuple(map(str, action.choices or ())),
        metavar in _PATHS,
        action.nargs in ("*", "+"),
        metavar.lower(),
    )


# --- bash -------------------------------------------------------------------------------------

_BASH = """\
# Completion of votive for bash: eval "$(votive completion bash)"
_votive() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" command="" word
    # bash takes --option=value apart.
    if [[ "$cur" == "=" ]]; then cur=""; elif [[ "$prev" == "=" ]]; then
        prev="${{COMP_WORDS[COMP_CWORD-2]}}"; fi
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in {names}) command="$word"; break ;; esac
    done
    COMPREPLY=()
    case "$command:$prev" in
{values}
    esac
    if [[ "$cur" == -* ]]; then
        case "$command" in
{options}
        esac
        return
    fi
    case "$command" in
{positionals}
    esac
}}
complete -o filenames -F _votive votive
"""


def _bash_words(words: Iterable[str]) -> str:
    return f"COMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$cur\"))"


# Names of files may hold spaces: only line ends divide them.
_BASH_FILES = "local IFS=$'\\n'; COMPREPLY=($(compgen -f -- \"$cur\"))"


def bash(commands: list[Command]) -> str:
    """A completion function of bash."""
    values, options, positionals = [], [], []
    for c in commands:
        for a in c.arguments:
            if a.flags and a.takes_value:
                pattern = "|".join(f"{c.name}:{f}" for f in a.flags)
                reply = _bash_words(a.choices) + "; " if a.choices else ""
                reply = _BASH_FILES + "; " if a.is_path else reply
                values.append(f"        {pattern}) {reply}return ;;")
        options.append(f'            "{c.name}") {_bash_words(c.flags())} ;;')
        positionals.append(f'        "{c.name}") {_bash_positional(c)} ;;')
    names = "|".join(c.name for c in commands if c.name)
    return _BASH.format(
        names=names, values="\n".join(values), options="\n".join(options), positionals="\n".join(positionals)
    )


def _bash_positional(c: Command) -> str:
    if not c.name:
        return _bash_words(COMMANDS)
    if c.name == "explain":
        return 'COMPREPLY=($(compgen -W "$(votive explain --list 2>/dev/null)" -- "$cur"))'
    for a in c.positionals():
        if a.choices:
            return _bash_words(a.choices)
        if a.is_path:
            return _BASH_FILES
    return ":"


# --- zsh --------------------------------------------------------------------------------------

_ZSH = """\
#compdef votive
# Completion of votive for zsh: eval "$(votive completion zsh)"
_votive() {{
    local curcontext="$curcontext" state line
    local -a commands
    commands=(
{names}
    )
    _arguments -C {top} '1: :->command' '*:: :->arguments'
    case $state in
        command) _describe -t commands 'votive command' commands ;;
        arguments)
            case $words[1] in
{cases}
            esac ;;
    esac
}}
if [ "$funcstack[1]" = "_votive" ]; then _votive "$@"; else compdef _votive votive; fi
"""


def _zsh_text(text: str) -> str:
    for sign in "\\[]:":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("'", "'\\''")


def _zsh_value(a: Argument) -> str:
    if a.choices:
        return f"({' '.join(a.choices)})"
    return "_files" if a.is_path else " "


def _zsh_specs(c: Command) -> Iterator[str]:
    for a in c.arguments:
        value = f":{_zsh_text(a.name)}:{_zsh_value(a)}" if a.takes_value else ""
        for flag in a.flags:
            yield f"'{'*' if a.many else ''}{flag}[{_zsh_text(a.help)}]{value}'"
        if not a.flags:
            operators = "{compadd -- $(votive explain --list)}"
            action = operators if c.name == "explain" else _zsh_value(a)
            yield f"'{'*' if a.many else ''}:{_zsh_text(a.name)}:{action}'"


def zsh(commands: list[Command]) -> str:
    """A completion function of zsh."""
    top, *rest = commands
    cases = [f"                {c.name}) _arguments {' '.join(_zsh_specs(c))} ;;" for c in rest]
    names = [f"        '{c.name}:{_zsh_text(c.help)}'" for c in rest]
    return _ZSH.format(names="\n".join(names), top=" ".join(_zsh_specs(top)), cases="\n".join(cases))


# --- fish -------------------------------------------------------------------------------------


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(commands: list[Command]) -> str:
    """The `complete` commands of fish."""
    lines = ["# Completion of votive for fish", "complete -c votive -f"]
    for c in commands:
        when = f"__fish_seen_subcommand_from {c.name}" if c.name else "__fish_use_subcommand"
        if c.name:
            lines.append(f"complete -c votive -n __fish_use_subcommand -a {c.name} -d {_fish_text(c.help)}")
        for a in c.arguments:
            parts = [f"complete -c votive -n {_fish_text(when)}"]
            for flag in a.flags:
                parts.append(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}")
            if a.flags and a.takes_value:
                parts.append("-r")
            if a.choices:
                parts.append(f"-a {_fish_text(' '.join(a.choices))}")
            elif not a.flags and c.name == "explain":
                parts.append("-a '(votive explain --list)'")
            if a.is_path:
                parts.append("-F")
            if a.flags:
                parts.append(f"-d {_fish_text(a.help)}")
            if len(parts) > 1:
                lines.append(" ".join(parts))
    return "\n".join(lines) + "\n"


_SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
