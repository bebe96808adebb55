"""Global random state of this process as one value: votive's generators, `random` and NumPy.

Knows generators and their bytes; knows no dataset and no loader.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core import rng
from ..core.rng import Generator
from ..ops.registry import F


def seed_everything(seed: int) -> None:
    """Start votive's generators, Python's `random` and NumPy's global generator at one seed.

    >>> votive.data.seed_everything(3)
    >>> votive.initial_seed()
    3
    """
    rng.manual_seed(seed)
    random.seed(seed)
    # Both are Mersenne twisters: from the same words, NumPy would draw what `random` draws.
    np.random.seed(np.random.SeedSequence(seed % 2**64).generate_state(8))


def draw_seed(generator: Generator | None = None) -> int:
    """A non-negative 63-bit seed drawn from `generator`, or from the default one."""
    drawn = F.empty((), dtype=dt.int64).random_(generator=generator)
    return int(drawn.item())


def get_random_state() -> dict[str, Any]:
    """The state of every global generator; plain values that `votive.save` can write.

    >>> state = votive.data.get_random_state()
    >>> first = votive.rand(2)
    >>> votive.data.set_random_state(state)
    >>> bool((votive.rand(2) == first).all())
    True
    """
    rng.default_generator("cpu")  # there even if nothing was drawn yet
    votive = {str(g.device): bytes_of(g) for g in rng.default_generators()}
    version, words, gauss = random.getstate()
    return {
        "votive": votive,
        "python": {"version": version, "words": np.array(words, np.uint32), "gauss": gauss},
        "numpy": np.random.get_state(legacy=False),
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Put every generator named in `state` where `get_random_state` saw it.

    >>> votive.data.set_random_state(votive.data.get_random_state())
    """
    for device, raw in state.get("votive", {}).items():
        rng.default_generator(device).set_state(raw)
    if "python" in state:
        p = state["python"]
        random.setstate((p["version"], tuple(int(w) for w in p["words"]), p["gauss"]))
    if "numpy" in state:
        np.random.set_state(state["numpy"])


@contextmanager
def kept_random_state() -> Iterator[None]:
    """Undo, on leaving, whatever the block draws.

    >>> before = votive.get_rng_state()
    >>> with votive.data.kept_random_state():
    ...     _ = votive.rand(3)
    >>> bool((votive.get_rng_state() == before).all())
    True
    """
    before = get_random_state()
    try:
        yield
    finally:
        set_random_state(before)


def bytes_of(generator: Generator) -> bytes:
    """The 16 bytes of a generator, whichever kind it is."""
    return rng.Generator.get_state(generator)


class Watch:
    """Tells which global generators have moved since it was last asked.

    A worker reports this with each batch, so that the loader can resume it; datasets that draw
    nothing make it report almost nothing.
    """

    def __init__(self) -> None:
        self._python = random.getstate()
        self._numpy = np.random.get_state(legacy=False)
        self._votive: bytes | None = None

    def changes(self) -> dict[str, Any]:
        """The part of `get_random_state` that differs from last time."""
        out: dict[str, Any] = {}
        votive = bytes_of(rng.default_generator("cpu"))
        if votive != self._votive:
            out["votive"] = {"cpu": votive}
            self._votive = votive
        python = random.getstate()
        if python != self._python:
            version, words, gauss = python
            out["python"] = {"version": version, "words": np.array(words, np.uint32), "gauss": gauss}
            self._python = python
        numpy = np.random.get_state(legacy=False)
        if not _same(numpy, self._numpy):
            out["numpy"] = numpy
            self._numpy = numpy
        return out


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return bool(np.array_equal(a, b))
