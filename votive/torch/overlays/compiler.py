"""`torch.compiler`: the marks that programs set for torch's compiler, beside what votive's own compiler takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace, TracebackType
from typing import Any

import votive

from ...compiler import api

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "cudagraph_mark_step_begin",
    "get_default_backend",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "set_default_backend",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]


def allow_in_graph(fn: Any) -> Any:
    """Take a function into the graph without looking inside: votive traces what it computes, which gives the same."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Say that a function always returns the same."""
    return fn


def nested_compile_region(fn: Any = None) -> Any:
    """Say that a function may be compiled once and used many times."""
    return (lambda f: f) if fn is None else fn


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Any], Any]:
    """Say what a tracer that reads bytecode may follow instead of a C function; votive's does not read bytecode."""
    return lambda traceable_fn: traceable_fn


def cudagraph_mark_step_begin() -> None:
    """Say that what the step before returned may be written over; votive keeps what is still referred to."""


def is_dynamo_compiling() -> bool:
    """Whether Dynamo traces right now: never."""
    return False


def is_exporting() -> bool:
    """Whether a program is being exported right now: never."""
    return False


def list_backends(exclude_tags: tuple[str, ...] = ()) -> list[str]:
    """The compilers to choose from."""
    return ["inductor"]


# What torch's compiler can be told; programs set some of it. It changes nothing of results, here or there.
config = SimpleNamespace(
    dynamic_sources="",
    enable_compiler_set_eval_frame=True,
    force_disable_caches=False,
    job_id=None,
    unbacked_sources="",
    wrap_top_frame=False,
)
_default_backend: str | Callable[..., Any] = "inductor"


def get_default_backend() -> str | Callable[..., Any]:
    """The compiler of `torch.compile` where none is named."""
    return _default_backend


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Name the compiler to choose where none is; None goes back to the first. They all lead to votive's own."""
    global _default_backend
    if backend is not None and not callable(backend) and backend not in (*list_backends(), "eager", "aot_eager"):
        raise ValueError(f"set_default_backend: there is no backend {backend!r}; there is {list_backends()}.")
    if callable(backend):
        raise NotImplementedError("set_default_backend: a function as a backend would get graphs of ATen; name one.")
    _default_backend = "inductor" if backend is None else backend


_forced = False


def _switched(off: bool) -> bool:
    """Let compiled functions of this thread run as they are, or no longer; whether they did before."""
    global _forced
    before, _forced = _forced, off
    api._switch.off += off - before
    return before


class set_stance:
    """How compiled functions run from now on, or in a block, or in a function: compiled ("default") or as they are
    ("force_eager"). What has no meaning for votive's compiler raises.
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if stance not in ("default", "force_eager"):
            raise NotImplementedError(f"set_stance: votive knows 'default' and 'force_eager', got {stance!r}.")
        if skip_guard_eval_unsafe or force_backend is not None:
            raise NotImplementedError("set_stance: guards are always looked at, and there is one compiler.")
        self.stance = stance
        self._before = _switched(stance == "force_eager")

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _switched(self._before)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        _switched(self._before)  # for the function alone

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return run


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as one of tensors: tensors go in as arrays of `votive.np`, arrays come out as tensors."""

    def part(v: Any, change: Callable[[Any], Any]) -> Any:
        if isinstance(v, (tuple, list)):
            return type(v)(part(x, change) for x in v)
        return {k: part(x, change) for k, x in v.items()} if isinstance(v, dict) else change(v)

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = part((args, kwargs), lambda v: votive.np.asarray(v) if isinstance(v, votive.Tensor) else v)
        result = fn(*given[0], **given[1])
        return part(result, lambda v: v.tensor if isinstance(v, votive.np.ndarray) else v)

    return run
