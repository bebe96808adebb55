"""Ranks that do not do the same hear of it, all of them and at once: who, what, at which line."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from datetime import timedelta

import pytest

import votive
import votive.distributed as dist
from votive.distributed import check
from votive.distributed.transports.threads import Board, ThreadTransport

# Long before the timeout, however busy the machine is.
SOON = 30.0


def heard(program: Callable[[int], object], ranks: int = 3, timeout: float = 600) -> list[str]:
    """What each rank hears when all run a program that goes wrong; it must not take long."""

    def run() -> str:
        with pytest.raises(dist.DistBackendError) as error:
            program(dist.get_rank())
        return str(error.value)

    start = time.monotonic()
    texts = dist.simulate(run, ranks, timeout=timedelta(seconds=timeout))
    assert time.monotonic() - start < SOON
    return texts


def test_other_operators_are_named_with_rank_and_line() -> None:
    def program(rank: int) -> None:
        if rank == 1:
            dist.broadcast(votive.ones(3), 0)
        else:
            dist.all_reduce(votive.ones(3))

    for text in heard(program):
        assert re.search(r"rank 1, call 1: broadcast float32 \(3,\) from 0 at test_agreement.py:\d+", text)
        assert re.search(r"rank 2, call 1: all_reduce float32 \(3,\) SUM at test_agreement.py:\d+", text)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (lambda: dist.all_reduce(votive.ones(3)), lambda: dist.all_reduce(votive.ones(4))),
        (lambda: dist.all_reduce(votive.ones(3)), lambda: dist.all_reduce(votive.ones(3, dtype=votive.float64))),
        (lambda: dist.all_reduce(votive.ones(3)), lambda: dist.all_reduce(votive.ones(3), dist.ReduceOp.MAX)),
        (lambda: dist.broadcast(votive.ones(3), 0), lambda: dist.broadcast(votive.ones(3), 1)),
        (lambda: dist.barrier(), lambda: dist.all_gather_object([None] * 2, 1)),
        (lambda: dist.all_reduce(votive.ones(3), async_op=True).wait(), lambda: dist.barrier()),
        (
            lambda: dist.all_to_all([votive.ones(1)] * 2, [votive.ones(1)] * 2),
            lambda: dist.all_to_all([votive.ones(2)] * 2, [votive.ones(1)] * 2),
        ),
    ],
)
def test_other_sizes_types_roots_and_reductions_are_errors_on_all_ranks(
    mine: Callable[[], object], theirs: Callable[[], object]
) -> None:
    texts = heard(lambda rank: theirs() if rank else mine(), 2)
    assert all("test_agreement.py" in text for text in texts)


def test_a_call_that_others_made_before_shows_by_its_number() -> None:
    def program(rank: int) -> None:
        if rank == 0:
            dist.barrier(dist.group.WORLD) if dist.get_world_size() > 2 else None
        dist.all_reduce(votive.ones(1))
        if rank != 0:
            dist.all_reduce(votive.ones(1))

    texts = heard(program)
    assert all("rank 0, call 1: barrier" in text for text in texts)


def test_a_rank_that_has_ended_is_named_at_once() -> None:
    def program() -> str:
        dist.barrier()
        if dist.get_rank() == 1:
            return ""
        with pytest.raises(dist.DistBackendError) as error:
            dist.all_reduce(votive.ones(1))
        return str(error.value)

    start = time.monotonic()
    texts = dist.simulate(program, 3, timeout=timedelta(seconds=600))
    assert time.monotonic() - start < SOON
    assert all("rank 1 has left the group, its last call was barrier at test_agreement.py" in texts[r] for r in (0, 2))


def test_a_rank_that_fails_ends_the_others_and_is_the_one_that_is_raised() -> None:
    def program() -> None:
        if dist.get_rank() == 2:
            raise KeyError("of rank 2")
        dist.recv(votive.ones(1), 2)

    with pytest.raises(KeyError, match="of rank 2"):
        dist.simulate(program, 3, timeout=timedelta(seconds=600))


def test_a_late_rank_alone_is_named_after_two_seconds_and_waited_for() -> None:
    # Warnings belong to the process: the late rank sees that the others have given theirs.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        def program() -> float:
            dist.barrier()
            end = time.monotonic() + 60
            while dist.get_rank() == 2 and not caught and time.monotonic() < end:
                time.sleep(0.01)
            x = votive.ones(1)
            dist.all_reduce(x)
            return x.item()

        assert dist.simulate(program, 4) == [4.0] * 4
    first = str(caught[0].message)
    assert first.startswith("rank 0 has waited 2 seconds in all_reduce float32 (1,) SUM at test_agreement.py")
    assert ": rank 2 is not there, its last call was barrier at test_agreement.py:" in first
    assert "rank 1 " not in first
    assert "rank 3 " not in first


class Scripted(ThreadTransport):
    """One of three ranks, which hears what is written down here."""

    def __init__(self, rank: int, words: dict[int, list[bytes]]) -> None:
        super().__init__(Board(3), rank)
        self.words, self.told = words, list[tuple[int, bytes]]()

    def heard(self, source: int) -> bytes | None:
        return self.words[source].pop(0) if self.words.get(source) else None

    def tell(self, to: int, message: bytes) -> None:
        self.told.append((to, message))


def test_the_first_rank_says_who_is_missing_to_those_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MISSED_AFTER", 0.0)
    first = Scripted(0, {1: [b'[1, "barrier ", "barrier at x.py:1"]']})
    with pytest.raises(dist.DistBackendError, match=r"0\.1 seconds; rank 2 is not there, its last call was nothing"):
        check.Checker(first, [0, 1, 2], 0.1).meet(check.Call("barrier"))
    missed, *answers = first.told
    assert missed == (1, check.MISSED + b"rank 2 is not there, its last call was nothing so far")
    assert [to for to, _ in answers] == [1, 2]
    second = Scripted(1, {0: [missed[1]]})
    with pytest.raises(dist.DistBackendError, match=r"Timed out after 0\.0 seconds; rank 2 is not there"):
        check.Checker(second, [0, 1, 2], -1.0).meet(check.Call("barrier"))
    silent = Scripted(1, {})
    with pytest.raises(dist.DistBackendError, match="rank 0, the first of the group, is not there"):
        check.Checker(silent, [0, 1, 2], -1.0).meet(check.Call("barrier"))


def test_a_rank_that_never_comes_is_an_error_after_the_timeout() -> None:
    def program() -> str:
        if dist.get_rank() == 1:
            time.sleep(1)
            return ""
        with pytest.raises(dist.DistBackendError) as error:
            dist.monitored_barrier(timeout=timedelta(seconds=0.3))
        return str(error.value)

    text = dist.simulate(program, 2)[0]
    assert "Timed out after 0.3 seconds; rank 1 is not there, its last call was nothing so far" in text


def test_a_message_that_does_not_come_is_an_error_after_the_timeout() -> None:
    def program() -> None:
        with pytest.raises(
            dist.DistBackendError, match=r"recv from rank 1 of rank 0, float32 \(2,\) at test_agree.*0.2"
        ):
            dist.irecv(votive.zeros(2), 1).wait(timedelta(seconds=0.2))

    dist.simulate(lambda: program() if dist.get_rank() == 0 else None, 2)


def test_a_group_is_of_no_use_after_an_error() -> None:
    def program(rank: int) -> None:
        with pytest.raises(dist.DistBackendError, match="do not call the same"):
            dist.all_reduce(votive.ones(1 + rank))
        dist.barrier()

    assert all("of no use since an earlier error" in text for text in heard(program))
