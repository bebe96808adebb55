"""`votive.backends.quantized`: torch's engines for quantized tensors, of which votive has none."""

from __future__ import annotations

from . import switches
from .switches import Switch

switches.install(__name__, {"engine": Switch("none", ("none",)), "supported_engines": Switch(["none"], ())})
