"""Modules as torch's: registration, hooks, state, conversion; and what is votive's own."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import votive
from votive import nn
from votive.nn import (
    address,
    containers,
    convert,
    factory,
    global_hooks,
    handle,
    hooks,
    lazy,
    loading,
    module,
    parameter,
    parameter_containers,
    state,
    tree,
)

from .. import docstrings
from .examples import examples
from .module_programs import make

Lin = make(votive).Lin


DOCS = examples(
    address,
    containers,
    convert,
    factory,
    global_hooks,
    handle,
    hooks,
    lazy,
    loading,
    module,
    parameter,
    parameter_containers,
    state,
    tree,
)
# Parts that users do not meet by themselves.
INTERNAL = {
    "Children",
    "Path",
    "children_of",
    "locate",
    "note",
    "refuse_foreign",
    "position",
    "pairs",
    "Convertible",
    "GlobalHook",
    "of_kind",
    "registered",
    "add",
    "BoundHook",
    "Call",
    "Hooked",
    "Loading",
    "prepare",
    "unknown",
    "snapshot",
    "indented",
    "Stateful",
    "Tree",
}


@pytest.mark.parametrize("name", sorted(DOCS))
def test_an_example_runs_as_printed(name: str) -> None:
    assert DOCS[name], f"{name} has no docstring"
    if ">>>" in DOCS[name] or name.split(".")[3] not in INTERNAL:
        docstrings.run(name, DOCS[name])


# --- hooks ----------------------------------------------------------------------------------------


def test_a_handle_survives_pickling_with_its_module() -> None:
    m = nn.Sequential()
    handle = m.register_forward_hook(_tenfold)
    twin, twin_handle = pickle.loads(pickle.dumps((m, handle)))
    assert twin(1) == 10
    twin_handle.remove()
    assert twin(1) == 1
    assert m(1) == 10


def _tenfold(module: Any, args: Any, out: Any) -> Any:
    return out * 10


def test_hooks_may_remove_themselves_while_they_run() -> None:
    m = nn.Sequential()
    handles = []
    handles.append(m.register_forward_pre_hook(lambda *a: handles[0].remove()))
    handles.append(m.register_forward_hook(lambda *a: handles[1].remove()))
    assert m(1) == 1
    assert not m._forward_hooks
    assert not m._forward_pre_hooks


def test_the_older_backward_hook_says_when_it_cannot_see_all() -> None:
    m = Lin(2, 2)
    m.register_backward_hook(lambda *a: None)
    with pytest.warns(FutureWarning, match="register_full_backward_hook"):
        m(votive.ones(1, 2))


def test_full_backward_hooks_say_when_they_cannot_work() -> None:
    class Dict(nn.Module):
        def forward(self, x: Any) -> Any:
            return {"x": x * 2}

    m = Dict()
    m.register_full_backward_hook(lambda *a: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor"):
        m(votive.ones(1, requires_grad=True))
    n = Lin(2, 2)
    n.register_full_backward_hook(lambda *a: None)
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        n(votive.ones(1, 2)).sum().backward()


def test_a_silenced_error_of_an_always_called_hook_is_told() -> None:
    class Failing(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    m = Failing()

    def broken(*args: Any) -> None:
        raise RuntimeError("too")

    m.register_forward_hook(broken, always_call=True)
    with pytest.warns(UserWarning, match="always_call"), pytest.raises(ValueError, match="no"):
        m(1)


# --- the rest -------------------------------------------------------------------------------------


def test_forward_can_be_replaced_on_an_instance() -> None:
    m = nn.Identity()
    m.forward = lambda x: x + 1
    assert m(1) == 2


def test_classes_with_two_bases_can_ask_for_the_next_init() -> None:
    class Other:
        def __init__(self, a: int) -> None:
            self.a = a

    class Both(nn.Module, Other):
        call_super_init = True

    assert Both(3).a == 3


def test_a_register_buffer_without_the_newer_argument_still_serves() -> None:
    class Old(nn.Module):
        def register_buffer(self, name: str, tensor: Any) -> None:  # type: ignore[override]
            super().register_buffer(name, tensor)

    m = Old()
    m.b = nn.Buffer(votive.ones(1))
    assert list(m.state_dict()) == ["b"]


def test_a_state_from_before_an_attribute_existed_can_be_unpickled() -> None:
    m = nn.Identity()
    old = {k: v for k, v in m.__dict__.items() if k not in ("_backward_pre_hooks", "_modules")}
    new = nn.Identity.__new__(nn.Identity)
    new.__setstate__(old)
    assert new(1) == 1


def test_a_tensor_of_a_class_of_its_own_stays_of_it_as_a_parameter() -> None:
    class Mine(votive.Tensor):
        pass

    p = nn.Parameter(Mine([1.0, 2.0]))
    assert type(p) is Mine
    assert isinstance(p, nn.Parameter)
    assert p.requires_grad
    m = nn.Module()
    m.p = p
    assert [n for n, _ in m.named_parameters()] == ["p"]
    with pytest.raises(TypeError, match="must be a Tensor"):
        nn.Parameter([1.0])


def test_a_lazy_module_says_what_is_missing() -> None:
    class Broken(nn.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.UninitializedParameter()

        def initialize_parameters(self, x: Any) -> None:
            pass

    with pytest.raises(RuntimeError, match="not been fully initialized"):
        Broken()(1)
    with pytest.raises(ValueError, match="uninitialized"):
        votive.ones(1) + Broken().w


def test_the_parameters_of_the_base_classes_are_not_shared_between_modules() -> None:
    a, b = nn.Module(), nn.Module()
    a.x = nn.Parameter(votive.ones(1))
    assert not b._parameters
    assert not b._modules
