"""`votive.backends.quantized`: how products with weights in blocks treat their input, and torch's engines, of which
votive has none.

`activations` is "int8" (the default: where a kernel is faster so, each 32 neighbours of the input are rounded to 8 bits
with a scale of their own, as llama.cpp does) or "exact" (the input stays as it is).
"""

from __future__ import annotations

from . import switches
from .switches import Switch

switches.install(
    __name__,
    {
        "activations": Switch("int8", ("int8", "exact")),
        "engine": Switch("none", ("none",)),
        "supported_engines": Switch(["none"], ()),
    },
)
