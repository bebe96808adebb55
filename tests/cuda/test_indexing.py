"""Tensors that lie elsewhere: indices and single numbers of the CPU serve a GPU, others do not."""

from __future__ import annotations

import pytest

import votive
from votive.core.errors import DeviceError


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


def test_single_numbers_of_the_cpu_meet_a_gpu_as_numbers_only():
    number, x = votive.tensor(1.0), votive.tensor(2.0, device="cuda")
    where = votive.tensor([0], device="cuda")
    assert (number + x).item() == 3.0
    assert votive.nextafter(number, x).device.type == "cuda"
    for call in (
        lambda: votive.stack([number, x]),
        lambda: votive.gather(number, 0, where[0]),
        lambda: votive.take(number, where),
        lambda: votive.index_select(number, 0, where),
        lambda: votive.searchsorted(x.reshape(1), number),
        lambda: votive.meshgrid(number, x, indexing="ij"),
        lambda: votive.equal(number, x),
    ):
        with pytest.raises(DeviceError, match="cpu"):
            call()
