"""Arrays share memory and gradients with tensors, and behave as NumPy's do in programs."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy
import pytest

import votive
from tests import docstrings

np = votive.np


def test_an_array_and_its_tensor_share_memory_and_gradients() -> None:
    t = votive.ones(3, dtype=votive.float64, requires_grad=True)
    x = np.asarray(t)
    assert x.tensor is t
    assert votive.as_tensor(x) is t
    (np.sin(x) * x).sum().backward()
    assert t.grad is not None
    assert numpy.allclose(t.grad.numpy(), numpy.sin(1) + numpy.cos(1))
    assert x.grad.tensor is t.grad
    y = np.zeros(2)
    votive.as_tensor(y)[0] = 5
    assert y.tolist() == [5, 0]
    a = numpy.zeros(2)
    np.asarray(a)[1] = 7
    assert a.tolist() == [0, 7]


DIFFERENTIABLE = {
    "interp": lambda x: np.interp([0.5, 1.5], np.arange(3), x[:3]),
    "gradient": lambda x: np.gradient(x),
    "convolve": lambda x: np.convolve(x, x[:2]),
    "correlate": lambda x: np.correlate(x, x[:2], "full"),
    "percentile": lambda x: np.percentile(x, [20, 70]),
    "median": lambda x: np.median(x),
    "sort": lambda x: np.sort(x)[::-1] * np.arange(4),
    "cov": lambda x: np.cov(x.reshape(2, 2)),
    "einsum": lambda x: np.einsum("i,j->ij", x, x),
    "std": lambda x: np.std(x, ddof=1),
    "cumprod": lambda x: np.cumprod(x),
    "polyval": lambda x: np.polyval(x, 2.0),
    "pad": lambda x: np.pad(x, 2, mode="reflect"),
    "where": lambda x: np.where(x > 0.5, x**2, 1 / x),
    "nansum": lambda x: np.nansum(x * x),
    "inv": lambda x: np.linalg.inv(x.reshape(2, 2) + 3 * np.eye(2)),
    "norm": lambda x: np.linalg.norm(x, 3),
    "fft": lambda x: np.abs(np.fft.rfft(x)) ** 2,
    "unique": lambda x: np.unique(x),
    "fancy": lambda x: x[[0, 0, 3]] * x[::-1][1:],
    "apply_along_axis": lambda x: np.apply_along_axis(lambda v: v * v, 0, x),
    "piecewise": lambda x: np.piecewise(x, [x < 0.5], [lambda v: v**3, lambda v: v * 2]),
    "cbrt": lambda x: np.cbrt(x),
    "maximum.reduce": lambda x: np.maximum.reduce(x * x),
    "concatenate": lambda x: np.concatenate([x, [1.0], x * 2]),
    "list of arrays": lambda x: np.array([[x[0], 2.0], [3.0, x[1]]]),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_agree_with_differences(name: str) -> None:
    fn = DIFFERENTIABLE[name]
    start = votive.tensor([0.3, 0.9, 0.7, 0.4], dtype=votive.float64, requires_grad=True)
    assert votive.autograd.gradcheck(lambda t: fn(np.asarray(t)).tensor, (start,))


def test_what_numpy_computes_on_the_side_refuses_gradients() -> None:
    x = np.asarray(votive.ones(3, dtype=votive.float64, requires_grad=True))
    with pytest.raises(NotImplementedError, match="no gradient"):
        np.unwrap(x)


def test_scalars_do_not_change_with_the_array() -> None:
    x = np.array([1, 2])
    a, b = x[0], x[1]
    x[0], x[1] = b, a
    assert x.tolist() == [2, 1]
    total = x.sum()
    alias = total
    total += 5
    assert (int(total), int(alias)) == (8, 3)
    assert {x[0]: "two"}[2] == "two"
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert f"{np.array([1.0, 2.0]).mean():.2f}" == "1.50"


def test_functions_of_numpy_called_on_arrays_give_arrays() -> None:
    x = np.arange(4.0)
    assert isinstance(numpy.sin(x), np.ndarray)
    assert isinstance(numpy.concatenate([x, x]), np.ndarray)
    assert isinstance(numpy.linalg.norm(x), np.ndarray)
    assert isinstance(numpy.fft.fft(x), np.ndarray)
    assert isinstance(numpy.add.reduce(x), np.ndarray)
    assert isinstance(numpy.ones(4) + x, np.ndarray)
    assert isinstance(numpy.float64(2) * x, np.ndarray)
    target = numpy.zeros(4)
    assert numpy.add(x, 1, out=target) is target
    target += x
    assert target.tolist() == [1, 3, 5, 7]
    numpy.testing.assert_allclose(x, numpy.arange(4.0))
    with pytest.raises(TypeError):
        numpy.busday_count(x, x)


def test_tensors_and_arrays_meet_as_arrays() -> None:
    x, t = np.array([1, 2]), votive.tensor([1, 2])
    for y in (x + t, t + x, t * x, x == t, t / x):
        assert isinstance(y, np.ndarray)
    assert (t / x).dtype == np.float64


def test_arrays_are_copied_pickled_and_exported() -> None:
    x = np.arange(3.0)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        y[0] = 9
        assert (x.tolist(), y.tolist()) == ([0, 1, 2], [9, 1, 2])
    shared = numpy.from_dlpack(x)
    x[1] = 5
    assert shared[1] == 5
    assert numpy.asarray(x, dtype="int32").dtype == numpy.int32
    with pytest.raises(ValueError, match="copy"):
        np.asarray([1, 2], copy=False)


def test_files_and_text_go_both_ways(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    assert np.array_equal(np.load(tmp_path / "x.npy"), x)
    np.savez(tmp_path / "x.npz", a=x)
    with np.load(tmp_path / "x.npz") as archive:
        assert np.array_equal(archive["a"], x)
    np.savetxt(tmp_path / "x.txt", x)
    assert np.array_equal(np.loadtxt(tmp_path / "x.txt"), x)
    with pytest.raises(ValueError, match="pickle"):
        np.load(tmp_path / "x.npy", allow_pickle=True)


def test_other_kinds_of_values_are_refused_with_a_reason() -> None:
    for make in (lambda: np.array(["a"]), lambda: np.zeros(2, object), lambda: np.zeros(2, "datetime64[s]")):
        with pytest.raises(TypeError, match="holds numbers"):
            make()
    with pytest.raises(TypeError, match="widest"):
        np.zeros(2, "longdouble")
    with pytest.raises(AttributeError, match="ndindex"):
        _ = np.nditer
    with pytest.raises(NotImplementedError, match="isfinite"):
        np.errstate(all="raise")


MODULES = [votive.np.lib.stride_tricks, votive.np, votive.np.linalg, votive.np.fft, votive.np.emath, votive.np.random]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_names_have_docstrings_whose_examples_run(module: object) -> None:
    ran = 0
    for name, value in vars(module).items():
        if (
            name.startswith("_")
            or not str(getattr(value, "__module__", "")).startswith("votive")
            or not callable(value)
        ):
            continue
        assert value.__doc__, name
        if ">>>" in value.__doc__:
            docstrings.run(name, value.__doc__)
            ran += 1
    assert ran
