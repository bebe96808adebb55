"""The passes over a model: configurations to modules, observers in, calibrated or trained modules to 8 bits."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ... import nn
from ...core import affine
from ...nn.utils.parametrize import type_before_parametrizations as kind_of
from ..nn.intrinsic.fused import _FusedModule
from ..nn.quantized.stubs import FloatFunctional, QFunctional
from . import mappings
from .fake_quantize import FakeQuantizeBase
from .observer import ObserverBase
from .qconfig import default_dynamic_qconfig, float_qparams_weight_only_qconfig, is_memoryless, on_device_of
from .stubs import DeQuantStub, QuantWrapper

if TYPE_CHECKING:
    from ...nn.module import Module

Mapping = dict[Any, Any]


def propagate_qconfig_(module: Module, qconfig_dict: Any = None, prepare_custom_config_dict: Any = None) -> None:
    """Hand configurations down: a module's own `qconfig` counts, else that of its name or kind in the dictionary, else
    its parent's.
    """
    skipped = prepare_custom_config_dict or {}
    _propagate(module, dict(qconfig_dict or {}), None, "", skipped)


def _propagate(module: Module, given: dict[Any, Any], above: Any, name: str, skipped: Any) -> None:
    found = given.get(name, given.get(kind_of(module), above))
    module.qconfig = _valid(on_device_of(getattr(module, "qconfig", found), module), module)
    for part, child in module.named_children():
        if part in skipped.get("non_traceable_module_name", ()):
            continue
        if type(child) not in skipped.get("non_traceable_module_class", ()):
            _propagate(child, given, module.qconfig, f"{name}.{part}" if name else part, skipped)


def _valid(qconfig: Any, module: Module) -> Any:
    turned = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    if qconfig is not None and qconfig.weight is not None and isinstance(module, turned):
        if getattr(qconfig.weight(), "qscheme", None) in (affine.per_channel_affine, affine.per_channel_symmetric):
            raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")
    return qconfig


def _observe_output(self: Any, input: tuple[Any, ...], output: Any) -> Any:
    return self.activation_post_process(output)


def _observe_input(self: Any, input: tuple[Any, ...]) -> Any:
    return self.activation_post_process(input[0])


def _attach(module: Module, made: Callable[[], Any] | None = None) -> None:
    """Put an observer behind a module, or in front of one that is rounded at each call."""
    if getattr(module, "qconfig", None) is None or isinstance(module, DeQuantStub):
        return
    observer = (made or module.qconfig.activation)()
    for parameter in module.parameters():
        observer.to(parameter.device)
        break
    module.add_module("activation_post_process", observer)
    if is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observe_input, prepend=True)
    else:
        module.register_forward_hook(_observe_output, prepend=True)


def _observe(module: Module, kinds: set[Any], whole: set[Any], custom: Mapping) -> None:
    for name, child in list(module.named_children()):
        kind = kind_of(child)
        if kind is nn.Dropout:
            continue
        if isinstance(child, (FloatFunctional, QFunctional)):
            if getattr(child, "qconfig", None) is not None:
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, _FusedModule) or kind in whole:
            _attach(child)
        elif kind in mappings.FIXED and isinstance(_activation_of(child), FakeQuantizeBase):
            _attach(child, mappings.FIXED[kind])
        elif kind in custom and getattr(child, "qconfig", None) is not None:
            setattr(module, name, custom[kind].from_float(child))
            _attach(getattr(module, name))
        else:
            _observe(child, kinds, whole, custom)
    leaf = not any(True for _ in module.children())
    if (leaf or hasattr(module, "weight_fake_quant")) and kind_of(module) in kinds:
        if not isinstance(module, nn.Sequential) and not hasattr(module, "activation_post_process"):
            _attach(module)


def _activation_of(module: Module) -> Any:
    qconfig = getattr(module, "qconfig", None)
    return None if qconfig is None else qconfig.activation()


def add_quant_dequant(module: Module) -> Any:
    """Put every module without parts that has a configuration between a `QuantStub` and a `DeQuantStub`."""
    if not any(True for _ in module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in list(module.named_children()):
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(
    model: Module,
    inplace: bool = False,
    allow_list: Iterable[Any] | None = None,
    observer_non_leaf_module_list: Iterable[Any] | None = None,
    prepare_custom_config_dict: Any = None,
) -> Any:
    """Put observers behind the modules that have a `qconfig`, or whose parents have; then run some inputs.

    >>> from votive.ao import quantization as Q
    >>> net = Q.QuantWrapper(votive.nn.Linear(4, 2)).eval()
    >>> net.qconfig = Q.get_default_qconfig("x86")
    >>> ready = Q.prepare(net)
    >>> _ = ready(votive.randn(8, 4))
    >>> Q.convert(ready)(votive.ones(1, 4)).shape
    votive.Size([1, 2])
    """
    target = model if inplace else copy.deepcopy(model)
    given = prepare_custom_config_dict or {}
    propagate_qconfig_(target)
    if not any(getattr(m, "qconfig", None) for m in target.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through "
            "`qconfig_dict` or by assigning the `.qconfig` attribute directly on submodules",
            stacklevel=2,
        )
    kinds = mappings.get_default_qconfig_propagation_list() if allow_list is None else set(allow_list)
    custom = given.get("float_to_observed_custom_module_class", {})
    _observe(target, kinds, set(observer_non_leaf_module_list or ()), custom)
    return target


def _clean(module: Module) -> None:
    """Take out configurations, observers and their hooks."""
    for child in module.children():
        _clean(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if isinstance(getattr(module, "activation_post_process", None), (ObserverBase, FakeQuantizeBase)):
        del module.activation_post_process
    for table in (module._forward_pre_hooks, module._forward_hooks):
        for key in [k for k, hook in table.items() if hook in (_observe_input, _observe_output)]:
            del table[key]


def swap_module(
    mod: Any, mapping: Mapping, custom_module_class_mapping: Mapping, use_precomputed_fake_quant: bool = False
) -> Any:
    """What a module becomes, if it has a configuration and the mapping knows its kind; hooks of the user move along."""
    if getattr(mod, "qconfig", None) is None:
        return mod
    kind = kind_of(mod)
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        made = _made(mapping[kind], mod, use_precomputed_fake_quant)
    else:
        return mod
    if made is mod:
        return mod
    for hook in mod._forward_pre_hooks.values():
        if hook is not _observe_input:
            made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observe_output:
            made.register_forward_hook(hook)
    for parameter in mod.parameters():
        made.to(parameter.device)
        break
    made.training = mod.training
    return made


def _made(kind: Any, mod: Module, precomputed: bool) -> Any:
    return kind.from_float(mod, use_precomputed_fake_quant=precomputed)


def convert(
    module: Module,
    mapping: Mapping | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: Any = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """Replace observed modules by modules of 8 bits; without `mapping` those with calibrated scales."""
    if is_reference:
        raise NotImplementedError("convert: votive has no reference modules (is_reference=True).")
    target = module if inplace else copy.deepcopy(module)
    chosen = mappings.STATIC if mapping is None else mapping
    custom = (convert_custom_config_dict or {}).get("observed_to_quantized_custom_module_class", {})
    _convert(target, chosen, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        _clean(target)
    return target


def _convert(module: Module, mapping: Mapping, custom: Mapping, precomputed: bool) -> None:
    for name, child in list(module.named_children()):
        # What is fused, or trained with rounding, becomes one module as a whole.
        whole = isinstance(child, _FusedModule) or hasattr(child, "weight_fake_quant")
        if not whole and kind_of(child) not in custom:
            _convert(child, mapping, custom, precomputed)
        made = swap_module(child, mapping, custom, precomputed)
        if made is not child:
            setattr(module, name, made)


def quantize(
    model: Module, run_fn: Callable[..., Any], run_args: Any, mapping: Mapping | None = None, inplace: bool = False
) -> Any:
    """Static quantization in one call: observers, `run_fn(model, *run_args)` for calibration, conversion."""
    target = model if inplace else copy.deepcopy(model)
    target.eval()
    prepare(target, inplace=True)
    run_fn(target, *run_args)
    return convert(target, mapping, inplace=True)


def quantize_dynamic(
    model: Module,
    qconfig_spec: Any = None,
    dtype: Any = affine.qint8,
    mapping: Mapping | None = None,
    inplace: bool = False,
) -> Any:
    """Weights of 8 bits, inputs rounded at each call: linear layers, recurrent networks (`qint8`), tables (`quint8`).

    `qconfig_spec` is a set of kinds or names, or a dictionary from them to configurations.

    >>> net = votive.nn.Sequential(votive.nn.Linear(8, 4), votive.nn.ReLU())
    >>> votive.ao.quantization.quantize_dynamic(net, {votive.nn.Linear})(votive.ones(2, 8)).shape
    votive.Size([2, 4])
    """
    spec = qconfig_spec
    if not isinstance(spec, dict):
        if dtype not in (affine.qint8, affine.quint8):
            raise ValueError(
                f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please: votive "
                "has qint8 weights, and quint8 tables."
            )
        tables = dtype is affine.quint8
        chosen = float_qparams_weight_only_qconfig if tables else default_dynamic_qconfig
        products = {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell}
        kinds = spec if spec is not None else {nn.EmbeddingBag, nn.Embedding} if tables else products
        spec = dict.fromkeys(kinds, chosen)
    target = model if inplace else copy.deepcopy(model)
    target.eval()
    propagate_qconfig_(target, spec)
    chosen_mapping = mappings.DYNAMIC if mapping is None else mapping
    if kind_of(target) in chosen_mapping and target.qconfig is not None and not any(True for _ in target.children()):
        # torch converts what is inside a model; a layer by itself stays as it is.
        warnings.warn("quantize_dynamic: converts the parts of a model; put this layer in a Sequential.", stacklevel=2)
    return convert(target, chosen_mapping, inplace=True)


def prepare_qat(model: Module, mapping: Mapping | None = None, inplace: bool = False) -> Any:
    """Layers that train with rounding, and fake quantization of results, by each module's `qconfig`."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    target = model if inplace else copy.deepcopy(model)
    chosen = mappings.QAT if mapping is None else mapping
    propagate_qconfig_(target)
    convert(target, chosen, inplace=True, remove_qconfig=False)
    return prepare(target, inplace=True, observer_non_leaf_module_list=set(chosen.values()))


def quantize_qat(model: Module, run_fn: Callable[..., Any], run_args: Any, inplace: bool = False) -> Any:
    """Training with rounding in one call: `run_fn(model, *run_args)` trains, then the model is converted."""
    target = model if inplace else copy.deepcopy(model)
    target.train()
    prepare_qat(target, inplace=True)
    run_fn(target, *run_args)
    return convert(target, inplace=True)


def default_eval_fn(model: Module, calib_data: Iterable[tuple[Any, Any]]) -> None:
    """Run a model on pairs of inputs and targets, for calibration."""
    for data, _ in calib_data:
        model(data)


def get_default_custom_config_dict() -> dict[str, Any]:
    """How modules of a user's own are prepared and converted: by default none are."""
    return {"float_to_observed_custom_module_class": {}, "observed_to_quantized_custom_module_class": {}}
