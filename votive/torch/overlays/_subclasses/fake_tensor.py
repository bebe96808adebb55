"""`torch._subclasses.fake_tensor`: there to be tested against; what makes such tensors says what to use instead."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ....tensor import Tensor

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake", "unset_fake_temporarily"]

_REASON = 'votive has no fake tensors; tensors without values live on device="meta".'


class FakeTensor(Tensor):
    """A tensor without values that pretends to be on a device."""

    def __new__(cls, *args: Any, **options: Any) -> FakeTensor:
        raise NotImplementedError(f"FakeTensor: {_REASON}")


class FakeTensorMode:
    """The mode in which tensors are fake."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError(f"FakeTensorMode: {_REASON}")


def unset_fake_temporarily() -> AbstractContextManager[None]:
    """Compute with real tensors for a while, as always here."""
    return nullcontext()


def is_fake(x: object) -> bool:
    """Whether a tensor is fake: none can be made here."""
    return isinstance(x, FakeTensor)
