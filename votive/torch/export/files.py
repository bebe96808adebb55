"""Exported programs as files: a zip of text that says what the graph is, and tensors. Reading runs nothing.

What a file may name is an operator of votive or one of a few functions; everything else in it is numbers and text.
"""

from __future__ import annotations

import io
import json
import keyword
import os
import zipfile
from collections import OrderedDict
from typing import IO, Any

from ...core import dtype as dt
from ...core.device import device
from ...core.memory_format import layout, memory_format
from ...fx import Graph, Node
from ...nn import Parameter
from ...ops.operator import Op
from ...ops.registry import OPS
from ...serialization import load as load_tensors
from ...serialization import save as save_tensors
from ...tensor import Tensor
from . import trees as pytree
from .expressions import FUNCTIONS
from .guards import Guard
from .lowering import HELPERS
from .program import ExportedProgram
from .signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)

VERSION = 1
_LIMIT = 256 << 20  # characters of text
_ARGUMENTS: dict[str, type[TensorArgument] | type[SymIntArgument]] = {
    "TensorArgument": TensorArgument,
    "SymIntArgument": SymIntArgument,
}
_FUNCTION_NAMES = {id(f): name for name, f in {**FUNCTIONS, **HELPERS}.items()}
File = str | os.PathLike[str] | IO[bytes]


def _formats() -> dict[str, Any]:
    import votive

    names = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format", "strided")
    return {n: getattr(votive, n) for n in names}


def _written(v: Any) -> Any:
    """A value as JSON."""
    if v is None or isinstance(v, (bool, str)) or type(v) is int:
        return v
    if isinstance(v, float):
        return {"float": v.hex() if v == v else "nan"}
    if isinstance(v, complex):
        return {"complex": [_written(v.real), _written(v.imag)]}
    if isinstance(v, Node):
        return {"node": v.name}
    if isinstance(v, (list, tuple)) and type(v).__name__ not in ("Size",) and hasattr(v, "_fields"):
        raise TypeError(f"save: a {type(v).__name__} among the arguments of an operator cannot be written.")
    if isinstance(v, (list, tuple)):
        return {"list" if isinstance(v, list) else "tuple": [_written(x) for x in v]}
    if isinstance(v, slice):
        return {"slice": [_written(x) for x in (v.start, v.stop, v.step)]}
    if isinstance(v, dt.dtype):
        return {"dtype": v.name}
    if isinstance(v, device):
        return {"device": str(v)}
    if isinstance(v, (memory_format, layout)):
        return {"format": v.name}
    if id(v) in _FUNCTION_NAMES:
        return {"function": _FUNCTION_NAMES[id(v)]}
    if isinstance(v, Op) and OPS.get(v.name) is v:
        return {"op": v.name}
    if getattr(v, "__module__", "") == "_operator" and getattr(v, "__name__", "") == "getitem":
        return {"function": "getitem"}
    raise TypeError(f"save: {v!r} cannot be written; the program uses what only this process has.")


def _read(v: Any, nodes: dict[str, Node]) -> Any:
    """A value from JSON."""
    if not isinstance(v, dict):
        if isinstance(v, list):
            raise ValueError("load: the file is not an exported program.")
        return v
    ((kind, inner),) = v.items()
    if kind == "float":
        return float.fromhex(inner) if inner != "nan" else float("nan")
    if kind == "complex":
        return complex(*[_read(x, nodes) for x in inner])
    if kind == "node":
        return nodes[inner]
    if kind in ("list", "tuple"):
        found = [_read(x, nodes) for x in inner]
        return found if kind == "list" else tuple(found)
    if kind == "slice":
        return slice(*[_read(x, nodes) for x in inner])
    if kind == "dtype":
        named = {k.name: k for k in vars(dt).values() if isinstance(k, dt.dtype)}
        return named[inner]
    if kind == "device":
        return device(inner)
    if kind == "format":
        return _formats()[inner]
    if kind == "op":
        return OPS[inner]
    if kind == "function":
        import operator

        return operator.getitem if inner == "getitem" else {**FUNCTIONS, **HELPERS}[inner]
    raise ValueError(f"load: the file has a value of an unknown kind: {kind!r}.")


def _tree(spec: Any) -> Any:
    """A tree spec as JSON; leaves are None."""
    value = pytree.tree_unflatten([None] * spec.num_leaves, spec)

    def part(v: Any) -> Any:
        if type(v) in (tuple, list):
            return {type(v).__name__: [part(x) for x in v]}
        if type(v) in (dict, OrderedDict):
            if not all(isinstance(k, (str, int)) for k in v):
                raise TypeError("save: keys of inputs and results must be text or whole numbers.")
            return {type(v).__name__: [[k, part(x)] for k, x in v.items()]}
        if v is not None:
            raise TypeError(f"save: inputs and results that are a {type(v).__name__} cannot be written.")
        return None

    return part(value)


def _spec(tree: Any) -> Any:
    marks = object()

    def part(v: Any) -> Any:
        if v is None:
            return marks
        ((kind, inner),) = v.items()
        if kind in ("tuple", "list"):
            found = [part(x) for x in inner]
            return tuple(found) if kind == "tuple" else found
        return {"dict": dict, "OrderedDict": OrderedDict}[kind]((k, part(x)) for k, x in inner)

    return pytree.tree_structure(part(tree))


def _argument(arg: Any) -> Any:
    return [type(arg).__name__, arg.name, _written(getattr(arg, "value", None))]


def _argument_of(given: Any) -> Any:
    kind, name, value = given
    if kind == "ConstantArgument":
        return ConstantArgument(name, _read(value, {}))
    return _ARGUMENTS[kind](name)


def save(
    ep: ExportedProgram,
    f: File,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write a program to a file. `opset_version` and `pickle_protocol` are torch's; there is one format here."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    if opset_version is not None or pickle_protocol != 2:
        raise NotImplementedError("save: there is one version of the format, and no pickle in it.")
    nodes = [
        [n.op, n.name, n.target if n.op in ("placeholder", "output") else _written(n.target), _written(n.args),
         [[k, _written(v)] for k, v in n.kwargs.items()]]
        for n in ep.graph.nodes
    ]  # fmt: skip
    signature = ep.graph_signature
    text = {
        "format": "votive.export", "version": VERSION, "nodes": nodes,
        "inputs": [[s.kind.name, _argument(s.arg), s.target, s.persistent] for s in signature.input_specs],
        "outputs": [[s.kind.name, _argument(s.arg), s.target] for s in signature.output_specs],
        "guards": [[g.kind, g.text, g.told, g.leaf, _written(g.value)] for g in ep._guards],
        "in_spec": _tree(ep.call_spec.in_spec), "out_spec": _tree(ep.call_spec.out_spec),
        "requires_grad": ep._requires,
    }  # fmt: skip
    tensors = {
        "state": {k: v.detach() for k, v in ep.state_dict.items()},
        "constants": {k: v.detach() for k, v in ep.constants.items()},
    }
    memory = io.BytesIO()
    save_tensors(tensors, memory)
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("program.json", json.dumps(text))
        archive.writestr("tensors.safetensors", memory.getvalue())
        for name, content in (extra_files or {}).items():
            archive.writestr(f"extra/{name}", content)


def load(
    f: File, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None
) -> ExportedProgram:
    """Read a program that `save` wrote; nothing in the file is run."""
    if expected_opset_version is not None:
        raise NotImplementedError("load: there is one version of the format.")
    with zipfile.ZipFile(f) as archive:
        if "program.json" not in archive.namelist():
            raise ValueError("load: the file is not a program that votive exported; torch's own files are not read.")
        if archive.getinfo("program.json").file_size > _LIMIT:
            raise ValueError("load: the text of the program is too long.")
        text = json.loads(archive.read("program.json"))
        tensors = load_tensors(io.BytesIO(archive.read("tensors.safetensors")))
        for name in extra_files or {}:
            extra_files[name] = archive.read(f"extra/{name}").decode()  # type: ignore[index]
    if text.get("format") != "votive.export" or text.get("version") != VERSION:
        raise ValueError(f"load: the file is of an unknown format or version: {text.get('version')}.")
    signature = ExportGraphSignature(
        [InputSpec(InputKind[k], _argument_of(a), t, p) for k, a, t, p in text["inputs"]],
        [OutputSpec(OutputKind[k], _argument_of(a), t) for k, a, t in text["outputs"]],
    )
    requires: dict[str, bool] = text["requires_grad"]
    state = dict(tensors["state"])
    for name in signature.parameters:
        state[name] = Parameter(state[name], requires_grad=bool(requires.get(name, True)))
    return ExportedProgram(
        _graph(text["nodes"]), signature, state, dict(tensors["constants"]),
        [Guard(k, t, told, leaf, _read(v, {})) for k, t, told, leaf, v in text["guards"]],
        _spec(text["in_spec"]), _spec(text["out_spec"]), None, requires,
    )  # fmt: skip


def _is_name(text: object) -> bool:
    """Whether text can be a variable in the function that a graph is written as."""
    return isinstance(text, str) and text.isidentifier() and not keyword.iskeyword(text)


def _graph(nodes: list[Any]) -> Graph:
    graph = Graph()
    known: dict[str, Node] = {}
    for op, name, target, args, kwargs in nodes:
        if op not in ("placeholder", "call_function", "output") or not _is_name(name):
            raise ValueError(f"load: the graph has a node of an unknown kind: {op!r} {name!r}.")
        if not all(_is_name(k) for k, _ in kwargs):
            raise ValueError("load: a keyword of a call is no name.")
        if op == "placeholder":
            if not _is_name(target):
                raise ValueError(f"load: {target!r} is no name of an input.")
            known[name] = graph.create_node("placeholder", target, name=name)
            continue
        given = _read(args, known)
        if op == "output":
            graph.output(given[0])
            continue
        fn = _read(target, known)
        if not callable(fn) or isinstance(fn, Tensor):
            raise ValueError(f"load: {name!r} calls nothing.")
        named = {k: _read(v, known) for k, v in kwargs}
        known[name] = graph.create_node("call_function", fn, given, named, name=name)
    return graph
