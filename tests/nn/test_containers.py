"""Containers: as torch's, and as Python's lists and dictionaries."""

from __future__ import annotations

import random
from typing import Any

import pytest

import votive
from votive import nn


@pytest.mark.parametrize("kind", [nn.ModuleList, lambda: nn.Sequential()])
@pytest.mark.parametrize("seed", range(5))
def test_a_list_of_modules_changes_as_a_list_does(kind: Any, seed: int) -> None:
    rng = random.Random(seed)
    held, model = kind(), []
    for _ in range(60):
        n = len(model)
        what = rng.choice(["append", "insert", "delete", "set", "pop", "extend", "slice"])
        new = nn.Sequential()
        if what == "append":
            held.append(new)
            model.append(new)
        elif what == "insert":
            i = rng.randint(-n, n)
            held.insert(i, new)
            model.insert(i, new)
        elif what == "extend":
            held.extend([new, nn.Identity()])
            model.extend(list(held)[n:])
        elif n and what == "delete":
            i = rng.randint(-n, n - 1)
            del held[i], model[i]
        elif n and what == "set":
            i = rng.randint(-n, n - 1)
            held[i] = model[i] = new
        elif n and what == "pop":
            i = rng.randint(-n, n - 1)
            assert held.pop(i) is model.pop(i)
        elif n and what == "slice":
            s = slice(rng.randint(0, n), rng.randint(0, n), rng.choice([1, 2]))
            del held[s], model[s]
        assert [a is b for a, b in zip(held, model, strict=True)] == [True] * len(model)
        assert list(held._modules) == [str(i) for i in range(len(model))]


def test_a_sequence_passes_on_what_its_modules_return() -> None:
    class Pair(nn.Module):
        def forward(self, x: Any) -> Any:
            return x, x

    assert nn.Sequential(Pair(), nn.Identity())(1) == (1, 1)


def test_an_empty_parameter_dict_refuses_a_key_without_keeping_it() -> None:
    p = nn.ParameterDict()
    with pytest.raises(TypeError, match="not a string"):
        p[3] = votive.ones(1)
    assert len(p) == 0


def test_parameters_in_containers_learn() -> None:
    p = nn.ParameterList([votive.ones(2), votive.full((2,), 2.0)])
    d = nn.ParameterDict({"a": p[0]})
    (p[0] * p[1] * d["a"]).sum().backward()
    assert p[0].grad.tolist() == [4.0, 4.0]
    assert p[1].grad.tolist() == [1.0, 1.0]
