"""Weights that other libraries quantized, from folders with a `quantization_config`: kept in blocks, layer by layer.

Knows how the schemes store weights, not where files are. GPTQ (2, 3, 4, 8 bits), AWQ, bitsandbytes (nf4, fp4, int8),
HQQ, fp8, torchao (int8, intx, float8) and compressed-tensors are read; others are refused by name. A weight whose
groups are no blocks (GPTQ with act-order, HQQ along columns, rows that are no multiple of 32) becomes numbers, and a
warning tells which.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping

from ...core import dtype as dt
from ...io.source import TableSource, TensorInfo, WeightSource
from ...serialization.container import FileFormatError
from ...surface.block_tensor import BlockTensor
from ...tensor import Tensor
from .bitsandbytes import bitsandbytes
from .compressed import compressed_tensors, fp8
from .gptq import awq, gptq
from .hqq import hqq
from .packed import Layer, Packed, Reader
from .torchao import torchao

SCHEMES: dict[str, Callable[[Reader, Mapping[str, object]], Iterator[tuple[str, Layer]]]] = {
    "gptq": gptq,
    "awq": awq,
    "bitsandbytes": bitsandbytes,
    "fp8": fp8,
    "fbgemm_fp8": fp8,
    "compressed-tensors": compressed_tensors,
    "hqq": hqq,
    "torchao": torchao,
}


class QuantizedSource(TableSource[Layer | None]):
    """The weights of a folder by the names that models have for them; quantized ones come as blocks."""

    def __init__(self, source: WeightSource, scheme: str, layers: Mapping[str, Layer]) -> None:
        self.source, self.metadata, self.scheme = source, source.metadata, scheme
        used = {part for layer in layers.values() for part in layer.parts}
        self.entries: dict[str, Layer | None] = {n: None for n in source.names() if n not in used}
        self.entries.update(layers)

    def info(self, name: str) -> TensorInfo:
        layer = self._entry(name)
        if layer is None:
            return self.source.info(name)
        stored = [self.source.info(part) for part in layer.parts]
        nbytes = sum(i.nbytes for i in stored)
        return TensorInfo(name, dt.float32, layer.shape, self.scheme, nbytes, stored[0].file)

    def _packed(self, name: str) -> Packed | None:
        layer = self._entry(name)
        return None if layer is None else layer.unpack()

    def blocks(self, name: str) -> BlockTensor | None:
        packed = self._packed(name)
        if packed is None:
            return self.source.blocks(name)
        found = packed.blocks()
        if found is None:
            warnings.warn(
                f"{self.scheme}: {name} becomes numbers: its {packed.codes.shape[1]} columns are not in groups of 32, "
                "64 or 128 neighbours that share a scale (act-order, groups along columns, or an odd size), or its "
                "zero points need more than half precision.",
                stacklevel=2,
            )
        return found

    def _read(self, name: str) -> Tensor:
        packed = self._packed(name)
        return self.source._read(name) if packed is None else packed.numbers()

    def close(self) -> None:
        self.source.close()


def quantized_source(source: WeightSource, config: object) -> QuantizedSource:
    """The weights that a `quantization_config` describes.

    >>> from votive.quant.huggingface import quantized_source
    >>> tensors = {"a.weight": votive.ones(2, 32, dtype=votive.int8), "a.SCB": votive.ones(2)}
    >>> source = quantized_source(votive.io.MemorySource(tensors), {"quant_method": "bitsandbytes"})
    >>> source.names(), source.blocks("a.weight").dtype
    (['a.weight'], votive.absmax8_g32)
    """
    method = config.get("quant_method") if isinstance(config, dict) else config
    if not isinstance(config, dict) or method not in SCHEMES:
        raise ValueError(
            f"the weights are quantized by {method!r}, which is not supported; there are {', '.join(SCHEMES)}. "
            "Use one of them, unquantized weights or a GGUF file."
        )
    reader = Reader(source, str(method))
    layers = dict(SCHEMES[str(method)](reader, config))
    if not layers:
        raise FileFormatError(f"{method}: the configuration says so, but no weight in the file is quantized this way.")
    return QuantizedSource(source, str(method), layers)
