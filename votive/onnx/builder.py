"""Writes an ONNX graph: names, constants, nodes, sizes as arithmetic on shapes. Knows no operator of votive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..core import dtype as dt
from .errors import OnnxExporterError, package
from .sizes import Fit, Int, Sym, fit

_TYPES = {
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "bool": "BOOL",
    "float8_e4m3fn": "FLOAT8E4M3FN",
    "float8_e5m2": "FLOAT8E5M2",
}


def onnx_type(dtype: dt.dtype) -> int:
    """The number by which ONNX knows a dtype."""
    name = _TYPES.get(dtype.name)
    if name is None:
        raise OnnxExporterError(f"export: ONNX has no operators for {dtype}; compute with its real parts.")
    return int(getattr(package().TensorProto, name))


class Builder:
    """Collects the parts of a graph. Values are known by their names in the file."""

    def __init__(self, opset: int) -> None:
        self.onnx = package()
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.known: list[tuple[tuple[str, int], Sym]] = []  # sizes of values that are there: (name, dimension)
        self.module = ""  # whose call is being written
        self._taken: set[str] = set()
        self._constants: dict[Any, str] = {}
        self._sizes: dict[Any, str] = {}

    def name(self, stem: str) -> str:
        """A name that is not taken yet."""
        made, n = stem, 0
        while made in self._taken:
            n += 1
            made = f"{stem}_{n}"
        self._taken.add(made)
        return made

    def array(self, name: str, array: np.ndarray[Any, Any], dtype: dt.dtype) -> str:
        """An initializer with these values."""
        array = np.array(array, order="C", ndmin=0)
        raw = self.onnx.TensorProto(name=name, data_type=onnx_type(dtype), dims=list(array.shape))
        raw.raw_data = array.astype(np.bool_).tobytes() if dtype is dt.bool_ else array.tobytes()
        self.initializers[name], self.arrays[name] = raw, array
        return name

    def constant(self, value: Any, dtype: dt.dtype = dt.int64) -> str:
        """The name of a constant; equal ones are one."""
        array = np.asarray(value, dtype.np)
        key = (array.tobytes(), array.shape, dtype)
        if key not in self._constants:
            self._constants[key] = self.array(self.name("const"), array, dtype)
        return self._constants[key]

    def op(self, kind: str, *inputs: str | None, **attributes: Any) -> str:
        """Add a node with one result, and give that result's name."""
        return self.ops(kind, inputs, 1, **attributes)[0]

    def ops(self, kind: str, inputs: Sequence[str | None], count: int, **attributes: Any) -> list[str]:
        """Add a node with several results."""
        given = ["" if i is None else i for i in inputs]
        while given and not given[-1]:
            given.pop()
        outs = [self.name(f"{kind.lower()}{'_' + str(i) if count > 1 else ''}") for i in range(count)]
        used = {k: v for k, v in attributes.items() if v is not None}
        node = self.onnx.helper.make_node(
            kind, given, outs, name=self.name(f"{self.module}/{kind}".lstrip("/")), **used
        )
        self.nodes.append(node)
        return outs

    def cast(self, x: str, dtype: dt.dtype) -> str:
        return self.op("Cast", x, to=onnx_type(dtype))

    # --- sizes -----------------------------------------------------------------------------------

    def note(self, name: str, shape: Sequence[Int]) -> None:
        """Remember where sizes can be read."""
        have = {s for _, s in self.known}
        for i, size in enumerate(shape):
            if isinstance(size, Sym) and size not in have:
                self.known.append(((name, i), size))
                have.add(size)

    def size(self, value: Int) -> str:
        """A size as a tensor of one element."""
        if not isinstance(value, Sym):
            return self.constant([value])
        if value not in self._sizes:
            found = fit(value, self.known)
            if found is None:
                raise OnnxExporterError(
                    f"export: a size that was {', '.join(map(str, value.values))} for the sizes that were tried does "
                    "not follow from those of the inputs; make fewer dimensions dynamic."
                )
            self._sizes[value] = self._arithmetic(found)
        return self._sizes[value]

    def _arithmetic(self, found: Fit) -> str:
        total = self._dimension(*found.dims[0])
        for name, i in found.dims[1:]:
            total = self.op("Mul", total, self._dimension(name, i))
        if found.times != 1:
            total = self.op("Mul", total, self.constant([found.times]))
        if found.over != 1:
            total = self.op("Div", total, self.constant([found.over]))
        return self.op("Add", total, self.constant([found.plus])) if found.plus else total

    def _dimension(self, name: str, i: int) -> str:
        key = (name, i)
        if key not in self._sizes:
            self._sizes[key] = self.op("Shape", name, start=i, end=i + 1)
        return self._sizes[key]

    def sizes(self, shape: Sequence[Int]) -> str:
        """Several sizes as one tensor."""
        if not any(isinstance(s, Sym) for s in shape):
            return self.constant(np.array(shape, np.int64).reshape(-1))
        if len(shape) == 1:
            return self.size(shape[0])
        return self.op("Concat", *[self.size(s) for s in shape], axis=0)

    def reshape(self, x: str, shape: Sequence[Int]) -> str:
        """A view; the only size that changes is left for ONNX to find, unless there is nothing in the tensor."""
        dynamic = [i for i, s in enumerate(shape) if isinstance(s, Sym)]
        if len(dynamic) == 1 and 0 not in shape:
            return self.op("Reshape", x, self.constant([-1 if i == dynamic[0] else s for i, s in enumerate(shape)]))
        return self.op("Reshape", x, self.sizes(shape), allowzero=1 if 0 in shape else None)

    def number(self, value: Any, dtype: dt.dtype) -> str:
        """A number known while writing, or one that follows from sizes."""
        if isinstance(value, Sym):
            scalar = self.op("Squeeze", self.size(value))
            return scalar if dtype is dt.int64 else self.cast(scalar, dtype)
        if dtype is dt.bfloat16:
            value = ml_dtypes.bfloat16(value)
        return self.constant(value, dtype)
