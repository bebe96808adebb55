"""What is no tensor of votive's is refused with its full name and the way to convert it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive as vt
from votive.core import device as devices
from votive.core.errors import DeviceError

F = vt.nn.functional
v = vt.ones(2)


class Tensor:
    """A tensor of torch to whoever looks at its type; the test needs no torch."""

    __module__ = "torch"
    ndim, shape, dtype = 1, (2,), "torch.float32"

    def __dlpack__(self, **_: Any) -> Any:
        return np.ones(2, np.float32).__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def detach(self) -> Tensor:
        return self

    def dim(self) -> int:
        return 1

    def item(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")

    def __index__(self) -> int:
        raise TypeError("only integer tensors of a single element can be converted to an index")


CALLS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: vt.exp(x),
    "sum": lambda x: vt.sum(x),
    "add": lambda x: vt.add(v, x),
    "cat": lambda x: vt.cat([v, x]),
    "stack": lambda x: vt.stack([x]),
    "where": lambda x: vt.where(v > 0, x, v),
    "matmul": lambda x: vt.matmul(v, x),
    "einsum": lambda x: vt.einsum("i,i", v, x),
    "reshape": lambda x: vt.reshape(x, (2,)),
    "zeros_like": lambda x: vt.zeros_like(x),
    "topk": lambda x: vt.topk(x, 1),
    "layer_norm": lambda x: vt.nn.LayerNorm(2)(x),
    "linear": lambda x: vt.nn.Linear(2, 2)(x),
    "embedding": lambda x: vt.nn.Embedding(3, 2)(x),
    "relu": lambda x: vt.nn.ReLU()(x),
    "mse_loss": lambda x: F.mse_loss(v, x),
    "allclose|isclose": lambda x: vt.allclose(v, x),
    "add: out": lambda x: vt.add(v, v, out=x),
    "copy_": lambda x: v.clone().copy_(x),
    "fill_": lambda x: v.clone().fill_(x),
    "set_": lambda x: vt.ones(2).set_(x),
    "grad": lambda x: setattr(vt.ones(2), "grad", x),
    "Parameter": lambda x: vt.nn.Parameter(x),
    "can't assign": lambda x: v.clone().__setitem__(0, x),
    "split": lambda x: vt.split(x, 1),
    "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_of_torch_is_named_as_such(name: str) -> None:
    how = r"got a torch\.Tensor; convert it with votive\.from_dlpack\(x\.detach\(\)\)"
    with pytest.raises(TypeError, match=f"^({name}).*{how}"):
        CALLS[name](Tensor())


@pytest.mark.parametrize("name", CALLS)
def test_an_array_and_a_list_are_too(name: str) -> None:
    with pytest.raises(TypeError, match=r"got numpy\.ndarray; convert it with votive\.from_numpy"):
        CALLS[name](np.ones(2, np.float32))
    with pytest.raises(TypeError, match=r"got list; make it one with votive\.tensor"):
        CALLS[name]([1.0, 2.0])


def test_what_the_error_advises_works() -> None:
    assert vt.from_dlpack(Tensor().detach()).tolist() == [1, 1]
    assert vt.from_numpy(np.ones(2)).tolist() == [1, 1]


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "matmul": lambda a, b: a @ b,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_refuse_tensors_of_torch_on_either_side(name: str) -> None:
    for a, b in ((v, Tensor()), (Tensor(), v)):
        with pytest.raises(TypeError, match=r"expected a Tensor or a number, got a torch\.Tensor"):
            OPERATORS[name](a, b)


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_arrays_of_numpy_on_either_side(name: str) -> None:
    a, b = np.array([1.0, 2.0, 4.0]), vt.tensor([1.0, 3.0, 2.0])
    for left, right in ((a, b), (b, a)):
        got = OPERATORS[name](left, right)
        assert isinstance(got, vt.Tensor)
        want = OPERATORS[name](np.asarray(left), np.asarray(right))
        np.testing.assert_allclose(got.numpy(), want)
    b += a
    assert b.tolist() == [2, 5, 6]


def test_operators_leave_other_objects_their_say() -> None:
    class Says:
        def __radd__(self, other: Any) -> str:
            return "mine"

    assert v + Says() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        v + "text"


def test_modules_say_what_they_were_given() -> None:
    for module in (vt.nn.BatchNorm1d(2), vt.nn.LSTM(2, 2), vt.nn.Conv1d(1, 1, 1)):
        with pytest.raises((TypeError, RuntimeError)) as e:
            module([1.0, 2.0])
        assert "'list' object has no attribute" not in str(e.value)
    with pytest.raises(TypeError, match="BatchNorm1d: expected a Tensor, got list") as e:
        vt.nn.Sequential(vt.nn.BatchNorm1d(2))([1.0, 2.0])
    assert e.value.__notes__ == ["in module '0' (BatchNorm1d)"]


def test_an_attribute_that_an_own_argument_lacks_stays_an_attribute_error() -> None:
    class Own(vt.nn.Module):
        def forward(self, options: Any) -> Any:
            return options.width

    with pytest.raises(AttributeError, match="width"):
        Own()({})


def test_the_outermost_module_is_named_by_its_class() -> None:
    class MyNet(vt.nn.Module):
        def forward(self, x: Any) -> Any:
            return x @ vt.ones(7, 7)

    for module, name in ((MyNet(), "MyNet"), (vt.nn.Linear(3, 3), "Linear")):
        with pytest.raises(RuntimeError) as e:
            module(vt.ones(2, 2))
        assert e.value.__notes__ == [f"in module {name}"]


def test_python_does_not_speak_for_a_function() -> None:
    cases = {
        "dropout": lambda: F.dropout(v, "a"),
        "celu": lambda: F.celu(v, (1,)),
        "dist": lambda: vt.dist(v, "a"),
        "histc": lambda: vt.histc(v, vt.bool),
        "dstack": lambda: vt.dstack(0.5),
        "diff": lambda: vt.diff(v, (1,)),
        "one_hot": lambda: F.one_hot(vt.arange(2), (1,)),
        "einsum": lambda: vt.einsum(v, 3),
        "group_norm": lambda: F.group_norm(vt.ones(2, 2), "a"),
    }
    for name, call in cases.items():
        with pytest.raises(TypeError, match=f"^{name}: "):
            call()


def test_unknown_devices_are_told_from_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.present, "names", lambda: ["cpu"])
    cases = {
        "gpu": r"there is no device 'gpu'; .* are called 'cuda', any other 'webgpu'\. This machine has: cpu\.$",
        "cude": r"did you mean 'cuda'\? This machine has: cpu\.$",
        "CPU": r"did you mean 'cpu'\?",
        "mps": r"votive computes on CPUs, on GPUs of NVIDIA \('cuda'\) and on others through 'webgpu'\.",
        "xpu": r"GPUs of NVIDIA ",
    }
    for name, text in cases.items():
        for place in (lambda n=name: vt.zeros(2, device=n), lambda n=name: vt.ones(2).to(n)):
            with pytest.raises(DeviceError, match=text) as e:
                place()
            assert isinstance(e.value, RuntimeError)
            assert "trace" not in str(e.value)
            assert "remote" not in str(e.value)


def test_devices_that_torch_names_can_be_compared_with() -> None:
    assert vt.ones(1).device != vt.device("mps")
    assert vt.device("xpu:1").type == "xpu"
    with pytest.raises(DeviceError, match="there is no device 'npu'"):
        vt.device("npu")


def test_only_devices_that_are_there_are_listed() -> None:
    # Other tests of this process may have gone to further ones.
    count = vt.cuda.device_count()
    names = [name for name in devices.present.names() if name.split(":")[0] not in ("remote", "webgpu", "meta")]
    assert names == ["cpu", *(f"cuda:{i}" for i in range(count))]


def test_a_device_of_torch_is_a_device() -> None:
    class device:
        type, index = "cpu", None

        def __str__(self) -> str:
            return "cpu"

    assert vt.zeros(2, device=device()).device == vt.device("cpu")
    with pytest.raises(TypeError, match=r"expected a string or an index, got 3\.5"):
        vt.zeros(2, device=3.5)
