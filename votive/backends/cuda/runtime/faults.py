"""Errors that kernels find: an index out of range cannot raise on the device. It sets a word in
host memory that the device can reach, and the next time the host waits for results it becomes an
exception.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

from .. import runtime as rt

_WORDS = 1024
_KINDS = 16  # of exceptions, which have a word each when the others are taken
_SOME = (
    "cuda: a kernel was given an index or a value out of range; more different errors are possible "
    "in this program than are told apart. VOTIVE_CUDA_SYNC=1 shows which call it was."
)
_STEP = 4  # words apart: an address that is no multiple of 16 would cost a kernel its wide loads


class _Faults:
    """Words that kernels set, and what each means."""

    def __init__(self) -> None:
        self.meaning: list[tuple[type[Exception], str]] = []
        self.known: dict[tuple[type[Exception], str], int] = {}
        self.address = 0
        self.words: Any = None
        self.lock = threading.Lock()

    def place(self, kind: type[Exception], text: str) -> int:
        """The address that a kernel writes 1 to when this error happened."""
        with self.lock:  # plans are made by any thread
            if self.words is None:
                self._begin()
            if (kind, text) not in self.known and len(self.meaning) >= _WORDS - _KINDS:
                text = _SOME  # texts name sizes, of which a long run may have any number
            found = self.known.get((kind, text))
            if found is None:
                found = self.known[kind, text] = len(self.meaning)
                self.meaning.append((kind, text))
        assert found < _WORDS
        return self.address + 4 * _STEP * found

    def _begin(self) -> None:
        raw_address = rt.runtime.driver.alloc_pinned(4 * _WORDS * _STEP + 16)
        self.address = raw_address + -raw_address % 16
        raw: Any = (ctypes.c_int32 * (_WORDS * _STEP)).from_address(self.address)
        words = np.frombuffer(raw, np.int32)
        words[:] = 0
        self.words = words

    def check(self) -> None:
        """Raise what a kernel reported; called after the host has waited."""
        if self.words is None or not self.words.any():
            return
        at = int(np.flatnonzero(self.words)[0]) // _STEP
        self.words[:] = 0
        kind, text = self.meaning[at]
        raise kind(text)


faults = _Faults()


def check_at_once() -> None:
    """Wait for what was launched and raise what it found, for VOTIVE_CUDA_SYNC. A launch that is
    recorded does not run yet.
    """
    if not rt.here.capturing:
        rt.runtime.driver.wait_stream(rt.here.stream)
        faults.check()
