"""Switches for recording, as context managers and decorators; each acts on the running thread
only.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..core.mode import mode
from ..dispatch import refresh


class _Switch:
    """Sets thread-local fields on entry and restores them on exit; also decorates functions."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, ...]] = []

    def _enter(self) -> None:
        raise NotImplementedError

    def _state(self) -> tuple[Any, ...]:
        return (mode.grad, mode.inference, mode.anomaly, mode.anomaly_nan)

    def __enter__(self) -> Any:
        self._saved.append(self._state())
        self._enter()
        return None

    def __exit__(self, *exc: object) -> None:
        mode.grad, mode.inference, mode.anomaly, mode.anomaly_nan = self._saved.pop()
        mode.renew()

    def _again(self) -> _Switch:
        return type(self)()

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isclass(fn):
            raise TypeError(f"{type(self).__name__}: decorate functions, not the class {fn}.")
        if inspect.isgeneratorfunction(fn):
            return self._wrap_generator(fn)

        @functools.wraps(fn)
        def run(*args: object, **kwargs: object) -> Any:
            with self._again():
                return fn(*args, **kwargs)

        return run

    def _wrap_generator(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The switch holds while the generator's body runs, not while it is suspended."""

        @functools.wraps(fn)
        def run(*args: object, **kwargs: object) -> Any:
            with self._again():
                gen = fn(*args, **kwargs)
            send: Any = None
            try:
                while True:
                    with self._again():
                        got = gen.send(send)
                    try:
                        send = yield got
                    except GeneratorExit:
                        with self._again():
                            gen.close()
                        raise
                    except BaseException as e:
                        with self._again():
                            got = gen.throw(e)
                        send = yield got
            except StopIteration as stop:
                return stop.value

        return run


class no_grad(_Switch):
    """Do not record operations.

    >>> x = votive.ones(2, requires_grad=True)
    >>> with votive.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, fn: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        made._saved = []
        return made if fn is None else made(fn)

    def __init__(self, fn: Callable[..., Any] | None = None) -> None:
        super().__init__()

    def _enter(self) -> None:
        mode.grad = False


class enable_grad(no_grad):
    """Record operations again inside `no_grad`.

    >>> with votive.no_grad(), votive.enable_grad():
    ...     votive.is_grad_enabled()
    True
    """

    def _enter(self) -> None:
        mode.grad = not mode.inference  # what is made in inference mode never takes part in recording


class set_grad_enabled(_Switch):
    """Record or not, by a flag; works as a function, a context manager and a decorator.

    >>> with votive.set_grad_enabled(False):
    ...     votive.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._flag = bool(mode)
        self._before = self._state()
        self._enter()

    def _enter(self) -> None:
        mode.grad = self._flag and not mode.inference

    def __enter__(self) -> None:
        self._saved.append(self._before)
        self._enter()

    def _again(self) -> _Switch:
        return set_grad_enabled(self._flag)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        # As a decorator the flag holds during calls, not from the moment of decoration on.
        mode.grad = self._before[0]
        return super().__call__(fn)


class inference_mode(_Switch):
    """No recording, and results that may never take part in recording later.

    >>> with votive.inference_mode():
    ...     y = votive.ones(2) * 2
    >>> y.is_inference()
    True
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        inference_mode.__init__(made, True)
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._flag = bool(mode)

    def _enter(self) -> None:
        mode.inference = self._flag
        mode.grad = not self._flag
        if self._flag:
            refresh(+1)

    def __exit__(self, *exc: object) -> None:
        if self._flag:
            refresh(-1)
        super().__exit__(*exc)

    def _again(self) -> _Switch:
        return inference_mode(self._flag)


class set_detect_anomaly(_Switch):
    """Anomaly mode by a flag, as a function or a context manager.

    >>> with votive.autograd.set_detect_anomaly(False):
    ...     votive.is_anomaly_enabled()
    False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__()
        self._flag, self._nan = bool(mode), bool(check_nan)
        self._before = self._state()
        self._enter()

    def _enter(self) -> None:
        mode.anomaly, mode.anomaly_nan = self._flag, self._nan
        mode.renew()

    def __enter__(self) -> None:
        self._saved.append(self._before)
        self._enter()

    def _again(self) -> _Switch:
        return set_detect_anomaly(self._flag, self._nan)


class detect_anomaly(_Switch):
    """Remember where each operation was called, and raise at the first NaN in backward.

    >>> with votive.autograd.detect_anomaly():
    ...     votive.is_anomaly_enabled()
    True
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__()
        self._nan = bool(check_nan)

    def _enter(self) -> None:
        mode.anomaly, mode.anomaly_nan = True, self._nan
        mode.renew()

    def _again(self) -> _Switch:
        return detect_anomaly(self._nan)


def is_grad_enabled() -> bool:
    """Whether operations are recorded now.

    >>> votive.is_grad_enabled()
    True
    """
    return mode.grad


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on.

    >>> votive.is_inference_mode_enabled()
    False
    """
    return mode.inference


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on.

    >>> votive.is_anomaly_enabled()
    False
    """
    return mode.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN.

    >>> votive.is_anomaly_check_nan_enabled()
    True
    """
    return mode.anomaly_nan
