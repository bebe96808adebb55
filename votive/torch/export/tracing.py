"""`export`: from a module and example inputs to an exported program, with guards on what may be given to it."""

from __future__ import annotations

from typing import Any

from ...compiler.graph import Value
from ...nn import Module, Parameter
from ...tensor import Tensor
from ..overlays._dynamo.exc import UserError
from . import trees as pytree
from .capture import Captured, SizeText, for_any_sizes, for_these_sizes
from .guards import Guard, guards_of
from .lowering import Lowering
from .program import ExportedProgram
from .shapes import AdditionalInputs, Dim, DimHint, ShapesCollection, combined, leaf_shapes
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


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Write a module's computation down as a graph of operators, for inputs like the examples.

    `dynamic_shapes` says which sizes may change, by parameter: `{"x": {0: Dim("batch")}}`. What the graph relies on is
    checked at each call. `strict` is not told apart: with dynamic sizes Python is followed line by line, without them
    the module runs once. Programs that look at the numbers of tensors, or that fix a dynamic size, are refused.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if preserve_module_call_signature:
        raise NotImplementedError("export: preserve_module_call_signature is for unflatten, which is not here.")
    if prefer_deferred_runtime_asserts_over_guards:
        raise NotImplementedError("export: what the graph relies on is always checked before it runs.")
    options = dict(kwargs or {})
    given = combined(mod, args, options)
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, options)
    flat, in_spec = pytree.tree_flatten((args, options))
    leaves = pytree.tree_leaves(given)
    if [id(x) for x in leaves] != [id(x) for x in flat]:
        raise UserError("export: give keyword arguments in the order of their parameters.")
    shapes = leaf_shapes(given, dynamic_shapes)
    captured, shapes = _captured(mod, args, options, flat, shapes, bool(strict))
    names = _leaf_names(given)
    guards = guards_of(captured, flat, names, shapes)
    return _program(mod, captured, flat, names, guards, in_spec, (args, options))


def _captured(
    mod: Module, args: Any, options: Any, flat: list[Any], shapes: list[dict[int, Any]], strict: bool
) -> tuple[Captured, list[dict[int, Any]]]:
    for i, dims in enumerate(shapes):
        for d, size in list(dims.items()):
            if flat[i].shape[d] < 2:
                if isinstance(size, DimHint) and size.type == "AUTO":
                    del dims[d]
                    continue
                name = size.__name__ if isinstance(size, Dim) else f"{i}.shape[{d}]"
                raise UserError(
                    f"Constraints violated ({name})! You marked {name} as dynamic but its example size is "
                    f"{flat[i].shape[d]}: 0 and 1 mean other programs; give a larger example."
                )
    wanted = {i: set(dims) for i, dims in enumerate(shapes) if dims}
    if not wanted:
        return for_these_sizes(mod, args, options, flat), shapes
    try:
        return for_any_sizes(mod, args, options, flat, wanted), shapes
    except UserError:
        automatic = all(isinstance(s, DimHint) and s.type == "AUTO" for dims in shapes for s in dims.values())
        if not automatic or strict:
            raise
        return for_these_sizes(mod, args, options, flat), [{} for _ in shapes]


def _leaf_names(given: dict[str, Any]) -> list[str]:
    """Names for leaves: that of the parameter, with the way inside of it."""
    found: list[str] = []
    for name, value in given.items():
        pairs = pytree.tree_flatten_with_path(value)[0]
        for path, _ in pairs:
            inner = "".join(f"_{getattr(k, 'key', getattr(k, 'idx', getattr(k, 'name', '')))}" for k in path)
            text = "".join(c if c.isalnum() or c == "_" else "_" for c in f"{name}{inner}")
            found.append(text)
    return found


def _tables(mod: Module) -> dict[int, tuple[InputKind, str, bool | None]]:
    """What the tensors of a module are, by identity."""
    found: dict[int, tuple[InputKind, str, bool | None]] = {}
    for name, p in mod.named_parameters():
        found.setdefault(id(p), (InputKind.PARAMETER, name, None))
    unsaved = {f"{path}.{n}" if path else n for path, m in mod.named_modules() for n in m._non_persistent_buffers_set}
    for name, b in mod.named_buffers():
        found.setdefault(id(b), (InputKind.BUFFER, name, name not in unsaved))
    for path, m in mod.named_modules():
        for n, t in vars(m).items():
            if isinstance(t, Tensor):
                found.setdefault(id(t), (InputKind.CONSTANT_TENSOR, f"{path}.{n}" if path else n, None))
    return found


_PREFIX = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b", InputKind.CONSTANT_TENSOR: "c"}


def _program(
    mod: Module, captured: Captured, flat: list[Any], names: list[str], guards: list[Guard], in_spec: Any, example: Any
) -> ExportedProgram:
    lowering = Lowering(captured)
    tables = _tables(mod)
    by_kind: dict[InputKind, list[tuple[str, Value | None, Tensor, bool | None]]] = {k: [] for k in _PREFIX}
    used = {id(t): v for v, t in captured.held.items()}
    for key, (kind, target, persistent) in tables.items():
        tensor = _at(mod, target)
        if key in used or kind is not InputKind.CONSTANT_TENSOR:
            by_kind[kind].append((target, used.get(key), tensor, persistent))
    lifted = [(v, t) for v, t in captured.held.items() if id(t) not in tables]
    for i, (v, t) in enumerate([*lifted, *lowering.constants().items()]):
        by_kind[InputKind.CONSTANT_TENSOR].append((f"lifted_tensor_{i}", v, t, None))
    signature = ExportGraphSignature()
    state: dict[str, Tensor] = {}
    constants: dict[str, Tensor] = {}
    for kind, entries in by_kind.items():
        for target, value, tensor, persistent in entries:
            node = lowering.placeholder(f"{_PREFIX[kind]}_{target.replace('.', '_')}", value)
            signature.input_specs.append(InputSpec(kind, TensorArgument(node.name), target, persistent))
            is_constant = kind is InputKind.CONSTANT_TENSOR or persistent is False
            (constants if is_constant else state)[target] = tensor
    for i, leaf in enumerate(flat):
        node = lowering.placeholder(names[i], captured.inputs.get(i))
        arg: Any = TensorArgument(node.name) if isinstance(leaf, Tensor) else ConstantArgument(node.name, leaf)
        signature.input_specs.append(InputSpec(InputKind.USER_INPUT, arg, None))
    lowering.steps()
    results = [lowering.argument(v) if isinstance(v, (Value, SizeText)) else v for v in captured.results]
    lowering.output(tuple(results))
    for v, r in zip(captured.results, results, strict=True):
        if isinstance(v, Value):
            arg = TensorArgument(r.name)
        elif hasattr(r, "name"):
            arg = SymIntArgument(r.name)
        else:
            arg = ConstantArgument("", r)
        signature.output_specs.append(OutputSpec(OutputKind.USER_OUTPUT, arg, None))
    return ExportedProgram(
        lowering.graph, signature, state, constants, guards, in_spec, captured.out_spec, example, _requires(mod)
    )


def _requires(mod: Module) -> dict[str, bool]:
    return {n: isinstance(p, Parameter) and p.requires_grad for n, p in mod.named_parameters()}


def _at(mod: Any, target: str) -> Any:
    for part in target.split("."):
        mod = getattr(mod, part)
    return mod
