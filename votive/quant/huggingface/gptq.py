"""GPTQ and AWQ: int32 words of small codes along inputs or outputs, with packed zero points. Reads headers first.

x = s (q - z). GPTQ packs neighbours along the inputs; its first version stores z - 1, taken back modulo 2^bits as
AutoGPTQ does, the second ("gptq_v2") z itself. With act-order, `g_idx` names the group of each input. AWQ packs eight
outputs to a word in the order 0 2 4 6 1 3 5 7, or in its "gemv" version eight inputs in their own order, with scales
and zero points padded. Three bits follow one another across words; they become blocks of four.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .packed import Array, Layer, Packed, Reader, whole

_AWQ_PLACES = [0, 4, 1, 5, 2, 6, 3, 7]


def gptq(reader: Reader, config: Mapping[str, object]) -> Iterator[tuple[str, Layer]]:
    """The layers of a GPTQ file, of 2, 3, 4 or 8 bits."""
    bits = whole(config.get("bits"), reader.scheme, "bits", (2, 3, 4, 8))
    version = config.get("checkpoint_format", "gptq")
    if version not in ("gptq", "gptq_v2"):
        raise ValueError(f"{reader.scheme}: checkpoint_format={version!r} is not supported; use 'gptq' or 'gptq_v2'.")
    for name in sorted(reader.known):
        if name.endswith(".qweight"):
            yield _gptq_layer(reader, name.removesuffix(".qweight"), bits, version == "gptq")


def _gptq_layer(reader: Reader, base: str, bits: int, less: bool) -> tuple[str, Layer]:
    words, outputs = reader.shape(f"{base}.qweight", 2)
    inputs, groups = words * 32 // bits, reader.shape(f"{base}.scales", 2)[0]
    reader.want(f"{base}.scales", (groups, outputs))
    reader.want(f"{base}.qzeros", (groups, outputs * bits // 32))
    if words * 32 % bits:
        raise reader.fail(f"{base}.qweight", f"has {words} words, which do not hold a whole number of {bits} bits")
    if outputs * bits % 32 or not groups:
        raise reader.fail(f"{base}.qzeros", f"cannot hold {outputs} zero points of {bits} bits in {groups} groups")
    ordered = f"{base}.g_idx" in reader.known
    if ordered:
        reader.want(f"{base}.g_idx", (inputs,))
    elif inputs % groups:
        raise reader.fail(f"{base}.scales", f"has {groups} groups, which do not divide {inputs} inputs")

    def unpack() -> Packed:
        codes = reader.stream(f"{base}.qweight", bits, 0)
        zero = reader.stream(f"{base}.qzeros", bits, 1)
        if less:
            zero = (zero + np.uint8(1)) & np.uint8((1 << bits) - 1)
        index = np.arange(inputs) // (inputs // groups) if not ordered else _groups(reader, f"{base}.g_idx", groups)
        return Packed(
            f"int{4 if bits == 3 else bits}", codes, reader.floats(f"{base}.scales").T, zero.T.astype(np.float32), index
        )

    parts = tuple(f"{base}.{part}" for part in ("qweight", "qzeros", "scales", *(["g_idx"] if ordered else [])))
    return f"{base}.weight", Layer(parts, (outputs, inputs), unpack)


def _groups(reader: Reader, name: str, groups: int) -> Array:
    index = reader.stored(name, "int32").astype(np.int64)
    if index.size and (index.min() < 0 or index.max() >= groups):
        raise reader.fail(name, f"names groups from {index.min()} to {index.max()}, but there are {groups}")
    return index


def awq(reader: Reader, config: Mapping[str, object]) -> Iterator[tuple[str, Layer]]:
    """The layers of an AWQ file in the layout of its "gemm" or "gemv" version, which are of four bits."""
    whole(config.get("bits", config.get("w_bit")), reader.scheme, "bits", (4,))
    version = str(config.get("version", "gemm")).lower()
    if version not in ("gemm", "gemv"):
        raise ValueError(f"{reader.scheme}: version={version!r} is not supported; use 'gemm' or 'gemv'.")
    size = config.get("group_size", config.get("q_group_size", -1))
    if type(size) is not int or (size < 1 and size != -1):
        raise ValueError(f"{reader.scheme}: group_size={size!r} must be a whole number.")
    for name in sorted(reader.known):
        if name.endswith(".qweight"):
            base = name.removesuffix(".qweight")
            yield _awq_layer(reader, base) if version == "gemm" else _gemv_layer(reader, base, size)


def _gemv_layer(reader: Reader, base: str, size: int) -> tuple[str, Layer]:
    outputs, words = reader.shape(f"{base}.qweight", 2)
    inputs = words * 8
    size = inputs if size == -1 else size
    groups, width = inputs // size, reader.shape(f"{base}.qzeros", 2)[1]
    if inputs % size or width * 8 < groups:
        raise reader.fail(f"{base}.qzeros", f"cannot hold zero points of {inputs} inputs in groups of {size}")
    reader.want(f"{base}.qzeros", (outputs, width))
    reader.want(f"{base}.scales", (outputs, width * 8), (outputs, groups))

    def unpack() -> Packed:
        zero = reader.stream(f"{base}.qzeros", 4, 1)[:, :groups].astype(np.float32)
        scales = np.ascontiguousarray(reader.floats(f"{base}.scales")[:, :groups])
        codes = reader.stream(f"{base}.qweight", 4, 1)
        return Packed("int4", codes, scales, zero, np.arange(inputs) // size)

    parts = tuple(f"{base}.{part}" for part in ("qweight", "qzeros", "scales"))
    return f"{base}.weight", Layer(parts, (outputs, inputs), unpack)


def _awq_layer(reader: Reader, base: str) -> tuple[str, Layer]:
    inputs, words = reader.shape(f"{base}.qweight", 2)
    outputs, groups = words * 8, reader.shape(f"{base}.scales", 2)[0]
    reader.want(f"{base}.scales", (groups, outputs))
    reader.want(f"{base}.qzeros", (groups, words))
    if not groups or inputs % groups:
        raise reader.fail(f"{base}.scales", f"has {groups} groups, which do not divide {inputs} inputs")

    def unpack() -> Packed:
        codes = reader.words(f"{base}.qweight", 4)[..., _AWQ_PLACES].reshape(inputs, outputs).T
        zero = reader.words(f"{base}.qzeros", 4)[..., _AWQ_PLACES].reshape(groups, outputs).T
        index = np.arange(inputs) // (inputs // groups)
        codes = np.ascontiguousarray(codes)
        return Packed("int4", codes, reader.floats(f"{base}.scales").T, zero.astype(np.float32), index)

    return f"{base}.weight", Layer(
        tuple(f"{base}.{part}" for part in ("qweight", "qzeros", "scales")), (outputs, inputs), unpack
    )
