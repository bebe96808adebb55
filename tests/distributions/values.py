"""Parameters of distributions, in double precision."""

from __future__ import annotations

import votive as vt


def t(*values: float, grad: bool = False) -> vt.Tensor:
    data = values[0] if len(values) == 1 else list(values)
    return vt.tensor(data, dtype=vt.float64, requires_grad=grad)
