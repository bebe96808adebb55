"""Collectives, messages and groups on ranks that are threads, and the examples of their docstrings."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

import votive
import votive.distributed as dist
from tests import docstrings
from tests.distributed.programs import PROGRAMS
from votive.distributed import transports

MODULES = [m for m in docstrings.modules_of(dist) if not m.__name__.endswith("transports")]
DOCS = docstrings.examples([dist, *MODULES, *docstrings.modules_of(transports)])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def test_every_public_name_shows_how_it_is_used() -> None:
    missing = [n for n in dist.__all__ if callable(getattr(dist, n)) and not docstrings.explained(getattr(dist, n))]
    assert not missing


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_ranks_agree(name: str, ranks: int) -> None:
    dist.simulate(PROGRAMS[name], ranks, timeout=timedelta(seconds=20))


def test_nothing_of_it_is_loaded_before_it_is_used() -> None:
    code = "import sys, votive\nassert not [m for m in sys.modules if 'distributed' in m or 'mpi4py' in m]"
    code += (
        "\nimport votive.nn, votive.optim\nassert not [m for m in sys.modules if m.startswith('votive.distributed')]"
    )
    code += "\nassert votive.distributed.is_available() and not votive.distributed.is_initialized()"
    code += "\nassert 'mpi4py' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_outside_of_any_group_calls_say_what_is_missing() -> None:
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(votive.ones(1))):
        with pytest.raises(ValueError, match="init_process_group"):
            call()
    with pytest.raises(ValueError, match="use mpi"):
        dist.init_process_group("smoke")
    with pytest.raises(ValueError, match="simulate"):
        dist.init_process_group("threads")


def test_one_process_is_a_world_of_its_own() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        for program in PROGRAMS.values():
            program()
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo")
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()
