"""A source of weights under other names, in other types, and what it says when asked wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import votive
from votive.io import MemorySource, WeightSource, open_weights
from votive.io import safetensors as st


@pytest.fixture
def source(tmp_path: Path) -> WeightSource:
    tensors = {
        "model.layers.0.w": votive.ones(2, 3),
        "model.layers.1.w": votive.zeros(2, 3),
        "model.norm": votive.arange(3, dtype=votive.float64),
        "modelx": votive.ones(1),
        "ids": votive.arange(3),
    }
    st.save_file(tensors, tmp_path / "f", {"k": "v"})
    return open_weights(tmp_path / "f")


def test_a_source_is_a_collection_of_names(source: WeightSource) -> None:
    assert len(source) == 5
    assert sorted(source) == sorted(source.names())
    assert "ids" in source
    assert "w" not in source
    assert source.metadata == {"k": "v"}
    info = source.info("model.layers.0.w")
    assert (info.shape, info.stored, info.nbytes, info.numel) == ((2, 3), "F32", 24, 6)
    assert info.file is not None


def test_a_prefix_selects_whole_parts_of_names(source: WeightSource) -> None:
    below = source.prefixed("model")
    assert sorted(below.names()) == ["layers.0.w", "layers.1.w", "norm"]
    assert below.prefixed("layers.").names() == source.prefixed("model.layers").names()
    assert below.info("norm").name == "norm"
    assert below.tensor("layers.0.w").sum() == 6
    assert below.slice("norm", 1) == 1
    assert below.metadata == {"k": "v"}


def test_names_change_by_mapping_or_function(source: WeightSource) -> None:
    mapped = source.renamed({"ids": "tokens", "modelx": None})
    assert "tokens" in mapped
    assert "ids" not in mapped
    assert "modelx" not in mapped
    assert len(mapped) == 4
    called = source.renamed(lambda n: n.upper() if n != "ids" else None)
    assert called.tensor("MODEL.NORM", dtype=votive.float32).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="both become 'x'"):
        source.renamed(lambda n: "x")
    with pytest.raises(TypeError, match="the rule gave 3"):
        source.renamed(lambda n: 3)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("dtype", [votive.bfloat16, "bfloat16", "torch.bfloat16"])
def test_types_are_converted_on_the_way(source: WeightSource, dtype: Any) -> None:
    t = source.tensor("model.norm", dtype=dtype, device="cpu")
    assert t.dtype is votive.bfloat16
    assert t.tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="expected a dtype"):
        source.tensor("ids", dtype=3)


def test_an_unknown_name_is_an_error_that_suggests_others(source: WeightSource) -> None:
    for ask in (source.tensor, source.info, lambda n: source.slice(n, 0)):
        with pytest.raises(KeyError, match=r"no tensor 'model\.nrm' among 5. Did you mean 'model\.norm"):
            ask("model.nrm")
    with pytest.raises(KeyError, match="among 3"):
        source.prefixed("model").tensor("ids")


def test_a_context_closes_what_it_opened(source: WeightSource) -> None:
    with source as s:
        t = s.tensor("ids")
    assert t.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="closed"):
        source.prefixed("model").tensor("norm")


def test_tensors_in_memory_are_a_source_too() -> None:
    net = votive.nn.Linear(2, 3)
    source = MemorySource(net.state_dict())
    assert source.info("weight").shape == (3, 2)
    assert votive.equal(source.slice("weight", 1), net.weight[1])
    assert dict(source.items()).keys() == {"weight", "bias"}
    with pytest.raises(KeyError):
        source.tensor("x")


def test_a_new_format_needs_three_methods() -> None:
    class Ones(WeightSource):
        def names(self) -> list[str]:
            return ["one"]

        def info(self, name: str) -> Any:
            return votive.io.TensorInfo(name, votive.float32, (2, 2), "ones", 0)

        def _read(self, name: str) -> Any:
            return votive.ones(2, 2)

    source = Ones()
    assert source.tensor("one", dtype=votive.int64).tolist() == [[1, 1], [1, 1]]
    assert source.slice("one", 0).tolist() == [1, 1]
    assert source.renamed({"one": "w"}).tensor("w").sum() == 4
    assert repr(source) == "<Ones: 1 tensors>"
