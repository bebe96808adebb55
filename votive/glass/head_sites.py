"""At which sites the features are those of attention's heads, one behind another. Knows no model.

Each head's features stand together in what projections give to attention, and in what the first
product behind it reads: at first those of head 0, then those of head 1.
"""

from __future__ import annotations

from ..nn import Module
from .probe import Frame, Probe

Splits = set[tuple[int, int]]  # heads and features of queries, keys, values and results


class HeadSites(Probe):
    """Sees where attention is, and which modules were called before and behind it."""

    def __init__(self, model: Module) -> None:
        super().__init__(model, ops=True)
        self.attention: dict[str, Splits] = {}  # by the address of the module that attends
        self.before: dict[str, str] = {}  # by address: the module in which it was called
        self.behind: dict[str, Splits] = {}
        self._open: Splits | None = None  # attention of which no product was made yet

    def entered(self, frame: Frame) -> None:
        if frame.parent is None or not frame.is_module:
            return
        at, within = str(frame.address), str(frame.parent.address)
        if within not in self.attention:
            self.before[at] = within
        if self._open is not None:
            self.behind[at] = self._open
            if getattr(getattr(frame.subject, "weight", None), "ndim", 0) == 2:
                self._open = None

    def left(self, frame: Frame) -> None:
        if frame.is_module or frame.parent is None:
            return
        if frame.address.op == "attention":
            shapes = [t.shape for t in (*frame.args[:3], frame.output[0])]
            self._open = {(int(s[1]), int(s[3])) for s in shapes}
        elif frame.address.op == "softmax" and frame.output.dim() == 4:
            self._open = {(int(frame.output.shape[1]), 0)}  # how many features is not to be seen
        else:
            return
        self.attention.setdefault(str(frame.parent.address), self._open)

    def check(self, address: str, side: str, size: int, heads: int) -> None:
        """Raise if the features at a site are not those of so many heads."""
        if side == "in":
            splits = self.behind.get(address)
        else:
            splits = self.attention.get(self.before.get(address, ""))
        if splits is None:
            raise ValueError(
                f"sweep: the features of {address}:{side} are not those of heads; they are in what "
                "projections give to attention and in what the product behind it reads, such as "
                "'layers.*.self_attn.o_proj:in'."
            )
        if not any(h == heads and (not d or h * d == size) for h, d in splits):
            counts = sorted({h for h, _ in splits})
            raise ValueError(
                f"sweep: {address}:{side} has {size} features, which are not those of {heads} "
                f"heads; attention there has {' and '.join(map(str, counts))}."
            )
