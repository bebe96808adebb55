"""The path of a module's call: through containers, copies, changes, errors and threads."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections import OrderedDict
from typing import Any

import pytest

import votive
from votive import nn
from votive.core.mode import mode
from votive.nn import address

from .module_programs import make

Lin = make(votive).Lin


class Spy(nn.Module):
    """Notes the path of each of its calls."""

    def __init__(self, fail: bool = False) -> None:
        super().__init__()
        self.paths: list[str] = []
        self.fail = fail

    def forward(self, x: Any) -> Any:
        self.paths.append(mode.module_path)
        if self.fail:
            raise ValueError("no")
        return x


class Holder(nn.Module):
    """Calls what it holds, under several names and through containers."""

    def __init__(self, spy: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(Spy(), Spy()), Spy()])
        self.table = nn.ModuleDict({"skip": Spy()})
        self.shared = spy
        self.unseen = [Spy()]

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.unseen[0](self.shared(self.table["skip"](x)))


def paths_of(m: Any) -> list[str]:
    return [p for s in m.modules() if isinstance(s, Spy) for p in s.paths]


def test_a_call_knows_its_path_below_the_outermost_module() -> None:
    m = Holder(Spy())
    for _ in range(2):
        m(1)
    want = ["layers.0.0", "layers.0.1", "layers.1", "table.skip", "shared"]
    assert paths_of(m) == [p for w in want for p in (w, w)]
    assert m.unseen[0].paths == ["", ""], "a module registered nowhere is part of its caller"
    assert mode.module_path == ""


def test_a_module_under_two_parents_gets_the_path_of_the_present_call() -> None:
    spy = Spy()
    m = nn.Sequential(Holder(spy), Holder(spy))
    m(1)
    m[0](1)
    spy(1)
    assert spy.paths == ["0.shared", "1.shared", "shared", ""]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.layers.insert(0, Spy()),
        lambda m: m.layers.append(Spy()),
        lambda m: m.layers.pop(0),
        lambda m: setattr(m, "shared", nn.Sequential(m.shared)),
        lambda m: m.table.update({"skip": nn.Sequential(m.table["skip"])}),
        lambda m: m._modules.update(shared=nn.Sequential(m.shared)),
        lambda m: setattr(m.layers, "_modules", OrderedDict(a=m.layers[1])),
        lambda m: m.set_submodule("layers.1", nn.Sequential(m.layers[1])),
    ],
)
def test_a_path_follows_a_change_of_the_tree(change: Any) -> None:
    m = Holder(Spy())
    m(1)
    change(m)
    for s in m.modules():
        if isinstance(s, Spy):
            s.paths.clear()
    m(1)
    assert paths_of(m) == [n for n, s in m.named_modules() if isinstance(s, Spy)]


def test_a_copy_knows_its_own_paths() -> None:
    m = Holder(Spy())
    m(1)
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        twin.renamed = twin.shared
        del twin.shared
        twin.shared = nn.Identity()
        twin.renamed.paths.clear()
        twin.forward = lambda x, twin=twin: twin.renamed(x)
        twin(1)
        assert twin.renamed.paths == ["renamed"]


def test_an_error_names_the_innermost_module_once_and_the_path_is_restored() -> None:
    m = nn.Sequential(nn.Identity(), Holder(Spy(fail=True)))
    with pytest.raises(ValueError) as caught:
        m(1)
    assert caught.value.__notes__ == ["in module '1.shared' (Spy)"]
    assert mode.module_path == ""
    with pytest.raises(RuntimeError) as raised:
        nn.Sequential(OrderedDict(a=Lin(2, 3)))(votive.ones(1, 5))
    assert raised.value.__notes__ == ["in module 'a' (Lin)"]


def test_a_recorded_call_knows_its_module() -> None:
    y = nn.Sequential(Lin(2, 2), nn.Sequential(Lin(2, 2)))(votive.ones(1, 2))
    assert y.grad_fn.module_path == "1.0"
    assert (votive.ones(1, requires_grad=True) * 2).grad_fn.module_path == ""


def test_threads_have_paths_of_their_own() -> None:
    inner, seen = threading.Barrier(2), []

    class Slow(nn.Module):
        def forward(self, x: Any) -> Any:
            inner.wait()
            seen.append(mode.module_path)
            return x

    models = [nn.Sequential(OrderedDict({n: Slow()})) for n in ("a", "b")]
    threads = [threading.Thread(target=m, args=(1,)) for m in models]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(seen) == ["a", "b"]
    assert mode.module_path == ""


def test_hooks_run_at_the_path_of_their_module() -> None:
    m = nn.Sequential(OrderedDict(a=nn.Identity()))
    seen = []
    m.a.register_forward_pre_hook(lambda *a: seen.append(mode.module_path))
    m.a.register_forward_hook(lambda *a: seen.append(mode.module_path))
    m(1)
    assert seen == ["a", "a"]


def test_a_path_that_is_set_again_names_what_is_below_it() -> None:
    """So a checkpoint that computes again needs to keep `mode.module_path` only."""
    kept = []

    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([Spy(), Spy()])

        def forward(self, x: Any) -> Any:
            kept.append(mode.module_path)
            return self.blocks[1](x)

    m = nn.Sequential(Keeping())
    m(1)
    mode.module_path = kept[0]
    try:
        m[0].blocks[1](1)
        m[0].blocks[0](1)
    finally:
        mode.module_path = ""
        mode.renew()
    assert paths_of(m) == ["0.blocks.0", "0.blocks.1", "0.blocks.1"]


def test_modules_made_inside_forward_leave_nothing_behind() -> None:
    class Making(nn.Module):
        def forward(self, x: Any) -> Any:
            return nn.Sequential(nn.Identity(), nn.Sequential(Spy()))(x)

    m = Making()
    m(1)
    before = len(address._learned.refs), len(address._callers.refs)
    for _ in range(500):
        m(1)
    assert len(address._learned.refs) < before[0] + 200
    assert len(address._callers.refs) < before[1] + 200


def test_a_called_model_is_freed_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        m = Holder(Spy())
        m(1)
        m.load_state_dict(m.state_dict())
        handle = m.register_forward_hook(lambda *a: None)
        ref = weakref.ref(m.shared)
        del m
        assert ref() is None
        handle.remove()
    finally:
        gc.enable()
