"""load_into: everything or nothing, ties kept, memory mapped, and a report one can read."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import nn
from votive.io import LoadError, LoadReport, load_into, open_weights
from votive.io import safetensors as st


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 3)
        self.head = nn.Linear(3, 4, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", votive.ones(2))
        self.register_buffer("cache", votive.ones(2), persistent=False)


def saved(tmp_path: Path, **tensors: Any) -> Any:
    st.save_file({k.replace("__", "."): v for k, v in tensors.items()}, tmp_path / "f")
    return open_weights(tmp_path / "f")


def mapped(tensor: Any, path: Path) -> bool:
    """Whether the memory of a tensor is a mapping of the file."""
    at = tensor.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        low, high = (int(x, 16) for x in line.split()[0].split("-"))
        if low <= at < high:
            return line.endswith(str(path))
    return False


@pytest.mark.parametrize("first", ["embed__weight", "head__weight"])
def test_a_tied_parameter_is_loaded_once_from_either_name(first: str, tmp_path: Path) -> None:
    net = Tied()
    report = load_into(net, saved(tmp_path, **{first: votive.full((4, 3), 5.0)}, scale=votive.zeros(2)))
    assert report.ok
    assert len(report.loaded) == 2
    assert net.head.weight is net.embed.weight
    assert (net.head.weight == 5).all()
    assert net.scale.tolist() == [0, 0]
    assert "cache" not in report.missing


def test_both_names_of_a_tied_parameter_may_be_there(tmp_path: Path) -> None:
    net = Tied()
    w = votive.ones(4, 3)
    source = saved(tmp_path, embed__weight=w, head__weight=w.clone(), scale=votive.ones(2))
    assert load_into(net, source).ok
    assert net.head.weight is net.embed.weight


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux about memory")
def test_parameters_become_the_pages_of_the_file(tmp_path: Path) -> None:
    net = nn.utils.skip_init(nn.Linear, 64, 64)
    source = saved(tmp_path, weight=votive.ones(64, 64), bias=votive.zeros(64))
    load_into(net, source)
    assert mapped(net.weight, tmp_path / "f")
    assert isinstance(net.weight, nn.Parameter)
    content = (tmp_path / "f").read_bytes()
    # They can be trained: writing makes private copies of pages.
    votive.optim.SGD(net.parameters(), lr=1.0).zero_grad()
    net(votive.ones(1, 64)).sum().backward()
    with votive.no_grad():
        net.weight.sub_(net.weight.grad)
    assert (net.weight == 0).all()
    assert (tmp_path / "f").read_bytes() == content
    load_into(net, source)
    assert (net.weight == 1).all()
    load_into(net, source, dtype=votive.bfloat16)
    assert not mapped(net.weight, tmp_path / "f")
    assert net.weight.dtype is votive.bfloat16


def test_without_assign_values_are_copied_into_the_same_tensors(tmp_path: Path) -> None:
    net = nn.Linear(2, 1)
    weight, alias = net.weight, net.weight.detach()
    load_into(net, saved(tmp_path, weight=votive.ones(1, 2).double(), bias=votive.zeros(1)), assign=False)
    assert net.weight is weight
    assert alias.tolist() == [[1, 1]]
    assert weight.dtype is votive.float32


def test_types_follow_the_module_unless_told(tmp_path: Path) -> None:
    source = saved(tmp_path, weight=votive.ones(1, 2).half(), bias=votive.zeros(1).bfloat16())
    net = nn.Linear(2, 1)
    load_into(net, source)
    assert net.weight.dtype is net.bias.dtype is votive.float32
    load_into(net, source, dtype="float64")
    assert net.weight.dtype is votive.float64
    load_into(net, source, dtype="auto")
    assert (net.weight.dtype, net.bias.dtype) == (votive.float16, votive.bfloat16)


def test_integers_keep_their_type_when_floats_are_converted(tmp_path: Path) -> None:
    net = nn.Module()
    net.register_buffer("ids", votive.arange(3))
    net.w = nn.Parameter(votive.ones(1))
    load_into(net, saved(tmp_path, ids=votive.arange(3, 6), w=votive.ones(1)), dtype="bfloat16")
    assert net.ids.dtype is votive.int64
    assert net.ids.tolist() == [3, 4, 5]
    assert net.w.dtype is votive.bfloat16


def test_frozen_parameters_stay_frozen(tmp_path: Path) -> None:
    net = nn.Linear(2, 1)
    net.bias.requires_grad_(False)
    load_into(net, saved(tmp_path, weight=votive.ones(1, 2), bias=votive.zeros(1)))
    assert net.weight.requires_grad
    assert net.weight.is_leaf
    assert not net.bias.requires_grad


def test_strict_says_all_that_is_wrong_and_changes_nothing(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = {k: v.clone() for k, v in net.state_dict().items()}
    source = saved(tmp_path, **{"0__weight": votive.ones(3, 2), "0__bias": votive.ones(4), "extra": votive.ones(1)})
    for assign in (True, False):
        with pytest.raises(LoadError) as error:
            load_into(net, source, assign=assign)
        report = error.value.report
        assert report.missing == ["1.weight", "1.bias"]
        assert report.unused == ["extra"]
        assert report.mismatched == [("0.bias", (4,), (3,))]
        for word in ("Sequential", "1.weight", "extra", "0.bias: [4], [3]", "nothing was changed"):
            assert word in str(error.value)
        assert all(votive.equal(net.state_dict()[k], v) for k, v in before.items())
    report = load_into(net, source, strict=False)
    assert not report.ok
    assert (net[0].weight == 1).all()
    assert votive.equal(net[0].bias, before["0.bias"])


def test_a_failing_read_changes_nothing(tmp_path: Path) -> None:
    net = nn.Linear(2, 1)
    before = net.weight.clone()
    source = saved(tmp_path, weight=votive.ones(1, 2), bias=votive.zeros(1))
    read = source._read

    def broken(name: str) -> Any:
        if name == "bias":
            raise OSError("the disk is gone")
        return read(name)

    source._read = broken
    for assign in (True, False):
        with pytest.raises(OSError, match="disk"):
            load_into(net, source, assign=assign)
        assert votive.equal(net.weight, before)


def test_modules_that_load_in_their_own_way_are_asked(tmp_path: Path) -> None:
    # Batch norms forgive files of old that lack a counter.
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
    state = {k: votive.zeros_like(v) for k, v in net.state_dict().items() if "num" not in k}
    assert load_into(net, state).ok
    assert (net[1].weight == 0).all()
    with pytest.raises(LoadError) as error:
        load_into(net, {**state, "x": votive.ones(1)})
    assert error.value.report.unused == ["x"]

    class Renames(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(votive.zeros(1))
            self.again = self.weight
            self.register_load_state_dict_pre_hook(self.rename)

        def rename(self, module: Any, given: Any, prefix: str, *rest: Any) -> None:
            if prefix + "gamma" in given:
                given[prefix + "weight"] = given[prefix + "again"] = given.pop(prefix + "gamma")

    old = Renames()
    assert load_into(old, {"gamma": votive.ones(1)}).ok
    assert old.weight.tolist() == [1]
    assert old.again is old.weight


def test_lazy_parameters_take_the_shape_of_the_file() -> None:
    for assign in (True, False):
        net = nn.LazyLinear(3)
        report = load_into(net, {"weight": votive.ones(3, 2), "bias": votive.zeros(3)}, assign=assign)
        assert report.ok
        assert net.weight.shape == (3, 2)
        assert type(net.weight) is nn.Parameter
        assert net(votive.ones(1, 2)).tolist() == [[2, 2, 2]]


def test_a_path_will_do_for_a_source(tmp_path: Path) -> None:
    saved(tmp_path, weight=votive.ones(1, 2))
    net = nn.Linear(2, 1, bias=False)
    assert load_into(net, tmp_path / "f").ok
    with pytest.raises(TypeError, match="expected a dtype"):
        load_into(net, tmp_path / "f", dtype=7)


def test_modules_loaded_from_one_state_are_trained_apart() -> None:
    first, second = nn.Linear(2, 1), nn.Linear(2, 1)
    load_into(second, first.state_dict())
    assert votive.equal(first.weight, second.weight)
    with votive.no_grad():
        second.weight.fill_(7)
    assert not (first.weight == 7).any()
    load_into(second, {k: v.detach().numpy() for k, v in first.state_dict().items()})
    assert votive.equal(first.weight, second.weight)


def test_what_a_file_shares_a_module_that_does_not_share_gets_twice() -> None:
    source = open_weights(Path(__file__).parent / "data" / "zip.pt")
    net = nn.Module()
    net.base, net.view = nn.Parameter(votive.zeros(12)), nn.Parameter(votive.zeros(3, 2))
    load_into(net, source.renamed(lambda n: n if n in ("base", "view") else None))
    with votive.no_grad():
        net.base.fill_(100)
    assert net.view.tolist() == [[2, 5], [3, 6], [4, 7]]


def test_a_report_fits_a_page() -> None:
    missing = [f"model.layers.{i}.{p}.weight" for i in range(48) for p in ("q", "k", "v")]
    odd = [f"odd{i}" for i in range(40)]
    text = str(LoadReport(["a"], missing, odd, [("b", (1,), (2, 3))]))
    assert "model.layers.*.q.weight (48)" in text
    assert "… and 28 more" in text
    assert "b: [1], [2, 3]" in text
    assert len(text.splitlines()) < 30
    assert str(LoadReport(["a"])) == "1 tensor loaded"


def test_scalars_saved_as_one_element_are_taken() -> None:
    net = nn.Module()
    net.temperature = nn.Parameter(votive.tensor(0.0))
    assert load_into(net, OrderedDict(temperature=votive.ones(1))).ok
    assert net.temperature.shape == ()
    assert net.temperature.item() == 1
