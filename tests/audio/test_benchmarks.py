"""The cases of the benchmark of sound run; nothing is timed here."""

from __future__ import annotations

import warnings

import votive
from benchmarks.audio import cases, signals


def test_every_case_runs() -> None:
    names = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, _, build in cases(1):
            build(votive, votive.audio.functional, votive.audio.transforms, signals(votive))()
            names.append(name)
    assert len(set(names)) == len(names) > 15
