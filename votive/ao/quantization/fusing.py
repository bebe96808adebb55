"""Neighbouring modules become one: batch norm is folded into what stands before it, ReLU joins the product."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn import intrinsic as nni

if TYPE_CHECKING:
    from ...nn.module import Module

Fuser = Callable[..., Any]
_CONVS = {nn.Conv1d: "1d", nn.Conv2d: "2d", nn.Conv3d: "3d"}


def _same_mode(*parts: nn.Module) -> None:
    if len({p.training for p in parts}) > 1:
        raise AssertionError("modules that are fused must all be in train mode or in eval mode.")


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Module) -> Any:
    """A convolution and batch norm: folded, or kept as two for training.

    >>> conv, bn = votive.nn.Conv2d(1, 2, 3).eval(), votive.nn.BatchNorm2d(2).eval()
    >>> type(votive.ao.quantization.fuse_conv_bn(False, conv, bn)).__name__
    'Conv2d'
    """
    _same_mode(conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _trainable(conv, bn)
    return getattr(nni, f"ConvBn{_CONVS[type(conv)]}")(conv, bn)


def _trainable(conv: Any, bn: Module) -> None:
    if bn.num_features != conv.out_channels:
        raise AssertionError("Output channel of Conv must match num_features of BatchNorm")
    if not bn.affine or not bn.track_running_stats:
        raise AssertionError("Only support fusing BatchNorm with affine and track_running_stats set to True")


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Module, relu: Any) -> Any:
    """A convolution, batch norm and ReLU."""
    _same_mode(conv, bn, relu)
    if is_qat:
        _trainable(conv, bn)
        return getattr(nni, f"ConvBnReLU{_CONVS[type(conv)]}")(conv, bn, relu)
    return getattr(nni, f"ConvReLU{_CONVS[type(conv)]}")(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Module) -> Any:
    """A linear layer and batch norm."""
    _same_mode(linear, bn)
    return nni.LinearBn1d(linear, bn) if is_qat else fuse_linear_bn_eval(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Module) -> Any:
    """A transposed convolution and batch norm; only folded, not for training."""
    _same_mode(convt, bn)
    if is_qat:
        raise RuntimeError("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _together(kind: Any) -> Fuser:
    def fuse(is_qat: bool, *parts: Any) -> Any:
        return kind(*parts)

    return fuse


FUSERS: dict[tuple[Any, ...], Fuser] = {
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _together(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _together(nni.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _together(nni.BNReLU3d),
}
for _conv, _n in _CONVS.items():
    _norm = getattr(nn, f"BatchNorm{_n}")
    FUSERS[_conv, _norm] = fuse_conv_bn
    FUSERS[_conv, _norm, nn.ReLU] = fuse_conv_bn_relu
    FUSERS[_conv, nn.ReLU] = _together(getattr(nni, f"ConvReLU{_n}"))
    FUSERS[getattr(nn, f"ConvTranspose{_n}"), _norm] = fuse_convtranspose_bn


def get_fuser_method(op_list: Sequence[Any], additional_fuser_method_mapping: Any = None) -> Fuser:
    """The function that makes one module of some kinds in a row."""
    known = {**FUSERS, **(additional_fuser_method_mapping or {})}
    found = known.get(tuple(op_list))
    if found is None:
        raise AssertionError(f"did not find fuser method for: {tuple(op_list)} ")
    return found


def fuse_known_modules(mod_list: list[Any], is_qat: bool, additional_fuser_method_mapping: Any = None) -> list[Any]:
    """One module and identities in the place of those after the first.

    Hooks before the first and behind the last stay where they are.
    """
    fuse = get_fuser_method([type(m) for m in mod_list], additional_fuser_method_mapping)
    first, last = mod_list[0], mod_list[-1]
    before, behind = list(first._forward_pre_hooks.values()), list(last._forward_hooks.values())
    first._forward_pre_hooks.clear()
    last._forward_hooks.clear()
    made = fuse(is_qat, *mod_list)
    for hook in before:
        made.register_forward_pre_hook(hook)
    for hook in behind:
        made.register_forward_hook(hook)
    rest = []
    for _ in mod_list[1:]:
        identity = nn.Identity()
        identity.training = first.training
        rest.append(identity)
    return [made, *rest]


def _fused(
    model: Module, names: Any, is_qat: bool, inplace: bool, fuser_func: Fuser, fuse_custom_config_dict: Any
) -> Any:
    target = model if inplace else copy.deepcopy(model)
    further = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    groups = [names] if all(isinstance(n, str) for n in names) else names
    for group in groups:
        parts = [target.get_submodule(n) for n in group]
        for name, made in zip(group, fuser_func(parts, is_qat, further), strict=True):
            parent, _, last = name.rpartition(".")
            setattr(target.get_submodule(parent), last, made)
    return target


def fuse_modules(
    model: Module,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Fuser = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Any:
    """Make one of modules that follow each other, by lists of their names: conv, bn, relu; conv, bn; conv, relu;
    linear, relu; linear, bn; bn, relu. The first becomes the fused one, the others identities. Batch norm is folded,
    so the model must be in eval mode.

    >>> net = votive.nn.Sequential(votive.nn.Linear(2, 3), votive.nn.ReLU()).eval()
    >>> votive.ao.quantization.fuse_modules(net, ["0", "1"])
    Sequential(
      (0): LinearReLU(
        (0): Linear(in_features=2, out_features=3, bias=True)
        (1): ReLU()
      )
      (1): Identity()
    )
    """
    return _fused(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Module,
    modules_to_fuse: Any,
    inplace: bool = False,
    fuser_func: Fuser = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Any:
    """The same for training with rounding: batch norm stays, and follows the batches."""
    return _fused(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
