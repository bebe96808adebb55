"""Tables of constants that kernels read. Knows memory and streams, no kernels.

They are written once, on the default stream and outside of any graph that is being captured: a
table that a graph wrote would hold nothing before its first replay, and be gone with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import runtime as rt


class Table:
    """An array in device memory for as long as this object lives."""

    __slots__ = ("_held", "ptr")

    def __init__(self, array: np.ndarray[Any, Any], device: int) -> None:
        array = np.ascontiguousarray(array)
        block = rt.runtime.allocator(device).pool(0).take(array.nbytes)
        self._held, self.ptr = rt._Held(block), int(block.ptr)
        driver = rt.runtime.driver
        with driver.on(device):
            driver.to_device(self.ptr, array.__array_interface__["data"][0], array.nbytes, 0)
            driver.wait_stream(0)  # other streams do not wait for this one
