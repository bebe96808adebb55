"""NumPy's names of arguments that torch accepts beside its own. Knows no operator."""

from __future__ import annotations

_SPELLINGS = {"axis": "dim", "keepdims": "keepdim"}


def both_spellings(op: str, name: str, other: str) -> str:
    """What to say to `dim=0, axis=1`."""
    return f"{op}() got both {name!r} and {other!r}; they mean the same."


def spellings(names: list[tuple[str, bool]]) -> dict[str, str]:
    """Which of NumPy's names serve parameters given as (name, required)."""
    found = {}
    for other, name in _SPELLINGS.items():
        at = next((i for i, (n, _) in enumerate(names) if n == name), None)
        # A name that may be absent needs a default, which what follows it must then have too.
        if at is not None and not any(required for _, required in names[at + 1 :]):
            found[other] = name
    return found
