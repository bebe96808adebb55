"""What it takes to begin: `python -m benchmarks.start [--rounds 9]`.

Each figure is the best of fresh processes, which take turns. `import votive` counts beyond NumPy,
which is imported first in the same process; with the package compiled to bytecode, and without.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
IMPORT = """
import time
import numpy
began = time.perf_counter()
import votive
print(time.perf_counter() - began)
"""


def imported(cache: str) -> float:
    """Seconds of `import votive` beyond NumPy, with bytecode below the folder `cache`."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, "-c", IMPORT], env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)


def command(cache: str, *words: str) -> float:
    """Seconds of a whole command."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], env=env, stdout=subprocess.DEVNULL, check=True, cwd=cache)
    return time.perf_counter() - began


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--rounds", type=int, default=9)
    rounds = p.parse_args().rounds
    found: dict[str, list[float]] = {}
    with TemporaryDirectory() as kept:
        imported(kept)
        for _ in range(rounds):
            with TemporaryDirectory() as fresh:
                rows = {
                    "python itself": command(kept, "-c", "pass"),
                    "import numpy, whole": command(kept, "-c", "import numpy"),
                    "import votive, beyond NumPy": imported(kept),
                    "import votive, without bytecode": imported(fresh),
                    "votive --help, whole": command(kept, "-m", "votive", "--help"),
                    "votive --version, whole": command(kept, "-m", "votive", "--version"),
                }
            for name, seconds in rows.items():
                found.setdefault(name, []).append(seconds)
    for name, all_ in found.items():
        print(f"{name:34} {min(all_):6.3f} s   (to {max(all_):.3f})")


if __name__ == "__main__":
    main()
