"""`votive.compiler.explain` tells what became of a program."""

from __future__ import annotations

import pytest

import votive
from votive import nn
from votive.backends.cpu.native import jit
from votive.compiler import explain


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(self.norm(x))) * 2)


def test_a_function_that_is_not_compiled_is_compiled_for_the_arguments_given() -> None:
    found = explain(lambda x, y: votive.sigmoid(x) * y + 1, votive.zeros(2), votive.ones(2))
    (version,) = found.versions
    assert found.kernels[0].calls == ("sigmoid", "mul", "add")
    assert version.rules["elementwise calls in regions"] == 3
    assert "_region" in version.forward
    assert version.backward == ""
    assert version.inputs[0] == "v0 = x: float32 (2,) on cpu"
    assert version.kept_bytes == 0
    assert version.peak_bytes == 8
    assert found.kernels[0].bytes == 24


@pytest.mark.skipif(jit.compiler() is None, reason="there is no C++ compiler")
def test_the_text_of_kernels_is_shown() -> None:
    found = explain(lambda x: votive.exp(x) * 2 + 1, votive.zeros(2))
    assert "vt::exp" in found.kernels[0].source
    assert found.kernels[0].source.splitlines()[3] in found.text()
    assert "vt::exp" not in repr(found)


def test_kernels_and_calls_bear_the_addresses_of_modules() -> None:
    model = votive.compile(nn.Sequential(Block(), Block()))
    model(votive.randn(3, 8)).sum().backward()
    found = explain(model)
    (version,) = found.versions
    assert "# 1.up" in version.forward
    assert any("0.norm.weight: float32 (8,)" in line for line in version.inputs)
    assert {a for k in found.kernels for a in k.addresses} == {"0", "1"}
    assert any(k.backward for k in found.kernels)
    assert version.kept_bytes > 0
    assert "return" in version.backward
    assert "def run(" in version.code[0]


def test_every_recompilation_has_its_reason() -> None:
    compiled = votive.compile(lambda x, n: x * n + 1)
    for n in (1, 2):
        compiled(votive.ones(2), n)
    compiled(votive.ones(3), 2)
    found = explain(compiled)
    assert len(found.versions) == 3
    assert found.recompilations[0] == "n was 1, is 2"
    assert "(2,)" in found.recompilations[1]
    assert all(r in repr(found) for r in found.recompilations)


def test_a_version_says_how_often_it_ran() -> None:
    compiled = votive.compile(lambda x: x * 2 + 1)
    for _ in range(4):
        compiled(votive.ones(2))
    assert explain(compiled).versions[0].runs == 3  # the first call traces


def test_why_something_runs_as_it_is() -> None:
    compiled = votive.compile(lambda x: x * float(x.sum()))
    compiled(votive.ones(2))
    assert "numbers of a tensor" in repr(explain(compiled))


def test_a_program_that_is_not_one_graph_shows_its_pieces() -> None:
    log: list[float] = []

    def step(x):
        h = votive.sin(x) * 2 + 1
        log.append(float(h.mean()))
        return votive.exp(-h * h) + 1

    compiled = votive.compile(step)
    for _ in range(4):
        compiled(votive.ones(3))
    found = explain(compiled)
    assert not found.versions
    assert len(found.pieces) == 2
    assert [k.calls for k in found.kernels] == [("sin", "mul", "add"), ("neg", "mul", "exp", "add")]
    assert "runs as 2 pieces" in repr(found)
    assert "piece 1" in found.text()
    assert found._repr_html_().count("forward graph") == 2


def test_long_graphs_are_shortened_and_whole_in_text() -> None:
    def long(x):
        for _ in range(40):
            x = votive.matmul(x, x)
        return x

    found = explain(long, votive.eye(2))
    assert "more, see text()" in repr(found)
    assert repr(found).count("matmul") < 20
    assert found.text().count("matmul") == 40


def test_notebooks_get_html_with_escaped_text() -> None:
    html = explain(lambda x: votive.exp(x) + 1, votive.zeros(2))._repr_html_()
    assert "<details>" in html
    assert "<lambda>" not in html
    assert "&lt;lambda&gt;" in html


def test_what_is_not_compiled_needs_arguments() -> None:
    with pytest.raises(TypeError, match="give it the arguments"):
        explain(lambda x: x)
