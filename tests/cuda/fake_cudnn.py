"""cuDNN's convolutions on host memory, computed by NumPy from addresses alone: what an emulated GPU
is given in place of the library.
"""

from __future__ import annotations

import ctypes as c
import itertools
from typing import Any

import numpy as np

from .fake_cufft import array

_NUMBER = {0: np.float32, 1: np.float64, 2: np.float16}
WORK = 256


class FakeCudnn:
    """The library; `math` is the kind of arithmetic that was set last."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}
        self.math = -1
        for kind in ("Tensor", "Filter", "Convolution"):
            setattr(self, f"cudnnCreate{kind}Descriptor", self._create)
        for name in ("Forward", "BackwardData", "BackwardFilter"):
            setattr(self, f"cudnnGetConvolution{name}Algorithm_v7", self._choose)

    def cudnnGetErrorString(self, code: int) -> bytes:
        return b"CUDNN_STATUS_NOT_SUPPORTED"

    def cudnnCreate(self, handle: Any) -> int:
        handle._obj.value = 7
        return 0

    def cudnnSetStream(self, handle: int, stream: int) -> int:
        assert handle == 7
        return 0

    def _create(self, made: Any) -> int:
        made._obj.value = len(self.made) + 1
        self.made[len(self.made) + 1] = {}
        return 0

    def cudnnSetTensorNdDescriptor(self, made: int, kind: int, n: int, shape: Any, strides: Any) -> int:
        self.made[made] = (_NUMBER[kind], tuple(shape[:n]), tuple(strides[:n]))
        return 0

    def cudnnSetFilterNdDescriptor(self, made: int, kind: int, order: int, n: int, shape: Any) -> int:
        sizes = tuple(shape[:n])
        if order == 0:
            strides = tuple(int(np.prod(sizes[d + 1 :])) for d in range(n))
        else:
            places = int(np.prod(sizes[2:]))
            inner = tuple(sizes[1] * int(np.prod(sizes[d + 1 :])) for d in range(2, n))
            strides = (sizes[1] * places, 1, *inner)
        self.made[made] = (_NUMBER[kind], sizes, strides)
        return 0

    def cudnnSetConvolutionNdDescriptor(
        self, made: int, n: int, padding: Any, stride: Any, dilation: Any, mode: int, compute: int
    ) -> int:
        assert mode == 1
        assert n >= 2
        self.made[made] = {"padding": padding[:n], "stride": stride[:n], "dilation": dilation[:n]}
        return 0

    def cudnnSetConvolutionGroupCount(self, made: int, groups: int) -> int:
        self.made[made]["groups"] = groups
        return 0

    def cudnnSetConvolutionMathType(self, made: int, math: int) -> int:
        self.math = math
        return 0

    def _choose(self, handle: int, a: int, b: int, convolution: int, o: int, most: int, count: Any, found: Any) -> int:
        # The first is a transform, which must not be taken.
        for k, algo in enumerate((7, 1)):
            found[k].algo, found[k].status, found[k].memory, found[k].math = algo, 0, WORK, 0
        count._obj.value = 2
        return 0

    def _terms(self, x: int, w: int, y: int, how: int) -> Any:
        """(places of x, tap, places of y) of every product."""
        geometry = self.made[how]
        sizes, kernel, count = (self.made[k][1][2:] for k in (x, w, y))
        for tap in np.ndindex(*kernel):
            for place in itertools.product(*(range(n) for n in count)):
                window = zip(place, tap, geometry["stride"], geometry["padding"], geometry["dilation"], strict=True)
                at = tuple(q * s - p + t * d for q, t, s, p, d in window)
                if all(0 <= i < n for i, n in zip(at, sizes, strict=True)):
                    yield (slice(None), slice(None), *at), (slice(None), slice(None), *tap), (..., *place)

    def _run(self, how: int, x: Any, w: Any, y: Any, to: str, work: int, size: int) -> int:
        assert size == WORK
        c.memset(work, 0xFF, size)
        arrays = {k: array(at, *self.made[made]) for k, (made, at) in {"x": x, "w": w, "y": y}.items()}
        groups = self.made[how]["groups"]
        target = np.zeros(arrays[to].shape)
        wide = {k: (target if k == to else a.astype(np.float64)) for k, a in arrays.items()}
        per, rows = arrays["w"].shape[1], arrays["w"].shape[0] // groups
        for g in range(groups):
            inner, outer = slice(g * per, (g + 1) * per), slice(g * rows, (g + 1) * rows)
            a, b, o = wide["x"][:, inner], wide["w"][outer], wide["y"][:, outer]
            for i, t, q in self._terms(x[0], w[0], y[0], how):
                if to == "y":
                    o[q] += a[i] @ b[t].T
                elif to == "x":
                    a[i] += o[q] @ b[t]
                else:
                    b[t] += o[q].T @ a[i]
        arrays[to][...] = target
        return 0

    def cudnnConvolutionForward(
        self,
        handle: int,
        one: int,
        xd: int,
        x: int,
        wd: int,
        w: int,
        how: int,
        algo: int,
        work: int,
        size: int,
        zero: int,
        yd: int,
        y: int,
    ) -> int:
        assert algo == 1
        return self._run(how, (xd, x), (wd, w), (yd, y), "y", work, size)

    def cudnnConvolutionBackwardData(
        self,
        handle: int,
        one: int,
        wd: int,
        w: int,
        yd: int,
        y: int,
        how: int,
        algo: int,
        work: int,
        size: int,
        zero: int,
        xd: int,
        x: int,
    ) -> int:
        assert algo == 1
        return self._run(how, (xd, x), (wd, w), (yd, y), "x", work, size)

    def cudnnConvolutionBackwardFilter(
        self,
        handle: int,
        one: int,
        xd: int,
        x: int,
        yd: int,
        y: int,
        how: int,
        algo: int,
        work: int,
        size: int,
        zero: int,
        wd: int,
        w: int,
    ) -> int:
        assert algo == 1
        return self._run(how, (xd, x), (wd, w), (yd, y), "w", work, size)
