"""Saving and loading the values of a module. Knows the tables of a module, not its calls.

A failed load changes nothing: values are written after everything was checked. A module that
overrides `_load_from_state_dict` may want to see its values right after the default has run; its
values are written at once and put back if the load fails.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from .handle import BoundHook, Hook, RemovableHandle, add
from .loading import LOADING, IncompatibleKeys, Loading, prepare, snapshot, unknown
from .parameter import is_lazy

EXTRA_STATE = "_extra_state"


def _overrides(module: Stateful, name: str) -> bool:
    return getattr(type(module), name, None) is not getattr(Stateful, name)


class Stateful:
    """The part of Module that saves and loads."""

    _version: int = 1
    _modules: dict[str, Any]
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Hook]
    _state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_post_hooks: OrderedDict[int, Hook]

    # --- saving -------------------------------------------------------------------------------

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by path; the tensors share the module's memory.

        >>> list(votive.nn.ParameterList([votive.ones(2)]).state_dict(prefix="list."))
        ['list.0']
        """
        if args:
            warnings.warn("Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=2)
            given = dict(zip(("destination", "prefix", "keep_vars"), args))
            destination = given["destination"] if destination is None else destination
            prefix = prefix or given.get("prefix", "")
            keep_vars = keep_vars or given.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in tuple(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in tuple(self._state_dict_hooks.values()):
            replaced = hook(self, destination, prefix, local_metadata)
            if replaced is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = replaced
        return destination

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Put this module's own values, not those below it, into `destination`."""
        for name, value in self._own_state().items():
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> dict[str, Any]:
        """Parameters and persistent buffers of this module alone."""
        own = {k: v for k, v in self._parameters.items() if v is not None}
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                own[name] = buffer
        return own

    def get_extra_state(self) -> Any:
        """Override it, with `set_extra_state`, to save more than tensors."""
        raise RuntimeError(
            "get_extra_state: not there; override it together with set_extra_state to save more "
            "than parameters and buffers."
        )

    def set_extra_state(self, state: Any) -> None:
        """Override it to take back what `get_extra_state` gave."""
        raise RuntimeError(
            "set_extra_state: not there; override it together with get_extra_state to load more "
            "than parameters and buffers."
        )

    # --- loading ------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values into this module and all below it, or change nothing and say what is wrong.

        `assign=True` takes the given tensors themselves, with their dtype and device.

        >>> m = votive.nn.ParameterList([votive.zeros(2)])
        >>> m.load_state_dict({"0": votive.ones(2)})
        <All keys matched successfully>
        >>> m[0].data
        tensor([1., 1.])
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = Loading(getattr(state_dict, "_metadata", None), assign)
        try:
            loading.visit(self, OrderedDict(state_dict), "")
            loading.finish(self, strict)
        except BaseException:
            loading.roll_back()
            raise
        return loading.keys

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own values, not those below it; problems go into the lists."""
        for hook in tuple(self._load_state_dict_pre_hooks.values()):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        writes: list[Callable[[], None]] = []
        own = self._own_state()
        for name, param in own.items():
            key = prefix + name
            if key in state_dict:
                write = prepare(self, name, param, key, state_dict[key], assign, error_msgs)
                if write is not None:
                    writes.append(write)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA_STATE
        if _overrides(self, "set_extra_state"):
            if extra in state_dict:
                writes.append(lambda: self.set_extra_state(state_dict[extra]))
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            unexpected_keys.extend(unknown(self, own, state_dict, prefix, extra))
        self._write_loaded(writes, local_metadata.get(LOADING))

    def _write_loaded(self, writes: list[Callable[[], None]], loading: Loading | None) -> None:
        if loading is not None and not _overrides(self, "_load_from_state_dict"):
            loading.pending += writes
            return
        if loading is not None:
            loading.undo += snapshot([self])
        for write in writes:
            write()

    # --- hooks --------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, prefix, keep_vars)` runs before the module is saved.

        >>> m = votive.nn.Identity()
        >>> _ = m.register_state_dict_pre_hook(lambda m, prefix, keep_vars: print("saving"))
        >>> _ = m.state_dict()
        saving
        """
        return add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata)` may change the dictionary in place.

        >>> m = votive.nn.Identity()
        >>> _ = m.register_state_dict_post_hook(lambda m, d, prefix, meta: d.update(note=1))
        >>> m.state_dict()["note"]
        1
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """Like the post hook; what it returns for the outermost module replaces the dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, state_dict, prefix, …)` may change what is loaded into the module.

        >>> m = votive.nn.ParameterList([votive.zeros(1)])
        >>> def rename(module, state_dict, prefix, *rest):
        ...     state_dict[prefix + "0"] = state_dict.pop(prefix + "old")
        >>> _ = m.register_load_state_dict_pre_hook(rename)
        >>> m.load_state_dict({"old": votive.ones(1)})
        <All keys matched successfully>
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Hook, with_module: bool = False) -> RemovableHandle:
        bound = BoundHook(hook, self) if with_module else hook
        return add(self._load_state_dict_pre_hooks, bound)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """`hook(module, incompatible_keys)` runs after loading and may change the keys in place.

        >>> m = votive.nn.ParameterList([votive.zeros(1)])
        >>> _ = m.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
        >>> m.load_state_dict({})
        <All keys matched successfully>
        """
        return add(self._load_state_dict_post_hooks, hook)
