"""votive against torch on the CPU: `python -m benchmarks.compare cpu`.

    --suite a,b     which suites (a calls, b operators, c matrix products, d layers, e whole steps)
    --filter REGEX  only cases whose name matches
    --quick         fewer sizes and rounds: three minutes instead of twelve
    --json FILE     every figure, with versions and the machine

Both sides use the same number of threads (`--threads`, 2 unless told otherwise), run in one process
in turns on the same numbers, and are warm. Ratios below 1 mean that votive is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SLOW = 1.5


def measure(case: Any, suite: str = "") -> Any:
    """One row; a case that fails becomes a row that says so."""
    import torch

    import votive

    from .pairing import Row, pair

    try:
        row = pair(case.name, case.setup(votive), case.setup(torch), 15, case.seconds, case.least)
    except Exception as e:
        nothing = float("nan")
        error = f"{type(e).__name__}: {e}".splitlines()[0][:120]
        row = Row(case.name, nothing, nothing, nothing, nothing, nothing, error=error)
    row.suite = suite
    return row


def chosen(suites: str, scale: str, pattern: str) -> Iterator[tuple[str, Any]]:
    """(suite, case) of everything asked for."""
    from .cpu import cases

    for suite in suites.split(","):
        for case in cases(suite, scale):
            if re.search(pattern, case.name):
                yield suite, case


def _resident_peak() -> int:
    """The most memory this process has held, in bytes."""
    try:  # ru_maxrss of a new process starts at what its parent held
        status = Path("/proc/self/status").read_text()
        return 1024 * int(next(x for x in status.splitlines() if x.startswith("VmHWM")).split()[1])
    except (OSError, StopIteration):
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def peak(name: str, framework: str, scale: str) -> None:
    """Print how many bytes a case needed at most, beyond what importing the framework takes."""
    from importlib import import_module

    m = import_module(framework)
    import_module(f"{framework}.nn")
    import_module(f"{framework}.optim")
    before = _resident_peak()
    ((_, case),) = chosen("e", scale, f"^{re.escape(name)}$")
    run = case.setup(m)
    for _ in range(3):
        run()
    print(_resident_peak() - before)


def memory(name: str, scale: str, threads: int) -> dict[str, int]:
    """The peak of each framework, each in a process of its own."""
    found = {}
    for framework in ("votive", "torch"):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "benchmarks.compare",
                "cpu",
                "--peak",
                framework,
                "--filter",
                name,
                "--scale",
                scale,
            ],
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            cwd=ROOT,
            text=True,
            capture_output=True,
        )
        found[framework] = int(done.stdout) if done.returncode == 0 else -1
    return found


def summary(rows: list[Any]) -> str:
    """The geometric mean of each suite, how many rows are slow, and which are the slowest."""
    from .cpu import SUITES
    from .pairing import mean_ratio

    lines = []
    for suite in sorted({r.suite for r in rows}):
        mine = [r for r in rows if r.suite == suite]
        ran = [r for r in mine if not r.error]
        slow = sum(r.ratio > SLOW for r in ran)
        lines.append(
            f"suite {suite} ({SUITES[suite][1]}): geometric mean {mean_ratio(mine):.3f} of "
            f"{len(ran)} rows, {slow} above {SLOW}, {sum(r.ratio > 1 for r in ran)} above 1, "
            f"{len(mine) - len(ran)} failed"
        )
    return "\n".join(lines)


def about(threads: int) -> dict[str, Any]:
    """What a figure depends on."""
    import torch

    import votive

    return {
        "configuration": votive.config.show().splitlines(),
        "torch": torch.__version__,
        "threads": threads,
        "load_average": os.getloadavg(),
    }


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("device", choices=["cpu"])
    parser.add_argument("--suite", default="a,b,c,d,e")
    parser.add_argument("--filter", default="")
    parser.add_argument("--scale", choices=["full", "quick", "tiny"], default="full")
    parser.add_argument("--quick", dest="scale", action="store_const", const="quick")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-memory", action="store_true", help="leave out peak memory")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> list[Any]:
    """Measure, print as it goes, sum up."""
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["gpu"]:
        from .gpu.__main__ import main as on_gpu

        return on_gpu(given[1:])
    args = parse(argv)
    if args.peak:
        peak(args.filter, args.peak, args.scale)
        return []
    os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))  # read by both when imported
    import torch

    import votive

    from .pairing import table

    torch.set_num_threads(args.threads)
    votive.set_num_threads(args.threads)
    machine, began = about(args.threads), time.perf_counter()
    rows: list[Any] = []
    peaks: dict[str, dict[str, int]] = {}
    shown = ""
    for suite, case in chosen(args.suite, args.scale, args.filter):
        if suite != shown:
            print(f"\nsuite {suite}")
            shown = suite
        rows.append(measure(case, suite))
        print(table(rows[-1:]).splitlines()[-1], flush=True)
        if case.memory and not args.no_memory:
            peaks[case.name] = memory(case.name, args.scale, args.threads)
            ours, theirs = (peaks[case.name][k] / 2**20 for k in ("votive", "torch"))
            print(f"    peak memory: votive {ours:,.0f} MiB, torch {theirs:,.0f} MiB", flush=True)
    took = time.perf_counter() - began
    print(f"\n{summary(rows)}\n{len(rows)} rows in {took:.0f} s")
    if args.json:
        found = {**machine, "seconds": took, "rows": [asdict(r) for r in rows], "peak_bytes": peaks}
        args.json.write_text(json.dumps(found, indent=1) + "\n")
    return rows


if __name__ == "__main__":
    main()
