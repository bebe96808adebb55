"""`votive.futures`: values that come later. The names are torch's; nothing of it is bound to devices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]
T = TypeVar("T")


class Future(Generic[T]):
    """A value that some thread sets, once, and that others wait for.

    >>> future = votive.futures.Future()
    >>> doubled = future.then(lambda f: 2 * f.value())
    >>> future.set_result(4)
    >>> doubled.wait()
    8
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._set = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether the value, or an error, was set."""
        return self._done

    def wait(self) -> T:
        """The value, as soon as it is set; an error that was set is raised."""
        with self._set:
            self._set.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The value, which must have been set."""
        if not self._done:
            raise RuntimeError("Future: the value is not there yet; use wait().")
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._set:
            if self._done:
                raise RuntimeError("Future can only be marked completed once")
            self._value, self._error, self._done = value, error, True
            self._set.notify_all()
        for callback in self._callbacks:
            callback(self)

    def set_result(self, result: T) -> None:
        """Set the value; callbacks run in this thread."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which whoever waits gets."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(future)` when the value is set, or at once if it was."""
        with self._set:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The Future of `callback(self)`."""
        made: Future[Any] = Future()

        def run(future: Future[T]) -> None:
            try:
                made.set_result(callback(future))
            except Exception as e:
                made.set_exception(e)

        self.add_done_callback(run)
        return made


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """The Future of all of these, done when the last is.

    >>> a, b = votive.futures.Future(), votive.futures.Future()
    >>> both = votive.futures.collect_all([a, b])
    >>> a.set_result(1); b.set_result(2)
    >>> [f.value() for f in both.wait()]
    [1, 2]
    """
    made: Future[list[Future[Any]]] = Future()
    lock, left = threading.Lock(), [len(futures)]

    def one(_: Future[Any]) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            made.set_result(list(futures))

    if not futures:
        made.set_result([])
    for future in futures:
        future.add_done_callback(one)
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all of these; an error of one is raised.

    >>> future = votive.futures.Future()
    >>> future.set_result(1)
    >>> votive.futures.wait_all([future])
    [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]
