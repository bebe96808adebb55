"""One server for the tests of this folder, and a device on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import votive

from .ground import Ground


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with Ground(tmp_path_factory.mktemp("device")) as made:
        yield made


@pytest.fixture(scope="module")
def place(ground: Ground) -> Iterator[votive.device]:
    """A device elsewhere."""
    device = ground.connect()
    yield device
    votive.remote.disconnect(device)
