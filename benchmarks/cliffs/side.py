"""One framework's part of a case: tensors and modules made from numbers that are the same for both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ..cpu.case import randn
from .spec import Layout, Spec

Array = np.ndarray[Any, Any]
Work = Callable[[], Any]


class Side:
    """Makes what a case needs in the framework `m`; remembers which tensors gradients are wanted for.

    `exact` gives the same numbers in float64: both libraries are compared with that where they disagree.
    """

    def __init__(self, m: Any, device: str, spec: Spec, exact: bool = False):
        self.m, self.device, self.spec = m, device, spec
        self.F = m.nn.functional
        self.exact = exact and spec.dtype in ("float32", "bfloat16", "float16")
        self.dtype = m.float64 if self.exact else getattr(m, spec.dtype)
        self.leaves: list[Any] = []
        self._made = 0

    def _array(self, shape: tuple[int, ...], fill: str, scale: float) -> Array:
        self._made += 1
        kind, _, high = fill.partition(":")
        if kind == "index":
            return np.random.default_rng(self._made).integers(0, max(1, int(high)), shape, dtype=np.int64)
        values = randn(*shape, seed=self._made)
        if kind == "bool":
            return values > 0
        if kind == "positive":
            values = np.abs(values) % 1 + np.float32(0.1)
        elif kind == "unit":
            values = np.abs(values) % np.float32(0.98) + np.float32(0.01)
        elif kind == "signed":
            values = np.abs(values) % 2 - np.float32(1)
        return values * np.float32(scale) if scale != 1.0 else values

    def _tensor(self, array: Array) -> Any:
        if array.dtype.kind == "f":
            name = self.spec.dtype
            array = array.astype(ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name))
            if self.exact:
                array = array.astype(np.float64)
        array = np.array(array, order="C")
        if array.dtype == ml_dtypes.bfloat16 and self.m.__name__ == "torch":
            made = self.m.from_numpy(array.view(np.uint16)).view(self.m.bfloat16)
        else:
            made = self.m.from_numpy(array)
        return made.to(self.device)

    def plain(self, text: str, fill: str = "normal", scale: float = 1.0) -> Any:
        """A tensor of a shape and layout (`12x345:t`) that no gradient is wanted for."""
        layout = Layout.parse(text)
        shape, memory = layout.shape, layout.memory
        if memory == "s":
            return self._tensor(self._array((*shape[:-1], 2 * shape[-1]), fill, scale))[..., ::2]
        if memory == "w":
            return self._tensor(self._array((*shape[:-1], shape[-1] + 3), fill, scale))[..., 1:-2]
        if memory == "e":
            return self._tensor(self._array((1, *shape[1:]), fill, scale)).expand(*shape)
        order = layout.order
        made = self._tensor(self._array(tuple(shape[d] for d in order), fill, scale))
        return made if order == tuple(range(len(shape))) else made.permute(*np.argsort(order).tolist())

    def __call__(self, text: str, fill: str = "normal", scale: float = 1.0) -> Any:
        """A tensor that gradients are computed for, where the case wants gradients."""
        made = self.plain(text, fill, scale)
        if self.spec.grad:
            made = made.detach().requires_grad_()
            self.leaves.append(made)
        return made

    def module(self, made: Any) -> Any:
        """A module with parameters of known numbers, on the device and in the dtype of the case."""
        made = made.to(self.device).to(self.dtype)
        for _, parameter in sorted(made.named_parameters(), key=lambda pair: pair[0]):
            shape = tuple(parameter.shape)
            values = self._array(shape, "normal", 1 / math.sqrt(max(1, math.prod(shape[1:]))))
            with self.m.no_grad():
                parameter.copy_(self._tensor(values))
            if self.spec.grad:
                self.leaves.append(parameter)
        return made


def leaves_of(result: Any) -> list[Any]:
    """The tensors in a result."""
    if isinstance(result, (tuple, list)):
        return [t for part in result for t in leaves_of(part)]
    return [result] if hasattr(result, "detach") else []


def work_of(side: Side, forward: Work) -> Work:
    """What is timed: the forward alone, or also the gradients of every leaf for given gradients of the results."""
    m = side.m
    if not side.spec.grad:

        def run() -> Any:
            with m.no_grad():
                return forward()

        return run
    outs = [t for t in leaves_of(forward()) if t.requires_grad]
    weights = [side.plain(str(Layout(tuple(t.shape)))).to(t.dtype) for t in outs]

    def step() -> Any:
        outs = [t for t in leaves_of(forward()) if t.requires_grad]
        return outs, m.autograd.grad(outs, side.leaves, weights, allow_unused=True)

    return step
