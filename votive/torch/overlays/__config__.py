"""`torch.__config__`: what this build is made of, as text."""

from __future__ import annotations

import votive

from ..version import VERSION

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The build in a few lines."""
    gpu = votive.cuda.get_device_name() if votive.cuda.is_available() else "none"
    return f"votive {votive.__version__} as torch {VERSION}\n  - threads: {votive.get_num_threads()}\n  - GPU: {gpu}\n"


def parallel_info() -> str:
    """How many threads compute."""
    return f"votive:\n\tget_num_threads() : {votive.get_num_threads()}\n"
