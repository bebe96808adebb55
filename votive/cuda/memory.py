"""What the caching allocator holds. The names and units are torch's: bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backends.cuda import runtime as rt
from ..core.device import DeviceLike
from ..core.errors import size_text
from . import _here, _index, is_initialized

if TYPE_CHECKING:
    from ..backends.cuda.runtime.allocator import Allocator, Pool
    from ..backends.cuda.runtime.blocks import Block, Segment
    from .streams import Stream


def _allocator(device: DeviceLike = None) -> Allocator:
    _here()
    found = rt.runtime.allocator(_index(device))
    with found.lock:
        if not found.busy:
            found.settle()  # what came back while lists were changing counts as free
    return found


def _count(device: DeviceLike, name: str) -> int:
    """A count of a device's allocator; nothing is counted before a GPU is in use."""
    return int(getattr(_allocator(device), name)) if is_initialized() else 0


def memory_allocated(device: DeviceLike = None) -> int:
    """Bytes in tensors; 0 before a GPU is used.

    >>> votive.cuda.memory_allocated() >= 0
    True
    """
    return _count(device, "allocated")


def max_memory_allocated(device: DeviceLike = None) -> int:
    """The most bytes that were in tensors at once.

    >>> votive.cuda.max_memory_allocated() >= votive.cuda.memory_allocated()
    True
    """
    return _count(device, "peak")


def memory_reserved(device: DeviceLike = None) -> int:
    """Bytes taken from the driver: those in tensors and those kept for later.

    >>> votive.cuda.memory_reserved() >= votive.cuda.memory_allocated()
    True
    """
    return _count(device, "reserved")


def max_memory_reserved(device: DeviceLike = None) -> int:
    """The most bytes that were taken from the driver at once.

    >>> votive.cuda.max_memory_reserved() >= votive.cuda.memory_reserved()
    True
    """
    return _count(device, "reserved_peak")


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peaks begin anew.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.reset_peak_memory_stats()
    """
    _allocator(device).reset_peak()


def reset_accumulated_memory_stats(device: DeviceLike = None) -> None:
    """Let counts of what happened (allocations, retries, errors) begin anew.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.reset_accumulated_memory_stats()
    """
    _allocator(device).reset_counts()


def get_allocator_backend() -> str:
    """How memory is handed out: always by the caching allocator.

    >>> votive.cuda.get_allocator_backend()
    'native'
    """
    return "native"


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """All counts, under torch's names; empty before a GPU is used.

    >>> votive.cuda.memory_stats().get("num_ooms", 0)
    0
    """
    if not is_initialized():
        return {}
    allocator = _allocator(device)
    with allocator.lock:
        s = allocator.stats()
        blocks = sum(not b.free for p in allocator.every() for b in p.blocks())
    held, most = s["allocated_bytes.current"], s["allocated_bytes.peak"]
    return {
        "allocated_bytes.all.current": held,
        "allocated_bytes.all.peak": most,
        "active_bytes.all.current": held,
        "active_bytes.all.peak": most,
        "reserved_bytes.all.current": s["reserved_bytes.current"],
        "reserved_bytes.all.peak": s["reserved_bytes.peak"],
        "allocation.all.current": blocks,
        "allocation.all.allocated": s["allocation.count"],
        "segment.all.current": s["segment.count"],
        "num_device_alloc": s["num_device_alloc"],
        "num_alloc_retries": s["num_alloc_retries"],
        "num_ooms": s["num_ooms"],
    }


def _nested(flat: dict[str, int]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in flat.items():
        inner = out
        *path, last = key.split(".")
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return out


def memory_stats_as_nested_dict(device: DeviceLike = None) -> dict[str, Any]:
    """`memory_stats` with a dictionary for each part of a name.

    >>> isinstance(votive.cuda.memory_stats_as_nested_dict(), dict)
    True
    """
    return _nested(memory_stats(device))


def memory_snapshot(mempool_id: object = None) -> list[dict[str, Any]]:
    """Every segment that was taken from the driver, with its blocks.

    >>> isinstance(votive.cuda.memory_snapshot(), list)
    True
    """
    if mempool_id is not None:
        raise NotImplementedError("memory_snapshot: only of all pools; leave mempool_id out.")
    if not is_initialized():
        return []
    out = []
    for allocator in list(rt.runtime.allocators.values()):
        with allocator.lock:  # other threads take and give meanwhile
            out += [
                _described(allocator.device, pool, segment) for pool in allocator.every() for segment in pool.segments
            ]
    return out


def _described(device: int, pool: Pool, segment: Segment) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    block: Block | None = segment.first
    while block is not None:
        state = "inactive" if block.free else "active_allocated"
        blocks.append(
            {
                "address": block.ptr,
                "size": block.nbytes,
                "state": state,
                "requested_size": 0 if block.free else block.wanted,
            }
        )
        block = block.after
    used = sum(b["size"] for b in blocks if b["state"] != "inactive")
    return {
        "device": device,
        "address": blocks[0]["address"],
        "total_size": segment.nbytes,
        "allocated_size": used,
        "active_size": used,
        "stream": pool.stream,
        "segment_type": "small" if segment.small else "large",
        "is_private": pool.private,
        "blocks": blocks,
    }


def host_memory_stats() -> dict[str, int]:
    """Counts of page-locked memory of the host; empty before a GPU is used.

    >>> votive.cuda.host_memory_stats().get("allocated_bytes.current", 0) >= 0
    True
    """
    if not is_initialized():
        return {}
    from ..backends.cuda.runtime.pinned import hosts

    return hosts().stats()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """`host_memory_stats` with a dictionary for each part of a name.

    >>> isinstance(votive.cuda.host_memory_stats_as_nested_dict(), dict)
    True
    """
    return _nested(host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    """Let the peaks of page-locked memory begin anew.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.reset_peak_host_memory_stats()
    """
    _here()
    from ..backends.cuda.runtime.pinned import hosts

    hosts().reset_peak()


def empty_cache() -> None:
    """Give memory that no tensor uses back to the driver, page-locked memory of the host too.

    >>> votive.cuda.empty_cache()
    """
    if not is_initialized():
        return
    from .graphs import _bury

    _bury()
    for allocator in rt.runtime.allocators.values():
        with allocator.driver.on(allocator.device):
            allocator.driver.synchronize()
        allocator.empty_cache()
    from ..backends.cuda.runtime.pinned import hosts

    hosts().empty_cache()


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """(free, total) bytes of the device, as the driver sees it.

    >>> if votive.cuda.is_available():
    ...     free, total = votive.cuda.mem_get_info()
    ...     assert 0 < free <= total
    """
    _here()
    index = _index(device)
    rt.runtime.check(index)
    with rt.runtime.driver.on(index):
        free, total = rt.runtime.driver.memory_info()
    return int(free), int(total)


def device_memory_used(device: DeviceLike = None) -> int:
    """Bytes of the device that anybody uses, as the driver sees it.

    >>> votive.cuda.device_memory_used() >= 0 if votive.cuda.is_available() else True
    True
    """
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction: float, device: DeviceLike = None) -> None:
    """Take at most this share of a device's memory.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.set_per_process_memory_fraction(1.0)
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"set_per_process_memory_fraction: expected 0..1, got {fraction}.")
    _allocator(device).fraction = float(fraction)


def get_per_process_memory_fraction(device: DeviceLike = None) -> float:
    """The share of a device's memory that is taken at most.

    >>> votive.cuda.get_per_process_memory_fraction() if votive.cuda.is_available() else 1.0
    1.0
    """
    return float(_allocator(device).fraction)


def memory_summary(device: DeviceLike = None, abbreviated: bool = False) -> str:
    """A page about where memory is: totals, then the largest blocks in use.

    >>> if votive.cuda.is_available():
    ...     assert "in tensors" in votive.cuda.memory_summary()
    """
    allocator = _allocator(device)
    free, total = mem_get_info(device)
    s = allocator.stats()
    held, most = s["allocated_bytes.current"], s["allocated_bytes.peak"]
    asked, asked_most = s["reserved_bytes.current"], s["reserved_bytes.peak"]
    lines = [
        f"memory of cuda:{allocator.device}: {size_text(free)} free of {size_text(total)}",
        f"  in tensors     {size_text(held):>12}   at most {size_text(most)}",
        f"  from driver    {size_text(asked):>12}   at most {size_text(asked_most)}",
        f"  segments       {s['segment.count']:>12}   graphs' own pools {len(allocator.private)}",
        f"  handed out     {s['allocation.count']:>12}   asked of the driver {s['num_device_alloc']}",
        f"  retries        {s['num_alloc_retries']:>12}   out of memory {s['num_ooms']}",
    ]
    if not abbreviated:
        blocks = [b for p in allocator.every() for b in p.blocks() if not b.free]
        blocks.sort(key=lambda b: -b.wanted)
        lines.append("  largest in use:")
        lines += [f"    {size_text(b.wanted):>12} at {b.ptr:#x}, stream {b.pool.stream}" for b in blocks[:10]]
    return "\n".join(lines)


def caching_allocator_alloc(size: int, device: DeviceLike = None, stream: Stream | int | None = None) -> int:
    """An address of `size` bytes, to be given back with `caching_allocator_delete`.

    >>> if votive.cuda.is_available():
    ...     address = votive.cuda.caching_allocator_alloc(1024)
    ...     votive.cuda.caching_allocator_delete(address)
    """
    here, index = _here(), _index(device)
    handle = here.stream_of(index) if stream is None else stream if isinstance(stream, int) else stream.cuda_stream
    block = rt.runtime.allocator(index).pool(handle).take(size)
    _loose[block.ptr] = block
    return int(block.ptr)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back what `caching_allocator_alloc` gave.

    >>> if votive.cuda.is_available():
    ...     votive.cuda.caching_allocator_delete(votive.cuda.caching_allocator_alloc(8))
    """
    block = _loose.pop(mem_ptr, None)
    if block is None:
        raise ValueError(f"caching_allocator_delete: {mem_ptr:#x} was not handed out.")
    block.pool.give(block)


_loose: dict[int, Any] = {}
