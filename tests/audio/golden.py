"""Stored results of torchaudio for the catalog, so that it is checked without torchaudio too.

`golden.npz` holds, for each case in float64, the shape of each result and up to 48 of its values,
evenly spaced, rounded to float32. It is written by `python -m tests.audio.golden`; the entry
`origin` names the versions of torchaudio and torch that gave the values.
"""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).with_name("golden.npz")
_KEPT = 48


def sampled(array: Any) -> Any:
    """Up to 48 values, evenly spaced."""
    line = np.asarray(array).reshape(-1)
    if not line.size:
        return line
    return line[np.unique(np.linspace(0, line.size - 1, min(_KEPT, line.size)).astype(int))]


@cache
def read() -> dict[str, Any]:
    """What is stored."""
    with np.load(GOLDEN) as file:
        return dict(file)


def write() -> None:
    """Run the catalog on torchaudio and store what it gives."""
    import torch
    import torchaudio

    from .test_parity import CASES, flat, theirs

    out: dict[str, Any] = {"origin": np.array(f"torchaudio {torchaudio.__version__}, torch {torch.__version__}")}
    for case in CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = flat(case.run(theirs()))
        for k, array in enumerate(results):
            values = sampled(array)
            narrow = {"f": np.float32, "c": np.complex64}.get(values.dtype.kind, values.dtype)
            out[f"{case.id}/{k}/shape"] = np.array(array.shape, np.int64)
            out[f"{case.id}/{k}"] = values.astype(narrow)
    np.savez_compressed(GOLDEN, **out)


if __name__ == "__main__":
    write()
