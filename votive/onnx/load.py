"""An ONNX file as a module: each node is a module of its own, so that it has an address and can be looked into."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..nn import Module, Parameter
from ..surface.interchange import from_numpy
from ..tensor import Tensor
from .errors import OnnxLoadError, package
from .read import Attributes, find

# Inputs that are statistics, not weights, by operator.
STATISTICS = {"BatchNormalization": (3, 4)}
_DTYPES = {
    1: dt.float32,
    2: dt.uint8,
    3: dt.int8,
    4: dt.uint16,
    5: dt.int16,
    6: dt.int32,
    7: dt.int64,
    9: dt.bool_,
    10: dt.float16,
    11: dt.float64,
    12: dt.uint32,
    13: dt.uint64,
    14: dt.complex64,
    15: dt.complex128,
    16: dt.bfloat16,
    17: dt.float8_e4m3fn,
    19: dt.float8_e5m2,
}
# Numbers of 4 and 2 bits, and what they are kept as.
NARROW = {21: dt.uint8, 22: dt.int8, 25: dt.uint8, 26: dt.int8}


def dtype_of(number: int) -> dt.dtype:
    """The dtype that ONNX knows by a number."""
    if number not in _DTYPES:
        raise OnnxLoadError(f"load: tensors of ONNX's type {number} are not supported.")
    return _DTYPES[number]


def tensor_of(proto: Any, folder: str = "") -> Tensor:
    """The values of an initializer or of an attribute."""
    # Numbers of 4 and 2 bits are kept in 8.
    dtype = NARROW.get(proto.data_type) or dtype_of(proto.data_type)
    try:
        array = package("onnx.numpy_helper").to_array(proto, folder)
    except Exception as e:
        raise OnnxLoadError(f"load: the tensor {proto.name!r} cannot be read: {e}") from e
    wanted = dtype.np
    array = np.array(array, copy=True, order="C")
    if array.dtype != wanted:
        same = array.dtype.itemsize == np.dtype(wanted).itemsize and proto.data_type in _DTYPES
        array = array.view(wanted) if same else array.astype(wanted)
    return from_numpy(array)


class Node(Module):
    """One operator of the file."""

    def __init__(self, op: str, rule: Any, attributes: Attributes) -> None:
        super().__init__()
        self.op, self.rule, self.attributes = op, rule, attributes

    def forward(self, *inputs: Any) -> Any:
        return self.rule(self.attributes, *inputs)

    def extra_repr(self) -> str:
        shown = {k: v for k, v in self.attributes.values.items() if isinstance(v, (int, float, str, list))}
        return ", ".join([self.op, *(f"{k}={v}" for k, v in shown.items())])


class Group(Module):
    """Nodes and weights whose names begin alike."""

    def forward(self, *inputs: Any) -> Any:
        raise RuntimeError(
            "a part of an ONNX model cannot be called by itself; call the model, and look into it by address."
        )


class OnnxModule(Module):
    """A model that was read from an ONNX file. It takes the file's inputs in their order, or by name."""

    def __init__(self, graph: Any, opset: int, folder: str = "", trainable: bool = True) -> None:
        super().__init__()
        self.opset = opset
        weights = {t.name: t for t in graph.initializer}
        self.input_names = [v.name for v in graph.input if v.name not in weights]
        self.output_names = [v.name for v in graph.output]
        self._weights: dict[str, tuple[Module, str]] = {}
        self._steps: list[tuple[Node, list[str], list[str]]] = []
        narrow = {t.name for t in graph.initializer if t.data_type in NARROW}
        for n in graph.node:
            if narrow & set(n.input) and n.op_type != "DequantizeLinear":
                raise OnnxLoadError(f"load: {n.op_type} of numbers of 4 or 2 bits is not supported.")
        fixed = {n.input[i] for n in graph.node for i in STATISTICS.get(n.op_type, ()) if i < len(n.input)}
        for name, proto in weights.items():
            self._hold(name, tensor_of(proto, folder), trainable and name not in fixed)
        for number, node in enumerate(graph.node):
            self._add(node, number, folder)
        self._last = _last_uses(self._steps, self.output_names)

    def _hold(self, name: str, value: Tensor, trainable: bool) -> None:
        owner, leaf = self._place(name)
        if trainable and value.dtype.is_floating_point and value.ndim:
            owner.register_parameter(leaf, Parameter(value))
        else:
            owner.register_buffer(leaf, value)
        self._weights[name] = (owner, leaf)

    def _add(self, node: Any, number: int, folder: str) -> None:
        rule = find(node.domain, node.op_type)
        if rule is None:
            where = f"{node.domain}." if node.domain else ""
            raise OnnxLoadError(
                f"load: the operator {where}{node.op_type} (node {node.name or number}) is not supported."
            )
        values = {a.name: _attribute(a, self.opset, folder) for a in node.attribute}
        attributes = Attributes(node.op_type, values, self.opset, len(node.output), [bool(o) for o in node.output])
        made = Node(node.op_type, rule, attributes)
        name = node.name or f"{node.op_type}_{number}"
        owner, leaf = self._place(name)
        owner.add_module(leaf, made)
        names = list(node.input)
        for value in values.values():  # graphs inside read values from around them
            if isinstance(value, Subgraph):
                attributes.outer = sorted(set(attributes.outer) | value.outer)
        self._steps.append((made, [*names, *attributes.outer], list(node.output)))
        attributes.given = len(names)

    def _place(self, name: str) -> tuple[Module, str]:
        """The module that a name belongs to, and the name below it."""
        parts = [re.sub(r"\W", "_", p) for p in re.split(r"[./:]+", name) if p] or ["unnamed"]
        owner: Module = self
        for part in parts[:-1]:
            inner = owner._modules.get(part)
            if not isinstance(inner, Group):
                part = _free(owner, part) if inner is not None or hasattr(owner, part) else part
                inner = Group()
                owner.add_module(part, inner)
            owner = inner
        return owner, _free(owner, parts[-1])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        values = self._inputs(args, kwargs)
        values[""] = None
        for name, (owner, leaf) in self._weights.items():
            values.setdefault(name, getattr(owner, leaf))
        for i, (node, inputs, outputs) in enumerate(self._steps):
            found = node(*[_named(values, n, node) for n in inputs])
            results = found if isinstance(found, tuple) else (found,)
            for name, result in zip(outputs, results, strict=False):
                if name:
                    values[name] = result
            for name in self._last.get(i, ()):
                values.pop(name, None)
        outs = tuple(values[n] for n in self.output_names)
        return outs[0] if len(outs) == 1 else outs

    def _inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self.input_names):
            raise TypeError(
                f"the model takes {len(self.input_names)} inputs ({', '.join(self.input_names)}), got {len(args)}."
            )
        values: dict[str, Any] = dict(zip(self.input_names, args, strict=False))
        for name, value in kwargs.items():
            if name not in self.input_names or name in values:
                raise TypeError(
                    f"unexpected or repeated input {name!r}; the model takes {', '.join(self.input_names)}."
                )
            values[name] = value
        missing = [n for n in self.input_names if n not in values]
        if missing:
            raise TypeError(f"missing inputs: {', '.join(missing)}.")
        return values


class Subgraph:
    """A graph inside of a node: a branch or the body of a loop."""

    def __init__(self, graph: Any, opset: int, folder: str) -> None:
        self.module = OnnxModule(graph, opset, folder, trainable=False)
        inside = {
            *self.module.input_names,
            *self.module._weights,
            *(o for _, _, outs in self.module._steps for o in outs),
        }
        read = {i for _, ins, _ in self.module._steps for i in ins if i} | set(self.module.output_names)
        self.outer = read - inside
        self.module.input_names = [*self.module.input_names, *sorted(self.outer)]

    def __call__(self, *args: Any, outer: Mapping[str, Any]) -> tuple[Any, ...]:
        found = self.module(*args, **{n: outer[n] for n in self.outer})
        return found if isinstance(found, tuple) else (found,)


def _named(values: Mapping[str, Any], name: str, node: Node) -> Any:
    try:
        return values[name]
    except KeyError:
        raise OnnxLoadError(f"{node.op} reads {name!r}, which no node before it gives.") from None


def _free(owner: Module, name: str) -> str:
    made, n = name, 0
    while hasattr(owner, made):
        n += 1
        made = f"{name}_{n}"
    return made


def _last_uses(steps: Sequence[Any], outputs: Sequence[str]) -> dict[int, list[str]]:
    """After which step a value is read no more."""
    last: dict[str, int] = {}
    for i, (_, inputs, outs) in enumerate(steps):
        last.update(dict.fromkeys((*inputs, *outs), i))
    found: dict[int, list[str]] = {}
    for name, i in last.items():
        if name and name not in outputs:
            found.setdefault(i, []).append(name)
    return found


def _attribute(a: Any, opset: int, folder: str) -> Any:
    kind = package().AttributeProto
    if a.type == kind.TENSOR:
        return tensor_of(a.t, folder)
    if a.type == kind.GRAPH:
        return Subgraph(a.g, opset, folder)
    if a.type == kind.STRING:
        return a.s.decode()
    if a.type == kind.STRINGS:
        return [s.decode() for s in a.strings]
    if a.type in (kind.FLOAT, kind.INT):
        return a.f if a.type == kind.FLOAT else a.i
    if a.type in (kind.FLOATS, kind.INTS):
        return list(a.floats if a.type == kind.FLOATS else a.ints)
    if a.type == kind.TYPE_PROTO:
        return a.tp
    raise OnnxLoadError(f"load: the attribute {a.name!r} has a type that is not supported.")


def _nodes(graph: Any) -> Any:
    for node in graph.node:
        yield node
        for a in node.attribute:
            if a.HasField("g"):
                yield from _nodes(a.g)


def _inlined(model: Any) -> Any:
    """The model with functions written out: its own, and those of ONNX that have no rule here."""
    inliner = package("onnx.inliner")
    if model.functions:
        model = inliner.inline_local_functions(model)
    missing = {(n.domain, n.op_type) for n in _nodes(model.graph) if find(n.domain, n.op_type) is None}
    if missing:
        try:
            model = inliner.inline_selected_functions(model, sorted(missing), inline_schema_functions=True)
        except Exception as e:
            names = ", ".join(sorted(op for _, op in missing))
            raise OnnxLoadError(f"load: {names} cannot be written out by simpler operators: {e}") from e
    return model


def from_proto(model: Any, folder: str = "") -> OnnxModule:
    """A module of a model that is in memory."""
    model = _inlined(model)
    versions = {o.domain: o.version for o in model.opset_import}
    return OnnxModule(model.graph, versions.get("", versions.get("ai.onnx", 1)), folder)


def load(f: str | os.PathLike[str]) -> OnnxModule:
    """A module that computes what an ONNX file says: it runs, can be opened by the glass engine, and trained.

    Weights are its parameters under the names of the file. Nothing in the file is executed as code.
    """
    onnx = package()
    path = os.fspath(f)
    try:
        model = onnx.load_model(path, load_external_data=False)
        if any(t.data_location == onnx.TensorProto.EXTERNAL for t in model.graph.initializer):
            onnx.load_external_data_for_model(model, os.path.dirname(path))
    except FileNotFoundError:
        raise
    except Exception as e:
        raise OnnxLoadError(f"load: {path} is not an ONNX file that can be read: {type(e).__name__}: {e}") from e
    if not model.graph.node and not model.graph.output:
        raise OnnxLoadError(f"load: {path} holds no graph.")
    return from_proto(model, os.path.dirname(path))
