"""torch's smaller namespaces: their names are there, their examples run, and what cannot be done says so."""

from __future__ import annotations

import importlib
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive import nn

SPACES = ["accelerator", "cpu", "futures", "hub", "jit", "jit.marks", "jit.types", "mps", "mtia", "xpu"]
DOCS = docstrings.examples(importlib.import_module(f"votive.{name}") for name in SPACES)
# What torch has there beside its own public names, and what is refused by the alias for torch's programs.
LEFT_OUT = {
    "accelerator": {"Graph"},
    "mps": {"profiler"},
    "xpu": {"streams", "is_tf32_supported"},
    "jit": {"export_opnames"},
    "cpu": {"get_capabilities"},
}


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n in SPACES if not n.startswith("jit.")])
def test_the_public_names_of_torch_are_there(name: str) -> None:
    pytest.importorskip("torch")
    theirs, mine = (importlib.import_module(f"{lib}.{name}") for lib in ("torch", "votive"))
    public = set(theirs.__all__) - LEFT_OUT.get(name, set())
    assert [n for n in sorted(public) if not hasattr(mine, n)] == []


@pytest.mark.parametrize("name", ["mps", "xpu", "mtia"])
def test_a_device_that_is_not_there_says_so(name: str) -> None:
    space = getattr(votive, name)
    assert not space.is_available()
    with pytest.raises(RuntimeError, match=f"votive.{name}.synchronize: votive has no backend"):
        space.synchronize()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        space.nothing  # noqa: B018


def test_scripts_and_traces_are_the_program_itself_and_say_so_once() -> None:
    votive.jit._said = False
    net = nn.Linear(2, 1)
    with pytest.warns(votive.jit.NotCompiledWarning, match=r"votive\.compile"):
        assert votive.jit.script(net) is net
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert votive.jit.trace(net, votive.ones(3, 2)) is net
    with pytest.raises(RuntimeError, match="linear"):
        votive.jit.trace(net, votive.ones(3, 3))
    with pytest.raises(TypeError, match="script"):
        votive.jit.script(3)

    class Old(votive.jit.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.n = votive.jit.Attribute(2, int)

        @votive.jit.script_method
        def forward(self, x: Any) -> Any:
            return x * self.n

    assert Old()(votive.ones(1)).item() == 2


def test_types_with_parameters_are_tested() -> None:
    is_ = votive.jit.isinstance
    assert is_({"a": [votive.ones(1)]}, dict[str, list[votive.Tensor]])
    assert not is_({"a": [1]}, dict[str, list[votive.Tensor]])
    assert is_((1, "a"), tuple[int, str])
    assert not is_((1, 2), tuple[int, str])
    assert is_(None, int | None)
    assert is_((1, 2, 3), tuple[int, ...])
    assert is_(1, (str, int))


def test_futures_wait_chain_and_pass_errors_on() -> None:
    future: Any = votive.futures.Future()
    longer = future.then(lambda f: f.value() + 1).then(lambda f: f.value() * 10)
    threading.Timer(0.01, lambda: future.set_result(1)).start()
    assert longer.wait() == 20
    with pytest.raises(RuntimeError, match="once"):
        future.set_result(2)
    broken: Any = votive.futures.Future()
    after = broken.then(lambda f: f.value())
    broken.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        after.wait()
    with pytest.raises(ValueError, match="no"):
        votive.futures.wait_all([future, broken])


def test_models_of_a_folder_are_listed_explained_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = tmp_path / "someone_models_main"
    repo.mkdir()
    (repo / "beside_it.py").write_text("SIZE = 3\n")
    (repo / "hubconf.py").write_text(
        "dependencies = ['numpy']\nimport votive\nfrom beside_it import SIZE\n"
        "def linear(out=1):\n    'A layer.'\n    return votive.nn.Linear(SIZE, out)\n"
    )
    hub = votive.hub
    assert hub.list(str(repo), source="local") == ["linear"]
    assert hub.load(str(repo), "linear", source="local", out=2).weight.shape == (2, 3)
    before = hub.get_dir()
    hub.set_dir(tmp_path)
    try:
        assert hub.help("someone/models", "linear") == "A layer."
        with pytest.raises(RuntimeError, match="fetches no code"):
            hub.load("someone/else", "linear")
        with pytest.raises(RuntimeError, match="Cannot find callable"):
            hub.load("someone/models", "conv")
    finally:
        hub.set_dir(before)
    assert str(repo) not in sys.path
    (repo / "hubconf.py").write_text("dependencies = ['not_a_package']\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: not_a_package"):
        hub.list(str(repo), source="local")


def test_a_download_with_a_wrong_checksum_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(np.arange(4, dtype="f4").tobytes())
    with pytest.raises(RuntimeError, match="invalid hash"):
        votive.hub.download_url_to_file((tmp_path / "a").as_uri(), str(tmp_path / "b"), "0000", progress=False)
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_the_accelerator_is_the_gpu_or_none() -> None:
    space = votive.accelerator
    if space.is_available():
        space.synchronize()
        return
    assert space.current_accelerator() is None
    assert space.device_count() == 0
    with pytest.raises(RuntimeError, match="none is available"):
        space.synchronize()
