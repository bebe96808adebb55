"""Exported programs: what files may not hold, and what is refused while exporting."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

import votive
from votive import nn
from votive.torch.export import Dim, export, load, save
from votive.torch.export.expressions import Unknown, evaluate
from votive.torch.overlays._dynamo.exc import UserError


def _file(change: Callable[[dict[str, Any]], None]) -> io.BytesIO:
    """A saved program whose text was changed."""
    whole = io.BytesIO()
    save(export(nn.Linear(3, 2), (votive.ones(4, 3),)), whole)
    made = io.BytesIO()
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(made, "w") as new:
        text = json.loads(old.read("program.json"))
        change(text)
        new.writestr("program.json", json.dumps(text))
        new.writestr("tensors.safetensors", old.read("tensors.safetensors"))
    made.seek(0)
    return made


def _call(text: dict[str, Any]) -> list[Any]:
    return next(n for n in text["nodes"] if n[0] == "call_function")


def test_a_file_that_is_not_changed_is_read() -> None:
    assert load(_file(lambda text: None)).module()(votive.ones(4, 3)).shape == (4, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: _call(t).__setitem__(2, {"op": "os.system"}),
        lambda t: _call(t).__setitem__(2, {"function": "eval"}),
        lambda t: _call(t).__setitem__(2, {"pickle": "x"}),
        lambda t: _call(t).__setitem__(2, "print"),
        lambda t: _call(t).__setitem__(1, "x = __import__('os')"),
        lambda t: _call(t).__setitem__(0, "call_method"),
        lambda t: _call(t).__setitem__(4, [["a b", 1]]),
        lambda t: t["nodes"][0].__setitem__(2, "self, x=print"),
        lambda t: t.__setitem__("version", 99),
    ],
)
def test_a_file_names_operators_only(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        load(_file(change))


@pytest.mark.parametrize(
    "text", ["__import__('os')", "a.b", "[a][0]", "(lambda: a)()", "a ** a", "a if a else 1", "1 +"]
)
def test_conditions_are_arithmetic(text: str) -> None:
    with pytest.raises(Unknown):
        evaluate(text, {"a": 3})
    assert evaluate("(a - 1) // 2 == 1", {"a": 3}) is True


class Branch(nn.Module):
    def forward(self, x: votive.Tensor) -> votive.Tensor:
        return x + 1 if x.shape[0] > 3 else x - 1


def test_a_comparison_of_sizes_is_a_guard() -> None:
    run = export(Branch(), (votive.ones(8),), dynamic_shapes=({0: Dim("n")},)).module()
    assert run(votive.ones(4)).tolist() == [2.0] * 4
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] > 3"):
        run(votive.ones(3))


class Squeezed(nn.Module):
    def forward(self, x: votive.Tensor) -> votive.Tensor:
        return x.squeeze()


def test_a_size_of_one_is_refused_where_it_means_another_program() -> None:
    run = export(Squeezed(), (votive.ones(4, 3),), dynamic_shapes=({0: Dim("n")},)).module()
    assert run(votive.ones(2, 3)).shape == (2, 3)
    with pytest.raises(AssertionError, match=">= 2"):
        run(votive.ones(1, 3))


def test_sizes_that_a_program_fixes_are_not_dynamic() -> None:
    class Fixed(nn.Module):
        def forward(self, x: votive.Tensor) -> votive.Tensor:
            return x.view(4, 3)

    with pytest.raises(UserError, match=r"Constraints violated|dynamic"):
        export(Fixed(), (votive.ones(4, 3),), dynamic_shapes=({0: Dim("n")},))
    run = export(Fixed(), (votive.ones(4, 3),), dynamic_shapes=({0: Dim.AUTO},)).module()
    with pytest.raises(AssertionError):
        run(votive.ones(5, 3))


def test_exporting_leaves_buffers_as_they_were() -> None:
    norm = nn.BatchNorm1d(2)
    run = export(norm, (votive.ones(3, 2),)).module()
    assert norm.running_mean is not None
    assert norm.running_mean.tolist() == [0.0, 0.0]
    run(votive.ones(3, 2))
    assert norm.running_mean.tolist() == pytest.approx([0.1, 0.1])


def test_a_size_that_only_the_result_needs_is_part_of_the_graph() -> None:
    class Sizes(nn.Module):
        def forward(self, x: votive.Tensor) -> tuple[votive.Tensor, int, int]:
            return x * 2, x.shape[0], x.shape[0] * 3 + 1

    program = export(Sizes(), (votive.ones(3, 4),), dynamic_shapes={"x": {0: Dim("b")}})
    whole = io.BytesIO()
    save(program, whole)
    whole.seek(0)
    for each in (program, load(whole)):
        assert each.module()(votive.ones(5, 4))[1:] == (5, 16)
