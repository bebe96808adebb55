"""One load of a state: check every key and shape, then write, or take back and say what is wrong.

Knows the tables of a module, not its calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd.modes import no_grad
from ..surface.interchange import as_tensor
from ..tensor import Tensor
from .parameter import Parameter, UninitializedTensorMixin, is_lazy

if TYPE_CHECKING:
    from .state import Stateful

# Where a load finds itself in the metadata that goes through `_load_from_state_dict`.
LOADING = "_loading"


class IncompatibleKeys(NamedTuple):
    """What a load did not find, and what it did not know.

    >>> votive.nn.Identity().load_state_dict({})
    <All keys matched successfully>
    """

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"


class Loading:
    """One load: what was found so far, the writes that wait, and how to take back early ones."""

    def __init__(self, metadata: dict[str, Any] | None, assign: bool) -> None:
        self.metadata, self.assign = metadata or {}, assign
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []
        self.visited: list[Stateful] = []
        self.pending: list[Callable[[], None]] = []
        self.undo: list[Callable[[], None]] = []

    def visit(self, module: Stateful, given: dict[str, Any], prefix: str) -> None:
        """Let a module and all below it check what is given for them."""
        local = dict(self.metadata.get(prefix[:-1], {}))
        local[LOADING] = self
        if self.assign:
            local["assign_to_params_buffers"] = True
        module._load_from_state_dict(given, prefix, local, True, *self.keys, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                self.visit(child, {k: v for k, v in given.items() if k.startswith(below)}, below)
        self.visited.append(module)

    def finish(self, top: Stateful, strict: bool) -> None:
        """Write, run the post hooks, and raise if something does not fit."""
        keys = self.keys
        post_hooks = [(m, h) for m in self.visited for h in tuple(m._load_state_dict_post_hooks.values())]
        mismatch = strict and bool(keys.missing_keys or keys.unexpected_keys)
        if not self.errors and (post_hooks or not mismatch):
            if mismatch:
                # Post hooks may forgive missing keys, and expect to see loaded values.
                self.undo += snapshot(self.visited)
            for write in self.pending:
                write()
            for module, hook in post_hooks:
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with register_load_state_dict_post_hook are not expected "
                        "to return new values; modify incompatible_keys in place."
                    )
        messages = list(self.errors)
        if strict:
            for kind, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
                if names:
                    quoted = ", ".join(f'"{k}"' for k in names)
                    messages.insert(0, f"{kind} key(s) in state_dict: {quoted}. ")
        if messages:
            text = "\n\t".join(messages)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(top).__name__}:\n\t{text}")

    def roll_back(self) -> None:
        for restore in reversed(self.undo):
            restore()


def prepare(
    module: Stateful, name: str, param: Tensor, key: str, value: Any, assign: bool, errors: list[str]
) -> Callable[[], None] | None:
    """The write of one value, or None with the reason in `errors`."""
    if not isinstance(value, Tensor):
        if not hasattr(value, "__array__"):
            errors.append(
                f'While copying the parameter named "{key}", expected votive.Tensor or Tensor-like '
                f"object from checkpoint but received {type(value)}"
            )
            return None
        try:
            value = as_tensor(value)  # NumPy arrays, and tensors of other frameworks
        except Exception as e:
            errors.append(f'While copying the parameter named "{key}", an exception occurred: {e}')
            return None
    if is_lazy(value):
        if not is_lazy(param):
            errors.append(f'"{key}" of the checkpoint is uninitialized, that of the model is not.')
        return None
    if isinstance(param, UninitializedTensorMixin):
        return lambda: _write_lazy(param, value)
    if param.ndim == 0 and tuple(value.shape) == (1,):
        value = value[0]  # saved before 0-d tensors were known
    if value.shape != param.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {param.shape}."
        )
        return None
    if assign:
        return lambda: _assign(module, name, value)
    if param.is_meta and not value.is_meta:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter "
            "in the current model, which is a no-op. (Did you mean to pass `assign=True`?)",
            stacklevel=6,
        )
        return None
    return lambda: _copy(module, name, value)


def _copy(module: Stateful, name: str, value: Tensor) -> None:
    with no_grad():
        _current(module, name).copy_(value)


def _write_lazy(param: UninitializedTensorMixin, value: Tensor) -> None:
    with no_grad():
        param.materialize(value.shape)
        param.copy_(value)


def _assign(module: Stateful, name: str, value: Tensor) -> None:
    current = _current(module, name)
    if isinstance(current, Parameter):
        if isinstance(value, Parameter):
            value.requires_grad_(current.requires_grad)
        else:
            value = Parameter(value, requires_grad=current.requires_grad)
    setattr(module, name, value)


def _current(module: Stateful, name: str) -> Tensor:
    found = module._parameters.get(name)
    return module._buffers[name] if found is None else found


def unknown(module: Stateful, own: dict[str, Any], given: dict[str, Any], prefix: str, extra: str) -> list[str]:
    """Keys below `prefix` that belong to nothing in the module."""
    found = []
    for key in given:
        if not key.startswith(prefix) or key == extra:
            continue
        name, dot, _ = key[len(prefix) :].partition(".")
        if name not in (module._modules if dot else own):
            found.append(key)
    return found


def snapshot(modules: Sequence[Stateful]) -> list[Callable[[], None]]:
    """How to put back the present values of these modules."""

    def restore(module: Stateful, name: str, table: str, was: Tensor, values: Tensor) -> None:
        getattr(module, table)[name] = was
        with no_grad():
            was.copy_(values)

    undo: list[Callable[[], None]] = []
    for module in modules:
        for table in ("_parameters", "_buffers"):
            for name, was in getattr(module, table).items():
                if was is not None and not is_lazy(was) and not was.is_meta:
                    values = was.detach().clone()
                    undo.append(partial(restore, module, name, table, was, values))
    return undo
