"""The thread pool: forked children, many Python threads, errors, and resizing under load."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive

from .compare import needs_native, reference_only

pytestmark = needs_native
ROOT = Path(__file__).parents[2]
LARGE = 300_000  # well above where work is shared out


@pytest.fixture(autouse=True)
def several_threads() -> Iterator[None]:
    was = votive.get_num_threads()
    votive.set_num_threads(4)
    yield
    votive.set_num_threads(was)


def compute(n: int = LARGE, seed: int = 0) -> tuple[Any, Any]:
    """Something that uses the pool, and what it must give."""
    x = np.random.default_rng(seed).standard_normal(n).astype(np.float32)
    t = votive.from_numpy(x)
    ours = ((t * 2.0 + 1.0).tanh() - t).numpy()
    return ours, np.tanh(x * 2 + 1) - x


def right(n: int = LARGE, seed: int = 0) -> bool:
    ours, want = compute(n, seed)
    return bool(np.allclose(ours, want, rtol=1e-5, atol=1e-6))


def finished(pid: int, seconds: float = 60) -> int:
    """The exit code of a child, or a failure if it hangs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the child hangs")


def in_child(check: Callable[[], bool]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 2
        try:
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return finished(pid)


# Python warns that forking a process with threads may deadlock; that is what is tested here.
forks = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


@forks
def test_a_forked_child_computes_and_so_does_its_parent() -> None:
    assert right()
    assert in_child(right) == 0
    assert right()
    assert in_child(lambda: in_child(right) == 0 and right()) == 0


@forks
def test_a_child_forked_while_another_thread_computes_is_not_stuck() -> None:
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            compute(2 * LARGE)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        codes = [in_child(right) for _ in range(10)]
    finally:
        stop.set()
        thread.join()
    assert codes == [0] * 10
    assert right()


@forks
def test_a_child_can_choose_its_own_number_of_threads() -> None:
    assert right()

    def check() -> bool:
        votive.set_num_threads(2)
        return right() and votive.get_num_threads() == 2

    assert in_child(check) == 0
    assert votive.get_num_threads() == 4


@forks
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_workers_compute(method: str) -> None:
    assert right()
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.starmap_async(right, [(LARGE, i) for i in range(4)]).get(120) == [True] * 4
    assert right()


def test_many_python_threads_at_once_get_right_results() -> None:
    sizes = [1, 100, 5_000, 70_000, LARGE]
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(right, sizes[i % 5], i) for i in range(80)]
        assert all(j.result(120) for j in jobs)


def test_many_python_threads_train_side_by_side() -> None:
    def train(seed: int) -> list[float]:
        x = votive.from_numpy(np.random.default_rng(seed).standard_normal((64, 200)))
        w = votive.zeros(200, 300, dtype=votive.float64, requires_grad=True)
        losses = []
        for _ in range(5):
            loss = ((x @ w).tanh() - 0.5).square().mean()
            (g,) = votive.autograd.grad(loss, w)
            with votive.no_grad():
                w -= 100 * g
            losses.append(loss.item())
        return losses

    alone = [train(i) for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(train, range(6)))
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_the_number_of_threads_may_change_while_others_compute() -> None:
    stop = threading.Event()
    wrong: list[int] = []

    def busy(seed: int) -> None:
        while not stop.is_set():
            if not right(LARGE, seed):
                wrong.append(seed)

    threads = [threading.Thread(target=busy, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for i in range(60):
        votive.set_num_threads(1 + i % 5)
        assert right(50_000, i)
    stop.set()
    for t in threads:
        t.join(60)
    assert not wrong


BAD_INDEX = {
    "index_select": lambda i: votive.zeros(100, 4).index_select(0, i),
    "gather": lambda i: votive.zeros(100, 4).gather(0, i.view(-1, 1)),
    "embedding": lambda i: votive.nn.functional.embedding(i, votive.zeros(100, 4)),
    "index": lambda i: votive.zeros(100, 4)[i],
    "take": lambda i: votive.zeros(100).take(i),
}


@pytest.mark.parametrize("name", BAD_INDEX)
@pytest.mark.parametrize("place", [0, LARGE // 2, LARGE - 1])
def test_an_error_in_any_piece_of_the_work_reaches_the_caller(name: str, place: int) -> None:
    index = votive.zeros(LARGE, dtype=votive.int64)
    index[place] = 1000
    with reference_only(), pytest.raises((IndexError, RuntimeError)) as reference:
        BAD_INDEX[name](index)
    with pytest.raises(reference.type) as error:
        BAD_INDEX[name](index)
    assert str(error.value) == str(reference.value)
    assert right()  # the pool is free again


def test_random_sizes_and_thread_counts_agree_with_numpy() -> None:
    rng = random.Random(0)
    for i in range(150):
        if i % 10 == 0:
            votive.set_num_threads(rng.randint(1, 6))
        n = int(2 ** rng.uniform(0, 19))
        assert right(n, i), n
        x = np.random.default_rng(i).standard_normal(n)
        t = votive.from_numpy(x)
        np.testing.assert_allclose(t.sum().item(), x.sum(), rtol=1e-9, atol=1e-9)
        rows = rng.randint(1, max(1, n // 8))
        m = x[: n // rows * rows].reshape(rows, -1)
        v = votive.from_numpy(m)
        np.testing.assert_allclose((v.t() + 1).numpy(), m.T + 1, rtol=1e-12)
        np.testing.assert_allclose(v.sum(0).numpy(), m.sum(0), rtol=1e-9, atol=1e-9 * max(1, rows) ** 0.5)


def test_a_process_ends_although_its_pool_is_in_use() -> None:
    code = (
        "import threading, votive\n"
        "votive.set_num_threads(4)\n"
        "x = votive.ones(1_000_000)\n"
        "def forever():\n"
        "    while True: x + x\n"
        "for _ in range(2): threading.Thread(target=forever, daemon=True).start()\n"
        "for _ in range(50): x * x\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60, cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr
