"""Writing a model as an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO, Any

from .._version import __version__
from ..core import dtype as dt
from ..nn import Module
from ..tensor import Tensor
from .builder import Builder, onnx_type
from .capture import Program, capture
from .errors import OnnxExporterError, package
from .sizes import Sym
from .translate import Writer, _numpy

OPSETS = range(18, 24)
DEFAULT_OPSET = 20


class ONNXProgram:
    """An exported model: `model_proto`, `save(file)`, and a call that runs the file's graph."""

    def __init__(self, model_proto: Any, program: Program) -> None:
        self.model_proto, self._program = model_proto, program

    def save(self, destination: str | os.PathLike[str] | IO[bytes], *, external_data: bool | None = None) -> None:
        """Write the file; weights beside it in `NAME.data` if asked for, or if they do not fit into one. An open file
        or `io.BytesIO` has no place beside it.
        """
        onnx = package()
        size = sum(len(t.raw_data) for t in self.model_proto.graph.initializer)
        outside = external_data if external_data is not None else size > 1_500_000_000
        if not isinstance(destination, (str, os.PathLike)):
            if not hasattr(destination, "write"):
                raise TypeError(f"save: needs a path or a file open for writing, got {type(destination).__name__}.")
            if outside:
                raise OnnxExporterError("save: weights beside the file (external_data) need a file's name.")
            onnx.save_model(self.model_proto, destination)
            return
        path = os.fspath(destination)
        if not outside:
            onnx.save_model(self.model_proto, path)
            return
        copied = type(self.model_proto)()
        copied.CopyFrom(self.model_proto)
        location = os.path.basename(path) + ".data"
        if os.path.exists(os.path.join(os.path.dirname(path), location)):
            os.remove(os.path.join(os.path.dirname(path), location))
        onnx.save_model(copied, path, save_as_external_data=True, location=location, size_threshold=0)

    def __call__(self, *args: Any) -> Any:
        from .load import from_proto

        return from_proto(self.model_proto)(*args)

    def __repr__(self) -> str:
        g = self.model_proto.graph
        sides = [", ".join(v.name for v in part) for part in (g.input, g.output)]
        return f"ONNXProgram(inputs=({sides[0]}), outputs=({sides[1]}), nodes={len(g.node)})"


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | IO[bytes] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool | None = None,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    verify: bool = False,
) -> ONNXProgram:
    """Run a model once (or with several sizes, for dynamic dimensions) and write what it computes as ONNX.

    `args` are example inputs; `dynamic_axes={"x": {0: "batch"}}` or `dynamic_shapes` names the sizes that may change.

    >>> layer = votive.nn.Linear(3, 2)
    >>> votive.onnx.export(layer, votive.ones(1, 3), input_names=["x"])  # doctest: +SKIP
    ONNXProgram(inputs=(x), outputs=(output_0), nodes=2)
    """
    package()
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    if opset not in OPSETS:
        raise OnnxExporterError(f"export: opset_version must be {OPSETS.start} to {OPSETS.stop - 1}, got {opset}.")
    given = args if isinstance(args, tuple) else (args,)
    options = dict(kwargs or {})
    if given and isinstance(given[-1], dict) and kwargs is None and isinstance(model, Module):
        given, options = given[:-1], dict(given[-1])  # torch's older way to give keywords
    tensors, rebuild = _flattened(given, options)
    names = _names(input_names, len(tensors), model, given, options)
    dynamic = _dynamic(tensors, names, dynamic_axes, dynamic_shapes, given, options)
    if isinstance(model, Module) and model.training:
        import warnings

        warnings.warn(
            "export: the model is in training mode; dropout and statistics are refused. Call model.eval().",
            stacklevel=2,
        )

    results: list[Any] = []

    def call(values: Sequence[Tensor]) -> Sequence[Tensor]:
        positional, named = rebuild(values)
        results.append(model(*positional, **named))
        return _tensors(results[-1])

    program = capture(call, tensors, names, dynamic, model)
    out_names = _output_names(output_names, len(program.outputs))
    proto = _model(program, names, out_names, dynamic, opset, export_params, keep_initializers_as_inputs)
    made = ONNXProgram(proto, program)
    if verify:
        _verify(made, call, tensors)
    if verbose:
        print(package().printer.to_text(proto))
    if f is not None:
        made.save(f, external_data=external_data)
    return made


def _tensors(result: Any) -> list[Tensor]:
    """The tensors of a result in the order of its fields."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, Mapping):
        return [t for v in result.values() for t in _tensors(v)]
    if isinstance(result, (tuple, list)):
        return [t for v in result for t in _tensors(v)]
    if hasattr(result, "to_tuple"):
        return [t for v in result.to_tuple() for t in _tensors(v)]
    if hasattr(result, "__dataclass_fields__"):
        return [t for n in result.__dataclass_fields__ for t in _tensors(getattr(result, n))]
    return []


def _flattened(given: tuple[Any, ...], options: dict[str, Any]) -> tuple[list[Tensor], Any]:
    """Tensors among the arguments, and how arguments are made of others in their place."""
    tensors: list[Tensor] = []

    def take(v: Any) -> Any:
        if isinstance(v, Tensor):
            tensors.append(v)
            return _Slot(len(tensors) - 1)
        if isinstance(v, (tuple, list)):
            return type(v)(take(x) for x in v)
        return {k: take(x) for k, x in v.items()} if isinstance(v, dict) else v

    shape = (take(given), take(options))

    def rebuild(values: Sequence[Tensor]) -> Any:
        def put(v: Any) -> Any:
            if isinstance(v, _Slot):
                return values[v.index]
            if isinstance(v, (tuple, list)):
                return type(v)(put(x) for x in v)
            return {k: put(x) for k, x in v.items()} if isinstance(v, dict) else v

        return put(shape[0]), put(shape[1])

    return tensors, rebuild


class _Slot:
    def __init__(self, index: int) -> None:
        self.index = index


def _names(input_names: Any, count: int, model: Any, given: tuple[Any, ...], options: dict[str, Any]) -> list[str]:
    if input_names is not None:
        if len(input_names) > count:
            raise OnnxExporterError(f"export: {len(input_names)} input_names for {count} tensors.")
        return [*input_names, *(f"input_{i}" for i in range(len(input_names), count))]
    import inspect

    try:
        parameters = list(inspect.signature(model.forward if isinstance(model, Module) else model).parameters)
    except (TypeError, ValueError):
        parameters = []
    flat = all(isinstance(v, Tensor) for v in given) and all(isinstance(v, Tensor) for v in options.values())
    if flat and len(parameters) >= len(given):
        found = [*parameters[: len(given)], *options]
        if len(set(found)) == len(found) == count:
            return found
    return [f"input_{i}" for i in range(count)]


def _output_names(output_names: Any, count: int) -> list[str]:
    given = list(output_names or [])
    if len(given) > count:
        raise OnnxExporterError(f"export: {len(given)} output_names for {count} results.")
    return [*given, *(f"output_{i}" for i in range(len(given), count))]


def _dynamic(tensors: Any, names: Any, axes: Any, shapes: Any, given: Any, options: Any) -> list[dict[int, str]]:
    """By input: which dimensions may change, and the name of each size."""
    if axes is not None and shapes is not None:
        raise OnnxExporterError("export: give dynamic_axes or dynamic_shapes, not both.")
    found: list[dict[int, str]] = [{} for _ in tensors]
    if axes is not None:
        for name, dims in axes.items():
            if name not in names:
                continue  # of an output: follows from the inputs
            listed = dims if isinstance(dims, Mapping) else {d: f"{name}_dim_{d}" for d in dims}
            n = tensors[names.index(name)].ndim
            found[names.index(name)] = {int(d) % n: str(s) for d, s in listed.items()}
    if shapes is not None:
        flat = _flat_shapes(shapes, (*given, *options.values()), names)
        for i, dims in enumerate(flat):
            listed = dims if isinstance(dims, Mapping) else dict(enumerate(dims or ()))
            for d, s in listed.items():
                if s is not None:
                    auto = type(s).__name__ == "_DimHint" or (not isinstance(s, str) and not hasattr(s, "__name__"))
                    found[i][int(d) % tensors[i].ndim] = (
                        f"{names[i]}_dim_{d}" if auto else str(getattr(s, "__name__", s))
                    )
    for dims, t in zip(found, tensors, strict=True):
        if any(t.shape[d] == 0 for d in dims):
            raise OnnxExporterError("export: example inputs must not be empty in a dynamic dimension.")
    return found


def _flat_shapes(shapes: Any, given: Any, names: list[str]) -> list[Any]:
    if isinstance(shapes, Mapping):
        return [shapes.get(n) for n in names]
    flat: list[Any] = []

    def take(shape: Any, value: Any) -> None:
        if isinstance(value, Tensor):
            flat.append(shape)
        elif isinstance(value, (tuple, list)):
            for i, v in enumerate(value):
                take(None if shape is None else shape[i], v)
        elif isinstance(value, dict):
            for k, v in value.items():
                take(None if shape is None else shape[k], v)

    for i, v in enumerate(given):
        take(shapes[i] if i < len(shapes) else None, v)
    return flat


def _model(
    program: Program, names: Any, out_names: Any, dynamic: Any, opset: int, export_params: bool, as_inputs: bool
) -> Any:
    onnx = package()
    b = Builder(opset)
    writer = Writer(program, b)
    inputs = []
    for value, name, dims in zip(program.inputs, names, dynamic, strict=True):
        writer.declare(value, b.name(name))
        shape = [dims.get(d, s) for d, s in enumerate(value.spec.shape)]
        inputs.append(onnx.helper.make_tensor_value_info(name, onnx_type(value.spec.dtype), shape))
    for value, t in program.held.items():
        writer.declare(value, b.array(b.name(value.label), _numpy(t), t.dtype))
        if not export_params or as_inputs:
            inputs.append(onnx.helper.make_tensor_value_info(value.label, onnx_type(t.dtype), list(t.shape)))
    writer.run()
    outputs = []
    for value, name in zip(program.outputs, out_names, strict=True):
        made = b.name(name)
        if made != name:
            raise OnnxExporterError(f"export: the name {name!r} of an output is taken; choose another in output_names.")
        b.nodes.append(onnx.helper.make_node("Identity", [writer.name(value)], [made]))
        shape = [_size_name(s, program, dynamic, f"{name}_dim_{i}") for i, s in enumerate(program.shape(value))]
        outputs.append(onnx.helper.make_tensor_value_info(made, onnx_type(value.spec.dtype), shape))
    held = {v.label for v in program.held}
    used = {i for n in b.nodes for i in n.input}
    kept = [t for n, t in b.initializers.items() if (n in used) and (export_params or n not in held)]
    graph = onnx.helper.make_graph(b.nodes, "votive", inputs, outputs, kept)
    model = onnx.helper.make_model(
        graph, producer_name="votive", producer_version=__version__, opset_imports=[onnx.helper.make_opsetid("", opset)]
    )
    model.ir_version = min(10, model.ir_version)
    onnx.checker.check_model(model)
    return model


def _size_name(size: Any, program: Program, dynamic: Any, otherwise: str) -> Any:
    if not isinstance(size, Sym):
        return int(size)
    for value, dims in zip(program.inputs, dynamic, strict=True):
        for d, name in dims.items():
            if program.shape(value)[d] == size:
                return name
    return otherwise


def _verify(made: ONNXProgram, call: Any, tensors: Sequence[Tensor]) -> None:
    """Run the file's graph beside the model."""
    from ..autograd import no_grad
    from .load import from_proto

    with no_grad():
        wanted = call(list(tensors))
        found = _tensors(from_proto(made.model_proto)(*tensors))
    for i, (a, b) in enumerate(zip(wanted, found, strict=True)):
        exact = not a.dtype.is_floating_point
        gap = (a.to(dt.float64) - b.to(dt.float64)).abs().max().item() if a.numel() else 0.0
        scale = a.abs().to(dt.float64).max().item() if a.numel() else 0.0
        if a.shape != b.shape or gap > (0 if exact else 1e-3 * (1 + scale)):
            raise OnnxExporterError(f"export: result {i} of the exported graph differs from the model's by {gap:g}.")
