"""What a WebGPU device does: `python -m benchmarks.webgpu` prints GFLOP/s, GB/s and what a dispatch costs.

Every figure is the best of several runs of many dispatches, waited for once. `--quick` takes small sizes, as on a
software adapter.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import votive
from votive.backends.webgpu.runtime import runtime
from votive.backends.webgpu.shaders.program import Program
from votive.core import dtype as dt

Work = Callable[[], object]


def seconds(work: Work, repeat: int, rounds: int = 5) -> float:
    """The time of one run, the device's included."""
    work()
    votive.webgpu.synchronize()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeat):
            work()
        votive.webgpu.synchronize()
        best = min(best, (time.perf_counter() - start) / repeat)
    return best


def rows(quick: bool) -> list[tuple[str, Work, float, float]]:
    """(name, work, floating-point operations, bytes moved)."""
    here: dict[str, Any] = {"device": "webgpu"}
    F = votive.nn.functional
    n = 1 << (16 if quick else 24)
    m = 128 if quick else 1024
    x, y = votive.randn(n, **here), votive.randn(n, **here)
    h = x.half()
    a, b = votive.randn(m, m, **here), votive.randn(m, m, **here)
    row = votive.randn(1, m, **here)
    table = votive.randn(m, m, **here)
    lines = votive.randn(m, m, **here)
    norm = votive.ones(m, **here)
    q = votive.randn(1, 8, m, 64, **here)
    packed = votive.randn(m, m).to(votive.q4_0).to("webgpu")
    weight = 18 / 32 * m * m
    pixels, taps = votive.randn(4, 16, 32, 32, **here), votive.randn(16, 16, 3, 3, **here)
    return [
        ("add, float32", lambda: x + y, n, 12 * n),
        ("gelu, float32", lambda: F.gelu(x), n, 8 * n),
        ("multiply, float16", lambda: h * h, n, 6 * n),
        ("sum of all", lambda: x.sum(), n, 4 * n),
        ("softmax of rows", lambda: lines.softmax(-1), 5 * m * m, 8 * m * m),
        ("rms_norm of rows", lambda: F.rms_norm(lines, (m,), norm), 4 * m * m, 8 * m * m),
        (f"matmul {m} x {m} x {m}", lambda: a @ b, 2.0 * m**3, 12 * m * m),
        (f"linear, one row by {m} x {m}", lambda: F.linear(row, table), 2 * m * m, 4 * m * m),
        ("linear, one row, weight in q4_0", lambda: F.linear(row, packed), 2 * m * m, weight),
        (f"attention, 8 heads, {m} tokens", lambda: F.scaled_dot_product_attention(q, q, q), 4.0 * 8 * m * m * 64, 0),
        ("conv2d 16 to 16, 3 x 3", lambda: F.conv2d(pixels, taps, padding=1), 2.0 * 4 * 16 * 16 * 9 * 1024, 0),
        ("random normal", lambda: votive.randn(n, **here), 0, 4 * n),
    ]


def dispatch_costs(repeat: int = 500) -> dict[str, float]:
    """Microseconds of the host per operator of a few elements, and per dispatch of the driver alone."""
    x = votive.ones(16, device="webgpu")
    y = votive.ones(16, device="webgpu")
    gpu = runtime.gpu
    program = Program("nothing", [("y", dt.float32, "w")], [], "  if (index == 0u) { y_set(0u, 1.0); }")
    program(1, [x._data])
    votive.webgpu.synchronize()
    pipeline, signature, _ = program.variants[program.plain]
    group = gpu.group(signature, runtime._ring, (x._data.storage.buffer.handle,))

    def host(work: Work) -> float:
        best = float("inf")
        for _ in range(7):
            votive.webgpu.synchronize()
            start = time.perf_counter()
            for _ in range(repeat):
                work()
            best = min(best, time.perf_counter() - start)
            votive.webgpu.synchronize()
        return best / repeat * 1e6

    def driver() -> float:
        best = float("inf")
        for _ in range(7):
            votive.webgpu.synchronize()
            start = time.perf_counter()
            for k in range(repeat):
                gpu.dispatch(pipeline, group, 0, (1, 1, 1))
                if k % 128 == 127:
                    gpu.submit()
            gpu.submit()
            best = min(best, time.perf_counter() - start)
            votive.webgpu.synchronize()
        return best / repeat * 1e6

    return {"x + y": host(lambda: x + y), "x.exp()": host(lambda: x.exp()), "the driver's dispatch": driver()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, for software adapters")
    args = parser.parse_args()
    why = votive.webgpu.why_not()
    if why:
        raise SystemExit(f"There is no WebGPU device: {why}.")
    found = votive.webgpu.get_device_properties()
    print(f"{found['device']} ({found['adapter_type']}, {found['backend_type']})\n")
    print(f"{'':34}{'ms':>10}{'GFLOP/s':>10}{'GB/s':>10}")
    for name, work, operations, moved in rows(args.quick):
        s = seconds(work, 3 if args.quick else 20)
        rate = f"{operations / s / 1e9:10.1f}" if operations else " " * 10
        print(f"{name:34}{s * 1e3:10.3f}{rate}{f'{moved / s / 1e9:10.1f}' if moved else ''}")
    print("\nmicroseconds of the host per call")
    for name, cost in dispatch_costs().items():
        print(f"{name:34}{cost:10.1f}")


if __name__ == "__main__":
    main()
