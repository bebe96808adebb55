"""`votive.quantize_(model, "int8_dynamic")` and `"int8_static"`: layers whose weights and inputs are 8 bits, and whose
results are numbers, so that they stand anywhere in a model. Knows modules and observers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ..ao.nn.quantized.observed import quantized_weight
from ..ao.nn.quantized.packed import PackedWeight
from ..ao.quantization.histogram import HistogramObserver
from ..ao.quantization.other_observers import default_per_channel_weight_observer
from ..core import dtype as dt
from ..core.errors import ShapeError
from ..nn import Conv1d, Conv2d, Conv3d, Linear, Module
from ..ops.registry import F
from ..tensor import Tensor
from .calibration import call, evaluating
from .places import skipped
from .report import Entry, Report

KINDS = ("int8_dynamic", "int8_static")
CONVOLUTIONS = (Conv1d, Conv2d, Conv3d)
Progress = Callable[[str, int, int], None]
Steps = tuple[float, int]


class _Int8(Module):
    """A layer with a weight of 8 bits; `steps` are the scale and zero point of its input, None where they are found at
    each call.
    """

    def __init__(self, packed: PackedWeight, steps: Steps | None) -> None:
        super().__init__()
        self.packed, self.steps = packed, steps

    def _codes(self, input: Tensor) -> tuple[Tensor, Steps]:
        assert self.steps is not None
        scale, zero = self.steps
        return F._quantize_affine(input.detach().to(dt.float32), scale, zero, dt.uint8), self.steps

    def extra_repr(self) -> str:
        rows, columns = self.packed.weight.shape[:2]
        how = "dynamic" if self.steps is None else f"scale={self.steps[0]:.6g}, zero_point={self.steps[1]}"
        return f"{columns}, {rows}, bias={self.packed.bias is not None}, {how}"

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = self.packed.weight
        if self.packed.bias is not None:
            destination[prefix + "bias"] = self.packed.bias
        if self.steps is not None:
            destination[prefix + "input_scale"] = F.tensor(self.steps[0], dtype=dt.float64)
            destination[prefix + "input_zero_point"] = F.tensor(self.steps[1])

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        taken = dict(state_dict)
        wanted = ["weight", *([] if self.packed.bias is None else ["bias"])]
        wanted += [] if self.steps is None else ["input_scale", "input_zero_point"]
        found = {name: taken.pop(prefix + name, None) for name in wanted}
        rest[2].extend(prefix + name for name, value in found.items() if value is None)
        if found["weight"] is not None:
            self.packed = PackedWeight(found["weight"], found.get("bias", self.packed.bias), self.packed.groups)
        if self.steps is not None and found["input_scale"] is not None and found["input_zero_point"] is not None:
            self.steps = (float(found["input_scale"]), int(found["input_zero_point"]))
        super()._load_from_state_dict(taken, prefix, *rest)


class Int8Linear(_Int8):
    """A linear layer from numbers to numbers whose products are of 8 bits.

    >>> net = votive.nn.Sequential(votive.nn.Linear(64, 8))
    >>> _ = votive.quantize_(net, "int8_dynamic")
    >>> net
    Sequential(
      (0): Int8Linear(64, 8, bias=True, dynamic)
    )
    """

    def forward(self, input: Tensor) -> Tensor:
        if self.steps is None:
            return self.packed.linear_dynamic(input, reduce_range=False)
        self.packed.check(input)
        codes, steps = self._codes(input)
        out: Tensor = F._int8_linear(codes, *self.packed.parts, *steps, 1.0, 0, False, dt.float32)
        return out.to(input.dtype)


class Int8Conv(_Int8):
    """A convolution from numbers to numbers whose products are of 8 bits."""

    def __init__(self, packed: PackedWeight, steps: Steps, conv: Any) -> None:
        super().__init__(packed, steps)
        self.stride, self.padding, self.dilation = tuple(conv.stride), tuple(conv.padding), tuple(conv.dilation)

    def forward(self, input: Tensor) -> Tensor:
        n = self.packed.weight.ndim - 2
        if input.ndim not in (n + 1, n + 2):
            raise ShapeError(f"conv{n}d: the input has {n + 1} or {n + 2} dimensions, got shape {tuple(input.shape)}.")
        self.packed.check(input, -n - 1)
        codes, steps = self._codes(input)
        alone = codes.ndim == n + 1
        batch = codes.unsqueeze(0) if alone else codes
        ones, none = (1,) * (3 - n), (0,) * (3 - n)
        x = batch.reshape((*batch.shape[:2], *ones, *batch.shape[2:]))
        kernel = (*ones, *self.packed.weight.shape[2:])
        sizes = (kernel, (*ones, *self.stride), (*none, *self.padding), (*ones, *self.dilation))
        out = F._int8_conv(x, *self.packed.parts, *steps, 1.0, 0, *sizes, self.packed.groups, False, dt.float32)
        y: Tensor = out.reshape((*out.shape[:2], *out.shape[5 - n :])).to(input.dtype)
        return y.squeeze(0) if alone else y


def _layers(model: Module, skip: Iterable[str], convolutions: bool) -> Iterator[tuple[str, Any]]:
    """The layers that become int8: those whose weight has no other use."""
    patterns = skipped(model, skip)
    uses: dict[int, int] = {}
    for module in model.modules():
        for value in module._parameters.values():
            if value is not None:
                uses[id(value)] = uses.get(id(value), 0) + 1
    for name, module in model.named_modules():
        kinds = (Linear, *CONVOLUTIONS) if convolutions else (Linear,)
        if type(module) not in kinds or any(fnmatchcase(name, p) for p in patterns):
            continue
        plain = isinstance(module, Linear) or (module.padding_mode == "zeros" and not isinstance(module.padding, str))
        weight = module._parameters.get("weight")
        if plain and weight is not None and weight.dtype in (dt.float32, *dt.HALF) and uses[id(weight)] == 1:
            yield name, module


def _calibrated(model: Module, layers: list[tuple[str, Any]], data: Iterable[Any]) -> dict[str, Steps]:
    """The scale and zero of what each layer is fed."""
    seen = {name: HistogramObserver() for name, _ in layers}
    handles = []
    for name, module in layers:

        def look(module: Module, args: tuple[Any, ...], observer: HistogramObserver = seen[name]) -> None:
            observer(args[0].detach().to(dt.float32))

        handles.append(module.register_forward_pre_hook(look))
    try:
        with evaluating(model):
            for item in data:
                call(model, item)
    finally:
        for handle in handles:
            handle.remove()
    found = {}
    for name, observer in seen.items():
        if float(observer.min_val) == float("inf"):
            raise ValueError(f"quantize_: the data never reached {name!r}; give other inputs, or skip=[{name!r}].")
        scale, zero = observer.calculate_qparams()
        found[name] = (float(scale), int(zero))
    return found


def int8_(
    model: Module, kind: str, *, data: Iterable[Any] | None, skip: Iterable[str], progress: Progress | None
) -> Report:
    """Replace the linear layers of a model, and with calibrated scales its convolutions, by layers of 8 bits."""
    static = kind == "int8_static"
    if static and data is None:
        raise ValueError("quantize_: int8_static takes scales from what layers are fed; give data=, some inputs.")
    if not static and data is not None:
        raise ValueError("quantize_: int8_dynamic finds scales at each call; leave out data=, or use int8_static.")
    layers = list(_layers(model, skip, static))
    if not layers:
        raise ValueError("quantize_: the model has no layer that this would change.")
    if any(not name for name, _ in layers):
        raise ValueError("quantize_: int8 replaces the layers of a model; put this layer in a Sequential.")
    for name, module in layers:
        if module.weight.device.type == "meta":
            raise ValueError(f"quantize_: {name!r} is on meta and has no numbers; load the model first.")
        if not bool(module.weight.isfinite().all()):
            raise ValueError(f"quantize_: the weight of {name!r} holds infinities or NaN.")
    steps = _calibrated(model, layers, data) if data is not None else {}
    report = Report()
    for k, (name, module) in enumerate(layers):
        made, entry = _replaced(name, module, steps.get(name))
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, made)
        report.entries.append(entry)
        if progress is not None:
            progress(name, k + 1, len(layers))
    return report


def _replaced(name: str, module: Any, steps: Steps | None) -> tuple[_Int8, Entry]:
    observer = default_per_channel_weight_observer()
    weight = module.weight.detach().to(dt.float32)
    observer(weight)
    codes = quantized_weight(weight, observer)
    bias = None if module.bias is None else module.bias.detach().to(dt.float32)
    packed = PackedWeight(codes, bias, getattr(module, "groups", 1))
    if isinstance(module, Linear):
        made: _Int8 = Int8Linear(packed, steps)
    else:
        assert steps is not None
        made = Int8Conv(packed, steps, module)
    made.training = module.training
    for hook in module._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in module._forward_hooks.values():
        made.register_forward_hook(hook)
    exact = np.asarray(weight.cpu().numpy(), np.float64)
    error = float(np.square(codes.dequantize().cpu().numpy() - exact).mean())
    size = float(np.square(exact).mean())
    shape = (weight.shape[0], weight.numel() // max(weight.shape[0], 1))
    nbytes = codes.nbytes + 4 * shape[0]
    bits = 8 * nbytes / max(weight.numel(), 1)
    relative = (error / size) ** 0.5 if size else 0.0
    return made, Entry(name, shape, "int8", bits, nbytes, error, relative, "rtn")
