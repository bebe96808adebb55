"""Error types and the one place that words them. Knows nothing of tensors.

Each type derives from the builtin that torch raises in the same situation, so that code written
for torch catches what it expects to catch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


class ShapeError(RuntimeError):
    """Shapes do not fit together (torch raises RuntimeError)."""


class SizeError(ShapeError):
    """A shape has more bytes than 64 bits can address (torch raises RuntimeError)."""


class ReadOnlyError(RuntimeError):
    """A tensor looks at memory that must not be written, such as that of a `bytes` object."""


class DtypeError(RuntimeError):
    """A dtype is not allowed or cannot be promoted (torch raises RuntimeError)."""


class DeviceError(RuntimeError):
    """Tensors live on different devices, or a device is unknown."""


class DimError(IndexError):
    """A dimension or an index is out of range (torch raises IndexError)."""


class AutogradError(RuntimeError):
    """The graph cannot be built or walked."""


class MissingGradientError(AutogradError, NotImplementedError):
    """An operator was asked for a gradient that nobody declared."""


class MissingKernelError(NotImplementedError):
    """No kernel row serves this operator, device and dtype."""


class NeedsExamples(RuntimeError):
    """A function of a batch cannot go on for all examples at once; one that is a public function is run for each.

    `into` is the tensor that was to be written, where one example's would not have been large enough for all.
    """

    def __init__(self, text: str, into: object = None) -> None:
        super().__init__(text)
        self.into = into


class UnsupportedError(NotImplementedError):
    """A known argument value that votive does not implement."""


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive-definite, or an iteration did not converge."""


class CudaError(RuntimeError):
    """The CUDA driver or one of its libraries refused, or is not there.

    >>> issubclass(votive.cuda.CudaError, RuntimeError)
    True
    """


class WebGpuError(RuntimeError):
    """WebGPU refused, its device was lost, or there is none.

    >>> issubclass(votive.webgpu.WebGpuError, RuntimeError)
    True
    """


class OutOfMemoryError(RuntimeError, MemoryError):
    """A device has no memory left (torch raises a RuntimeError of this name).

    It is a MemoryError too: what Python's own containers raise is caught by the same clause.

    >>> try:
    ...     x = votive.ones(2)
    ... except votive.cuda.OutOfMemoryError:
    ...     votive.cuda.empty_cache()
    """


def fail(kind: type[Exception], op: str, text: str) -> NoReturn:
    """Raise `kind` with the message `op: text`."""
    raise kind(f"{op.lstrip('_')}: {text}")


class _Caller:
    """Who was called, for errors that arise far below; the dispatcher looks at the stack."""

    name: Callable[[], str] = staticmethod(lambda: "tensor")


caller = _Caller()


def size_text(nbytes: float) -> str:
    """Bytes as people write them."""
    for unit, digits in (("B", 0), ("KiB", 1), ("MiB", 1), ("GiB", 2), ("TiB", 2), ("PiB", 2)):
        if abs(nbytes) < 1024:
            return f"{nbytes:.{digits}f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.2f} EiB"


def foreign(value: object) -> bool:
    """Whether a value is a tensor of another library, which shares memory through DLPack."""
    kind = type(value)
    return kind.__module__.partition(".")[0] != "votive" and hasattr(kind, "__dlpack__")


def foreign_array(value: object) -> bool:
    """The same for one that has dimensions; without any, it serves as a number."""
    return foreign(value) and bool(getattr(value, "ndim", 0))


def received(value: object) -> str:
    """What came where a tensor was expected, and how to make one of it.

    >>> from votive.core.errors import received
    >>> received([1, 2])
    'list; make it one with votive.tensor(x)'
    """
    kind = type(value)
    name = kind.__name__
    if isinstance(value, (list, tuple)):
        return f"{name}; make it one with votive.tensor(x)"
    if not foreign(value):
        return name
    home = kind.__module__.partition(".")[0]
    if home == "numpy":
        how = "from_numpy(x)" if name == "ndarray" else "tensor(x)"
        return f"numpy.{name}; convert it with votive.{how}"
    part = "x.detach()" if hasattr(kind, "detach") else "x"
    return f"a {home}.{name}; convert it with votive.from_dlpack({part})"


def refuse_readonly(op: str) -> NoReturn:
    """Raise the error for writing into memory that must not be written."""
    fail(
        ReadOnlyError,
        op,
        "the tensor looks at read-only memory of another object (a read-only NumPy array, a bytes "
        "object or a file mapped for reading), which cannot be written; write into a clone().",
    )


def devices_differ(op: str, a: object, b: object) -> NoReturn:
    """Raise the error for tensors that live on two devices."""
    raise DeviceError(
        f"{op}: Expected all tensors to be on the same device, but found at least two devices, "
        f"{a} and {b}! Move one with .to()."
    )


def dim_range(op: str, dim: int, ndim: int, shape: tuple[int, ...] | None = None) -> NoReturn:
    """Raise the error for a dimension that does not exist."""
    n = max(ndim, 1)
    where = f"shape {shape}" if shape is not None else f"{ndim} dimensions"
    raise DimError(f"{op}: dim={dim} is out of range for {where}; use {-n}..{n - 1}.")
