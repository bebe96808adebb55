"""Configurations for parts of a model: by default, by kind of module, by name or pattern of names."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ... import nn
from .other_observers import (
    PlaceholderObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

Kind = Callable[..., Any] | str


class QConfigMapping:
    """Which configuration a module gets; a name counts more than a pattern, that more than a kind, that more than the
    default.

    >>> from votive.ao.quantization import QConfigMapping, default_qconfig
    >>> mapping = QConfigMapping().set_global(default_qconfig).set_module_name("head", None)
    >>> net = votive.nn.ModuleDict({"body": votive.nn.Linear(2, 2), "head": votive.nn.Linear(2, 2)})
    >>> mapping.of("head", net["head"]) is None, mapping.of("body", net["body"]) is default_qconfig
    (True, True)
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Kind, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[tuple[str, Kind, int], Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """For all that nothing else names."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Kind, qconfig: Any) -> QConfigMapping:
        """For modules of a class."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> QConfigMapping:
        """For modules whose name fits a regular expression; the first that was set counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """For the module of a name."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Kind, index: int, qconfig: Any
    ) -> QConfigMapping:
        """For the n-th call of a kind inside a module; only the passes over graphs look at it."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def of(self, name: str, module: nn.Module) -> Any:
        """The configuration of a module."""
        if name in self.module_name_qconfigs:
            return self.module_name_qconfigs[name]
        for pattern, qconfig in self.module_name_regex_qconfigs.items():
            if re.match(pattern, name):
                return qconfig
        return self.object_type_qconfigs.get(type(module), self.global_qconfig)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        return {
            "": self.global_qconfig,
            "object_type": list(self.object_type_qconfigs.items()),
            "module_name_regex": list(self.module_name_regex_qconfigs.items()),
            "module_name": list(self.module_name_qconfigs.items()),
            "module_name_object_type_order": [
                (*key, qconfig) for key, qconfig in self.module_name_object_type_order_qconfigs.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """A mapping from what `to_dict` gave."""
        made = cls().set_global(qconfig_dict.get(""))
        for key, put in (
            ("object_type", made.set_object_type),
            ("module_name_regex", made.set_module_name_regex),
            ("module_name", made.set_module_name),
            ("module_name_object_type_order", made.set_module_name_object_type_order),
        ):
            for row in qconfig_dict.get(key, []):
                put(*row)
        return made

    def __repr__(self) -> str:
        parts = "".join(
            f" {name}\n" + "".join(f"  {k}: {v}\n" for k, v in getattr(self, name).items())
            for name in (
                "object_type_qconfigs",
                "module_name_regex_qconfigs",
                "module_name_qconfigs",
                "module_name_object_type_order_qconfigs",
            )
        )
        return f"{type(self).__name__} (\n global_qconfig\n  {self.global_qconfig}\n{parts})"


def _mapping(qconfig: QConfig, per_tensor: QConfig) -> QConfigMapping:
    made = QConfigMapping().set_global(qconfig).set_object_type("reshape", default_reuse_input_qconfig)
    for kind in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d):
        made.set_object_type(kind, QConfig(qconfig.activation, per_tensor.weight))
    made.set_object_type(nn.LayerNorm, QConfig(qconfig.activation, PlaceholderObserver))
    made.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for bounded in (nn.Hardsigmoid, nn.Sigmoid, nn.Softmax):
        made.set_object_type(bounded, QConfig(default_fixed_qparams_range_0to1_observer, default_weight_observer))
    made.set_object_type(nn.Tanh, QConfig(default_fixed_qparams_range_neg1to1_observer, default_weight_observer))
    return made


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The mapping for static layers that torch gives for a backend."""
    return _mapping(get_default_qconfig(backend, version), QConfig(None, default_weight_observer))


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The mapping for training with rounding."""
    return _mapping(get_default_qat_qconfig(backend, version), get_default_qat_qconfig("qnnpack", version))
