"""A loader resumed in the middle of an epoch goes on as if it had never stopped."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive.data import seed_everything
from votive.utils.data import BatchSampler, DataLoader, DistributedSampler, RandomSampler, WeightedRandomSampler

from .test_workers import plain
from .worker_datasets import Drawing, Stream

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def seeded() -> Any:
    return votive.Generator().manual_seed(8)


LOADERS: dict[str, Callable[[int], DataLoader]] = {
    "in order": lambda w: DataLoader(Drawing(), 3, num_workers=w),
    "shuffled": lambda w: DataLoader(Drawing(), 3, shuffle=True, num_workers=w),
    "own generator": lambda w: DataLoader(Drawing(), 3, shuffle=True, generator=seeded(), num_workers=w),
    "with replacement": lambda w: DataLoader(
        Drawing(), 3, sampler=RandomSampler(range(24), True, 40, seeded()), num_workers=w
    ),
    "weighted": lambda w: DataLoader(Drawing(), 3, sampler=WeightedRandomSampler([1.0] * 24, 24), num_workers=w),
    "batch sampler": lambda w: DataLoader(
        Drawing(), batch_sampler=BatchSampler(RandomSampler(range(24)), 5, True), num_workers=w
    ),
    "samples": lambda w: DataLoader(Drawing(), None, shuffle=True, num_workers=w),
    # In this process training draws from the same generators, so a stream should not.
    "stream": lambda w: DataLoader(Stream(23, draws=w > 0), 3, num_workers=w),
    "persistent": lambda w: DataLoader(Drawing(), 3, shuffle=True, num_workers=w, persistent_workers=w > 0),
}


def stored(state: Any) -> Any:
    """A state that went through a file."""
    from votive.serialization import load, save

    f = io.BytesIO()
    save(state, f)
    f.seek(0)
    return load(f)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", LOADERS)
def test_a_resumed_epoch_and_the_next_are_those_of_an_uninterrupted_run(kind: str, workers: int) -> None:
    seed_everything(1)
    loader = LOADERS[kind](workers)
    whole = [plain(list(loader)), plain(list(loader))]

    seed_everything(1)
    loader = LOADERS[kind](workers)
    it = iter(loader)
    begun = plain([next(it) for _ in range(3)])
    state, random_state = stored(loader.state_dict()), stored(votive.data.get_random_state())
    del it

    seed_everything(2)
    loader = LOADERS[kind](workers)
    loader.load_state_dict(state)
    votive.data.set_random_state(random_state)
    assert begun + plain(list(loader)) == whole[0]
    assert plain(list(loader)) == whole[1]


def test_resuming_leaves_the_global_random_state_alone() -> None:
    loader = DataLoader(range(8), 2, shuffle=True)
    it = iter(loader)
    next(it)
    state = loader.state_dict()
    before = votive.get_rng_state()
    loader.load_state_dict(state)
    assert len(list(loader)) == 3
    assert bool((votive.get_rng_state() == before).all())


def test_between_epochs_the_next_one_is_resumed_whole() -> None:
    loader = DataLoader(range(8), 2, shuffle=True, generator=seeded())
    list(loader)
    state = loader.state_dict()
    want = plain(list(loader))
    other = DataLoader(range(8), 2, shuffle=True, generator=votive.Generator())
    other.load_state_dict(stored(state))
    assert plain(list(other)) == want


def test_the_epoch_of_a_distributed_sampler_is_part_of_the_state() -> None:
    def make() -> DataLoader:
        return DataLoader(range(16), 2, sampler=DistributedSampler(range(16), 2, 0))

    loader = make()
    loader.sampler.set_epoch(3)
    want = plain(list(loader))
    it = iter(loader)
    next(it)
    state = loader.state_dict()
    other = make()
    other.load_state_dict(state)
    assert plain(list(other)) == want[1:]


def test_a_state_survives_being_saved_again_before_it_is_used() -> None:
    loader = DataLoader(range(8), 2)
    it = iter(loader)
    next(it)
    other = DataLoader(range(8), 2)
    other.load_state_dict(loader.state_dict())
    third = DataLoader(range(8), 2)
    third.load_state_dict(other.state_dict())
    assert plain(list(third)) == [[2, 3], [4, 5], [6, 7]]


def test_a_state_of_another_loader_is_refused() -> None:
    loader = DataLoader(range(8), 2)
    with pytest.raises(ValueError, match="batch_size was 2 and is 4"):
        DataLoader(range(8), 4).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="samples was 8 and is 9"):
        DataLoader(range(9), 2).load_state_dict(loader.state_dict())
    stream = DataLoader(Stream(4))
    with pytest.raises(ValueError, match="num_workers was 0 and is 1"):
        DataLoader(Stream(4), num_workers=1).load_state_dict(stream.state_dict())


def test_with_another_number_of_workers_the_order_is_kept_and_a_warning_says_what_is_not() -> None:
    votive.manual_seed(0)
    loader = DataLoader(Drawing(), 3, shuffle=True, num_workers=2)
    it = iter(loader)
    begun = [next(it) for _ in range(2)]
    state = loader.state_dict()
    rest = [b[0].tolist() for b in it]
    other = DataLoader(Drawing(), 3, shuffle=True)
    with pytest.warns(UserWarning, match="random numbers drawn in workers"):
        other.load_state_dict(state)
    assert [b[0].tolist() for b in other] == rest
    assert len(begun) + len(rest) == 8
