"""A driver that compiles kernels for a GPU that is not there, and notes what came out. Launches do
nothing. Run as a program it compiles the families named on its command line and prints JSON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from votive.backends.cuda.emulated.driver import Emulated


class Compiler(Emulated):
    """Everything of a driver but running kernels."""

    emulated = False

    def __init__(self) -> None:
        super().__init__(total=1 << 33)
        self.binaries: dict[str, bytes] = {}

    def alloc(self, nbytes: int) -> int:
        # What is counted on the device is nothing: no kernel runs.
        address = super().alloc(nbytes)
        self.fill_bytes(address, 0, nbytes, 0)
        return address

    def load(self, binary: bytes, name: str, shared: int) -> int:
        self.binaries[f"{name}.{len(self.binaries)}"] = binary
        return len(self.binaries)

    def launch_kernel(self, *args: Any) -> int:
        return 0

    launch_dependent = launch_cooperative = launch_kernel

    def fail(self, what: str, code: int) -> None:
        raise AssertionError(what)


def started() -> Compiler:
    """Put the compiler in the place of the driver."""
    from votive.backends.cuda import runtime as rt
    from votive.backends.cuda.libraries import cublas, cudnn

    rt.runtime.driver = Compiler()
    rt.begin()
    # The library would run on memory that no GPU sees; without it, products are kernels too.
    cublas.library.reason = cudnn.library.reason = "nothing runs"
    return rt.runtime.driver  # type: ignore[no-any-return]


def used(binary: bytes) -> dict[str, int]:
    """Registers and stack of a compiled kernel. A stack means that registers were spilled."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(binary)
        text = subprocess.run([str(tool), "-res-usage", str(file)], capture_output=True, text=True, check=True).stdout
    found = {k: int(v) for k, v in re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", text)}
    assert "REG" in found, text
    return found


def main(families: list[str]) -> None:
    os.environ.pop("TRITON_INTERPRET", None)
    driver = started()
    import votive

    from .families import FAMILIES

    report = {}
    for family in families:
        work: Callable[[Any], None] = FAMILIES[family]
        before = set(driver.binaries)
        work(votive)
        new = [n for n in driver.binaries if n not in before]
        report[family] = {n: used(driver.binaries[n]) for n in new}
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
