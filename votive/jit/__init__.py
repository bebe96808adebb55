"""`votive.jit`: TorchScript's names. votive has no second language: `script` and `trace` give back what they were
given, which runs as Python, and say so once. `votive.compile` is what makes programs faster;
`votive.save(model.state_dict(), …)` keeps models; `votive.onnx` exports them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..futures import Future
from ..nn.module import Module
from .marks import (
    annotate,
    export,
    fuser,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    optimized_execution,
    script_if_tracing,
    script_method,
    strict_fusion,
    unused,
)
from .types import isinstance

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "NotCompiledWarning",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


class NotCompiledWarning(UserWarning):
    """A program asked for TorchScript, and runs as Python instead."""


class ScriptWarning(Warning):
    """torch's warning about what a script leaves out; votive never gives it."""


class TracerWarning(Warning):
    """torch's warning about what a trace fixes; votive never gives it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """There are none to ignore."""


class TracingCheckError(Exception):
    """torch's error when a trace differs from the function; votive never raises it."""


class Error(RuntimeError):
    """torch's error of a script that runs; votive never raises it."""


class Attribute(NamedTuple):
    """A value of a module with its type, as scripts declare it.

    >>> votive.jit.Attribute(1, int).value
    1
    """

    value: Any
    type: Any


class ScriptModule(Module):
    """The base of modules that TorchScript compiled; here it is a plain Module, which programs may derive from.

    >>> isinstance(votive.nn.ReLU(), votive.jit.ScriptModule)
    False
    """

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value.value if type(value) is Attribute else value)


class RecursiveScriptModule(ScriptModule):
    """torch's class of scripted modules, to be named in tests of types."""


class TracedModule(ScriptModule):
    """torch's class of traced modules, to be named in tests of types."""


class TopLevelTracedModule(TracedModule):
    """torch's class of traced modules, to be named in tests of types."""


class ScriptFunction:
    """torch's class of compiled functions, to be named in tests of types."""


class CompilationUnit:
    """TorchScript source as functions, which votive cannot compile.

    >>> votive.jit.CompilationUnit("def f(x): return x")
    Traceback (most recent call last):
    ...
    NotImplementedError: CompilationUnit: votive has no TorchScript; write the function in Python.
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        raise NotImplementedError("CompilationUnit: votive has no TorchScript; write the function in Python.")


_said = False


def _say(what: str) -> None:
    """Say once per process that programs run as Python."""
    global _said
    if not _said:
        _said = True
        warnings.warn(
            f"votive.jit.{what} gives back what it was given: votive has no TorchScript, and the program runs as "
            "Python. votive.compile makes it faster.",
            NotCompiledWarning,
            stacklevel=3,
        )


def script(
    obj: object, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:
    """Give back a module, function or class as it is, and say so once.

    >>> with __import__("warnings").catch_warnings(action="ignore"):
    ...     votive.jit.script(abs) is abs
    True
    """
    if not callable(obj) and type(obj) not in (list, dict):
        raise TypeError(f"script: expected a module, a function or a class, got {type(obj).__name__}.")
    _say("script")
    return obj


def trace(
    func: Callable[..., Any],
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Run a module or function once with the examples and give it back as it is, and say so once.

    >>> with __import__("warnings").catch_warnings(action="ignore"):
    ...     votive.jit.trace(lambda x: x + 1, votive.ones(2))(votive.zeros(1))
    tensor([1.])
    """
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_inputs or example_kwarg_inputs must be given.")
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    else:
        func(*example_inputs if type(example_inputs) in (tuple, list) else (example_inputs,))
    _say("trace")
    return func


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Run methods of a module once with their examples and give it back as it is, and say so once.

    >>> with __import__("warnings").catch_warnings(action="ignore"):
    ...     votive.jit.trace_module(votive.nn.ReLU(), {"forward": votive.ones(1)})
    ReLU()
    """
    for name, given in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        method(*given if type(given) in (tuple, list) else (given,))
    _say("trace_module")
    return mod


def freeze(mod: Module, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Give back a module in eval mode as it is, and say so once.

    >>> votive.jit.freeze(votive.nn.ReLU())
    Traceback (most recent call last):
    ...
    RuntimeError: Freezing is currently only implemented for modules in eval mode...
    """
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. "
            "Please call .eval() on your module before freezing."
        )
    _say("freeze")
    return mod


def optimize_for_inference(mod: Module, other_methods: list[str] | None = None) -> Any:
    """Give back a module as it is, and say so once.

    >>> with __import__("warnings").catch_warnings(action="ignore"):
    ...     votive.jit.optimize_for_inference(votive.nn.ReLU().eval())
    ReLU()
    """
    _say("optimize_for_inference")
    return mod


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Write TorchScript, which votive has not.

    >>> votive.jit.save(votive.nn.ReLU(), "x.pt")
    Traceback (most recent call last):
    ...
    NotImplementedError: votive.jit.save: votive writes no TorchScript...
    """
    raise NotImplementedError(
        "votive.jit.save: votive writes no TorchScript. Keep the weights with votive.save(model.state_dict(), f), "
        "or the program with votive.onnx.export(model, args, f)."
    )


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Read TorchScript, which votive has not.

    >>> votive.jit.load("x.pt")
    Traceback (most recent call last):
    ...
    NotImplementedError: votive.jit.load: votive runs no TorchScript...
    """
    raise NotImplementedError(
        "votive.jit.load: votive runs no TorchScript. Build the model in Python and load its weights, "
        "or export it to ONNX where it was made and use votive.onnx.load(file)."
    )


def export_opnames(m: Any) -> list[str]:
    """The operators of a script, which votive has not."""
    raise NotImplementedError("export_opnames: votive has no TorchScript; votive.profiler shows which operators run.")


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """The result of a function as a Future. As torch does outside of scripts, the function runs at once.

    >>> votive.jit.wait(votive.jit.fork(lambda x: x + 1, votive.ones(1)))
    tensor([2.])
    """
    made: Future = Future()
    try:
        made.set_result(func(*args, **kwargs))
    except Exception as e:
        made.set_exception(e)
    return made


def wait(future: Future) -> Any:
    """What a Future holds.

    >>> votive.jit.wait(votive.jit.fork(lambda: 3))
    3
    """
    return future.wait()


_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keep a strategy for torch's fuser, of which votive has none; gives back the one before.

    >>> before = votive.jit.set_fusion_strategy([("DYNAMIC", 1)])
    >>> votive.jit.set_fusion_strategy(before)
    [('DYNAMIC', 1)]
    """
    global _strategy
    before, _strategy = _strategy, list(strategy)
    return before


_onednn = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Keep a switch of torch's, which changes nothing.

    >>> votive.jit.enable_onednn_fusion(False)
    """
    global _onednn
    _onednn = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` set.

    >>> votive.jit.onednn_fusion_enabled()
    False
    """
    return _onednn
