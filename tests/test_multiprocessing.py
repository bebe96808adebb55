"""Processes that run one function: their results, errors and ends."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

import votive
from tests import docstrings
from votive import multiprocessing as mp
from votive.multiprocessing import spawn as spawning

DOCS = docstrings.examples([mp, spawning])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def square(i: int, queue: Any) -> None:
    queue.put((i, votive.full((2,), i) ** 2))


def fails(i: int) -> None:
    if i == 1:
        raise ValueError("number one")
    signal.pause()


def leaves(i: int, how: str) -> None:
    os._exit(3) if how == "exit" else os.kill(os.getpid(), signal.SIGKILL)


def test_results_come_back_through_a_queue() -> None:
    queue = mp.get_context("fork").Queue()
    context = mp.start_processes(square, (queue,), nprocs=2, join=False, start_method="fork")
    assert context is not None
    found = dict(queue.get(timeout=20) for _ in range(2))
    while not context.join():
        pass
    assert {i: x.tolist() for i, x in found.items()} == {0: [0, 0], 1: [1, 1]}


def test_an_error_ends_the_others_and_is_shown() -> None:
    with pytest.raises(mp.ProcessRaisedException, match="ValueError: number one") as caught:
        mp.start_processes(fails, nprocs=2, start_method="fork")
    assert caught.value.error_index == 1


@pytest.mark.parametrize(("how", "code"), [("exit", 3), ("kill", -9)])
def test_a_process_that_leaves_is_named(how: str, code: int) -> None:
    with pytest.raises(mp.ProcessExitedException) as caught:
        mp.start_processes(leaves, (how,), nprocs=1, start_method="fork")
    assert caught.value.exit_code == code


@pytest.mark.parity
def test_torchs_names_are_there() -> None:
    theirs = pytest.importorskip("torch.multiprocessing")
    assert [n for n in theirs.__all__ if not hasattr(mp, n)] == []
    with pytest.raises(AssertionError, match="Invalid sharing strategy"):
        mp.set_sharing_strategy("mail")
