"""Which module becomes which: with static scales, dynamic ones, and for training with rounding."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...nn.layers.linear import NonDynamicallyQuantizableLinear
from ..nn import intrinsic as nni
from ..nn import qat
from ..nn import quantized as nnq
from ..nn.intrinsic import qat as nniqat
from ..nn.intrinsic import quantized as nniq
from ..nn.quantized import dynamic as nnqd
from .fake_quantize import default_fixed_qparams_range_0to1_fake_quant, default_fixed_qparams_range_neg1to1_fake_quant
from .stubs import DeQuantStub, QuantStub

Mapping = dict[Any, Any]
_Linears = (nn.Linear, NonDynamicallyQuantizableLinear)

STATIC: Mapping = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    nn.Dropout: nnq.Dropout,
    nnq.FloatFunctional: nnq.QFunctional,
    **dict.fromkeys(_Linears, nnq.Linear),
    nniqat.LinearBn1d: nnq.Linear,
    qat.Linear: nnq.Linear,
    nni.LinearReLU: nniq.LinearReLU,
    nniqat.LinearReLU: nniq.LinearReLU,
}
for _name in (
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "ELU",
    "Embedding",
    "EmbeddingBag",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "PReLU",
    "ReLU6",
):
    STATIC[getattr(nn, _name)] = getattr(nnq, _name)
for _name in ("BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d"):
    STATIC[getattr(nni, _name)] = getattr(nniq, _name)
for _n in ("1d", "2d", "3d"):
    STATIC[getattr(qat, f"Conv{_n}")] = getattr(nnq, f"Conv{_n}")
    STATIC[getattr(nniqat, f"ConvBn{_n}")] = getattr(nnq, f"Conv{_n}")
    for _name in (f"ConvReLU{_n}", f"ConvBnReLU{_n}"):
        STATIC[getattr(nniqat, _name)] = getattr(nniq, f"ConvReLU{_n}")

DYNAMIC: Mapping = {
    **dict.fromkeys(_Linears, nnqd.Linear),
    nn.LSTM: nnqd.LSTM,
    nn.GRU: nnqd.GRU,
    nn.LSTMCell: nnqd.LSTMCell,
    nn.GRUCell: nnqd.GRUCell,
    nn.RNNCell: nnqd.RNNCell,
    nni.LinearReLU: nniq.DynamicLinearReLU,
    nn.Embedding: nnq.Embedding,
    nn.EmbeddingBag: nnq.EmbeddingBag,
}

QAT: Mapping = {
    **dict.fromkeys(_Linears, qat.Linear),
    nni.LinearReLU: nniqat.LinearReLU,
    nni.LinearBn1d: nniqat.LinearBn1d,
}
for _n in ("1d", "2d", "3d"):
    QAT[getattr(nn, f"Conv{_n}")] = getattr(qat, f"Conv{_n}")
    for _name in (f"ConvReLU{_n}", f"ConvBn{_n}", f"ConvBnReLU{_n}"):
        QAT[getattr(nni, _name)] = getattr(nniqat, _name)

# Their results have a range of their own, whatever is observed.
FIXED: Mapping = {
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
}


def get_default_static_quant_module_mappings() -> Mapping:
    """What modules become with scales that were calibrated."""
    return dict(STATIC)


def get_default_dynamic_quant_module_mappings() -> Mapping:
    """What modules become whose inputs are rounded at each call."""
    return dict(DYNAMIC)


def get_default_qat_module_mappings() -> Mapping:
    """What modules become that train with rounding."""
    return dict(QAT)


def get_embedding_static_quant_module_mappings() -> Mapping:
    """What modules become, with tables that trained with rounding."""
    return {**STATIC, qat.EmbeddingBag: nnq.EmbeddingBag, qat.Embedding: nnq.Embedding}


def get_embedding_qat_module_mappings() -> Mapping:
    """What modules become that train with rounding, tables among them."""
    return {**QAT, nn.EmbeddingBag: qat.EmbeddingBag, nn.Embedding: qat.Embedding}


def get_default_qconfig_propagation_list() -> set[Any]:
    """The kinds of modules that get observers."""
    return {*STATIC, *QAT, *DYNAMIC, nn.Sequential}


def get_default_compare_output_module_list() -> set[Any]:
    """The kinds of modules whose results are compared before and after."""
    return {*STATIC.values(), *QAT.values(), *DYNAMIC.values(), *STATIC, *QAT, *DYNAMIC}


def get_static_quant_module_class(
    float_module_class: Any, additional_static_quant_mapping: Mapping | None = None, is_reference: bool = False
) -> Any:
    """What a kind of module becomes with calibrated scales."""
    if is_reference:
        raise NotImplementedError("get_static_quant_module_class: votive has no reference modules (is_reference=True).")
    return _found({**STATIC, **(additional_static_quant_mapping or {})}, float_module_class, "static")


def get_dynamic_quant_module_class(
    float_module_class: Any, additional_dynamic_quant_mapping: Mapping | None = None
) -> Any:
    """What a kind of module becomes whose inputs are rounded at each call."""
    return _found({**DYNAMIC, **(additional_dynamic_quant_mapping or {})}, float_module_class, "dynamic")


def _found(mapping: Mapping, kind: Any, what: str) -> Any:
    if kind not in mapping:
        raise AssertionError(f"Floating point module class {kind} does not have a corresponding {what} quantized class")
    return mapping[kind]


def no_observer_set() -> set[Any]:
    """The kinds of modules that get no observers: here none."""
    return set()
