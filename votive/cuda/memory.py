"""What the caching allocator holds. The names and units are torch's: bytes."""

from __future__ import annotations

from typing import Any

from ..backends.cuda import runtime as rt
from ..backends.cuda.allocator import size_text
from . import _here, _index


def _allocator(device: Any = None) -> Any:
    _here()
    found = rt.runtime.allocator(_index(device))
    with found.lock:
        if not found.busy:
            found.settle()  # what came back while lists were changing counts as free
    return found


def memory_allocated(device: Any = None) -> int:
    """Bytes in tensors."""
    return int(_allocator(device).allocated)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in tensors at once."""
    return int(_allocator(device).peak)


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the driver: those in tensors and those kept for later."""
    return int(_allocator(device).reserved)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were taken from the driver at once."""
    return int(_allocator(device).reserved_peak)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks begin anew."""
    _allocator(device).reset_peak()


def memory_stats(device: Any = None) -> dict[str, int]:
    """All counts."""
    return dict(_allocator(device).stats())


def empty_cache() -> None:
    """Give memory that no tensor uses back to the driver."""
    from ..backends.cuda.runtime import runtime

    if runtime.driver is None:
        return
    for allocator in runtime.allocators.values():
        with allocator.driver.on(allocator.device):
            allocator.driver.synchronize()
        allocator.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the device, as the driver sees it."""
    here = _here()
    index, before = _index(device), here.device
    here.set_device(index)
    try:
        free, total = rt.runtime.driver.memory_info()
    finally:
        here.set_device(before)
    return int(free), int(total)


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Take at most this share of a device's memory."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"set_per_process_memory_fraction: expected 0..1, got {fraction}.")
    _allocator(device).fraction = float(fraction)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A page about where memory is: totals, then the largest blocks in use."""
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
        f"  handed out     {s['allocation.count']:>12}   "
        f"asked of the driver {s['num_device_alloc']}",
        f"  retries        {s['num_alloc_retries']:>12}   out of memory {s['num_ooms']}",
    ]  # fmt: skip
    if not abbreviated:
        blocks = [b for p in allocator.every() for b in p.blocks() if not b.free]
        blocks.sort(key=lambda b: -b.wanted)
        lines.append("  largest in use:")
        lines += [
            f"    {size_text(b.wanted):>12} at {b.ptr:#x}, stream {b.pool.stream}"
            for b in blocks[:10]
        ]
    return "\n".join(lines)


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """An address of `size` bytes, to be given back with `caching_allocator_delete`."""
    here = _here()
    handle = here.stream if stream is None else getattr(stream, "cuda_stream", stream)
    block = rt.runtime.allocator(_index(device)).pool(handle).take(size)
    _loose[block.ptr] = block
    return int(block.ptr)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back what `caching_allocator_alloc` gave."""
    block = _loose.pop(mem_ptr, None)
    if block is None:
        raise ValueError(f"caching_allocator_delete: {mem_ptr:#x} was not handed out.")
    block.pool.give(block)


_loose: dict[int, Any] = {}
