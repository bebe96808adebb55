"""The names by which files are quantized: formats that can be encoded, and llama.cpp's mixtures of them."""

from __future__ import annotations

from importlib import import_module

from ..backends.common.blocks.encode import ENCODABLE


def known_types() -> list[str]:
    """What `votive quantize --type` takes.

    >>> from votive.quant.known import known_types
    >>> {"q4_k_m", "q8_0", "mxfp4", "iq3_m"} <= set(known_types())
    True
    """
    # The mixtures stand with the files that name them, in a layer above this one.
    types = import_module("votive.models.gguf_types")
    inside = [n.lower() for n, (base, *_) in types._MIXTURES.items() if base.lower() in ENCODABLE]
    inside += [n.lower() for n, found in types.IQ_MIXTURES.items() if found.base.lower() in ENCODABLE]
    return sorted({*inside, *ENCODABLE})
