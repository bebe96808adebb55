"""A quantized model beside its original: which weight is whose, and what methods that scale inputs did to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..quant.awq import FED, ScaledLinear
from ..quant.places import Place
from ..surface.block_tensor import BlockTensor
from ..tensor import Tensor

# How far numbers that are in no block may be apart, relative to the largest: files store them in other types.
_SAME = 2.0**-6


@dataclass(frozen=True)
class Twin:
    """The weights of the original by names of places, and by what a norm divides the inputs of some layers."""

    weights: dict[str, Tensor]
    inputs: dict[str, Tensor]

    def weight(self, place: Place) -> tuple[float, float]:
        """Summed squares of the error of a weight's numbers, and of the original's numbers."""
        wanted = self.weights[place.name]
        stored = place.weight
        assert isinstance(stored, BlockTensor)
        error = size = 0.0
        # (inputs, outputs) where the layer stores it so; what scales inputs scales those of a plain layer only.
        module = place.owners[0][1]
        scale = module.input_scale if isinstance(module, ScaledLinear) else self.inputs.get(place.name)
        if scale is not None:
            made = stored.dequantize(votive.float32)
            made = made * (scale.float()[:, None] if place.transposed else scale.float())
            return _squares(made - wanted.float()), _squares(wanted.float())
        if stored._flipped:
            return _squares(stored.dequantize(votive.float32) - wanted.float()), _squares(wanted.float())
        for i in range(0, stored.shape[0], 1024):  # rows at a time: tables are large
            ours = wanted[i : i + 1024].float()
            rows: Any = stored[i : i + 1024]
            error += _squares(rows.dequantize(votive.float32) - ours)
            size += _squares(ours)
        return error, size


def _squares(x: Tensor) -> float:
    return float(x.square().sum(dtype=votive.float64))


def twin_of(model: Module, original: Module, wanted: list[Place]) -> Twin:
    """Find each weight in the original; parameters that differ otherwise are an error that names one."""
    theirs = dict(original.named_modules())
    weights: dict[str, Tensor] = {}
    for place in wanted:
        module = theirs.get(place.name)
        weight = getattr(module, "weight", None)
        if not isinstance(weight, Tensor):
            raise ValueError(f"quantization_error: the original has no weight {place.name!r}; is it the same model?")
        if tuple(weight.shape) != tuple(place.weight.shape):
            raise ValueError(
                f"quantization_error: {place.name!r} has the shape {tuple(weight.shape)} in the original and "
                f"{tuple(place.weight.shape)} in the model."
            )
        weights[place.name] = (weight.dequantize() if isinstance(weight, BlockTensor) else weight).detach()
    inputs = _scaled_inputs(model, original)
    scaled = {f"{norm}.{part}" for norm in inputs for part in ("weight", "bias")}
    _check(model, original, {n for p in wanted for n, _ in p.owners}, scaled)
    by_layer = {layer: factor for factor, layers in inputs.values() for layer in layers}
    return Twin(weights, by_layer)


def _scaled_inputs(model: Module, original: Module) -> dict[str, tuple[Tensor, list[str]]]:
    """Norms that were changed so that layers are fed scaled inputs: the factors, and the layers."""
    theirs = dict(original.named_modules())
    found: dict[str, tuple[Tensor, list[str]]] = {}
    for path, module in model.named_modules():
        for norm_name, layers in FED:
            norm = module._modules.get(norm_name)
            weight = getattr(norm, "weight", None)
            name = f"{path}.{norm_name}" if path else norm_name
            before = getattr(theirs.get(name), "weight", None)
            if not isinstance(weight, Tensor) or not isinstance(before, Tensor) or _alike(weight, before):
                continue
            if bool((before == 0).any()) or weight.shape != before.shape:
                continue
            factor = (weight.float() / before.float()).detach()
            found[name] = factor, [f"{path}.{layer}" if path else layer for layer in layers]
    return found


def _alike(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape:
        return False
    if not a.numel() or not a.dtype.is_floating_point:
        return bool((a == b).all())
    a, b = a.detach().float(), b.detach().float().to(a.device)
    return float((a - b).abs().max()) <= _SAME * max(float(b.abs().max()), 1e-30)


def _check(model: Module, original: Module, in_blocks: set[str], scaled: set[str]) -> None:
    theirs = dict(original.named_parameters(remove_duplicate=False))
    for name, value in model.named_parameters(remove_duplicate=False):
        owner = name.rpartition(".")[0]
        if isinstance(value, BlockTensor) or name in scaled or name.removesuffix(".weight") in in_blocks:
            continue
        other = theirs.get(name)
        if isinstance(other, BlockTensor):
            other = other.dequantize()
        if other is None or not _alike(value, other):
            raise ValueError(
                f"quantization_error: {name!r} of {owner or 'the model'} is in no block and differs from the "
                "original's; is it the same model?"
            )
