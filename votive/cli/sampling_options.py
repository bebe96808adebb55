"""Options that say how a text is continued, and the settings of generation they make.

Knows names and numbers; the rules are those of `votive.generation`.
"""

from __future__ import annotations

import argparse
from typing import Any

from . import UsageError
from .numbers import number, whole

# Option, metavar, type, help. The setting bears the option's name; the bounds are generation's.
_NUMBERS: list[tuple[str, str, Any, str]] = [
    ("--max-new-tokens", "N", whole(1, 1_000_000), "maximum number of new tokens ({})"),
    ("--min-new-tokens", "N", whole(0), "minimum number of new tokens"),
    ("--max-time", "X", number(above=0), "stop after so many seconds"),
    ("--temperature", "X", number(0), "above 1 for more variety, below 1 for less; 0 is greedy"),
    ("--top-k", "N", whole(0), "sample among the N most likely tokens; 0 for all"),
    ("--top-p", "X", number(above=0, high=1), "sample among the most likely tokens with a total probability of X"),
    ("--min-p", "X", number(0, 1), "sample among tokens at least X times as likely as the most likely"),
    ("--typical-p", "X", number(above=0, high=1), "sample among the most typical tokens with a total probability of X"),
    ("--repetition-penalty", "X", number(above=0), "above 1 makes tokens that are in the text less likely"),
    ("--presence-penalty", "X", number(), "subtracted from the score of tokens already written"),
    ("--frequency-penalty", "X", number(), "subtracted once for each time a token was written"),
    ("--no-repeat-ngram-size", "N", whole(0), "never write the same N tokens twice"),
    ("--seed", "N", whole(), "random seed; the same seed gives the same text"),
]
# llama.cpp's, and two with a scale in single precision.
CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "int8", "fp8")
_DRAWS = ("temperature", "top_k", "top_p", "min_p", "typical_p")


def add_sampling_options(p: argparse.ArgumentParser, *, max_new_tokens: int) -> None:
    """Declare how tokens are chosen and when to stop."""
    group = p.add_argument_group("generation (defaults are the model's own)")
    for option, meta, kind, text in _NUMBERS:
        group.add_argument(option, metavar=meta, type=kind, help=text.format(max_new_tokens))
    group.add_argument("--sample", action=argparse.BooleanOptionalAction, help="sample tokens, or take the most likely")
    group.add_argument("--greedy", action="store_true", help="the same as --no-sample")
    for part, what in (("k", "keys"), ("v", "values")):
        help = f"store {what} in the cache as {', '.join(CACHE_TYPES)} (the model's own numbers)"
        group.add_argument(f"--cache-type-{part}", choices=CACHE_TYPES, metavar="TYPE", help=help)
    group.add_argument("--stop", metavar="TEXT", action="append", help="stop before TEXT; may be repeated")
    p.set_defaults(_max_new_tokens=max_new_tokens)


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings that the options ask for."""
    out: dict[str, Any] = {}
    for option, *_ in _NUMBERS:
        name = option[2:].replace("-", "_")
        value = getattr(args, name)
        if value is not None:
            out[name] = value
    out.setdefault("max_new_tokens", args._max_new_tokens)
    if args.greedy and args.sample:
        raise UsageError("--greedy and --sample exclude each other")
    if args.stop:
        if "" in args.stop:
            raise UsageError("--stop needs a text to end before; it got an empty one")
        # Shells pass what is typed: \n is a line break here.
        out["stop_strings"] = [unescaped(s) for s in args.stop]
    sample = False if args.greedy else args.sample
    if out.get("temperature") == 0:
        if sample:
            raise UsageError("--temperature 0 is greedy; it does not go with --sample")
        del out["temperature"]
        sample = False
    if args.cache_type_k is not None or args.cache_type_v is not None:
        out["cache_dtype"] = args.cache_type_k, args.cache_type_v
    drawn = [n for n in _DRAWS if n in out]
    if sample is False and drawn:
        option = "--" + drawn[0].replace("_", "-")
        raise UsageError(f"{option} has no effect without drawing; leave out --greedy")
    if sample is None and drawn:
        sample = True
    if sample is not None:
        out["do_sample"] = sample
    return out


def unescaped(text: str) -> str:
    r"""A text in which \n, \t and \\ are written as in Python.

    >>> from votive.cli.sampling_options import unescaped
    >>> unescaped("a\\n"), unescaped("é")
    ('a\n', 'é')
    """
    for written, meant in (("\\\\", "\0"), ("\\n", "\n"), ("\\t", "\t"), ("\0", "\\")):
        text = text.replace(written, meant)
    return text


def seeded(given: dict[str, Any]) -> dict[str, Any]:
    """A copy of the settings with a seed, drawn if there is none, so that it can be told."""
    import secrets

    return {"seed": secrets.randbits(32), **given}
