"""Objects between processes: a pickle through a socket, its large arrays in shared memory.

The memory is an anonymous file whose descriptor travels with the message, so it has no name to
leak: it is gone when the last process that maps it lets go or dies, however that happens. It also
does not count against the size of /dev/shm. Knows connections and tensors; knows no loader.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import socket
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtype as dt
from ..ops.registry import F
from ..surface.interchange import _share
from ..tensor import Tensor

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# Smaller arrays are cheaper to copy through the socket than to map. Larger ones would not be, and
# would fill the socket's buffer (200 KiB on Linux), so that a worker could not work ahead.
SHARED_FROM = 64 * 1024
ALIGNMENT = 64
_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
_CAN_SHARE = hasattr(socket, "send_fds")


class Dropped(ConnectionError):
    """The process at the other end is gone."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        if type(obj) is not Tensor or not obj.is_cpu or obj.grad_fn is not None:
            return NotImplemented
        array = obj.detach().numpy()
        # The order of dimensions in memory is part of the result: channels_last stays so.
        order = tuple(np.argsort([-s for s in array.strides], kind="stable"))
        laid = array.transpose(order)
        if not laid.flags.c_contiguous:
            order, laid = tuple(range(array.ndim)), np.ascontiguousarray(array)
        raw = pickle.PickleBuffer(laid.reshape(-1).view(np.uint8).data)
        extra = {k: v for k, v in obj.__dict__.items() if not k.startswith("_")}
        return _tensor, (raw, obj.dtype.name, laid.shape, order, obj.requires_grad, extra)


def _tensor(
    raw: memoryview,
    dtype: str,
    shape: tuple[int, ...],
    order: tuple[int, ...],
    requires_grad: bool,
    extra: dict[str, Any],
) -> Tensor:
    """A tensor over the bytes that came."""
    array = np.frombuffer(raw, np.uint8)
    if not array.flags.writeable:
        array = array.copy()
    laid = array.view(dt.by_name(dtype).np).reshape(shape)
    back = tuple(int(i) for i in np.argsort(order))
    out = _share(laid)
    if back != tuple(range(laid.ndim)):
        out = F.permute(out, back).detach()
    out.__dict__.update(extra)
    return out.requires_grad_() if requires_grad else out


def send(connection: Connection, obj: object) -> None:
    """Send `obj`; large contiguous arrays and tensors inside travel as shared memory."""
    shared: list[memoryview] = []

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if not _CAN_SHARE or view.nbytes < SHARED_FROM:
            return True
        shared.append(view)
        return False

    body = io.BytesIO()
    _Pickler(body, 5, buffer_callback=keep_inside).dump(obj)
    sizes = b"".join(_SIZE.pack(view.nbytes) for view in shared)
    try:
        connection.send_bytes(_COUNT.pack(len(shared)) + sizes + body.getbuffer())
        if shared:
            _send_memory(connection, shared)
    except (BrokenPipeError, ConnectionResetError):
        raise Dropped("the receiving process is gone") from None


def receive(connection: Connection) -> Any:
    """What the other end sent; arrays in it lie in memory that lives as long as they do."""
    try:
        message = memoryview(connection.recv_bytes())
    except (EOFError, ConnectionResetError):
        raise Dropped("the sending process is gone") from None
    (count,) = _COUNT.unpack_from(message)
    start = _COUNT.size + count * _SIZE.size
    sizes = [size for (size,) in _SIZE.iter_unpack(message[_COUNT.size : start])]
    buffers = _receive_memory(connection, sizes) if count else []
    return pickle.loads(message[start:], buffers=buffers)


def _spread(sizes: list[int]) -> tuple[list[int], int]:
    """Where buffers of these sizes begin, and where the last one ends."""
    starts, end = [], 0
    for size in sizes:
        starts.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return starts, end


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("votive", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as f:
        return os.dup(f.fileno())


def _send_memory(connection: Connection, views: list[memoryview]) -> None:
    starts, total = _spread([view.nbytes for view in views])
    fd = _anonymous_file()
    try:
        os.ftruncate(fd, total)
        for start, view in zip(starts, views):
            # Writing fills fresh pages without zeroing and faulting in each of them first.
            while view.nbytes:
                n = os.pwrite(fd, view, start)
                view, start = view[n:], start + n
        with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as s:
            socket.send_fds(s, [b"m"], [fd])
    finally:
        os.close(fd)


def _receive_memory(connection: Connection, sizes: list[int]) -> list[memoryview]:
    starts, total = _spread(sizes)
    with socket.fromfd(connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as s:
        _, fds, _, _ = socket.recv_fds(s, 1, 1)
    if not fds:
        raise Dropped("the sending process is gone")
    try:
        # All of it will be read at once; one call maps what a thousand page faults would.
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        whole = memoryview(mmap.mmap(fds[0], total, flags=flags))
    finally:
        os.close(fds[0])
    return [whole[start : start + size] for start, size in zip(starts, sizes)]
