"""What `python -m votive.new_op` writes works at once, on every kind of kernel, and harms nothing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from scripts.new_op import command
from scripts.new_op.words import words_of
from votive.ops.schema import parse

from . import checkout
from .compiled_kernel import arrays_of, compiled

KINDS = {
    "pointwise": ("twice_each", "twice_each(Operand input, Operand other, *, float scale=1.0)"),
    "structured": ("twice_along", "twice_along(Tensor input, int dim=-1, bool flag=False)"),
    "view": ("same_memory", "same_memory(Tensor input, int dim)"),
    "composite": ("twice_whole", "twice_whole(Tensor input, *, bool flag)"),
}
CATALOG = ("tests/ops/test_catalog.py", "tests/test_layers.py", "tests/test_examples.py")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout.copied(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def extended(repository: Path) -> Path:
    """The repository with a new operator of each kind."""
    for kind, (name, schema) in KINDS.items():
        done = checkout.run(repository, "-m", "votive.new_op", name, "--kind", kind, "--schema", schema)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "It works as it stands" in done.stdout
    return repository


def test_an_operator_of_each_kind_passes_the_tests_of_the_catalog(extended: Path) -> None:
    names = " or ".join(name for name, _ in KINDS.values())
    assert int(re.findall(r"(\d+) passed", checkout.check(extended, names, *CATALOG))[0]) >= 40


def test_a_structured_operator_runs_on_an_emulated_gpu(extended: Path) -> None:
    pytest.importorskip("triton")
    said = checkout.check(
        extended, "twice_along", "tests/cuda/test_catalog.py", VOTIVE_CUDA="emulated", TRITON_INTERPRET="1"
    )
    assert "passed" in said


def test_the_triton_kernel_of_a_structured_operator_compiles(extended: Path) -> None:
    pytest.importorskip("triton")
    checkout.compile_for_gpu(extended, "twice_along")


def test_the_c_plus_plus_kernel_of_a_structured_operator_compiles_and_doubles(extended: Path, tmp_path: Path) -> None:
    source = extended / "votive" / "backends" / "cpu" / "native" / "src" / "kernels" / "twice_along.cpp"
    kernel = compiled(source, tmp_path)
    for dtype in ("float64", "float32", "float16"):
        for x in arrays_of((5, 7), dtype):
            out = np.zeros_like(x)
            kernel("twice_along", [out, x], [0, 1])
            np.testing.assert_array_equal(out, 2 * x)


def test_numbers_are_read_in_c_plus_plus_as_they_are_passed() -> None:
    schema = parse(
        "scaled(Tensor x, float eps=1e-6, int dim=-1, int[] sizes=(), bool keep=True, float? p=None, float q=2.0)"
    )
    words = words_of(schema, "structured", "")
    assert words["passed"] == ", eps, dim, keep, q"
    assert words["read"].replace("[[maybe_unused]] const ", "").split(";\n  ") == [
        "\n  double eps = c.f(0)",
        "int64_t dim = c.i(0)",
        "bool keep = c.i(1)",
        "double q = c.f(1);",
    ]
    assert words["typed_params"] == "x: Any, eps: float, dim: int, sizes: Any, keep: bool, p: Any, q: float"


def test_an_operator_joins_the_files_of_its_family(repository: Path) -> None:
    schema = "twice_softly(Tensor input, int dim=-1)"
    words = ("-m", "votive.new_op", "twice_softly", "--schema", schema, "--family", "softmax")
    words += ("--namespace", "nn.functional")
    before = _files(repository)
    done = checkout.run(repository, *words, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert _files(repository) == before
    done = checkout.run(repository, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    # A family that is a folder gets a file; elsewhere the operator stands in files that were there.
    folder = repository / "votive" / "backends" / "cuda" / "kernels" / "softmax"
    assert {p for p in _files(repository) - before if p.suffix == ".py"} == {folder / "twice_softly.py"}
    checkout.check(repository, "twice_softly or softmax", *CATALOG)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["softmax"], 'there is an operator "softmax" already'),
        (["view"], 'there is an operator "view" already'),
        (["Twice"], '"Twice" is no name for an operator'),
        (["lambda"], '"lambda" is no name for an operator'),
        (["twice", "--schema", "other(Tensor input)"], 'the schema declares "other", not "twice"'),
        (["twice", "--schema", "twice(int n)"], "the first argument must be a tensor"),
        (["twice", "--schema", "twice(Tensor x, str mode)"], "give mode a default value"),
        (["twice", "--schema", "twice(Tensor)"], "cannot read argument 'Tensor'"),
        (["twice", "--family", "registry"], "registry.py holds no operators"),
        (["twice", "--kind", "other"], "invalid choice: 'other'"),
    ],
)
def test_what_cannot_be_written_is_refused_without_harm(
    words: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = tmp_path / "votive" / "ops"
    ops.mkdir(parents=True)
    (ops / "registry.py").touch()
    monkeypatch.setattr(command, "ROOT", tmp_path)
    with pytest.raises(SystemExit) as end:
        command.main(words)
    assert end.value.code == 2
    assert text in capsys.readouterr().err
    assert _files(tmp_path) == {ops / "registry.py"}


def _files(folder: Path) -> set[Path]:
    return {p for p in folder.rglob("*") if p.suffix in (".py", ".cpp")}
