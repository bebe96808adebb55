"""`torch.onnx`: the enumerations of its older exporter, which programs hand on."""

from __future__ import annotations

import enum

__all__ = ["OperatorExportTypes", "TensorProtoDataType", "TrainingMode"]


class OperatorExportTypes(enum.IntEnum):
    """What to do about operators that ONNX does not have. votive.onnx.export writes ONNX's alone."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(enum.IntEnum):
    """In which mode a module is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(enum.IntEnum):
    """ONNX's numbers of element types."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
