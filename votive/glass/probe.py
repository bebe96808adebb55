"""The eye of the engine: sees every call below a model, with its address. Knows no purpose.

A probe is attached to a model for the time of a `with` block, in the thread that opens it. It keeps
a stack of frames, one per running call; subclasses look at them and may change what they hold.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Self

from ..core.mode import mode
from ..dispatch.observe import Observer, attach, detach
from ..nn.hooks import register_around
from .address import Address

_UNSET: Any = object()


class Frame:
    """One running call: a module's, or an operator's.

    `args`, `kwargs` and, when it is over, `output` may be replaced by a probe. Before the call,
    `skip(value)` lets nothing run, and `swap(module)` lets another module run instead.
    """

    __slots__ = ("address", "args", "depth", "error", "instead", "kind", "kwargs",
                 "ops", "output", "parent", "seconds", "skipped", "subject")  # fmt: skip

    def __init__(self, address: Address, kind: str, subject: Any, parent: Frame | None) -> None:
        self.address, self.kind, self.subject, self.parent = address, kind, subject, parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        self.output: Any = None
        self.error: Exception | None = None
        self.seconds = 0.0
        self.skipped: Any = _UNSET
        self.instead: Any = None
        self.ops: Counter[str] = Counter()

    @property
    def is_module(self) -> bool:
        return self.kind == "module"

    @property
    def name(self) -> str:
        """The class of the module, or the operator's name."""
        return type(self.subject).__name__ if self.is_module else self.subject.name

    def skip(self, value: Any) -> None:
        """Let the call not run and give `value`."""
        self.skipped = value

    def swap(self, module: Any) -> None:
        """Let another module run in place of this one."""
        self.instead = module

    def __repr__(self) -> str:
        return f"<{self.kind} {self.address} ({self.name})>"


class Probe:
    """Base of everything that looks into a model; use it as a context manager.

    Override `entered`, `left` and `failed`. With `ops`, operators are seen too. `only` is the
    modules to look at, for probes that know them: all others then run as fast as ever.
    """

    def __init__(self, model: Any, *, ops: bool = False, only: Iterable[Any] | None = None) -> None:
        self.model = model
        self.runs = 0  # outermost calls so far
        self.past = 0  # positions that a cache held when the present run began
        self.stack: list[Frame] = []
        self._ops = ops
        self._only = None if only is None else list(only)
        self._calls: Counter[str] = Counter()
        self._thread = 0
        self._strip: tuple[str, str] = ("", "")
        self._closing = contextlib.ExitStack()
        self._muted = 0

    # --- what subclasses say ------------------------------------------------------------------

    def entered(self, frame: Frame) -> None:
        """A call is about to run."""

    def left(self, frame: Frame) -> None:
        """A call has run; `frame.output` is what it gave and what will be given on."""

    def failed(self, frame: Frame, error: Exception) -> None:
        """A call raised an error, which goes on."""

    def finished(self) -> None:
        """An outermost call is over."""

    # --- attaching ----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._thread:
            raise RuntimeError(f"{type(self).__name__}: it is in use already; make another one.")
        self._thread = threading.get_ident()
        with contextlib.ExitStack() as stack:
            if self._only is None or self._ops:
                stack.enter_context(register_around(None, self._around))
            else:
                targets = {id(m): m for m in (self.model, *self._only)}
                for module in targets.values():
                    stack.enter_context(register_around(module, self._around))
            if self._ops:
                eye = _OpEye(self)
                attach(eye)
                stack.callback(detach, eye)
            # Nothing stays attached if something above failed.
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._thread = 0
        self.stack.clear()
        self._closing.close()

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Inside, nothing is seen: for what a probe computes itself."""
        self._muted += 1
        try:
            yield
        finally:
            self._muted -= 1

    @property
    def blind(self) -> bool:
        return bool(self._muted) or threading.get_ident() != self._thread

    # --- modules ------------------------------------------------------------------------------

    def _around(self, module: Any, args: Any, kwargs: Any, proceed: Any) -> Any:
        if self.blind or (not self.stack and not self._begins(module)):
            return proceed(args, kwargs)
        outermost = not self.stack
        if outermost:
            self.runs += 1
            self._calls.clear()
            self.past = past_of(args, kwargs)
        frame = self._push(module)
        frame.args, frame.kwargs = args, kwargs
        try:
            self.entered(frame)
            if frame.skipped is not _UNSET:
                frame.output = frame.skipped
            else:
                start = time.perf_counter()
                if frame.instead is not None:
                    frame.output = frame.instead(*frame.args, **frame.kwargs)
                else:
                    frame.output = proceed(frame.args, frame.kwargs)
                frame.seconds = time.perf_counter() - start
            self.left(frame)
            return frame.output
        except Exception as e:
            frame.error = e
            self.failed(frame, e)
            raise
        finally:
            # After an abandoned debugger the stack may be empty already.
            while self.stack and self.stack.pop() is not frame:
                pass
            if outermost:
                self.finished()

    def _begins(self, module: Any) -> bool:
        """Whether an outermost call of this module belongs to the model, and its name in it."""
        if module is self.model:
            self._strip = (str(mode.module_path), "")
            return True
        for name, part in self.model.named_modules():
            if part is module:
                self._strip = (str(mode.module_path), name)
                return True
        return False

    def _push(self, module: Any) -> Frame:
        parent = self.stack[-1] if self.stack else None
        path = self._path(str(mode.module_path))
        if parent is not None and path == parent.address.module and module is not parent.subject:
            # Registered nowhere: it bears its caller's path, so its class tells them apart.
            path = f"{path}.{type(module).__name__}" if path else type(module).__name__
        call = self._calls[path]
        self._calls[path] += 1
        frame = Frame(Address(path, call), "module", module, parent)
        self.stack.append(frame)
        return frame

    def _path(self, path: str) -> str:
        """A path below the outermost call as one below the model."""
        outer, name = self._strip
        inner = path[len(outer) :].removeprefix(".") if path.startswith(outer) else path
        return f"{name}.{inner}" if name and inner else name or inner

    # --- operators ----------------------------------------------------------------------------

    def _op_frame(self, op: Any, args: tuple[Any, ...]) -> Frame:
        parent = self.stack[-1]
        name = op.name.lstrip("_")
        address = parent.address._replace(op=name, index=parent.ops[name])
        parent.ops[name] += 1
        frame = Frame(address, "op", op, parent)
        frame.args = args
        self.stack.append(frame)
        return frame

    def _op_entered(self, call: Any) -> Any:
        if self.blind or not self.stack:
            return None
        frame = self._op_frame(call.op, call.args)
        self.entered(frame)
        if frame.skipped is not _UNSET:
            return frame.skipped
        return None

    def _op_left(self, call: Any) -> Any:
        frame = self._op_pop()
        if frame is None:
            return None
        frame.output, frame.seconds = call.result, call.seconds
        before = frame.output
        self.left(frame)
        self.stack.pop()
        return frame.output if frame.output is not before else None

    def _op_failed(self, call: Any, error: Exception) -> None:
        frame = self._op_pop()
        if frame is not None:
            frame.error = error
            self.failed(frame, error)
            self.stack.pop()

    def _op_refused(self, op: Any, args: tuple[Any, ...], error: Exception) -> None:
        if not self.blind and self.stack:
            frame = self._op_frame(op, args)
            frame.error = error
            self.failed(frame, error)
            self.stack.pop()

    def _op_pop(self) -> Frame | None:
        if self.blind or not self.stack or self.stack[-1].kind != "op":
            return None
        return self.stack[-1]


class _OpEye(Observer):
    """Tells a probe about operators."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def before(self, call: Any) -> Any:
        return self.probe._op_entered(call)

    def after(self, call: Any) -> Any:
        return self.probe._op_left(call)

    def failed(self, call: Any, error: Exception) -> None:
        self.probe._op_failed(call, error)

    def refused(self, op: Any, args: tuple[Any, ...], error: Exception) -> None:
        self.probe._op_refused(op, args, error)


def past_of(args: Iterable[Any], kwargs: dict[str, Any]) -> int:
    """How many positions a cache among the arguments holds."""
    for value in (*args, *kwargs.values()):
        if hasattr(value, "get_seq_length"):
            return int(value.get_seq_length())
    return 0
