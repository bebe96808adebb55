"""`votive.backends.quantized`: how products with weights in blocks or of 8 bits treat their input.

`activations` is "int8" (the default: where a kernel is faster so, each 32 neighbours of the input are rounded to 8 bits
with a scale of their own, as llama.cpp does) or "exact" (the input stays as it is).

`engine` takes torch's names. Products are votive's own, whichever is named; what depends on it is what depends on it in
torch: dynamic int8 layers round their input to 8 bits with "qnnpack" and to 7 bits with the others.
"""

from __future__ import annotations

from . import switches
from .switches import Switch

ENGINES = ("qnnpack", "onednn", "x86", "fbgemm")

switches.install(
    __name__,
    {
        "activations": Switch("int8", ("int8", "exact")),
        "engine": Switch("x86", ENGINES),
        "supported_engines": Switch(list(ENGINES), ()),
    },
)
