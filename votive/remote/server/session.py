"""One client's session: frames of messages are run in order, errors are told at the next answer.

Whatever a client sends leads to an answer or to the end of its session. A call that fails leaves results without a
value; what reads those has none either, and nothing else is touched.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ...backends.base import BACKENDS
from ...backends.remote import wire
from ...backends.remote.errors import error_data
from ...backends.remote.wire import ProtocolError
from ...core.device import device
from ...core.dtype import uint8
from ...core.layout import Layout, Spec, broadcast_shapes, extent
from ...core.storage import Storage
from .memory import Held, Memory, Unusable
from .plans import ServedPlan, build
from .store import Store

PLANS = 1 << 16
SPECS = 1 << 16
PIECE = 1 << 20  # bytes of an answer that are sent at once


class Line(Protocol):
    """Where answers go."""

    def sendall(self, data: Any, /) -> None: ...


class Session:
    """Runs the messages of one client."""

    def __init__(self, place: device, store: Store, limit: int | None = None) -> None:
        self.place, self.store = place, store
        self.memory = Memory(place.type, limit)
        self.backend = BACKENDS[place.type]
        self.specs: dict[int, Spec] = {}
        self.plans: dict[int, ServedPlan] = {}
        self.failure: Exception | None = None  # to be told at the next answer
        self.frames = 0
        self.ended = False
        self.keeping: set[int] | None = None
        self.run: dict[int, Callable[[memoryview], None]] = {
            wire.SPEC: self._spec,
            wire.PLAN: self._plan,
            wire.FORGET: self._forget,
            wire.CALL: self._call,
            wire.INTO: self._into,
            wire.EMPTY: self._empty,
            wire.UPLOAD: self._upload,
            wire.DATA: self._data,
            wire.KNOWN: self._known,
            wire.COPY: self._copy,
            wire.CLONE: self._clone,
            wire.FREE: self._free,
            wire.KEEP: self._keep,
        }
        self.answer: dict[int, Callable[[memoryview], Any]] = {
            wire.FIND: self._find,
            wire.READ: self._read,
            wire.WAIT: lambda body: {},
            wire.SAVE: self._save,
            wire.LOAD: self._load,
            wire.LIST: lambda body: self.store.names(),
            wire.DELETE: lambda body: self.store.delete(_name(body)),
            wire.BYE: self._bye,
        }

    def frame(self, data: bytearray, line: Line) -> None:
        """Run the messages of a frame. A ProtocolError ends the session."""
        view, at, end = memoryview(data), 0, len(data)
        self.frames += 1  # before its answer: who gets that counts the frame as run
        try:
            while at < end:
                kind, size = wire.HEAD.unpack_from(view, at)
                at += wire.HEAD.size
                if size > end - at:
                    raise ProtocolError("a message is longer than its frame.")
                body = view[at : at + size]
                at += size
                run = self.run.get(kind)
                if run is not None:
                    run(body)
                elif kind in self.answer:
                    self._answer(self.answer[kind], body, line)
                else:
                    raise ProtocolError(f"there is no message {kind}.")
        except (struct.error, IndexError) as e:
            raise ProtocolError(f"a message is shorter than it must be ({e}).") from None

    # --- answers ------------------------------------------------------------------------------

    def _answer(self, run: Callable[[memoryview], Any], body: memoryview, line: Line) -> None:
        if self.failure is not None and run != self.answer[wire.BYE]:
            failure, self.failure = self.failure, None
            tell(line, wire.ERROR, wire.packed(error_data(failure)))
            return
        try:
            found = run(body)
        except (ProtocolError, struct.error):
            raise
        except Exception as e:
            tell(line, wire.ERROR, wire.packed(error_data(e)))
            return
        if isinstance(found, np.ndarray):
            values(line, found)
        else:
            tell(line, wire.OK, wire.packed(found))

    def _failed(self, e: Exception, label: str) -> str:
        """Keep the first error until somebody waits; gives the words for what is now without a value."""
        if isinstance(e, Unusable):
            return str(e)
        text = str(e) or type(e).__name__
        name = label.lstrip("_")
        if not text.startswith(name):
            e = _reworded(e, f"{name}: {text}")
        if self.failure is None:
            self.failure = e
        return f"{name}: the value was never computed on the remote device ({text})"

    # --- plans and calls ----------------------------------------------------------------------

    def _spec(self, body: memoryview) -> None:
        (number,) = wire.COUNT.unpack_from(body)
        if len(self.specs) >= SPECS and number not in self.specs:
            raise ProtocolError(f"a session has at most {SPECS} specs.")
        self.specs[number] = wire.spec_of(wire.unpacked(body[4:]), self.place)

    def _plan(self, body: memoryview) -> None:
        (number,) = wire.COUNT.unpack_from(body)
        if len(self.plans) >= PLANS and number not in self.plans:
            raise ProtocolError(f"a session has at most {PLANS} plans.")
        self.plans[number] = build(wire.unpacked(body[4:]), self.place)

    def _forget(self, body: memoryview) -> None:
        for (number,) in struct.iter_unpack("<I", body):
            self.plans.pop(number, None)

    def _planned(self, number: int) -> ServedPlan:
        plan = self.plans.get(number)
        if plan is None:
            raise ProtocolError("a call names a plan that was not told.")
        return plan

    def _values(self, plan: ServedPlan, body: memoryview, start: int) -> list[Any]:
        """The run-time values of a call."""
        if len(body) != start + plan.struct.size:
            raise ProtocolError("a call has more or fewer values than its plan.")
        numbers = iter(plan.struct.unpack_from(body, start))
        view, found = self.memory.view, []
        for kind, spec in zip(plan.kinds, plan.specs, strict=True):
            if kind == wire.TENSOR:
                found.append(view(next(numbers), next(numbers), spec))
            elif kind[0] == "[":
                found.append([self._one(k, s, numbers) for k, s in zip(kind[1:-1], spec, strict=True)])
            else:
                found.append(self._one(kind, spec, numbers))
        return found

    def _one(self, kind: str, spec: Any, numbers: Any) -> Any:
        if kind == wire.TENSOR:
            return self.memory.view(next(numbers), next(numbers), spec)
        if kind == wire.ALONG:
            return np.frombuffer(next(numbers), spec.dtype.np, 1).reshape(()).copy()
        if kind == wire.INT:
            low, high = next(numbers), next(numbers)
            return (high << 64) | low
        if kind == wire.COMPLEX:
            return complex(next(numbers), next(numbers))
        return None if kind == wire.NOTHING else next(numbers)

    def _call(self, body: memoryview) -> None:
        number, first = wire.CALLED.unpack_from(body)
        plan = self._planned(number)
        outs = plan.outs
        try:
            if plan.failure is not None:
                raise plan.failure
            if outs is None:
                raise ProtocolError("the size of these results is not known before they are there.")
            self.memory.reserve(sum([s.nbytes for s in outs]), len(outs))
            made = plan.compute(*self._values(plan, body, wire.CALLED.size))
        except ProtocolError:
            raise
        except Exception as e:
            self._spoil(plan, body, first, self._failed(e, plan.label))
            return
        hold = self.memory.hold
        for i, (storage, data, spec) in enumerate(made):
            hold(first + i, storage, data, spec, spec.nbytes)

    def _spoil(self, plan: ServedPlan, body: memoryview, first: int, why: str) -> None:
        """The results of a call that failed have no value, nor has what it was to change."""
        for i in range(plan.results):
            self.memory.lose(first + i, why)
        if not plan.writes or len(body) != wire.CALLED.size + plan.struct.size:
            return
        numbers = iter(plan.struct.unpack_from(body, wire.CALLED.size))
        for k, kind in enumerate(plan.kinds):
            for one in kind.strip("[]"):
                taken = [next(numbers) for _ in wire.FORMATS_OF[one].replace("16s", "s")]
                if one == wire.TENSOR and k in plan.writes:
                    self.memory.lose(taken[0], why)

    def _into(self, body: memoryview) -> None:
        number, target, offset, spec_number = wire.WRITTEN.unpack_from(body)
        plan = self._planned(number)
        spec = self._known_spec(spec_number)
        try:
            if plan.failure is not None:
                raise plan.failure
            if plan.outs is None or len(plan.outs) != 1 or plan.outs[0].shape != spec.shape:
                raise ProtocolError("a result does not fit into what it is to be written to.")
            out = self.memory.view(target, offset, spec)
            given = self._values(plan, body, wire.WRITTEN.size)
            if (
                plan.into is None
                or plan.outs[0].dtype is not spec.dtype
                or self._meets(plan, body, target, offset, spec)
            ):
                self.memory.reserve(plan.outs[0].nbytes)
                self.backend.copy(out, plan.compute(*given)[0][1])
            else:
                plan.into(given, out)
        except ProtocolError:
            raise
        except Exception as e:
            self.memory.lose(target, self._failed(e, plan.label))

    def _meets(self, plan: ServedPlan, body: memoryview, target: int, offset: int, spec: Spec) -> bool:
        """Whether what is written overlaps what is read, other than being it."""
        numbers = iter(plan.struct.unpack_from(body, wire.WRITTEN.size))
        if spec.layout.overlaps:
            return True
        begin, end = _reach(offset, spec)
        for kind, specs in zip(plan.kinds, plan.specs, strict=True):
            listed = specs if specs.__class__ is tuple else (specs,)
            for one, s in zip(kind.strip("[]"), listed, strict=True):
                taken = [next(numbers) for _ in wire.FORMATS_OF[one].replace("16s", "s")]
                if one != wire.TENSOR or taken[0] != target or (s is spec and taken[1] == offset):
                    continue
                low, high = _reach(taken[1], s)
                if max(low, begin) < min(high, end):
                    return True
        return False

    def _find(self, body: memoryview) -> Any:
        number, first = wire.CALLED.unpack_from(body)
        plan = self._planned(number)
        if plan.failure is not None:
            raise plan.failure
        if plan.outs is not None:
            raise ProtocolError("the size of these results is known before they are there.")
        made = plan.compute(*self._values(plan, body, wire.CALLED.size))
        self.memory.reserve(sum(spec.nbytes for _, _, spec in made), len(made))
        for i, (storage, data, spec) in enumerate(made):
            self.memory.hold(first + i, storage, data, spec, spec.nbytes)
        return [wire.spec_data(spec) for _, _, spec in made]

    # --- memory -------------------------------------------------------------------------------

    def _known_spec(self, number: int) -> Spec:
        spec = self.specs.get(number)
        if spec is None:
            raise ProtocolError("a message names a spec that was not told.")
        return spec

    def _bytes(self, nbytes: int) -> Spec:
        if nbytes > wire.MOST:
            raise ProtocolError("a storage has more bytes than 64 bits can count.")
        return Spec(Layout((nbytes,)), uint8, self.place)

    def _made(self, number: int, nbytes: int, what: str) -> Held | None:
        """New memory; None when there was no room, which the next answer tells."""
        spec = self._bytes(nbytes)
        try:
            self.memory.reserve(nbytes)
            storage, data = self.backend.empty(spec)
        except Exception as e:
            self.memory.lose(number, self._failed(e, what))
            return None
        self.memory.hold(number, storage, data, spec, nbytes)
        return self.memory.held(number)

    def _empty(self, body: memoryview) -> None:
        number, nbytes = wire.SIZED.unpack(body)
        self._made(number, nbytes, "empty")

    def _upload(self, body: memoryview) -> None:
        number, nbytes, digest = wire.CONTENT.unpack(body)
        held = self._made(number, nbytes, "to")
        if held is not None:
            held.filled = self.store.arriving(digest, nbytes)

    def _data(self, body: memoryview) -> None:
        number, at = wire.SLICE.unpack_from(body)
        part = np.frombuffer(body[wire.SLICE.size :], np.uint8)
        try:
            held = self.memory.held(number)
        except Unusable:
            return
        if at + part.nbytes > held.nbytes:
            raise ProtocolError("bytes beyond the end of a storage.")
        if part.nbytes:
            out = self.memory.view(number, at, self._bytes(part.nbytes))
            source: Any = part
            if self.place.type != "cpu":
                source = self.backend.receive(part, self._bytes(part.nbytes))[1]
            self.backend.copy(out, source)
        if held.filled is not None and not held.filled.add(at, part):
            held.filled = None

    def _known(self, body: memoryview) -> None:
        number, nbytes, digest = wire.CONTENT.unpack(body)
        try:
            self.memory.reserve(nbytes)
            array = self.store.content(digest, nbytes)
            spec = self._bytes(nbytes)
            if self.place.type == "cpu":
                storage, data = Storage(array), array
            else:
                storage, data, _ = self.backend.receive(array, spec)
        except Exception as e:
            self.memory.lose(number, self._failed(e, "to"))
            return
        self.memory.hold(number, storage, data, spec, nbytes)

    def _copy(self, body: memoryview) -> None:
        size = wire.PART.size
        to, to_offset, to_number = wire.PART.unpack_from(body)
        source, offset, number = wire.PART.unpack_from(body, size)
        spec, source_spec = self._known_spec(to_number), self._known_spec(number)
        if broadcast_shapes("copy_", spec.shape, source_spec.shape) != spec.shape:
            raise ProtocolError("what is copied does not fit.")
        try:
            self.backend.copy(self.memory.view(to, to_offset, spec), self.memory.view(source, offset, source_spec))
        except ProtocolError:
            raise
        except Exception as e:
            self.memory.lose(to, self._failed(e, "copy_"))

    def _clone(self, body: memoryview) -> None:
        number, source = wire.SIZED.unpack(body)
        try:
            held = self.memory.held(source)
            self.memory.reserve(held.nbytes)
            spec = self._bytes(held.nbytes)
            storage, data = self.backend.empty(spec)
            self.backend.copy(data, self.memory.view(source, 0, spec))
        except Exception as e:
            self.memory.lose(number, self._failed(e, "clone"))
            return
        self.memory.hold(number, storage, data, spec, spec.nbytes)

    def _free(self, body: memoryview) -> None:
        for (number,) in struct.iter_unpack("<Q", body):
            self.memory.free(number)

    def _keep(self, body: memoryview) -> None:
        """Of what is here, the client still has these; the last part of the list drops the rest."""
        if self.keeping is None:
            self.keeping = set()
        self.keeping.update(n for (n,) in struct.iter_unpack("<Q", body[1:]))
        if body[0]:
            for number in [n for n in self.memory.table if n not in self.keeping]:
                self.memory.free(number)
            self.keeping = None

    # --- reading and keeping ------------------------------------------------------------------

    def _part(self, body: memoryview) -> tuple[Any, Spec]:
        number, offset, spec_number = wire.PART.unpack_from(body)
        spec = self._known_spec(spec_number)
        return self.memory.view(number, offset, spec), spec

    def _read(self, body: memoryview) -> np.ndarray[Any, Any]:
        data, _ = self._part(body)
        return np.ascontiguousarray(self.backend.to_numpy(data)).reshape(-1).view(np.uint8)

    def _save(self, body: memoryview) -> Any:
        data, spec = self._part(body)
        array = np.ascontiguousarray(self.backend.to_numpy(data))
        self.store.save(_name(body[wire.PART.size :]), array, spec.dtype.name)
        return {}

    def _load(self, body: memoryview) -> Any:
        (number,) = wire.STORAGE.unpack_from(body)
        dtype, shape, raw = self.store.load(_name(body[wire.STORAGE.size :]))
        spec = Spec(Layout(shape), wire.dtype_named(dtype), self.place)
        self.memory.reserve(spec.nbytes)
        storage, data, _ = self._received(raw, spec)
        self.memory.hold(number, storage, data, spec, spec.nbytes)
        return wire.spec_data(spec)

    def _received(self, raw: np.ndarray[Any, Any], spec: Spec) -> tuple[Any, Any, Spec]:
        array = raw.view(spec.dtype.np).reshape(spec.shape)
        if self.place.type != "cpu":
            found: tuple[Any, Any, Spec] = self.backend.receive(array, spec)
            return found
        storage, data = self.backend.empty(spec)
        data[...] = array
        return storage, data, spec

    def _bye(self, body: memoryview) -> Any:
        self.ended = True
        return {}


def _reach(offset: int, spec: Spec) -> tuple[int, int]:
    """The bytes of a storage that a view may touch: first, and behind the last."""
    size = spec.dtype.itemsize
    return offset * size, (offset + extent(spec.shape, spec.strides)) * size


def _reworded(e: Exception, text: str) -> Exception:
    try:
        return type(e)(text)
    except TypeError:
        return RuntimeError(text)


def _name(body: memoryview) -> str:
    try:
        name = bytes(body).decode()
    except UnicodeDecodeError:
        raise ProtocolError("a name is not text.") from None
    if not 0 < len(name) <= wire.NAME_LIMIT:
        raise ProtocolError(f"a name has 1 to {wire.NAME_LIMIT} characters.")
    return name


def tell(line: Line, kind: int, body: bytes) -> None:
    """Send one answer."""
    line.sendall(wire.FRAME.pack(len(body) + 1) + bytes([kind]) + body)


def values(line: Line, array: np.ndarray[Any, Any]) -> None:
    """Send bytes as an answer: the first in its frame, the rest behind it."""
    tell(line, wire.VALUES, wire.STORAGE.pack(array.nbytes) + array[:PIECE].tobytes())
    for at in range(PIECE, array.nbytes, PIECE):
        line.sendall(array[at : at + PIECE].data)
