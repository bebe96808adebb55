"""Error types and the one place that words them. Knows nothing of tensors.

Each type derives from the builtin that torch raises in the same situation, so that code written
for torch catches what it expects to catch.
"""

from __future__ import annotations

from typing import NoReturn


class ShapeError(RuntimeError):
    """Shapes do not fit together (torch raises RuntimeError)."""


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


class UnsupportedError(NotImplementedError):
    """A known argument value that votive does not implement."""


class LinAlgError(RuntimeError):
    """A matrix is singular, not positive-definite, or an iteration did not converge."""


class CudaError(RuntimeError):
    """The CUDA driver or one of its libraries refused, or is not there.

    >>> issubclass(votive.cuda.CudaError, RuntimeError)
    True
    """


class OutOfMemoryError(RuntimeError):
    """A device has no memory left (torch raises a RuntimeError of this name).

    >>> try:
    ...     x = votive.ones(2)
    ... except votive.cuda.OutOfMemoryError:
    ...     votive.cuda.empty_cache()
    """


def fail(kind: type[Exception], op: str, text: str) -> NoReturn:
    """Raise `kind` with the message `op: text`."""
    raise kind(f"{op.lstrip('_')}: {text}")


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
