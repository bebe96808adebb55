"""The architecture holds: import direction, file stems, and what every operator must have."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import votive
from votive.backends.base import TABLE
from votive.ops.registry import COMPOSITES, OPS

from .ops.catalog import load

ROOT = Path(votive.__file__).parent
# Lowest first; a module may import from its own layer and those before it.
LAYERS = [
    {"core", "_version"},
    {"formula"},
    {"backends"},
    {"ops"},
    {"dispatch"},
    {"autograd"},
    {
        "tensor",
        "surface",
        "config",
        "cpu",
        "cuda",
        "webgpu",
        "random",
        "fft",
        "linalg",
        "special",
        "signal",
        "sparse",
        "masked",
        "nested",
    },
    {"compiler"},
    {"nn", "optim", "amp", "ao", "data", "io", "quant", "distributed", "utils", "distributions", "serialization"}
    | {"overrides", "func", "fx"}
    | {"profiler", "testing", "onnx"}
    | {"accelerator", "absent_device", "mps", "mtia", "xpu", "futures", "hub", "jit", "library", "monitor"}
    | {"multiprocessing", "quasirandom", "return_types", "types", "__config__"}
    | {"np"},
    {"models", "text", "generation", "audio", "vision", "speech", "train", "pipelines"},
    {"glass"},
    {"cli", "studio", "serve", "remote", "new_op", "__init__", "__main__"},
    {"torch"},
]
RANK = {name: i for i, names in enumerate(LAYERS) for name in names}
# The formula layer is below backends in what it knows; backends may use it to write source.


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> list[str]:
    """Everything that a module imports from votive, as dotted paths below the package; a name that is taken from a
    module counts as the module with the name behind it.
    """
    parts = path.relative_to(ROOT).with_suffix("").parts
    package = parts[:-1]
    found: list[str] = []
    tree = ast.parse(path.read_text())
    # What is imported for type checkers only does not run.
    only_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            if node.level:
                base = [*package[: len(package) - node.level + 1], *module]
            elif module[0] == "votive":
                base = module[1:]
            else:
                continue
            found += [".".join([*base, a.name]) for a in node.names]
        elif isinstance(node, ast.Import):
            found += [a.name.removeprefix("votive.") for a in node.names if a.name.startswith("votive.")]
    return found


def imports(path: Path) -> list[str]:
    """First package part of everything a module imports from votive."""
    return [name.split(".")[0] for name in imported(path)]


MODULES = sorted(p for p in ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_from_its_own_layer_and_below(path: Path) -> None:
    here = RANK[layer_of(path)]
    for name in imports(path):
        if name in RANK:
            assert RANK[name] <= here, f"{path.name} (layer {layer_of(path)}) imports {name}"


# Packages of one layer, each with those beside it that it may import, also inside functions.
BESIDE = {
    "text": set(),
    "generation": {"text"},
    "models": {"generation", "text"},
    "speech": {"models", "generation", "text", "audio"},
    "train": {"models", "text"},
    "pipelines": {"models", "generation", "text", "speech"},
}
INSIDE = [path for path in MODULES if layer_of(path) in BESIDE]


@pytest.mark.parametrize("path", INSIDE, ids=lambda p: str(p.relative_to(ROOT)))
def test_models_import_generation_and_never_the_other_way_round(path: Path) -> None:
    here = layer_of(path)
    beside = LAYERS[RANK[here]] - {here}
    assert set(imports(path)) & beside <= BESIDE[here], f"{path.name} (package {here})"


# What files of a folder inside a package may not import: devices do not know each other, and on the GPU kernels are
# written in programs, which are written in functions of the device.
APART = {
    "backends/common": ["backends.base", "backends.cpu", "backends.cuda", "backends.trace"],
    "ops": ["backends.cpu.reference", "backends.cuda", "backends.trace"],
    "backends/cuda/runtime": [f"backends.cuda.{n}" for n in ("device", "programs", "libraries", "kernels", "rows")],
    "backends/cuda/device": [f"backends.cuda.{n}" for n in ("runtime", "programs", "libraries", "kernels", "rows")],
    "backends/cuda/programs": [f"backends.cuda.{n}" for n in ("libraries", "kernels", "rows")],
    "backends/cuda/libraries": [f"backends.cuda.{n}" for n in ("kernels", "rows")],
    "backends/cuda/emulated": [f"backends.cuda.{n}" for n in ("device", "programs", "libraries", "kernels", "rows")],
}
# Who asks whether the GPU is emulated.
EMULATING = {"runtime/__init__.py", "programs/program.py", "device/elementary.py"}


@pytest.mark.parametrize("folder", APART)
def test_folders_inside_a_package_import_only_what_they_may(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        for name in imported(path):
            for other in APART[folder]:
                assert f"{name}.".startswith(f"{other}.") is False, f"{path.relative_to(ROOT)} imports {name}"


BACKENDS = sorted(p.parent.name for p in (ROOT / "backends").glob("*/__init__.py") if p.parent.name != "common")


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_backend_imports_another(backend: str) -> None:
    others = {f"backends.{other}." for other in BACKENDS if other != backend}
    for path in sorted((ROOT / "backends" / backend).rglob("*.py")):
        wrong = [name for name in imported(path) if any(f"{name}.".startswith(other) for other in others)]
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_only_three_files_know_that_a_gpu_may_be_emulated() -> None:
    inside = ROOT / "backends" / "cuda"
    users = {
        str(p.relative_to(inside))
        for p in inside.rglob("*.py")
        if p.parent.name != "emulated" and any(n.startswith("backends.cuda.emulated") for n in imported(p))
    }
    assert users == EMULATING


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_imports_torch_or_scipy(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        assert not {n.split(".")[0] for n in names} & {"torch", "scipy", "transformers"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_opens_with_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), path


STRUCTURED = sorted(n for n, o in OPS.items() if o.kind == "structured")


@pytest.mark.parametrize("name", STRUCTURED)
def test_every_structured_operator_has_a_reference_kernel_of_the_same_stem(name: str) -> None:
    rows = TABLE.get((name, "cpu"), [])
    assert rows, f"{name} has no kernel on the CPU"
    stem = Path(OPS[name].defined_at[0]).stem
    files = {Path(inspect.unwrap(r.fn).__code__.co_filename).stem for r in rows}
    assert stem in files, f"{name} is declared in ops/{stem}.py, its kernels in {sorted(files)}"


def declared(folder: Path, decorator: str) -> list[tuple[str, str]]:
    """(operator, family) of the rows that a folder's files declare; a family is a file or a folder of several."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        family = path.relative_to(folder).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == decorator:
                if node.args and isinstance(node.args[0], ast.Constant):
                    found.append((str(node.args[0].value), family))
    return found


CUDA_ROWS = declared(ROOT / "backends" / "cuda" / "kernels", "cuda")
NATIVE_ROWS = declared(ROOT / "backends" / "cpu" / "native", "native")


@pytest.mark.parametrize(
    ("device", "rows"), [pytest.param("cuda", CUDA_ROWS, id="cuda"), pytest.param("native", NATIVE_ROWS, id="native")]
)
def test_every_kernel_has_the_stem_of_its_declaration(device: str, rows: list[tuple[str, str]]) -> None:
    assert len(rows) > 100
    for op, family in rows:
        stem = Path(OPS[op].defined_at[0]).stem
        # Triton has no complex numbers: rows that split them into pairs stand together.
        allowed = {stem, "complex"} if device == "cuda" else {stem}
        assert family in allowed, f"{op} is declared in ops/{stem}.py, its {device} kernel stands in {family}"


def test_every_kernel_row_serves_a_declared_operator() -> None:
    assert [name for name, _ in TABLE if name not in OPS and name != "*"] == []


PUBLIC = sorted(
    (n, i)
    for n, i in [*OPS.items(), *COMPOSITES.items()]
    if not i.name.startswith("_") and (i.namespaces or i.method or i.also)
)


@pytest.mark.parametrize(("name", "item"), PUBLIC, ids=[n for n, _ in PUBLIC])
def test_every_public_operator_has_a_docstring_with_an_example(name: str, item: object) -> None:
    doc = item.doc  # type: ignore[attr-defined]
    assert doc, f"{name} has no docstring"
    assert ">>>" in doc, f"{name} has no example"


# What only a GPU can run, and where it is tested instead.
ELSEWHERE = {"cuda": "tests/ops/test_copy.py", "pin_memory": "tests/cuda/test_pinned.py"}
RECORDED = {r.name.rsplit(".", 1)[-1] for r in load()}


@pytest.mark.parametrize(("name", "item"), PUBLIC, ids=[n for n, _ in PUBLIC])
def test_every_public_operator_has_a_catalog_record(name: str, item: object) -> None:
    also = {path.rsplit(".", 1)[-1] for path in item.also}  # type: ignore[attr-defined]
    names = {item.name, *item.aliases, *also}  # type: ignore[attr-defined]
    # The catalog tests in-place forms together with plain ones.
    names |= {n.removesuffix("_") for n in names}
    if name in ELSEWHERE:
        assert f".{name}(" in (ROOT.parent / ELSEWHERE[name]).read_text()
        return
    assert names & RECORDED, f"{name} has no record in tests/ops/records"


# Where torch has no derivative either; asking for one raises an error that names the operator.
NO_GRADIENT = {"_ctc_loss_backward", "_first_order", "_scaled_product", "_unique"}


def test_differentiable_operators_declare_a_gradient() -> None:
    missing = {
        n for n, o in OPS.items() if o.differentiable and o.builder is None and o.grad is None and o.schema.tensor_names
    }
    assert missing <= NO_GRADIENT
