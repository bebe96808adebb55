"""What tensors and types say of themselves while the alias is installed: `torch.float32`, `torch.Size([2])`."""

from __future__ import annotations

from ..core import spelled
from . import class_members, tensor_methods


def enter() -> None:
    """Speak as torch does."""
    spelled.package = "torch"
    tensor_methods.enter()
    class_members.enter()


def leave() -> None:
    """Speak as votive again."""
    spelled.package = "votive"
    tensor_methods.leave()
    class_members.leave()
