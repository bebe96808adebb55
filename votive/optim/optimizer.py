"""Optimizer: parameter groups, per-parameter state, hooks and checkpoints. Knows no update rule."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from ..autograd import enable_grad
from ..autograd.graph import Handle
from ..core import dtype as dt
from ..core.errors import UnsupportedError, fail, foreign
from ..ops.registry import F
from ..tensor import Tensor
from .step_hooks import add_hook, no_hooks, with_step_hooks


class _Required:
    """Stands in `defaults` for an option that every parameter group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()
# Tensors, named tensors, or groups of either with options of their own.
Params = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]


def _typename(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def scalar_dtype(fused: bool | None = None) -> dt.dtype:
    """The dtype of step counts and other numbers that an optimizer keeps as 0-d tensors."""
    if fused:
        return dt.float32
    return dt.float64 if dt.get_default_dtype() is dt.float64 else dt.float32


class Optimizer:
    """Base of all optimizers: holds parameters in groups and what is remembered of each.

    A subclass gives its options as `defaults` and defines `step`.

    >>> class Descent(votive.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     @votive.no_grad()
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p -= group["lr"] * p.grad
    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = Descent([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0., 0.], requires_grad=True)
    """

    _scheduled_step: Callable[..., Any] | None
    _stepping = False
    _opt_called = False
    # Options that checkpoints of older versions lack, with the value that means "as before".
    _absent: dict[str, Any] = {}
    # Numbers per parameter that are kept as 0-d tensors.
    _numbers: tuple[str, ...] = ()
    # Whether a number's step depends on its own gradient alone, so that parameters may be stepped in parts.
    _by_number = True
    # States whose dtype is not that of their parameter.
    _exact: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = with_step_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {_typename(params)}"
            )
        self.defaults = defaults
        self._hooks = no_hooks()
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # --- groups -------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize more parameters from now on, with options of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        self._read_params(param_group)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_group(param_group)
        params = param_group["params"]
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        named = "param_names" in param_group
        for group in self.param_groups:
            if ("param_names" in group) != named:
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {'with' if named else 'without'} names to the optimizer"
                )
        if {p for g in self.param_groups for p in g["params"]} & set(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _read_params(self, group: dict[str, Any]) -> None:
        """Make `params` a list of tensors, and `param_names` one of names where they were given."""
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        listed = list(params)
        names = [p[0] for p in listed if isinstance(p, tuple)]
        group["params"] = [p[1] if isinstance(p, tuple) else p for p in listed]
        if names:
            if len(names) != len(listed):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            group["param_names"] = names
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + _typename(p)
                    + ("; make it a parameter of a votive module" if foreign(p) else "")
                )
            if not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")

    def _check_group(self, group: dict[str, Any]) -> None:
        """Refuse what votive's steps do not offer."""
        if not self._by_number and any("_sharding" in p.__dict__ for p in group["params"]):
            fail(
                UnsupportedError,
                type(self).__name__,
                "its steps look at whole parameters, and fully_shard has spread them over ranks; use AdamW, or "
                "DistributedDataParallel.",
            )
        for option, instead in {
            "differentiable": "write the update with operators to differentiate through it",
            "capturable": "steps run outside captured graphs",
        }.items():
            if group.get(option):
                fail(UnsupportedError, type(self).__name__, f"{option}=True is not supported; {instead}.")

    # --- stepping -----------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; `closure` evaluates the model again and returns the loss."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            if set_to_none:
                for p in group["params"]:
                    if p._grad is not None:
                        p._grad = None
                continue
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()

    @staticmethod
    def _evaluate(closure: Callable[[], Any] | None) -> Any:
        """The loss of a closure, which records even where `step` was called under no_grad."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    # --- hooks --------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """`hook(optimizer, args, kwargs)` runs before each step and may return new arguments."""
        return add_hook(self._hooks["step_pre"], hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """`hook(optimizer, args, kwargs)` runs after each step."""
        return add_hook(self._hooks["step_post"], hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """`hook(optimizer)` runs before `state_dict`."""
        return add_hook(self._hooks["save_pre"], hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """`hook(optimizer, state_dict)` runs after `state_dict` and may return another one."""
        return add_hook(self._hooks["save_post"], hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """`hook(optimizer, state_dict)` runs before loading and may return another state dict."""
        return add_hook(self._hooks["load_pre"], hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """`hook(optimizer)` runs after loading."""
        return add_hook(self._hooks["load_post"], hook, prepend)

    # --- checkpoints --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State and groups with parameters replaced by their positions."""
        for hook in self._hooks["save_pre"].values():
            hook(self)
        index: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                index.setdefault(id(p), i)
            start += len(group["params"])
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [index[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {index[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        out: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._hooks["save_post"].values():
            changed = hook(self, out)
            if changed is not None:
                out = changed
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` saved; tensors are copied, cast to their parameter's dtype
        and moved to its device. Nothing changes when the groups do not fit.
        """
        state_dict = dict(state_dict)
        for hook in self._hooks["load_pre"].values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved)}, the optimizer has {len(self.param_groups)}."
            )
        owners: dict[Any, tuple[Any, Any]] = {}
        for i, (new, group) in enumerate(zip(saved, self.param_groups, strict=True)):
            if len(new["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    f"optimizer's group: group {i} has {len(new['params'])} parameters there and "
                    f"{len(group['params'])} here."
                )
            for key, p in zip(new["params"], group["params"], strict=True):
                owners.setdefault(key, (p, new))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                p, group = owners[key]
                state[p] = _adopted(value, p, group, ("step", *self._numbers), self._exact)
            else:
                state[key] = value
        for new, group in zip(saved, self.param_groups, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._hooks["load_post"].values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_hooks", no_hooks())
        for group in self.param_groups:
            for name, value in self._absent.items():
                if name in self.defaults:
                    group.setdefault(name, value)
            for p in group["params"]:
                of = self.state.get(p, {})
                for name in self._numbers:
                    if name in of and not isinstance(of[name], Tensor):
                        dtype = scalar_dtype(group.get("fused"))
                        of[name] = F.tensor(float(of[name]), dtype=dtype)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def _adopted(
    value: object,
    p: Tensor,
    group: dict[str, Any],
    numbers: tuple[str, ...],
    exact: tuple[str, ...],
    key: object = None,
) -> Any:
    """A private copy of saved state, as it belongs to the parameter `p`."""
    if isinstance(value, Tensor):
        dtype, device = value.dtype, p.device
        if key in numbers:
            # Numbers stay what and where they are: a count in float16 would end at 2048, and one
            # that changes its precision would not continue bit for bit.
            if not group.get("fused"):
                return F.clone(value.detach())
            dtype = dt.float32
        elif p.is_floating_point() and key not in exact:
            dtype = p.dtype
        return F.to(value.detach(), device, dtype, copy=True)
    if isinstance(value, dict):
        return {k: _adopted(v, p, group, numbers, exact, k) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_adopted(v, p, group, numbers, exact) for v in value)
    return value
