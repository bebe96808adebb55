"""The whole framework in a few seconds: one look at each part, for a first check after any
change.
"""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np

import votive as vt


def test_a_network_by_hand_learns_a_function() -> None:
    vt.manual_seed(0)
    x = vt.linspace(-2, 2, 64).unsqueeze(1)
    y = vt.sin(2 * x)
    w1 = (vt.randn(1, 16)).requires_grad_()
    b1 = vt.randn(16).requires_grad_()
    w2 = (vt.randn(16, 1) / 4).requires_grad_()
    params = [w1, b1, w2]
    first = last = math.nan
    for step in range(300):
        loss = ((vt.tanh(x @ w1 + b1) @ w2 - y) ** 2).mean()
        loss.backward()
        with vt.no_grad():
            for p in params:
                p -= 0.1 * p.grad
                p.grad = None
        first = loss.item() if step == 0 else first
        last = loss.item()
    assert last < 0.2 * first


def test_views_indexing_reductions_and_promotion() -> None:
    t = vt.arange(12).view(3, 4)
    t[:, 1] = 0
    assert t.sum(0).tolist() == [12, 0, 18, 21]
    assert (t / 2).dtype is vt.float32
    assert t[t > 6].tolist() == [7, 8, 10, 11]
    assert t.max(dim=1).indices.tolist() == [3, 3, 3]


def test_einsum_softmax_sort_and_random() -> None:
    a, b = vt.ones(2, 3), vt.ones(3, 4)
    assert vt.einsum("ij,jk->ik", a, b).tolist() == [[3.0] * 4] * 2
    assert vt.softmax(vt.zeros(4), 0).tolist() == [0.25] * 4
    assert vt.tensor([3, 1, 2]).sort().values.tolist() == [1, 2, 3]
    vt.manual_seed(1)
    first = vt.rand(3)
    vt.manual_seed(1)
    assert vt.equal(vt.rand(3), first)


def test_fuse_explain_and_custom_functions() -> None:
    assert vt.fuse(lambda x: x * 2 + 1)(vt.ones(1)).item() == 3.0
    assert "erf" in vt.explanation("gelu")
    x = vt.tensor([0.5], dtype=vt.float64, requires_grad=True)
    assert vt.autograd.gradcheck(lambda t: t.exp().sin(), (x,))


def test_the_import_brings_numpy_and_little_else() -> None:
    # What votive adds to NumPy: anything here is paid by every program, whether it is used or not.
    code = (
        "import sys, numpy; had = set(sys.modules); import votive; "
        "print(*sorted({n.split('.')[0] for n in set(sys.modules) - had}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    light = {
        "votive",
        "numpy",
        "ml_dtypes",
        "__future__",
        "_heapq",
        "_string",
        "atexit",
        "cmath",
        "copy",
        "dataclasses",
        "errno",
        "gc",
        "heapq",
        "importlib",
        "pkgutil",
        "string",
        "threading",
        "traceback",
    }
    assert set(out.stdout.split()) <= light


def test_the_demo_runs(capsys) -> None:
    from votive.cli import main

    assert main(["demo", "--steps", "5"]) == 0
    out = capsys.readouterr().out
    assert "final loss" in out
    assert "gelu" in out


def test_the_command_line_reports_errors_in_one_line(capsys) -> None:
    from votive.cli import main

    assert main(["explain", "no_such_operator"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("votive: ")
    assert err.count("\n") == 1
    assert main(["env"]) == 0
    assert np.__version__ in capsys.readouterr().out
