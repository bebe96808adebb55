"""Indices that lie elsewhere: those of the CPU serve a GPU, others are refused, as in torch."""

from __future__ import annotations

import pytest

import votive


def test_indices_of_the_cpu_serve_a_tensor_on_the_gpu():
    x = votive.arange(12.0, device="cuda").reshape(3, 4)
    rows, mask = votive.tensor([2, 0]), votive.tensor([True, False, True])
    assert x[rows].tolist() == x.cpu()[rows].tolist()
    assert x[mask, 1:].tolist() == x.cpu()[mask, 1:].tolist()
    x[rows] = votive.zeros(2, 4, device="cuda")
    assert x.sum().item() == 4.0 + 5 + 6 + 7
    x[0] = votive.arange(4.0)
    assert x[0].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_indices_of_the_gpu_do_not_serve_the_cpu():
    with pytest.raises(RuntimeError, match="either on cpu or on the same device"):
        votive.zeros(3)[votive.tensor([0], device="cuda")]
