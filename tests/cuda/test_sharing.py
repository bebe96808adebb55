"""Memory of the GPU is shared with other libraries, in both directions, in the order of streams."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import votive as vt
from votive.core.errors import ReadOnlyError

from .device import EMULATED
from .late import emulated, late

KINDS = [vt.float32, vt.bfloat16, vt.int64, vt.bool, vt.complex64, vt.float8_e5m2]


@pytest.mark.parametrize("dtype", KINDS)
def test_a_capsule_shows_the_same_memory_and_keeps_it(dtype: vt.dtype) -> None:
    t = vt.ones(2, 6, device="cuda").to(dtype)[:, 1::2]
    u = vt.from_dlpack(t)
    assert u.device == t.device
    assert (u.dtype, u.shape, u.stride()) == (dtype, t.shape, t.stride())
    assert u.data_ptr() == t.data_ptr()
    gc.collect()  # what other tests left
    before = vt.cuda.memory_allocated()
    del t
    gc.collect()
    assert vt.cuda.memory_allocated() == before
    assert u.float().sum().item() == 6.0 if not dtype.is_complex else True
    del u
    gc.collect()
    assert vt.cuda.memory_allocated() < before


def test_capsules_are_copied_or_moved_where_that_is_asked_for() -> None:
    t = vt.ones(3, device="cuda")
    assert t.__dlpack_device__() == (2, 0)
    assert vt.from_dlpack(t, copy=True).data_ptr() != t.data_ptr()
    home = vt.from_dlpack(t, device="cpu")
    assert home.tolist() == [1.0] * 3
    with pytest.raises(BufferError, match="needs a copy"):
        vt.from_dlpack(t, device="cpu", copy=False)
    assert "dltensor" in repr(t.__dlpack__(dl_device=(1, 0)))
    for stream in (0, 2):
        with pytest.raises(BufferError, match="stream"):
            t.__dlpack__(stream=stream)


class Described:
    """An array of another library."""

    def __init__(self, tensor: Any, **changes: Any) -> None:
        self.tensor = tensor
        self.__cuda_array_interface__ = {**tensor.__cuda_array_interface__, **changes}


def test_described_memory_is_shared() -> None:
    t = vt.arange(6.0, device="cuda").reshape(2, 3)
    for x in (t, t.t(), t[:, 1:]):
        u = vt.as_tensor(Described(x))
        assert (u.data_ptr(), u.shape, u.stride()) == (x.data_ptr(), x.shape, x.stride())
    u.fill_(9)
    assert t[0].tolist() == [0.0, 9.0, 9.0]
    with pytest.raises(ValueError, match="masks"):
        vt.as_tensor(Described(t, mask=t))
    with pytest.raises(RuntimeError, match="requires grad"):
        _ = t.requires_grad_().__cuda_array_interface__


def test_memory_described_as_read_only_is_not_written() -> None:
    t = vt.ones(6, device="cuda")
    u = vt.as_tensor(Described(t, data=(t.data_ptr(), True)))
    for write in (
        lambda: u.fill_(9),
        lambda: u.fill_(9),  # with a plan, on the short way
        lambda: u[1:3].add_(1),
        lambda: vt.add(u, 1, out=u),
        lambda: u.data.zero_(),
    ):
        with pytest.raises(ReadOnlyError):
            write()
    with pytest.raises(BufferError, match="read-only"):
        u.__dlpack__()
    assert u.__cuda_array_interface__["data"][1] is True
    assert t.tolist() == [1.0] * 6


def test_memory_is_taken_for_that_of_the_device_it_lies_on() -> None:
    if vt.cuda.device_count() < 2:
        pytest.skip("there is only one GPU")
    t = vt.ones(3, device="cuda:1")
    u = vt.as_tensor(Described(t))
    assert u.device == t.device
    assert (u + 1).tolist() == [2.0] * 3


@emulated
def test_the_asking_stream_waits_and_the_host_does_not() -> None:
    from .late import no_waits

    side = vt.cuda.Stream()
    with late():
        with vt.cuda.stream(side):
            t = vt.ones(3, device="cuda") * 2
            with no_waits():
                vt.from_dlpack(t)
                t.__dlpack__(stream=1)
                t.__dlpack__(stream=-1)
        assert vt.from_dlpack(t).tolist() == [2.0] * 3


@pytest.mark.skipif(EMULATED, reason="torch does not know an emulated GPU")
def test_torch_and_votive_see_each_others_writes() -> None:
    torch = pytest.importorskip("torch")
    ours = vt.zeros(2, 3, device="cuda", dtype=vt.bfloat16)
    theirs = torch.from_dlpack(ours)
    theirs[1, 2] = 5
    torch.cuda.synchronize()
    assert ours[1, 2].item() == 5.0
    back = vt.from_dlpack(torch.arange(4.0, device="cuda")[::2])
    assert back.tolist() == [0.0, 2.0]
    assert vt.as_tensor(torch.ones(2, device="cuda")).tolist() == [1.0, 1.0]
    assert torch.as_tensor(ours.float(), device="cuda").sum().item() == 5.0
