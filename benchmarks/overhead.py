"""What one eager call costs: `python -m benchmarks.overhead`, 16 floats, with and without grad."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import votive

from .pairing import Row, pair, report


def rows() -> list[Row]:
    """A few frequent calls on tensors so small that only the call itself counts."""
    x, y = (np.random.default_rng(i).random(16, dtype=np.float32) for i in range(2))
    a, b = votive.from_numpy(x), votive.from_numpy(y)
    c = votive.from_numpy(y.copy()).requires_grad_()
    ta, tb = torch.from_numpy(x), torch.from_numpy(y)
    tc = torch.from_numpy(y.copy()).requires_grad_()
    return [
        pair("a + b", lambda: a + b, lambda: ta + tb),
        pair("a + b, grad", lambda: a + c, lambda: ta + tc),
        pair("a * b", lambda: a * b, lambda: ta * tb),
        pair("a * b, grad", lambda: a * c, lambda: ta * tc),
        pair("a * 2.0", lambda: a * 2.0, lambda: ta * 2.0),
        pair("a.tanh()", lambda: a.tanh(), lambda: ta.tanh()),
        pair("a.sum()", lambda: a.sum(), lambda: ta.sum()),
        pair("a[3:9]", lambda: a[3:9], lambda: ta[3:9]),
        pair("a.view(4, 4)", lambda: a.view(4, 4), lambda: ta.view(4, 4)),
        pair("(a * c).sum().backward()", lambda: (a * c).sum().backward(), lambda: (ta * tc).sum().backward()),
    ]


def main() -> None:
    """Measure and print; `--json FILE` also writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    report(rows(), parser.parse_args().json)


if __name__ == "__main__":
    main()
