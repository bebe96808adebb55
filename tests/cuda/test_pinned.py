"""Page-locked memory: who gets it, when copies need not be waited for, when it is used again."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.backends.cuda.emulated.driver import Emulated
from votive.backends.cuda.runtime.pinned import LEAST, HostAllocator, hosts
from votive.core.errors import OutOfMemoryError

from .device import anywhere
from .late import emulated, late, no_waits


def test_a_pinned_copy_has_the_values_and_the_order_of_the_tensor() -> None:
    x = vt.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
    p = x.pin_memory()
    assert p.is_pinned()
    assert not x.is_pinned()
    assert (p.device.type, p.stride()) == ("cpu", x.stride())
    assert vt.equal(p, x)
    assert p.pin_memory() is p
    assert p.untyped_storage().is_pinned()
    assert p[1:].is_pinned()
    assert vt.from_numpy(p.numpy()).is_pinned()
    assert not (p + 1).is_pinned()


MAKERS: list[Any] = [
    lambda **k: vt.zeros(3, **k),
    lambda **k: vt.ones(3, **k),
    lambda **k: vt.full((2,), 4, **k),
    lambda **k: vt.empty(2, 2, **k),
    lambda **k: vt.empty_strided((2, 2), (1, 4), **k),
    lambda **k: vt.eye(2, **k),
    lambda **k: vt.tensor([1, 2], **k),
    lambda **k: vt.arange(3, **k),
    lambda **k: vt.linspace(0, 1, 3, **k),
    lambda **k: vt.rand(3, **k),
    lambda **k: vt.randn(3, **k),
    lambda **k: vt.randint(5, (3,), **k),
    lambda **k: vt.randperm(3, **k),
    lambda **k: vt.ones(2).new_zeros(3, **k),
    lambda **k: vt.ones(2).new_empty(3, **k),
    lambda **k: vt.zeros_like(vt.ones(2), **k),
    lambda **k: vt.empty_like(vt.ones(2), **k),
    lambda **k: vt.rand_like(vt.ones(2), **k),
    lambda **k: vt.hann_window(4, **k),
    lambda **k: vt.fft.fftfreq(4, **k),
    lambda **k: vt.tril_indices(2, 2, **k),
    lambda **k: vt.scalar_tensor(3, **k),
    lambda **k: vt.normal(0.0, 1.0, (2,), **k),
]


@pytest.mark.parametrize("number", range(len(MAKERS)))
def test_factories_make_pinned_tensors_with_the_same_values(number: int) -> None:
    make = MAKERS[number]
    vt.manual_seed(0)
    made = make(pin_memory=True)
    assert made.is_pinned()
    vt.manual_seed(0)
    plain = make()
    assert (made.shape, made.stride(), made.dtype) == (plain.shape, plain.stride(), plain.dtype)
    if number not in (3, 4, 14, 16):  # arbitrary content
        assert vt.equal(made, plain)


def test_requires_grad_and_gradients_pass_through_pinning() -> None:
    assert vt.ones(2, pin_memory=True, requires_grad=True).is_leaf
    x = vt.ones(2, requires_grad=True)
    (x.pin_memory() * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_memory_of_a_gpu_cannot_be_pinned() -> None:
    with pytest.raises(RuntimeError, match=r"cannot pin 'votive.cuda.FloatTensor'"):
        vt.ones(2, device="cuda").pin_memory()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        vt.ones(2, device="cuda", pin_memory=True)
    assert not vt.ones(2, device="cuda").is_pinned()


def test_copies_from_and_to_pinned_memory_are_not_waited_for() -> None:
    a, b = vt.arange(6.0).pin_memory(), vt.empty(6, pin_memory=True)
    module = vt.nn.Linear(2, 2)
    for p in module.parameters():
        p.data = p.data.pin_memory()
    with no_waits():
        there = a.to("cuda", non_blocking=True)
        also = a.cuda(non_blocking=True)
        third = vt.zeros(6, device="cuda").copy_(a, non_blocking=True)
        back = (there + also + third).to("cpu", non_blocking=True)
        b.copy_(there, non_blocking=True)
        module.to("cuda", non_blocking=True)
    assert back.is_pinned()
    vt.cuda.synchronize()
    assert back.tolist() == (3 * a).tolist()
    assert b.tolist() == a.tolist()


@emulated
def test_a_copy_that_is_not_waited_for_reads_the_memory_when_its_turn_comes() -> None:
    with late():
        x = vt.ones(4).pin_memory()
        y = x.to("cuda", non_blocking=True)
        x.fill_(5)
        assert y.tolist() == [5.0] * 4  # the device came to it after the write
        x.fill_(1)
        y = x.to("cuda")
        x.fill_(5)
        assert y.tolist() == [1.0] * 4  # this one was waited for
        z = vt.zeros(4, pin_memory=True)
        z.copy_(y + 1, non_blocking=True)
        assert z.tolist() == [0.0] * 4
        vt.cuda.synchronize()
        assert z.tolist() == [2.0] * 4


def test_ordinary_memory_may_be_written_as_soon_as_the_copy_returns() -> None:
    x = vt.ones(1000)
    y = x.to("cuda", non_blocking=True)
    x.fill_(5)
    assert set(y.tolist()) == {1.0}
    out = vt.zeros(1000)
    out.copy_(y * 2, non_blocking=True)
    assert set(out.tolist()) == {2.0}


@pytest.mark.parametrize("pin", [False, True])
@pytest.mark.parametrize("dtype", [vt.float32, vt.float16, vt.int64, vt.complex64])
def test_copy_between_devices_casts_broadcasts_and_takes_any_strides(pin: bool, dtype: Any) -> None:
    src = vt.arange(6).reshape(2, 3).to(dtype)
    src = src.pin_memory() if pin else src
    wanted = src.to(vt.complex64 if dtype.is_complex else vt.float64)
    for source in (src, src.t(), src[:, 1:], src[:1].expand(4, 3)):
        shape = (2, *source.shape)
        for kind in (wanted.dtype, dtype):
            there = vt.zeros((*shape[:-1], 2 * shape[-1]), dtype=kind, device="cuda")[..., ::2]
            there.copy_(source)
            np.testing.assert_array_equal(there.cpu().numpy(), np.broadcast_to(source.numpy(), shape).astype(kind.np))
            for back in (
                vt.zeros(shape, dtype=kind),
                vt.zeros(shape[::-1], dtype=kind).permute(2, 1, 0),
                vt.zeros((*shape[:-1], 2 * shape[-1]), dtype=kind)[..., 1::2],
            ):
                back.copy_(source.to("cuda"))
                assert vt.equal(back, there.cpu())
    empty = vt.zeros(0, 3, dtype=dtype, device="cuda")
    empty.copy_(vt.zeros(0, 3))
    vt.zeros(0, 3).copy_(empty)
    scalar = vt.tensor(3, dtype=dtype).pin_memory() if pin else vt.tensor(3, dtype=dtype)
    assert scalar.cuda(non_blocking=True).item() == 3


def test_copying_onto_another_device_is_recorded() -> None:
    x = vt.ones(3, requires_grad=True)
    y = vt.zeros(3, device="cuda")
    y.copy_(x * 2)
    (y * y).sum().backward()
    assert x.grad.tolist() == [8.0] * 3
    leaf = vt.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.copy_(vt.ones(3))
    with vt.no_grad():
        version = leaf._version
        leaf.copy_(vt.zeros(3))
    assert leaf._version == version + 1


def test_an_array_keeps_the_memory_it_shows() -> None:
    gc.collect()  # what other tests left
    before = hosts().stats()["allocated_bytes.current"]
    array = vt.full((5000,), 7.0, pin_memory=True).numpy()
    other = vt.full((5000,), 8.0, pin_memory=True)
    assert set(array) == {7.0}
    del array, other
    gc.collect()
    assert hosts().stats()["allocated_bytes.current"] == before


@emulated
def test_memory_that_a_copy_still_reads_is_not_handed_out() -> None:
    with late():
        x = vt.full((3000,), 3.0, pin_memory=True)
        address = x.data_ptr()
        y = x.to("cuda", non_blocking=True)
        del x
        other = vt.full((3000,), 9.0, pin_memory=True)
        assert other.data_ptr() != address
        assert set(y.tolist()) == {3.0}  # which waits
        assert vt.empty(3000, pin_memory=True).data_ptr() == address


@emulated
def test_a_recorded_stream_keeps_memory_of_the_gpu_until_it_came_so_far() -> None:
    side = vt.cuda.Stream()
    with late():
        x = vt.full((54321,), 2.0, device="cuda")
        address = x.data_ptr()
        side.wait_stream(vt.cuda.current_stream())
        with vt.cuda.stream(side):
            y = x * 2
        x.record_stream(side)
        del x
        assert vt.empty(54321, device="cuda").data_ptr() != address
        vt.cuda.synchronize()
        again = [vt.empty(54321, device="cuda") for _ in range(3)]
        assert address in [t.data_ptr() for t in again]
        assert y[0].item() == 4.0


def test_record_stream_takes_tensors_of_a_gpu() -> None:
    with pytest.raises(NotImplementedError, match="record_stream"):
        vt.ones(2).record_stream(vt.cuda.current_stream())


@anywhere
def test_host_blocks_are_reused_by_size_and_given_back() -> None:
    driver = Emulated()
    allocator = HostAllocator(driver)
    a, b = allocator.take(1), allocator.take(LEAST + 1)
    assert (a.nbytes, b.nbytes) == (LEAST, 2 * LEAST)
    assert allocator.find(b.address + LEAST) is b
    assert allocator.find(b.address + 2 * LEAST) is not b
    allocator.give(a)
    assert allocator.take(LEAST) is a
    b.streams.add((0, 0))
    driver.late = True
    allocator.give(b)
    assert allocator.take(2 * LEAST) is not b
    driver.flush()
    assert allocator.take(2 * LEAST) is b
    stats = allocator.stats()
    assert stats["num_host_alloc"] == 3
    assert stats["allocated_bytes.current"] == stats["reserved_bytes.current"] == 5 * LEAST
    allocator.give(a)
    allocator.give(b)
    assert allocator.empty_cache() == 3 * LEAST
    assert len(driver.pinned) == 1


@anywhere
def test_too_much_pinned_memory_is_an_error_that_says_so() -> None:
    from votive.backends.cuda.runtime.driver import OutOfDeviceMemory

    class Full(Emulated):
        def alloc_pinned(self, nbytes: int) -> int:
            raise OutOfDeviceMemory

    with pytest.raises(OutOfMemoryError, match=r"1.0 MiB cannot be page-locked"):
        HostAllocator(Full()).take(1 << 20)


@anywhere
def test_without_a_gpu_pinning_says_what_is_missing() -> None:
    if vt.cuda.is_available():
        pytest.skip("there is a GPU")
    assert not vt.ones(2).is_pinned()
    for make in (lambda: vt.ones(2).pin_memory(), lambda: vt.empty(2, pin_memory=True)):
        with pytest.raises(RuntimeError, match="requires a CUDA or other accelerator backend"):
            make()


@emulated
def test_memory_that_is_let_go_of_during_a_capture_waits_for_its_end() -> None:
    graph, side, x = vt.cuda.CUDAGraph(), vt.cuda.Stream(), vt.ones(5000, device="cuda")
    with vt.cuda.stream(side):
        source = vt.ones(5000).pin_memory()
        gone = vt.zeros(5000, device="cuda").copy_(source, non_blocking=True)
    gone.record_stream(vt.cuda.Stream())
    gone.record_stream(vt.cuda.default_stream())
    gc.collect()  # what other tests left
    vt.cuda.synchronize()
    vt.empty(1, pin_memory=True)  # takes back what they copied from
    pinned = hosts().stats()["allocated_bytes.current"]
    with vt.cuda.graph(graph, stream=side):
        y = vt.ones(5000, pin_memory=True)
        z = x.add(1)
        held = hosts().stats()["allocated_bytes.current"]
        del source, gone
        assert hosts().stats()["allocated_bytes.current"] == held  # nothing may be marked now
    vt.empty(1, pin_memory=True)
    assert hosts().stats()["allocated_bytes.current"] == pinned
    del y
    graph.replay()
    assert z[0].item() == 2.0


def test_a_graph_copies_from_pinned_memory_at_each_replay() -> None:
    graph, source = vt.cuda.CUDAGraph(), vt.ones(3).pin_memory()
    to = vt.zeros(3, device="cuda")
    with vt.cuda.graph(graph):
        to.copy_(source, non_blocking=True)
    assert to.tolist() == [0.0] * 3
    source.fill_(4)
    graph.replay()
    assert to.tolist() == [4.0] * 3
