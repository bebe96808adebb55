"""Which ways of computing attention a program allows. Switches only: no tensors, no kernels."""

from __future__ import annotations

# The names of the ways, by their numbers in torch's enumeration.
NAMES = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn", 4: "overrideable"}
FUSED = frozenset({1, 2, 3, 4})  # one kernel for the whole; all of them are the same kernel here


class Allowed:
    """The switches of `sdpa_kernel` and `backends.cuda.enable_*_sdp`, for the whole process as in torch.

    `restricted` is what attention looks at: True as soon as the fused kernel is not free to run.
    """

    __slots__ = ("on", "priority", "restricted")

    def __init__(self) -> None:
        self.on = frozenset(NAMES)
        self.priority = tuple(NAMES)
        self.restricted = False

    def choose(self, on: frozenset[int]) -> None:
        self.on = on
        self.restricted = not on & FUSED


allowed = Allowed()
