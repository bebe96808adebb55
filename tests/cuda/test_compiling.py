"""Kernels compile for a Hopper GPU, also where there is none, and spill no registers."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from .device import anywhere
from .families import FAMILIES

pytest.importorskip("triton", reason="needs Triton")
pytestmark = anywhere
# How many bytes of stack a kernel may use: sines and tangents reduce large numbers with a table, and predicates of
# many lanes do not all fit into registers.
STACK = {
    "digamma": 64,
    "_draw": 64,
    "draw_anywhere": 64,
    "_over_windows": 32,
    "_poisson": 64,
    "_gamma": 64,
    "_gamma_grad": 64,
    "_beta_grad": 64,
    "exp": 64,
    "tanh": 64,
    "sigmoid": 64,
    "_pow": 64,
    "bessel_y1": 64,
    "airy_ai": 64,
    "chebyshev_polynomial_u": 64,
}


def test_every_family_compiles_for_sm_90_without_spills() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON", "VOTIVE"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.cuda.compiling", *FAMILIES],
        text=True,
        capture_output=True,
        env=environment,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout.splitlines()[-1])
    assert all(report[name] for name in FAMILIES), "a family compiled nothing"
    spilled = [
        f"{family}: {kernel} uses {u['STACK']} bytes of stack"
        for family, kernels in report.items()
        for kernel, u in kernels.items()
        if u["STACK"] > STACK.get(kernel.split(".")[0], 0)
    ]
    assert not spilled, spilled
