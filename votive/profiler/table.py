"""Tables of profiled events, in the form that torch's profiler prints. Measures nothing."""

from __future__ import annotations

from typing import Any

UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
SORT = (
    "cpu_time",
    "cuda_time",
    "device_time",
    "cpu_time_total",
    "cuda_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "cuda_memory_usage",
    "self_cuda_memory_usage",
    "count",
    "flops",
)


def time_text(us: float, unit: str | None = None) -> str:
    """Microseconds with the unit that suits them, or the one that is asked for."""
    if unit is None:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    if unit not in UNITS:
        raise ValueError(f"time_unit must be one of {', '.join(UNITS)}, got {unit!r}.")
    return f"{us / UNITS[unit]:.3f}{unit}"


def bytes_text(n: int) -> str:
    """Bytes with the unit that suits them."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} B"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _sorted(events: list[Any], by: str | None) -> list[Any]:
    if by is None:
        return list(events)
    if by not in SORT:
        raise AttributeError(f"table: sort_by must be one of {', '.join(SORT)}, got {by!r}.")
    by = by.replace("cuda", "device")
    return sorted(events, key=lambda event: -getattr(event, by))


def table(
    events: list[Any],
    sort_by: str | None,
    row_limit: int,
    widths: tuple[int, int, int],
    header: str | None,
    top_level_only: bool,
    unit: str | None,
    memory: bool,
    flops: bool,
) -> str:
    """The table as text."""
    if not events:
        return ""
    rows = _sorted(events, sort_by)
    if top_level_only:
        rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
    if row_limit > 0:
        rows = rows[:row_limit]
    whole = sum(event.self_cpu_time_total for event in events)
    device = sum(event.self_device_time_total for event in events)
    on_device = any(event.use_device for event in events)
    shapes, stacks = any(e.input_shapes for e in events), any(e.stack for e in events)

    def share(part: float, of: float) -> str:
        return f"{100 * part / of:.2f}%" if of else "NaN"

    columns: list[tuple[str, Any]] = [
        ("Name", lambda e: _cut(e.key, widths[0])),
        ("Self CPU %", lambda e: share(e.self_cpu_time_total, whole)),
        ("Self CPU", lambda e: time_text(e.self_cpu_time_total, unit)),
        ("CPU total %", lambda e: share(e.cpu_time_total, whole)),
        ("CPU total", lambda e: time_text(e.cpu_time_total, unit)),
        ("CPU time avg", lambda e: time_text(e.cpu_time, unit)),
    ]
    if on_device:
        columns += [
            ("Self CUDA", lambda e: time_text(e.self_device_time_total, unit)),
            ("Self CUDA %", lambda e: share(e.self_device_time_total, device)),
            ("CUDA total", lambda e: time_text(e.device_time_total, unit)),
            ("CUDA time avg", lambda e: time_text(e.device_time, unit)),
        ]
    if memory:
        columns += [
            ("CPU Mem", lambda e: bytes_text(e.cpu_memory_usage)),
            ("Self CPU Mem", lambda e: bytes_text(e.self_cpu_memory_usage)),
        ]
        if on_device:
            columns += [
                ("CUDA Mem", lambda e: bytes_text(e.device_memory_usage)),
                ("Self CUDA Mem", lambda e: bytes_text(e.self_device_memory_usage)),
            ]
    columns.append(("# of Calls", lambda e: str(e.count)))
    if shapes:
        columns.append(("Input Shapes", lambda e: _cut(str(e.input_shapes), widths[1])))
    if stacks:
        columns.append(("Source Location", lambda e: _cut(e.stack[0] if e.stack else "", widths[2])))
    if flops:
        columns.append(("Total FLOPs", lambda e: str(e.flops) if e.flops else "--"))
    cells = [[text(event) for _, text in columns] for event in rows]
    names = [name for name, _ in columns]
    wide = [max(12, len(name), *(len(row[i]) for row in cells)) if cells else 12 for i, name in enumerate(names)]
    rule = "  ".join("-" * w for w in wide) + "  "

    def line(texts: list[str]) -> str:
        return "  ".join(text.rjust(w) for text, w in zip(texts, wide, strict=True)) + "  "

    out = [] if header is None else ["=" * len(rule), header]
    out += [rule, line(names), rule, *(line(row) for row in cells), rule]
    out.append(f"Self CPU time total: {time_text(whole)}")
    if on_device:
        out.append(f"Self CUDA time total: {time_text(device)}")
    return "\n".join(out) + "\n"
