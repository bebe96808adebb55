"""Models on several devices of one process, gradients of convolutions, and the paths where torch keeps its modules."""

from __future__ import annotations

import importlib
import inspect
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive import nn
from votive.nn import grad, parallel
from votive.nn.modules import utils

MODULES = docstrings.modules_of(parallel)
DOCS = docstrings.examples([parallel, *MODULES, grad, utils])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def test_pieces_on_two_devices_give_the_whole_and_its_gradients() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2))).eval()
    x = votive.tensor(np.random.default_rng(0).standard_normal((6, 3)).astype("f4"), requires_grad=True)
    places = ["cpu", "cpu", "cpu"]
    args, named = parallel.scatter_gather.scatter_kwargs((x,), {}, places)
    whole = net(x)
    joined = parallel.gather(parallel.parallel_apply(parallel.replicate(net, places), args, named), "cpu")
    np.testing.assert_allclose(joined.detach(), whole.detach(), rtol=1e-6)
    whole.square().sum().backward()
    wanted = [p.grad for p in net.parameters()]
    net.zero_grad()
    joined.square().sum().backward()
    for p, g in zip(net.parameters(), wanted, strict=True):
        np.testing.assert_allclose(p.grad, g, rtol=1e-4, atol=1e-6)
    assert all(p.is_leaf for p in net.parameters())


def test_data_parallel_without_a_gpu_is_the_module_itself() -> None:
    net = nn.DataParallel(nn.Linear(2, 1))
    if votive.cuda.is_available():
        pytest.skip("there is a GPU")
    assert net.device_ids == []
    x = votive.ones(3, 2)
    assert (net(x) == net.module(x)).all()


def test_arguments_of_any_form_are_cut_and_joined() -> None:
    Pair = namedtuple("Pair", "a b")
    given = (votive.arange(5), {"k": [votive.arange(4), 7]}, Pair(votive.ones(2), "x"))
    first, second = parallel.scatter(given, ["cpu", "cpu"])
    assert first[0].tolist() == [0, 1, 2]
    assert second[1]["k"][0].tolist() == [2, 3]
    assert second[1]["k"][1] == 7
    assert isinstance(first[2], Pair)
    joined = parallel.gather([Pair(votive.ones(1), [votive.zeros(2)]), Pair(votive.ones(1), [votive.zeros(1)])], "cpu")
    assert (joined.a.tolist(), joined.b[0].tolist()) == ([1.0, 1.0], [0.0, 0.0, 0.0])


def test_an_error_in_a_piece_reaches_the_caller() -> None:
    with pytest.raises(RuntimeError, match="linear"):
        parallel.parallel_apply([nn.Linear(2, 1)] * 2, [votive.ones(1, 2), votive.ones(1, 3)])


@pytest.mark.parity
@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions_are_torchs(n: int) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(n)
    how: dict[str, Any] = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    x, w = (rng.standard_normal(s).astype("f4") for s in ((2, 4, *(7,) * n), (6, 2, *(3,) * n)))
    out = []
    for lib in (votive, torch):
        a, b = lib.tensor(x), lib.tensor(w)
        g = getattr(lib.nn.functional, f"conv{n}d")(a, b, None, **how)
        import_ = importlib.import_module(f"{lib.__name__}.nn.grad")
        out.append(
            [
                getattr(import_, f"conv{n}d_input")(a.shape, b, g, **how).numpy(),
                getattr(import_, f"conv{n}d_weight")(a, b.shape, g, **how).numpy(),
            ]
        )
    for mine, other in zip(*out, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parity
@pytest.mark.parametrize("name", [*nn.modules._PATHS, "container", "lazy", "module"])
def test_classes_are_found_where_torch_keeps_them(name: str) -> None:
    theirs = pytest.importorskip(f"torch.nn.modules.{name}")
    mine = importlib.import_module(f"votive.nn.modules.{name}")
    for key, value in vars(theirs).items():
        if inspect.isclass(value) and value.__module__ == theirs.__name__ and not key.startswith("_"):
            found = getattr(mine, key)
            assert found is getattr(nn, key, found)
            assert getattr(nn.modules, key, found) is found
