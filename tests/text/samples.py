"""Many texts of many kinds, the same in every run."""

from __future__ import annotations

import random
from pathlib import Path

_SIGNS = "abc XYZ 0123456789 \n\t\r .,;'!?\"()[]{}<>/\\éüß你好世界日本語한국어Приветमनु🎉👩‍👧e\u0301½Ⅷ\u00a0\u2028\u3000"
_RANGES = [(32, 127), (0xA0, 0x3000), (0x3000, 0xD000), (0x1F300, 0x1FA00)]


def varied_texts(count: int) -> list[str]:
    rng = random.Random(0)
    code = Path(__file__).read_text() + (Path(__file__).parent / "test_gguf.py").read_text()
    texts = []
    for i in range(count):
        if i % 3 == 0:
            at = rng.randrange(len(code) - 300)
            texts.append(code[at : at + rng.randrange(300)])
        elif i % 3 == 1:
            texts.append("".join(rng.choices(_SIGNS, k=rng.randrange(60))))
        else:
            signs = (chr(rng.randrange(*rng.choice(_RANGES))) for _ in range(rng.randrange(40)))
            texts.append("".join(signs))
    return texts
