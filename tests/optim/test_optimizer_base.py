"""The Optimizer base: groups, hooks, closures, checkpoints, and torch's errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import votive
from votive.optim import SGD, Adam, Optimizer


def leaf(*shape: int) -> Any:
    return votive.ones(*shape, requires_grad=True)


class Descent(Optimizer):
    """As users write one."""

    def __init__(self, params: Any, lr: Any = 0.1) -> None:
        super().__init__(params, {"lr": lr})

    @votive.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-group["lr"])
        return loss


def test_groups_get_the_defaults_they_do_not_name() -> None:
    a, b = leaf(1), leaf(2)
    opt = SGD([{"params": a, "lr": 0.5}, {"params": [b], "momentum": 0.9}], lr=0.1)
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.1]
    assert [g["momentum"] for g in opt.param_groups] == [0, 0.9]
    assert opt.param_groups[0]["params"][0] is a
    assert opt.defaults["lr"] == 0.1


def test_named_parameters_keep_their_names() -> None:
    a, b = leaf(1), leaf(2)
    opt = Adam([("w", a), ("b", b)])
    assert opt.param_groups[0]["param_names"] == ["w", "b"]
    assert opt.param_groups[0]["params"][1] is b
    assert opt.state_dict()["param_groups"][0]["param_names"] == ["w", "b"]
    other = Adam([leaf(1), leaf(2)])
    other.load_state_dict(opt.state_dict())
    assert other.param_groups[0]["param_names"] == ["w", "b"]
    unnamed = Adam([leaf(1), leaf(2)])
    opt.load_state_dict(unnamed.state_dict())
    assert opt.param_groups[0]["param_names"] == ["w", "b"]


def _add_shared(opt: Any) -> None:
    opt.add_param_group({"params": opt.param_groups[0]["params"]})


BAD: dict[str, tuple[type[Exception], str, Any]] = {
    "a tensor": (TypeError, "iterable of Tensors or dicts", lambda: SGD(leaf(1))),
    "nothing": (ValueError, "empty parameter list", lambda: SGD([])),
    "a set": (TypeError, "ordered collections", lambda: SGD([{"params": {leaf(1)}}])),
    "no tensor": (TypeError, "can only optimize Tensors", lambda: SGD([1])),
    "no leaf": (ValueError, "non-leaf", lambda: SGD([leaf(1) * 2])),
    "no dict": (TypeError, "must be a dict", lambda: SGD([leaf(1)]).add_param_group([leaf(1)])),
    "twice": (ValueError, "more than one parameter group", lambda: _add_shared(SGD([leaf(1)]))),
    "some names": (ValueError, "names are missing", lambda: SGD([("a", leaf(1)), leaf(1)])),
    "names later": (
        ValueError,
        "cannot add param group with names",
        lambda: SGD([leaf(1)]).add_param_group({"params": [("a", leaf(1))]}),
    ),
    "lr": (ValueError, "Invalid learning rate: -1", lambda: SGD([leaf(1)], lr=-1)),
    "nan": (ValueError, "Invalid learning rate", lambda: Adam([leaf(1)], lr=float("nan"))),
    "lr tensor": (ValueError, "1-element", lambda: SGD([leaf(1)], lr=votive.ones(2))),
    "momentum": (ValueError, "Invalid momentum", lambda: SGD([leaf(1)], momentum=-0.1)),
    "decay": (ValueError, "Invalid weight_decay", lambda: Adam([leaf(1)], weight_decay=-1)),
    "eps": (ValueError, "Invalid epsilon", lambda: Adam([leaf(1)], eps=-1)),
    "beta 0": (ValueError, "index 0: 1.0", lambda: Adam([leaf(1)], betas=(1.0, 0.9))),
    "beta 1": (ValueError, "index 1: -0.1", lambda: Adam([leaf(1)], betas=(0.9, -0.1))),
    "betas": (ValueError, "both floats", lambda: Adam([leaf(1)], betas=(0, 0.9))),
    "nesterov": (ValueError, "Nesterov", lambda: SGD([leaf(1)], nesterov=True)),
    "both": (RuntimeError, "cannot be `True`", lambda: SGD([leaf(1)], foreach=True, fused=True)),
    "rho": (ValueError, "rho", lambda: votive.optim.Adadelta([leaf(1)], rho=1.5)),
    "etas": (ValueError, "eta", lambda: votive.optim.Rprop([leaf(1)], etas=(1.5, 1.2))),
    "lr foreach": (ValueError, "lr as a Tensor", lambda: Adam([leaf(1)], lr=votive.tensor(0.1), foreach=True)),
    "required": (
        ValueError,
        "required optimization parameter lr",
        lambda: Descent([leaf(1)], lr=votive.optim.optimizer.required),
    ),
    "differentiable": (NotImplementedError, "differentiable=True", lambda: SGD([leaf(1)], differentiable=True)),
    "capturable": (
        NotImplementedError,
        "capturable=True",
        lambda: Adam([leaf(1)]).add_param_group({"params": [leaf(1)], "capturable": True}),
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_wrong_parameters_and_options_are_refused(name: str) -> None:
    kind, match, make = BAD[name]
    with pytest.raises(kind, match=match):
        make()


def test_duplicates_in_a_group_warn() -> None:
    p = leaf(1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        SGD([p, p])


def test_a_complex_parameter_cannot_be_stepped_fused() -> None:
    p = votive.ones(1, dtype=votive.complex64, requires_grad=True)
    p.grad = votive.ones_like(p)
    opt = SGD([p], fused=True)
    with pytest.raises(RuntimeError, match="floating point Tensors"):
        opt.step()


def test_a_refused_group_leaves_the_optimizer_as_it_was() -> None:
    opt = SGD([leaf(1)])
    with pytest.raises(ValueError, match="more than one"):
        _add_shared(opt)
    assert len(opt.param_groups) == 1


def test_gradients_are_forgotten_or_zeroed() -> None:
    p = leaf(2)
    opt = SGD([p])
    (p * p).sum().backward()
    kept = p.grad
    opt.zero_grad(set_to_none=False)
    assert p.grad is kept
    assert kept.tolist() == [0.0, 0.0]
    opt.zero_grad()
    assert p.grad is None


def test_zeroing_cuts_the_graph_of_a_gradient() -> None:
    p = leaf(1)
    (p**3).sum().backward(create_graph=True)
    assert p.grad.requires_grad
    SGD([p]).zero_grad(set_to_none=False)
    assert not p.grad.requires_grad


def test_parameters_without_gradients_are_left_alone() -> None:
    a, b = leaf(1), leaf(1)
    opt = Adam([a, b], lr=0.1)
    a.grad = votive.ones(1)
    opt.step()
    assert b.item() == 1.0
    assert list(opt.state) == [a]


def test_a_closure_is_run_with_gradients_on_and_its_loss_returned() -> None:
    p = leaf(1)
    opt = SGD([p], lr=0.25)

    def closure() -> Any:
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with votive.no_grad():
        loss = opt.step(closure)
    assert loss.item() == 1.0
    assert p.item() == 0.5
    assert SGD([leaf(1)]).step() is None


def test_a_step_records_nothing() -> None:
    p = leaf(1)
    p.grad = votive.ones(1)
    Adam([p]).step()
    assert p.is_leaf
    assert p.grad_fn is None
    assert votive.is_grad_enabled()


def test_hooks_run_around_a_step_and_can_change_its_arguments() -> None:
    p = leaf(1)
    opt = Descent([p])
    p.grad = votive.ones(1)
    seen: list[str] = []

    def pre(optimizer: Any, args: Any, kwargs: Any) -> Any:
        seen.append("pre")
        assert optimizer is opt
        assert args == (opt,)
        return (opt, lambda: "loss"), kwargs

    handles = [
        opt.register_step_pre_hook(pre),
        opt.register_step_post_hook(lambda o, args, kwargs: seen.append(f"post {len(args)}")),
        votive.optim.register_optimizer_step_pre_hook(lambda o, a, k: seen.append("all pre")),
        votive.optim.register_optimizer_step_post_hook(lambda o, a, k: seen.append("all post")),
    ]
    assert opt.step() == "loss"
    assert seen == ["all pre", "pre", "post 2", "all post"]
    for h in handles:
        h.remove()
    seen.clear()
    opt.step()
    assert seen == []


def test_a_hook_that_returns_nonsense_is_an_error() -> None:
    opt = Descent([leaf(1)])
    opt.register_step_pre_hook(lambda o, a, k: 3)
    with pytest.raises(RuntimeError, match="tuple of \\(new_args, new_kwargs\\)"):
        opt.step()


def test_hooks_run_once_where_a_step_calls_that_of_its_parent() -> None:
    class Noisy(SGD):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    p = leaf(1)
    p.grad = votive.ones(1)
    opt = Noisy([p])
    seen: list[int] = []
    opt.register_step_post_hook(lambda o, a, k: seen.append(1))
    opt.step()
    opt.step()
    assert seen == [1, 1]


def test_a_wrapper_that_never_called_init_steps_what_it_wraps() -> None:
    class Wrapper(votive.optim.Optimizer):
        def __init__(self, inner: votive.optim.Optimizer) -> None:
            self.inner = inner

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    p = leaf(1)
    before = p.item()
    p.grad = votive.ones(1)
    Wrapper(SGD([p], lr=1.0)).step()
    assert p.item() == before - 1


def test_hooks_around_checkpoints_run_in_order() -> None:
    opt = Adam([leaf(1)])
    seen: list[str] = []
    opt.register_state_dict_pre_hook(lambda o: seen.append("save"))
    opt.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    opt.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
    state = opt.state_dict()
    assert seen == ["first", "save"]
    assert state["more"] == 1

    def rate(o: Any, s: Any) -> Any:
        s["param_groups"] = [{**s["param_groups"][0], "lr": 0.7}]

    opt.register_load_state_dict_pre_hook(rate)
    opt.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    opt.load_state_dict(state)
    assert opt.param_groups[0]["lr"] == 0.7
    assert state["param_groups"][0]["lr"] == 1e-3
    assert seen[-1] == "loaded"


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    a = leaf(1)
    opt = Adam([a], lr=0.1)
    a.grad = votive.ones(1)
    opt.step()
    two = Adam([leaf(1), leaf(1)]).state_dict()
    with pytest.raises(ValueError, match=r"size of optimizer's group: group 0 has 2 .* 1 here"):
        opt.load_state_dict(two)
    groups = Adam([{"params": [leaf(1)]}, {"params": [leaf(1)]}]).state_dict()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        opt.load_state_dict(groups)
    assert opt.param_groups[0]["lr"] == 0.1
    assert opt.state[a]["step"].item() == 1


def test_state_that_belongs_to_no_parameter_is_kept() -> None:
    opt = Descent([leaf(1)])
    opt.state["epochs"] = 3
    other = Descent([leaf(1)])
    other.load_state_dict(opt.state_dict())
    assert other.state["epochs"] == 3


def test_positions_count_through_all_groups() -> None:
    opt = SGD([{"params": [leaf(1), leaf(1)]}, {"params": [leaf(1)]}])
    assert [g["params"] for g in opt.state_dict()["param_groups"]] == [[0, 1], [2]]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_an_optimizer_can_be_copied_with_its_parameters(copied: Any) -> None:
    p = leaf(2)
    opt = Adam([p], lr=0.1)
    p.grad = votive.ones(2)
    opt.step()
    other = copied(opt)
    (q,) = other.param_groups[0]["params"]
    assert q is not p
    q.grad = votive.ones(2)
    other.step()
    opt.step()
    assert q.tolist() == p.tolist()
    assert other.state[q]["step"].item() == 2
    other.register_step_post_hook(lambda o, a, k: None)


def test_an_optimizer_shows_its_groups() -> None:
    opt = SGD([{"params": [leaf(1)]}, {"params": [leaf(1)], "lr": 2}], lr=0.1)
    assert repr(opt).splitlines()[:4] == ["SGD (", "Parameter Group 0", "    dampening: 0", "    differentiable: False"]
    assert "Parameter Group 1" in repr(opt)
    assert repr(opt).endswith("weight_decay: 0\n)")


def test_an_optimizer_without_a_step_says_so() -> None:
    with pytest.raises(NotImplementedError):
        Optimizer([leaf(1)], {}).step()


@pytest.mark.parity
def test_signatures_are_those_of_torch() -> None:
    import inspect

    torch = pytest.importorskip("torch")
    for name in votive.optim.__all__:
        ours, theirs = getattr(votive.optim, name), getattr(torch.optim, name, None)
        if theirs is None or not inspect.isclass(ours):
            continue
        for a, b in zip(
            inspect.signature(ours.__init__).parameters.values(),
            inspect.signature(theirs.__init__).parameters.values(),
            strict=True,
        ):
            assert (a.name, a.default, a.kind) == (b.name, b.default, b.kind), name
    for module in ("lr_scheduler", "swa_utils"):
        mine, other = getattr(votive.optim, module), getattr(torch.optim, module)
        for name in other.__all__:
            ours, theirs = getattr(mine, name), getattr(other, name)
            get = inspect.signature
            a, b = ({n: p.default for n, p in get(f).parameters.items()} for f in (ours, theirs))
            assert a == b, name
