"""Names that are near one which is not known. Pure functions on text."""

from __future__ import annotations

from collections.abc import Iterable


def similar(name: str, known: Iterable[str], most: int = 4) -> list[str]:
    """The known names that may have been meant, the likeliest first.

    The beginning of a name counts as much as a slip in it; letters that only changed places count
    most.

    >>> from votive.core.similar import similar
    >>> similar("gleu", ["gelu", "matmul", "relu"])[0], similar("--temp", ["--temperature"])
    ('gelu', ['--temperature'])
    """
    import difflib  # an error's cost, not an import's

    said = name.lower()
    letters = sorted(said)
    long = len(said) >= 2
    found: list[tuple[float, str]] = []
    for one in dict.fromkeys(known):
        told = one.lower()
        matcher = difflib.SequenceMatcher(None, told, said)
        if sorted(told) == letters:
            score = 2.0
        elif long and told.startswith(said):
            score = 1.0
        elif 2 * len(told) <= len(said) or matcher.quick_ratio() < 0.6:
            continue  # few letters have much in common with any name
        else:
            score = matcher.ratio()
        if score >= 0.6:
            found.append((score, one))
    found.sort(key=lambda f: (-f[0], len(f[1]), f[1]))
    # What is much farther than the nearest was not meant.
    least = min(found[0][0], 1.0) - 0.15 if found else 0.0
    return [one for score, one in found[:most] if score >= least]


def did_you_mean(name: str, known: Iterable[str], most: int = 3) -> str:
    """A question that names what may have been meant, with a space before it; or nothing.

    >>> from votive.core.similar import did_you_mean
    >>> did_you_mean("gleu", ["gelu", "glu"]), did_you_mean("x", ["gelu"])
    (" Did you mean 'gelu' or 'glu'?", '')
    """
    near = [repr(n) for n in similar(name, known, most)]
    if not near:
        return ""
    *first, last = near
    return f" Did you mean {', '.join(first)} or {last}?" if first else f" Did you mean {last}?"
