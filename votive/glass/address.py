"""Addresses of calls, and patterns that match them. Pure text; knows no modules and no tensors.

`layers.3.self_attn` is a module's call, `layers.3.self_attn#1` its second call in the same run,
`layers.3.self_attn/softmax#0` the first softmax inside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from .site_names import means_site, translated


class Address(NamedTuple):
    """Where a call happened: module path, which call of it, operator and which call of that.

    >>> str(votive.glass.Address("layers.3", 1, "softmax", 0))
    'layers.3#1/softmax#0'
    """

    module: str
    call: int = 0
    op: str | None = None
    index: int = 0  # type: ignore[assignment]  # hides the method of tuples, which an address has no use for

    def __str__(self) -> str:
        text = f"{self.module}#{self.call}" if self.call else self.module
        return text if self.op is None else f"{text}/{self.op}#{self.index}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address back.

        >>> votive.glass.Address.parse("layers.3/softmax#1")
        Address(module='layers.3', call=0, op='softmax', index=1)
        """
        found = re.fullmatch(r"([^/#]*)(?:#(\d+))?(?:/([^/#]+)(?:#(\d+))?)?", text)
        if found is None:
            raise ValueError(f"{text!r} is not an address such as 'layers.3.mlp' or 'layers.3/add#0'.")
        module, call, op, index = found.groups()
        return cls(module, int(call or 0), op, int(index or 0))


Predicate = Callable[[Any], object]
_REMEMBERED = 4096
# The number of a call in a glob, which may have braces and classes.
_NUMBERED = re.compile(r"#(?:\{[^{}]*\}|\[[^\]]*\]|[^{}\[\],/])*")
_SELECTOR = re.compile(r":(in|out)((?:\.[A-Za-z_0-9]+)*)$")


class Pattern:
    """Which calls are meant, and which of their values.

    A text is a glob: `*` is anything within one name, `**` anything, `{a,b}` either, `[0-9]` a
    class. It may leave out the beginning of a path: `layers.*.mlp` matches `model.layers.0.mlp`;
    `^` at the front forbids that. Without `#` all calls are meant, with `/` operators: `/softmax`
    is each softmax. `:in` or `:out` at the end choose inputs or the result (the default), and
    `:in.1`, `:in.mask`, `:out.0` one of several. A compiled regular expression must match the
    whole address, and a function is asked about each call. A text that ends in the name of a place,
    as `layers.*.attn.pattern` or `blocks.*.attn.hook_pattern`, means that place: `votive.glass.sites`.

    >>> pattern = votive.glass.Pattern("layers.*.mlp")
    >>> pattern.matches(votive.glass.Address("model.layers.0.mlp"))
    True
    >>> pattern.matches(votive.glass.Address("model.layers.0.mlp", op="add"))
    False
    """

    def __init__(self, given: PatternLike) -> None:
        if isinstance(given, Pattern):
            self.__dict__.update(given.__dict__)
            return
        self.side = "out"
        self.path: tuple[str, ...] = ()
        self.compiled = isinstance(given, re.Pattern)
        self.wants_sites = False
        self._known: dict[Address, bool] = {}
        self.predicate: Predicate | None = None
        self.regex: re.Pattern[str] | None = None
        self.text = str(given)
        if isinstance(given, re.Pattern):
            self.regex, self.text = given, given.pattern
            # Whether operators are meant cannot be seen; both are asked.
            self.wants_ops = self.wants_modules = True
        elif callable(given) and not isinstance(given, (str, Address)):
            self.predicate, self.text = given, getattr(given, "__name__", repr(given))
            self.wants_ops = self.wants_modules = True
        else:
            self.text = translated(str(given))
            text, chosen = _split_selector(self.text)
            if chosen is not None:
                self.side, self.path = chosen
            self.regex = _compile(text)
            self.wants_ops = "/" in text
            self.wants_sites = means_site(text)
            self.wants_modules = not self.wants_ops

    def matches(self, address: Address, event: object = None) -> bool:
        """Whether a call at this address is meant; functions are given `event`."""
        if address.op is None and not self.wants_modules:
            return False
        if address.op is not None and not self.wants_ops:
            return False
        if self.predicate is not None:
            return event is not None and bool(self.predicate(event))
        found = self._known.get(address)
        if found is None:
            assert self.regex is not None
            found = self.regex.fullmatch(_full(address)) is not None or (self.regex.fullmatch(str(address)) is not None)
            # A run has few addresses, and they come again in the next.
            if len(self._known) < _REMEMBERED:
                self._known[address] = found
        return found

    def may_mean(self, site: str) -> bool:
        """Whether some call of the place at this address is meant.

        >>> votive.glass.Pattern("layers.*.attn.z").may_mean("layers.3.attn.z")
        True
        """
        if not self.wants_sites:
            return False
        found = any_call(self)
        return found is not None and found.fullmatch(f"{site}#0") is not None

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


PatternLike: TypeAlias = str | re.Pattern[str] | Predicate | Address | Pattern
Patterns: TypeAlias = PatternLike | Collection[PatternLike]


def _full(address: Address) -> str:
    """An address with every number spelled out, which is what globs are made for."""
    text = f"{address.module}#{address.call}"
    return text if address.op is None else f"{text}/{address.op}#{address.index}"


def any_call(pattern: Pattern) -> re.Pattern[str] | None:
    """What a text means whichever calls it numbers; None for what is no text.

    >>> from votive.glass.address import Pattern, any_call
    >>> bool(any_call(Pattern("layers.*#65")).fullmatch("layers.3#0"))
    True
    """
    if pattern.compiled or pattern.predicate is not None:
        return None
    return _compile(_NUMBERED.sub("#*", _split_selector(pattern.text)[0]))


def _split_selector(text: str) -> tuple[str, tuple[str, tuple[str, ...]] | None]:
    found = _SELECTOR.search(text)
    if found is None:
        if ":" in text:
            raise ValueError(
                f"pattern {text!r}: what follows ':' must be in or out, and then names or numbers, "
                "such as 'layers.3:in.1'."
            )
        return text, None
    path = tuple(part for part in found[2].split(".") if part)
    return text[: found.start()], (found[1], path)


@lru_cache(maxsize=512)
def _compile(text: str) -> re.Pattern[str]:
    module, slash, op = text.partition("/")
    anchored = module.startswith("^")
    module = module.removeprefix("^")
    out = "" if anchored else r"(?:.*\.)?"
    if slash and module == "":
        out = ".*" if not anchored else ""
    out += _glob(module) + ("" if "#" in module else r"#\d+")
    if slash:
        out += "/" + _glob(op) + ("" if "#" in op else r"#\d+")
    try:
        return re.compile(out)
    except re.error as e:
        raise ValueError(f"pattern {text!r} cannot be read: {e}.") from None


def _glob(text: str) -> str:
    out, i, open_braces = "", 0, 0
    while i < len(text):
        c = text[i]
        if text.startswith("**", i):
            out, i = out + ".*", i + 2
            continue
        if c == "*":
            # A name that is only a star must be there: `*` is no way to say the model itself.
            alone = (i == 0 or text[i - 1] in "./") and (i + 1 == len(text) or text[i + 1] in "./#")
            out += r"[^./#]+" if alone else r"[^./#]*"
        elif c == "?":
            out += r"[^./#]"
        elif c == "[" and "]" in text[i:]:
            end = text.index("]", i)
            body = text[i + 1 : end]
            out += "[" + ("^" + body[1:] if body.startswith("!") else body) + "]"
            i = end
        elif c == "{":
            out, open_braces = out + "(?:", open_braces + 1
        elif c == "}" and open_braces:
            out, open_braces = out + ")", open_braces - 1
        elif c == "," and open_braces:
            out += "|"
        else:
            out += re.escape(c)
        i += 1
    return out
