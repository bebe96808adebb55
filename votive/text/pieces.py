"""Which bytes a token stands for. Knows the alphabets of vocabularies; knows no tokenizer."""

from __future__ import annotations

import re


def _byte_characters() -> dict[int, str]:
    # GPT-2's alphabet: printable Latin-1 characters stand for themselves, the other bytes for the
    # characters from U+0100 on, in order.
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {b: chr(b) for b in shown}
    table |= {b: chr(0x100 + i) for i, b in enumerate(b for b in range(256) if b not in table)}
    return table


BYTE_TO_CHAR = _byte_characters()
CHAR_TO_BYTE = {c: b for b, c in BYTE_TO_CHAR.items()}
SPACE = "▁"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_level_bytes(token: str) -> bytes:
    """The bytes of a token spelled in the byte-level alphabet (else those of its characters).

    >>> byte_level_bytes("Ġcaf")
    b' caf'
    """
    try:
        return bytes(CHAR_TO_BYTE[c] for c in token)
    except KeyError:
        return token.encode()


def byte_level_spelling(data: bytes) -> str:
    """Bytes spelled in the byte-level alphabet."""
    return "".join(BYTE_TO_CHAR[b] for b in data)


def fallback_byte(token: str) -> int | None:
    """The byte of a token such as `<0x0A>`, or None."""
    found = _BYTE_TOKEN.fullmatch(token)
    return int(found[1], 16) if found else None
