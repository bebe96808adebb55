"""Datasets that misbehave, or draw random numbers, where the worker tests need them to."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import votive
from votive.utils.data import Dataset, IterableDataset, get_worker_info


class Drawing(Dataset[Any]):
    """Samples that depend on every global generator."""

    def __init__(self, n: int = 24) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return i, votive.rand(()), random.random(), np.random.rand()


class Stream(IterableDataset[Any]):
    """Each worker's part of 0 .. n-1, with a number beside each, random if `draws`."""

    def __init__(self, n: int, draws: bool = False) -> None:
        self.n = n
        self.draws = draws

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(start, self.n, step):
            yield i, random.random() if self.draws else i / 2


class Own(Exception):
    """An exception whose constructor takes no message."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(a, b)


class Trouble(Dataset[Any]):
    """Does something bad at sample 5."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __len__(self) -> int:
        return 12

    def __getitem__(self, i: int) -> int:
        if i != 5:
            return i
        match self.kind:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(3)
            case "hang":
                time.sleep(60)
            case "key":
                raise KeyError("no sample five")
            case "own":
                raise Own(1, 2)
            case "local":

                class Hidden(ValueError):
                    pass

                raise Hidden("cannot be found by name")
        return i
