"""Random programs of views and in-place writes agree with NumPy in value and with torch in
gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import votive as vt

Program = list[tuple[Any, ...]]


@st.composite
def steps(draw: st.DrawFn) -> tuple[tuple[int, ...], Program]:
    """A shape and a list of steps over a growing list of tensors; index -1 is the newest."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    dims = [shape]
    program: Program = []
    for _ in range(draw(st.integers(1, 8))):
        k = draw(st.integers(0, len(dims) - 1))
        shape_k = dims[k]
        n = len(shape_k)
        kind = draw(st.sampled_from(["view", "view", "write", "new"]))
        if kind == "view":
            op = draw(st.sampled_from(["transpose", "slice", "select", "unsqueeze", "flatten", "expand"]))
            if op == "transpose" and n >= 2:
                i, j = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
                new = list(shape_k)
                new[i], new[j] = new[j], new[i]
                program.append(("transpose", k, i, j))
                dims.append(tuple(new))
            elif op == "slice" and n >= 1:
                d = draw(st.integers(0, n - 1))
                start = draw(st.integers(0, shape_k[d] - 1))
                step = draw(st.integers(1, 2))
                program.append(("slice", k, d, start, step))
                length = len(range(start, shape_k[d], step))
                dims.append((*shape_k[:d], length, *shape_k[d + 1 :]))
            elif op == "select" and n >= 1:
                d = draw(st.integers(0, n - 1))
                program.append(("select", k, d, draw(st.integers(0, shape_k[d] - 1))))
                dims.append((*shape_k[:d], *shape_k[d + 1 :]))
            elif op == "unsqueeze":
                d = draw(st.integers(0, n))
                program.append(("unsqueeze", k, d))
                dims.append((*shape_k[:d], 1, *shape_k[d:]))
            elif op == "flatten":
                program.append(("reshape", k, (int(np.prod(shape_k)),)))
                dims.append((int(np.prod(shape_k)),))
            else:
                program.append(("clone", k))
                dims.append(shape_k)
        elif kind == "write":
            op = draw(st.sampled_from(["add", "mul", "fill", "copy", "tanh"]))
            # The source must broadcast: a number, or a tensor of the same shape.
            same = [j for j, s in enumerate(dims) if s == shape_k]
            program.append((op + "_", k, draw(st.sampled_from(same)), draw(st.integers(-2, 2))))
        else:
            program.append(("scaled", k, draw(st.sampled_from([0.5, 2.0, -1.0]))))
            dims.append(shape_k)
    return shape, program


def run_numpy(start: np.ndarray, program: Program) -> list[np.ndarray]:
    values = [start]
    for step in program:
        op, x = step[0], values[step[1]]
        if op == "transpose":
            values.append(np.swapaxes(x, step[2], step[3]))
        elif op == "slice":
            values.append(x[(slice(None),) * step[2] + (slice(step[3], None, step[4]),)])
        elif op == "select":
            values.append(x[(slice(None),) * step[2] + (step[3], ...)])
        elif op == "unsqueeze":
            values.append(np.expand_dims(x, step[2]))
        elif op == "reshape":
            values.append(x.reshape(step[2]))
        elif op == "clone":
            values.append(x.copy(order="K"))  # as dense as x, in its order
        elif op == "scaled":
            values.append(np.asarray(x * step[2]))
        elif op == "add_":
            x[...] = x + values[step[2]]
        elif op == "mul_":
            x[...] = x * values[step[2]]
        elif op == "fill_":
            x[...] = step[3]
        elif op == "copy_":
            x[...] = values[step[2]].copy()
        elif op == "tanh_":
            x[...] = np.tanh(x)
    return values


def run_tensors(start: Any, program: Program) -> list[Any]:
    """The same program on votive or torch tensors."""
    values = [start]
    for step in program:
        op, x = step[0], values[step[1]]
        if op == "transpose":
            values.append(x.transpose(step[2], step[3]))
        elif op == "slice":
            values.append(x[(slice(None),) * step[2] + (slice(step[3], None, step[4]),)])
        elif op == "select":
            values.append(x.select(step[2], step[3]))
        elif op == "unsqueeze":
            values.append(x.unsqueeze(step[2]))
        elif op == "reshape":
            values.append(x.reshape(step[2]))
        elif op == "clone":
            values.append(x.clone())
        elif op == "scaled":
            values.append(x * step[2])
        elif op in ("add_", "mul_"):
            # torch refuses operands that partly overlap; a copy means the same everywhere.
            getattr(x, op)(values[step[2]].clone())
        elif op == "fill_":
            x.fill_(step[3])
        elif op == "copy_":
            x.copy_(values[step[2]].clone())
        elif op == "tanh_":
            x.tanh_()
    return values


common = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))


@common
@given(steps(), st.integers(0, 10))
def test_programs_of_views_and_writes_agree_with_numpy(case: tuple[tuple[int, ...], Program], seed: int) -> None:
    shape, program = case
    start = np.random.default_rng(seed).uniform(-1, 1, shape)
    want = run_numpy(start.copy(), program)
    got = run_tensors(vt.from_numpy(start.copy()), program)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-12, atol=1e-12)


@pytest.mark.parity
@common
@given(steps(), st.integers(0, 10))
def test_gradients_of_programs_of_views_and_writes_agree_with_torch(
    case: tuple[tuple[int, ...], Program], seed: int
) -> None:
    torch = pytest.importorskip("torch")
    shape, program = case
    start = np.random.default_rng(seed).uniform(-1, 1, shape)
    p = vt.from_numpy(start.copy()).requires_grad_()
    q = torch.from_numpy(start.copy()).requires_grad_()
    got, want = run_tensors(p * 1, program), run_tensors(q * 1, program)
    assert [a.requires_grad for a in got] == [b.requires_grad for b in want]
    total = sum((a * (i + 1)).sum() for i, a in enumerate(got))
    total_t = sum((b * (i + 1)).sum() for i, b in enumerate(want))
    assert total.requires_grad == total_t.requires_grad
    if not total_t.requires_grad:
        return
    try:
        total_t.backward()
    except RuntimeError:
        with pytest.raises(RuntimeError):
            total.backward()
        return
    total.backward()
    np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-10, atol=1e-10)
