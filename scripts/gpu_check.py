"""Check votive on a machine with a GPU: build the CPU kernels, test, measure, print one table.

    python scripts/gpu_check.py                  # everything, inside nine minutes
    python scripts/gpu_check.py --only tests     # build, tests or benchmark, or several
    python scripts/gpu_check.py -k softmax       # tests whose names match

Needs nothing from the network. Tests run in several processes that share the GPU; compiling kernels
is most of the time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE = ROOT / "votive/backends/cpu/native"
LIMIT = 9 * 60.0


def environment() -> dict[str, str]:
    """Children see this tree, and no emulation."""
    env = {k: v for k, v in os.environ.items() if k not in ("TRITON_INTERPRET", "VOTIVE_CUDA")}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env.setdefault("OMP_NUM_THREADS", "2")
    return env


def works() -> str:
    """What the native CPU module says: its level, or why it is not there."""
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from votive.backends.cpu import native\n"
        "print(native.available, native.reason)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(), text=True, capture_output=True, check=False
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def build(left: float) -> tuple[str, str]:
    """Compile the CPU kernels for this processor where no module for this Python is there."""
    state = works()
    if state.startswith("True"):
        return "ok", "native CPU kernels are there"
    missing = [t for t in ("cmake", "ninja") if shutil.which(t) is None]
    if missing:
        return "skipped", f"no {' and '.join(missing)}: the CPU side computes with NumPy"
    level = "avx512" if "avx512f" in Path("/proc/cpuinfo").read_text() else "avx2"
    folder = ROOT / "build" / "gpu_check"
    folder.mkdir(parents=True, exist_ok=True)
    configure = [
        "cmake",
        "-G",
        "Ninja",
        "-S",
        str(ROOT),
        "-B",
        str(folder),
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DVOTIVE_LEVELS={level}",
    ]
    for command in (configure, ["ninja", "-C", str(folder)]):
        done = subprocess.run(command, text=True, capture_output=True, timeout=max(left, 1), check=False)
        if done.returncode:
            print(done.stdout[-3000:], done.stderr[-3000:], sep="\n")
            return "FAILED", f"{command[0]} ended with {done.returncode}"
    for module in (*folder.glob("_native_*.so"), *folder.glob("_probe*.so")):
        shutil.copy2(module, NATIVE / module.name)
    state = works()
    return ("ok" if state.startswith("True") else "FAILED"), f"built for {level}: {state}"


def tests(left: float, processes: int, pattern: str) -> tuple[str, str]:
    """Run tests/cuda on the GPU, shared out among processes."""
    logs = ROOT / "build" / "gpu_check"
    logs.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
    command += ["tests/cuda", *(["-k", pattern] if pattern else [])]
    running = []
    claims = logs / "claims"
    shutil.rmtree(claims, ignore_errors=True)
    claims.mkdir()
    env = {**environment(), "VOTIVE_CUDA_CLAIMS": str(claims)}
    for k in range(1, processes + 1):
        log = open(logs / f"tests_{k}.txt", "w")  # noqa: SIM115 - closed with its process
        child = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT)
        running.append((child, log))
    end = time.monotonic() + left
    late = broken = 0
    for child, log in running:
        try:
            child.wait(max(end - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            late += 1
        else:
            broken += child.returncode not in (0, 1, 5)  # passed, failed, nothing to run
        log.close()
    count = {"passed": 0, "failed": 0, "skipped": 0, "error": 0}
    failures: list[str] = []
    for k in range(1, processes + 1):
        text = (logs / f"tests_{k}.txt").read_text(errors="replace")
        for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", text[-400:]):
            count[word] += int(n)
        failures += [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    for line in failures[:60]:
        print(line[:200])
    if len(failures) > 60:
        print(f"... and {len(failures) - 60} more; see {logs}/tests_*.txt")
    found = ", ".join(f"{n} {word}" for word, n in count.items() if n)
    if late:
        found += f"; {late} of {processes} processes ran out of time"
    if broken:
        found += f"; {broken} of {processes} processes died"
    good = count["passed"] and not (count["failed"] or count["error"] or late or broken)
    return "ok" if good else "FAILED", found or "nothing ran"


def benchmark(left: float) -> tuple[str, str]:
    """What `python -m benchmarks.compare gpu` measures, shown as it comes."""
    if not (ROOT / "benchmarks" / "gpu").exists():
        return "skipped", "there is no benchmarks.gpu"
    command = [sys.executable, "-m", "benchmarks.gpu"]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment(), timeout=max(left, 1), check=False)
    except subprocess.TimeoutExpired:
        return "FAILED", f"ran out of time after {left:.0f} s"
    return ("ok" if not done.returncode else "FAILED"), f"ended with {done.returncode}"


def main() -> int:
    """Run the steps that were asked for and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="build,tests,benchmark")
    parser.add_argument("-n", "--processes", type=int, default=min(16, os.cpu_count() or 1))
    parser.add_argument("-k", "--pattern", default="")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for everything")
    given = parser.parse_args()
    begin = time.monotonic()
    # The benchmark needs the GPU for itself, so tests leave it time.
    share = {"build": 0.35, "tests": 0.75 if "benchmark" in given.only else 1.0, "benchmark": 1.0}
    steps = {"build": build, "tests": lambda left: tests(left, given.processes, given.pattern), "benchmark": benchmark}
    rows = []
    for name in given.only.split(","):
        start = time.monotonic()
        state, what = steps[name](given.limit * share[name] - (start - begin))
        rows.append((name, state, f"{time.monotonic() - start:.0f} s", what))
    print(f"\n{'step':<12}{'state':<10}{'time':<8}")
    for name, state, took, what in rows:
        print(f"{name:<12}{state:<10}{took:<8}{what}")
    return int(any(state == "FAILED" for _, state, _, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
