"""Runs cases once in several processes, so that GPU kernels are compiled and in Triton's cache when times are taken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module

from .family import families
from .side import Side, work_of
from .spec import Spec


def warm(argv: list[str], processes: int) -> None:
    """Start the processes with the same arguments and a share each; what fails there, the measurement reports."""
    command = [sys.executable, "-m", __package__ or "", *argv, "--warm", "0"]
    started = [subprocess.Popen([*command, "--share", f"{i}/{processes}"]) for i in range(processes)]
    for process in started:
        process.wait()


def run_share(specs: Iterable[Spec], share: str, device: str) -> None:
    """Each n-th case, once, on votive's side."""
    first, every = map(int, share.split("/"))
    votive = import_module("votive")
    for number, spec in enumerate(specs):
        if number % every == first:
            side = Side(votive, device, spec)
            try:
                work_of(side, families()[spec.kind].build(side))()
            except Exception as error:  # reported by the measurement
                print(f"warming {spec}: {type(error).__name__}", file=sys.stderr)
