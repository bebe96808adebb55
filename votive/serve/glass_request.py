"""What a request asks for inside of the model: values to bring back, values to change, parts to leave out.

Runs when a request is read; everything is checked and measured here. Places are those of `votive.glass.sites`, such as
`layers.3.resid_post`; `*` stands for every layer.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ..core.similar import did_you_mean
from ..tensor import Tensor
from .body import Fields
from .errors import ApiError, wrong
from .glass_watch import Watch
from .keys import Permissions
from .served_model import ServedModel, Site

REDUCTIONS = ("none", "mean", "max", "norm")
KINDS = ("replace", "add", "scale", "zero")
_MOST = 256  # captures, and edits, after names with `*` have become those of all layers
_POSITIONS = 65536
_LISTED = 1 << 18  # numbers that are written out in JSON


@dataclass(frozen=True)
class Span:
    """Positions of a text: a part of it by name, or numbers; negative ones count from the end of the prompt.

    >>> from votive.serve.glass_request import Span
    >>> Span("generated").resolved(5), Span(numbers=(0, -1)).resolved(5)
    (range(5, 1073741824), (0, 4))
    """

    name: str = "all"
    numbers: tuple[int, ...] | None = None

    def resolved(self, prompt: int) -> Sequence[int]:
        """The positions for a prompt of so many tokens."""
        if self.numbers is not None:
            return tuple(sorted({p + prompt if p < 0 else p for p in self.numbers}))
        first, last = {"all": (0, 1 << 30), "prompt": (0, prompt), "generated": (prompt, 1 << 30)}[self.name]
        return range(first, last)


@dataclass(frozen=True)
class Capture:
    """A value to bring back."""

    site: Site
    span: Span
    reduce: str = "none"
    heads: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Edit:
    """A change of a value; `do` is one of `KINDS`, or "skip" for a whole layer."""

    site: Site
    do: str
    span: Span
    value: Tensor | float | None = None
    features: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None

    def key(self) -> bytes:
        """Equal for edits that do the same."""
        value = self.value.tolist() if isinstance(self.value, Tensor) else self.value
        said = (self.site.address, self.do, self.span.name, self.span.numbers, value, self.features, self.heads)
        return hashlib.blake2b(repr(said).encode(), digest_size=16).digest()


@dataclass(frozen=True)
class Glass:
    """All that a request asks for inside.

    >>> from votive.serve.glass_request import Glass
    >>> Glass().watch(3).first_needed is None
    True
    """

    captures: tuple[Capture, ...] = ()
    edits: tuple[Edit, ...] = ()
    base64: bool = False

    def watch(self, prompt: int) -> Watch:
        """What follows one text of the request, whose prompt has so many tokens."""
        return Watch(self, prompt)

    def results(self, watches: Sequence[Watch]) -> dict[str, Any]:
        """What goes back to the client, of the texts of the request in their order."""
        return {"choices": [{"index": i, **w.result()} for i, w in enumerate(watches)]}


def glass_of(
    fields: Fields, served: ServedModel, allowed: Permissions, prompts: Sequence[int], new: int, copies: int
) -> Glass:
    """The field `glass` of a request, whose prompts have so many tokens and texts get at most `new` more."""
    if not served.sites:
        raise wrong(f'the model "{served.name}" does not run through named places, which glass needs.', "glass")
    captures = [c for i, f in enumerate(_tables(fields, "captures")) for c in _captures(f, served, i)]
    edits = [e for i, f in enumerate(_tables(fields, "edits")) for e in _edits(f, served, i)]
    edits += [e for i, f in enumerate(_tables(fields, "steer")) for e in _steering(f, served, i)]
    edits += _skipped(fields, served)
    form = fields.one_of("format", ("json", "base64")) or "json"
    fields.end()
    for what, found in (("captures", captures), ("edits", edits)):
        if found and what not in allowed.glass:
            raise ApiError(403, f"this key allows no {what}.", kind="permission_error", param=f"glass.{what}")
        if len(found) > _MOST:
            raise wrong(f"glass.{what} are {len(found):,} of single layers, and at most {_MOST} are taken.", "glass")
    _check_reached([*(c.span for c in captures), *(e.span for e in edits)], prompts, new)
    numbers = sum(_numbers(c, prompt, new) for c in captures for prompt in prompts) * copies
    if numbers * 4 > allowed.capture_bytes:
        raise wrong(
            f"the captures may come to {numbers * 4:,} bytes, and this key allows {allowed.capture_bytes:,}; name "
            "fewer positions or layers, or give reduce.",
            "glass.captures",
        )
    if form == "json" and numbers > _LISTED:
        raise wrong(
            f"the captures may come to {numbers:,} numbers, and JSON lists at most {_LISTED:,}; give "
            '"format": "base64".',
            "glass.format",
        )
    return Glass(tuple(captures), tuple(edits), form == "base64")


def _tables(fields: Fields, name: str) -> list[Fields]:
    given = fields.listed(name, most=_MOST) or []
    if not all(isinstance(one, dict) for one in given):
        raise fields.wrong(name, "a list of objects")
    return [Fields(one, f"{fields.path(name)}[{i}]") for i, one in enumerate(given)]


def _captures(fields: Fields, served: ServedModel, index: int) -> list[Capture]:
    sites, span = _sites(fields, served), _span(fields)
    reduce, heads = fields.one_of("reduce", REDUCTIONS) or "none", _indices(fields, "heads")
    fields.end()
    for site in sites:
        _check_part(fields, "heads", heads, site.heads, site)
        if site.layout == "bhqk" and (not site.address.endswith(".attn.pattern") or reduce != "none"):
            raise fields.wrong("at", 'a place with features, or attn.pattern with "reduce": "none"')
    return [Capture(site, span, reduce, heads) for site in sites]


def _edits(fields: Fields, served: ServedModel, index: int) -> list[Edit]:
    sites, span = _sites(fields, served), _span(fields)
    do = fields.one_of("do", KINDS)
    if do is None:
        raise fields.wrong("do", f"one of {', '.join(KINDS)}")
    heads, features = _indices(fields, "heads"), _indices(fields, "features")
    given = fields.any("value")
    fields.end()
    if (given is None) != (do == "zero"):
        raise fields.wrong("value", "left out" if do == "zero" else "a number or a list of numbers")
    found = []
    for site in sites:
        _check_edited(fields, site)
        _check_part(fields, "heads", heads, site.heads, site)
        _check_part(fields, "features", features, site.features, site)
        value = _value(fields, "value", given, served, site.features if features is None else len(features))
        found.append(Edit(site, do, span, value, features, heads))
    return found


def _steering(fields: Fields, served: ServedModel, index: int) -> list[Edit]:
    sites, span = _sites(fields, served), _span(fields)
    given, scale = fields.listed("vector", most=_POSITIONS), fields.number("scale", low=-1e6, high=1e6)
    fields.end()
    found = []
    for site in sites:
        _check_edited(fields, site)
        scaled = [v * (1.0 if scale is None else scale) if _is_number(v) else v for v in given or []]
        found.append(Edit(site, "add", span, _value(fields, "vector", scaled, served, site.features)))
    return found


def _skipped(fields: Fields, served: ServedModel) -> list[Edit]:
    """Layers, or their attention or feed-forward net, as if they were not there."""
    places = {"": ("resid_post", "skip"), ".attn": ("attn_out", "zero"), ".mlp": ("mlp_out", "zero")}
    layers = sorted({a.split(".")[1] for a in served.sites if a.startswith("layers.")}, key=int)
    known = {f"layers.{n}{part}": (f"layers.{n}.{at}", do) for n in layers for part, (at, do) in places.items()}
    found = []
    for name in fields.listed("skip", most=_MOST) or []:
        if not isinstance(name, str) or known.get(name, ("", ""))[0] not in served.sites:
            raise fields.wrong("skip", "a list of names such as layers.3, layers.3.attn and layers.3.mlp")
        address, do = known[name]
        found.append(Edit(served.sites[address], do, Span()))
    return found


def _sites(fields: Fields, served: ServedModel) -> list[Site]:
    given = fields.text("at", longest=128)
    if not given:
        raise fields.wrong("at", "the name of a place, such as layers.0.resid_post")
    parts = given.split(".")
    found = [
        site
        for address, site in served.sites.items()
        if len(known := address.split(".")) == len(parts)
        and all(p == k or (p == "*" and k.isdigit()) for p, k in zip(parts, known, strict=True))
    ]
    if not found:
        hint = did_you_mean(given, list(served.sites))
        raise wrong(f"{fields.path('at')}: there is no place {given!r:.100}.{hint}", fields.path("at"), "no_match")
    return found


def _span(fields: Fields) -> Span:
    given = fields.any("positions")
    if given is None:
        return Span()
    if isinstance(given, str) and given in ("all", "prompt", "generated"):
        return Span(given)
    if isinstance(given, int) and not isinstance(given, bool):
        given = [given]
    whole = isinstance(given, list) and all(isinstance(p, int) and not isinstance(p, bool) for p in given)
    if not whole or not 0 < len(given) <= _POSITIONS:
        raise fields.wrong("positions", "all, prompt, generated, a number or a list of numbers")
    return Span("", tuple(given))


def _indices(fields: Fields, name: str) -> tuple[int, ...] | None:
    given = fields.listed(name, most=_POSITIONS)
    if given is None:
        return None
    if not given or not all(isinstance(i, int) and not isinstance(i, bool) for i in given):
        raise fields.wrong(name, "a list of numbers, at least one")
    if len(set(given)) < len(given):
        raise fields.wrong(name, "a list in which no number comes twice")
    return tuple(given)


def _check_part(fields: Fields, name: str, given: tuple[int, ...] | None, size: int, site: Site) -> None:
    if given is not None and not all(0 <= i < size for i in given):
        has = f"numbers from 0 to {size - 1}" if size else f"left out: {site.address} has none"
        raise fields.wrong(name, has)


def _check_edited(fields: Fields, site: Site) -> None:
    if site.layout == "bhqk":
        raise fields.wrong("at", "a place with features; attention is changed at attn.q, attn.k, attn.v or attn.z")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _value(fields: Fields, name: str, given: Any, served: ServedModel, size: int) -> Tensor | float | None:
    """A number, or a vector of as many as there are features."""
    if given is None:
        return None
    listed = given if isinstance(given, list) else [given]
    if not listed or not all(map(_is_number, listed)) or (isinstance(given, list) and len(listed) != size):
        raise fields.wrong(name, f"a list of {size} numbers" + ("" if name == "vector" else ", or a number"))
    largest = float(votive.finfo(served.model.dtype).max)
    if any(not math.isfinite(v) or abs(v) > largest for v in map(float, listed)):
        raise fields.wrong(name, f"made of numbers that {served.model.dtype} holds")
    if not isinstance(given, list):
        return float(given)
    return votive.tensor([float(v) for v in given], dtype=votive.float32, device=served.device)


def _check_reached(spans: Sequence[Span], prompts: Sequence[int], new: int) -> None:
    """Raise for positions that no text of the request can have: they would be silently without effect."""
    for span in spans:
        for prompt in prompts if span.numbers is not None else ():
            # The last token that is written is never read.
            bad = [p for p in span.resolved(prompt) if not 0 <= p < prompt + new - 1]
            if bad:
                raise wrong(
                    f"position {bad[0]} is never read: the prompt has {prompt} tokens, and at most {new} follow, of "
                    "which the last is only written.",
                    "glass",
                )


def _numbers(capture: Capture, prompt: int, new: int) -> int:
    """How many numbers a capture may bring back of one text."""
    last = prompt + new - 1
    positions = capture.span.resolved(prompt)
    count = sum(p < last for p in positions) if capture.span.numbers is not None else _length(positions, last)
    site = capture.site
    heads = (site.heads if capture.heads is None else len(capture.heads)) or 1
    if site.layout == "bhqk":
        return count * heads * last
    each = heads * (1 if capture.reduce == "norm" else site.features)
    return each if capture.reduce in ("mean", "max") else count * each


def _length(positions: Sequence[int], last: int) -> int:
    assert isinstance(positions, range), "a part of a text by name is a range"
    return max(min(positions.stop, last) - positions.start, 0)
