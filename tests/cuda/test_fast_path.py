"""The native module's short ways of launches and memory: the same as the long ways."""

from __future__ import annotations

import ctypes as c
import gc
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.backends.cpu.native.loader import module

from .device import anywhere

native = pytest.mark.skipif(module is None, reason="there is no native module")
Seen = list[tuple[Any, ...]]


@pytest.fixture
def launches() -> Iterator[tuple[Seen, Callable[[int], None]]]:
    """What a driver would be told: (function, grid, threads, shared, stream, arguments)."""
    from votive.backends.cuda import runtime as rt
    from votive.backends.cuda.runtime import fast_path

    seen: Seen = []
    answer = 0
    kinds: list[str] = []

    def launch(
        f: int, x: int, y: int, z: int, bx: int, by: int, bz: int, shared: int, stream: int, params: Any, extra: Any
    ) -> int:
        words = [c.cast(params[i], c.POINTER(c.c_uint64))[0] for i in range(len(kinds) + 2)]
        seen.append((f, (x, y, z), (bx, by, bz), shared, stream, tuple(words)))
        return answer

    def expect(text: str, code: int = 0) -> None:
        nonlocal answer
        kinds[:], answer = list(text), code

    uints, pointer = [c.c_uint] * 7, c.POINTER(c.c_void_p)
    kept = c.CFUNCTYPE(c.c_int, c.c_void_p, *uints, c.c_void_p, pointer, c.c_void_p)(launch)
    module.set_current(0, 77, ())
    fast_path.launching(c.cast(kept, c.c_void_p).value or 0)
    yield seen, expect  # type: ignore[misc]
    fast_path.launching(0)
    if rt.here is None:
        module.set_current(-1, 0, ())
    else:
        fast_path.launching(0 if rt.SYNC else rt.runtime.driver.launch_address)
        rt.here._refresh()


class Plain(module.Launcher if module is not None else object):  # type: ignore[misc]
    """A program that notes what came the long way."""

    def __init__(self, kinds: str) -> None:
        self.long: list[Any] = []
        self._arrange(kinds)

    def _general(self, grid: Any, *args: Any) -> None:
        self.long.append((grid, *args))

    def _failed(self, grid: Any, code: int) -> None:
        raise RuntimeError(f"{grid} {code}")


def bits(form: str, value: float) -> int:
    return int.from_bytes(struct.pack(form, value).ljust(8, b"\0"), "little")


@native
@anywhere
def test_arguments_reach_the_driver_as_their_types_say(launches: Any) -> None:
    seen, expect = launches
    program = Plain("pifd")
    expect("pifd")
    program((3, 2), 4096, -5, 0.1, 0.1)
    assert program.long == [((3, 2), 4096, -5, 0.1, 0.1)]
    assert not seen
    program._settle(True, 0, 1234, 128, 512)
    program((3, 2), 4096, -5, 0.1, 0.1)
    words = (4096, (1 << 64) - 5, bits("<f", 0.1), bits("<d", 0.1), 0, 0)
    assert seen == [(1234, (3, 2, 1), (128, 1, 1), 512, 77, words)]
    program((1,), 0, True, 7, float("inf"))
    words = (0, 1, bits("<f", 7.0), bits("<d", float("inf")), 0, 0)
    assert seen[1] == (1234, (1, 1, 1), (128, 1, 1), 512, 77, words)
    program((1,), 16, 0, np.float64(1e300), np.float64(2.0))
    assert seen[2][5] == (16, 0, bits("<f", float("inf")), bits("<d", 2.0), 0, 0)
    assert len(program.long) == 1


@native
@anywhere
def test_addresses_decide_about_the_kernel(launches: Any) -> None:
    seen, expect = launches
    program = Plain("pp")
    expect("pp")
    program._settle(True, 0, 1, 32, 0)
    program((1,), 64, 32)
    program((1,), 64, 34)  # not loaded for odd addresses
    assert len(seen) == 1
    assert program.long == [((1,), 64, 34)]
    program._settle(False, 0, 2, 32, 0)
    program((1,), 64, 34)
    assert [s[0] for s in seen] == [1, 2]


@native
@anywhere
@pytest.mark.parametrize(
    "args",
    [
        ((1,), 64),
        ((1,), 64, 1, 2),
        ((1,), 64, "1"),
        ((1,), 64, 1 << 70),
        ((), 64, 1),
        ((1, 1, 1, 1), 64, 1),
        ((1 << 40,), 64, 1),
        ([1], 64, 1),
        ((-1,), 64, 1),
    ],
)
def test_what_is_unusual_goes_the_long_way(launches: Any, args: Any) -> None:
    seen, expect = launches
    program = Plain("pi")
    expect("pi")
    program._settle(True, 0, 1, 32, 0)
    program(*args)
    assert not seen
    assert program.long == [args]
    with pytest.raises(TypeError):
        program()


@native
@anywhere
def test_another_device_or_thread_goes_the_long_way_first(launches: Any) -> None:
    seen, expect = launches
    program = Plain("p")
    expect("p")
    program._settle(True, 0, 1, 32, 0)
    thread = threading.Thread(target=lambda: program((1,), 16))
    thread.start()
    thread.join()
    assert not seen
    assert len(program.long) == 1
    module.set_current(1, 5, ())
    program((1,), 16)
    assert not seen
    assert len(program.long) == 2


@native
@anywhere
def test_what_the_driver_answers_is_raised(launches: Any) -> None:
    _, expect = launches
    program = Plain("p")
    expect("p", 700)
    program._settle(True, 0, 1, 32, 0)
    with pytest.raises(RuntimeError, match=r"\(4,\) 700"):
        program((4,), 16)


class Product(module.DeviceProduct if module is not None else object):  # type: ignore[misc]
    """A product that notes what came the long way."""

    def __init__(self, *told: Any) -> None:
        self.long: list[Any] = []
        self._arrange(*told)

    def _general(self, *args: Any, **how: Any) -> None:
        self.long.append((args, how))

    def _failed(self, code: int) -> None:
        raise RuntimeError(f"returned error {code}")


@native
@anywhere
def test_products_reach_the_library_with_their_places(launches: Any) -> None:
    said: list[Any] = []
    p = c.c_void_p

    def multiply(*args: Any) -> int:
        said.append(args)
        return 13 if args[10] == 0xBAD0 else 0

    def told(desc: int, attribute: int, value: Any, size: int) -> int:
        said.append((desc, attribute, value[0], size))
        return 0

    matmul = c.CFUNCTYPE(c.c_int, *[p] * 14, c.c_size_t, p)(multiply)
    places = c.CFUNCTYPE(c.c_int, p, c.c_int, c.POINTER(c.c_uint64), c.c_size_t)(told)
    addresses = [c.cast(f, p).value for f in (matmul, places)]
    product = Product(*addresses, 9, (1, 2, 3, 4), 101, 100, 4096, (("bias", 8), ("aux", 11)))
    product(16, 32, 48)
    assert product.long == [((16, 32, 48), {})]  # no algorithm yet
    product._settle(0, 55, 66)
    product(16, 32, 48)
    assert len(product.long) == 2  # no scratch memory yet
    module.set_space(1 << 20)
    product(16, 32, 48)
    assert said == [(55, 9, 101, 16, 1, 32, 2, 100, 48, 3, 48, 4, 66, 1 << 20, 4096, 77)]
    said.clear()
    product(16, 32, 48, bias=80, aux=0, add=96)
    assert said[0] == (9, 8, 80, 8)
    assert said[1][8:11] == (96, 3, 48)
    product(16, 32, 48, bias=80)
    assert [len(s) for s in said] == [4, 16, 16]  # said once
    product._hold(1)
    product(16, 32, 48, bias=80)
    assert product.long[2:] == [((16, 32, 48), {"bias": 80})]
    product._hold(-1)
    product(16, 32, 48, bias=80)
    assert [len(s) for s in said] == [4, 16, 16, 4, 16]  # the long way may have said another
    for unusual in ({"beta": 1.0}, {"bias": "x"}, {"add": 8}):
        product(16, 32, 48, **unusual)
        assert product.long[-1] == ((16, 32, 48), unusual)
    product(16, 33, 48)
    assert product.long[-1] == ((16, 33, 48), {})
    with pytest.raises(RuntimeError, match="returned error 13"):
        product(16, 32, 0xBAD0)
    module.set_current(0, 78, ())
    product(16, 32, 48)
    assert product.long[-1] == ((16, 32, 48), {})  # another stream has other scratch memory


def stats() -> dict[str, int]:
    from votive.backends.cuda import runtime as rt

    return rt.runtime.allocator(rt.here.device).stats()


def test_memory_is_counted_and_comes_back() -> None:
    x = vt.ones(3000, device="cuda")
    y = x + x
    del y
    gc.collect()
    before = stats()
    place = (z := x * 2).data_ptr()
    during = stats()
    assert during["allocated_bytes.current"] - before["allocated_bytes.current"] == 12288
    assert during["allocation.count"] == before["allocation.count"] + 1
    del z
    assert stats()["allocated_bytes.current"] == before["allocated_bytes.current"]
    assert (x * 3).data_ptr() == place  # the same block again
    assert stats()["segment.count"] == before["segment.count"]


def test_no_memory_is_given_to_two_threads() -> None:
    live: set[int] = set()
    lock, wrong = threading.Lock(), []

    def work() -> None:
        for _ in range(300):
            held = [vt.empty(n, device="cuda") for n in (10, 700, 700, 5000)]
            places = {t.data_ptr() for t in held}
            with lock:
                wrong.extend(places & live)
                live.update(places)
            with lock:
                live.difference_update(places)
            del held

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("shape", [(), (5,), (4, 3), (0,)])
def test_writing_over_what_is_read(shape: tuple[int, ...]) -> None:
    x = vt.arange(float(max(np.prod(shape, dtype=int), 1)))[: int(np.prod(shape, dtype=int))]
    x = x.reshape(shape)
    y = x.cuda()
    assert y.add_(y).cpu().tolist() == (x + x).tolist()
    assert y.mul_(2.0).cpu().tolist() == (x * 4).tolist()
    assert y._version == 2


def test_writing_over_a_shifted_or_turned_view_of_the_same_memory() -> None:
    x = vt.arange(12.0)
    y = x.cuda()
    y[1:].add_(y[:-1])
    x[1:].add_(x[:-1].clone())
    assert y.cpu().tolist() == x.tolist()
    m = x.reshape(3, 4)[:, :3]
    n = y.view(3, 4)[:, :3]
    n.mul_(n.t())
    assert n.cpu().tolist() == (m * m.t()).tolist()


def test_small_numbers_of_all_kinds_fill() -> None:
    for dtype in (vt.float32, vt.bfloat16, vt.int8, vt.bool, vt.int64):
        for value in (0, 1, True, 0.0, -0.0, 1.0, 1.5):
            have = vt.full((3,), value, dtype=dtype, device="cuda").cpu()
            want = vt.full((3,), value, dtype=dtype)
            assert have.tolist() == want.tolist()
            if dtype.is_floating_point:
                assert vt.signbit(have).tolist() == vt.signbit(want).tolist()
