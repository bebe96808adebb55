"""`votive.autograd.grad_mode`: the switches of recording, at the path torch has them."""

from .modes import enable_grad as enable_grad
from .modes import inference_mode as inference_mode
from .modes import no_grad as no_grad
from .modes import set_grad_enabled as set_grad_enabled


class set_multithreading_enabled:
    """Whether the backward pass may use several threads of Python. It uses one, so nothing changes; kernels have
    their own.

    >>> with votive.autograd.grad_mode.set_multithreading_enabled(False):
    ...     pass
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None

    def clone(self) -> "set_multithreading_enabled":
        return self.__class__(self.mode)
