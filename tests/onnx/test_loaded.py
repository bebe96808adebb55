"""Modules read from ONNX files are modules like any: opened by glass, trained, saved; bad files are refused."""

from __future__ import annotations

from typing import Any

import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")

import votive  # noqa: E402
from votive import glass, nn  # noqa: E402
from votive.onnx import OnnxLoadError, export, load  # noqa: E402
from votive.onnx.load import from_proto  # noqa: E402


@pytest.fixture
def network() -> Any:
    votive.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).eval()


def read(network: Any) -> Any:
    return from_proto(export(network, votive.randn(4, 3), dynamic_axes={"input": [0]}).model_proto)


def test_glass_opens_it(network: Any) -> None:
    module, x = read(network), votive.randn(4, 3)
    with glass.capture(module, "*Gemm*") as seen:
        module(x)
    assert len(seen) == 2
    with glass.ablate(module, "0.Gemm"):
        changed = module(x)
    assert votive.allclose(changed, network[2](votive.zeros(4, 8)), atol=1e-6)


def test_it_learns_what_the_model_learns(network: Any) -> None:
    module = read(network)
    x, y = votive.randn(16, 3), votive.randn(16, 2)
    for model in (network, module):
        optimizer = votive.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    assert votive.allclose(network(x), module(x), atol=1e-5)
    assert not votive.allclose(module(x), read(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).eval())(x))


def test_its_state_goes_into_another(network: Any) -> None:
    one, other = read(network), read(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).eval())
    other.load_state_dict(one.state_dict())
    x = votive.randn(2, 3)
    assert votive.equal(one(x), other(x))


def test_branches_and_loops_run() -> None:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    then = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["a"])], "then", [], [helper.make_tensor_value_info("a", kind, None)]
    )
    other = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["b"])], "else", [], [helper.make_tensor_value_info("b", kind, None)]
    )
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        "g",
        [helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []), helper.make_tensor_value_info("x", kind, [2])],
        [helper.make_tensor_value_info("y", kind, [2])],
    )
    module = from_proto(helper.make_model(graph))
    x = votive.tensor([1.0, -2.0])
    assert module(votive.tensor(True), x).tolist() == [-1.0, 2.0]
    assert module(votive.tensor(False), x).tolist() == [1.0, 2.0]


def test_inputs_are_checked(network: Any) -> None:
    module = read(network)
    for args, kwargs in (((), {}), ((1, 2), {}), ((votive.ones(1, 3),), {"input": 1}), ((), {"other": 1})):
        with pytest.raises(TypeError, match="input"):
            module(*args, **kwargs)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08" * 40, b"\xff" * 1000])
def test_files_that_are_no_models_are_refused(tmp_path: Any, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(OnnxLoadError):
        load(path)


def test_changed_and_cut_files_are_refused_or_read(network: Any, tmp_path: Any) -> None:
    path = tmp_path / "m.onnx"
    export(network, votive.randn(4, 3), path)
    whole = path.read_bytes()
    for cut in range(0, len(whole), max(len(whole) // 60, 1)):
        path.write_bytes(whole[:cut])
        with pytest.raises(OnnxLoadError):
            load(path)(votive.randn(4, 3)) if cut else load(path)


def test_weights_outside_of_the_folder_are_refused(network: Any, tmp_path: Any) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "secret.data").write_bytes(b"\0" * 4096)
    path = tmp_path / "inner" / "m.onnx"
    export(network, votive.randn(4, 3), path)
    model = onnx.load(path)
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../secret.data")
    path.write_bytes(model.SerializeToString())
    with pytest.raises(OnnxLoadError):
        load(path)


def test_a_missing_file_is_a_missing_file(tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.onnx")


def test_unknown_operators_are_named() -> None:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    values = [helper.make_tensor_value_info(n, kind, [1]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Strange", ["x"], ["y"], domain="mine")], "g", values[:1], values[1:])
    with pytest.raises(OnnxLoadError, match="Strange"):
        from_proto(helper.make_model(graph))
