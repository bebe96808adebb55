"""`torch._dynamo.exc`: the errors that programs catch around compiled code; nothing here raises them."""

from __future__ import annotations

__all__ = ["BackendCompilerFailed", "InternalTorchDynamoError", "TorchDynamoException", "Unsupported", "UserError"]


class TorchDynamoException(RuntimeError):
    """What all errors of the compiler are."""


class InternalTorchDynamoError(TorchDynamoException):
    """The compiler itself failed."""


class Unsupported(TorchDynamoException):
    """Something cannot be compiled."""


class BackendCompilerFailed(TorchDynamoException):
    """What compiles graphs failed."""


class UserError(Unsupported):
    """The program does what a compiler cannot follow."""
