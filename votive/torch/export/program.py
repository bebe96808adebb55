"""An exported program: its graph, what the graph's inputs are, the tensors behind them, and a module that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ...fx import Graph, GraphModule
from ...fx.graph_module import _assign
from ...nn import Module, Parameter
from ...tensor import Tensor
from . import trees as pytree
from .guards import Guard, check
from .signature import ExportGraphSignature, InputKind


@dataclass
class CallSpec:
    """How arguments and results are taken apart."""

    in_spec: Any
    out_spec: Any


@dataclass
class ModuleCallSignature:
    """How one module of the program is called."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module of the program by name; the outermost has a signature."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclass(frozen=True)
class ValueRanges:
    """From the smallest to the largest value of a size."""

    lower: int
    upper: int | None

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper is None else self.upper}]"


class ExportedModule(Module):
    """Runs an exported program under the names of the module that it came from."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        self.__dict__["_program"] = program
        for target, tensor in {**program.state_dict, **program.constants}.items():
            spec = next(s for s in program.graph_signature.input_specs if s.target == target)
            if spec.kind is InputKind.CONSTANT_TENSOR:
                continue
            _assign(tensor, self, target)
            if spec.persistent is False:
                *path, name = target.split(".")
                self.get_submodule(".".join(path))._non_persistent_buffers_set.add(name)

    @property
    def graph(self) -> Graph:
        """The graph, with weights as inputs."""
        return self._of().graph

    @property
    def code(self) -> str:
        """The graph as text."""
        return str(self._of().graph_module.code)

    def _of(self) -> ExportedProgram:
        found: ExportedProgram = self.__dict__["_program"]
        return found

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Check what is given, run the graph, and give results in the form that the program gives them."""
        program = self._of()
        flat = program._flattened(args, kwargs)
        check(program._guards, flat)
        held: list[Any] = []
        for spec in program.graph_signature.input_specs:
            if spec.target is None:
                continue
            constant = spec.kind is InputKind.CONSTANT_TENSOR
            held.append(program.constants[spec.target] if constant else self._at(spec.target))
        results = program.graph_module(*held, *flat)
        return pytree.tree_unflatten(list(results), program.call_spec.out_spec)

    def _at(self, target: str) -> Any:
        found: Any = self
        for part in target.split("."):
            found = getattr(found, part)
        return found

    def train(self, mode: bool = True) -> NoReturn:
        """The graph is what it was exported as."""
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self) -> NoReturn:
        """The graph is what it was exported as."""
        raise NotImplementedError("Calling eval() is not supported yet.")


class ExportedProgram:
    """What `export` gives. `module()` runs it; the program itself is not called."""

    def __init__(
        self,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Tensor],
        constants: dict[str, Tensor],
        guards: Sequence[Guard],
        in_spec: Any,
        out_spec: Any,
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None,
        requires_grad: dict[str, bool],
    ) -> None:
        self._graph_module = GraphModule(Module(), graph, "GraphModule")
        self._graph_signature, self._state_dict, self._constants = graph_signature, state_dict, constants
        self._guards, self._requires = list(guards), requires_grad
        self._call_spec, self._example = CallSpec(in_spec, out_spec), example_inputs

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module whose inputs are weights, buffers, constants and then what callers give."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph: placeholders, operators of votive, arithmetic on sizes."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the inputs and outputs of the graph are."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and saved buffers by name."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Tensor]:
        """Tensors of the program that are not in the state."""
        return self._constants

    tensor_constants = constants

    @property
    def call_spec(self) -> CallSpec:
        """How arguments and results are taken apart."""
        return self._call_spec

    @property
    def example_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """What the program was exported with; None after loading."""
        return self._example

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The outermost module; others are parts of the one graph."""
        signature = ModuleCallSignature([], [], self.call_spec.in_spec, self.call_spec.out_spec)
        return [ModuleCallEntry("", signature)]

    @property
    def dialect(self) -> str:
        """The graph is made of the operators that ran, with their gradients."""
        return "TRAINING"

    @property
    def range_constraints(self) -> dict[str, ValueRanges]:
        """For every size that may change its range."""
        found: dict[str, list[int | None]] = {}
        for guard in self._guards:
            name, sign, limit = (*guard.text.split(" "), "", "")[:3]
            if guard.kind == "sizes" and sign in (">=", "<=") and limit.isdigit() and name.isidentifier():
                found.setdefault(name, [0, None])[sign == "<="] = int(limit)
        return {name: ValueRanges(low or 0, high) for name, (low, high) in found.items()}

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their names."""
        for name in self.graph_signature.parameters:
            value = self.state_dict[name]
            assert isinstance(value, Parameter)
            yield name, value

    def parameters(self) -> Iterator[Parameter]:
        """Parameters."""
        return (p for _, p in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their names."""
        for name in self.graph_signature.buffers:
            yield name, self.state_dict[name] if name in self.state_dict else self.constants[name]

    def buffers(self) -> Iterator[Tensor]:
        """Buffers."""
        return (b for _, b in self.named_buffers())

    def module(self, check_guards: bool = True) -> ExportedModule:
        """A module that runs the graph on its inputs; the parameters are those of the program, not copies."""
        if not check_guards:
            raise NotImplementedError("module: what the graph relies on is always checked.")
        return ExportedModule(self)

    def run_decompositions(
        self, decomp_table: dict[Any, Callable[..., Any]] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program made of simpler operators. They are votive's own already; a table of one's own is refused."""
        if decomp_table or decompose_custom_triton_ops:
            raise NotImplementedError(
                "run_decompositions: rules of one's own are not here; use torch.fx.replace_pattern."
            )
        graph = Graph()
        values: dict[Any, Any] = {}
        graph.output(graph.graph_copy(self.graph, values))
        return ExportedProgram(
            graph, self._graph_signature, self._state_dict, self._constants, self._guards, self._call_spec.in_spec,
            self._call_spec.out_spec, self._example, self._requires,
        )  # fmt: skip

    def validate(self) -> None:
        """Check the graph's order and names."""
        self.graph.lint()

    def _flattened(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        expected = self._call_spec.in_spec
        flat, spec = pytree.tree_flatten((args, kwargs))
        if spec != expected and kwargs:
            _, order = pytree.tree_unflatten([None] * expected.num_leaves, expected)
            if set(order) == set(kwargs):
                flat, spec = pytree.tree_flatten((args, {name: kwargs[name] for name in order}))
        if spec != expected:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{expected}\nbut actually got inputs "
                f"with tree spec of: \n{spec}.\nPlease check that the inputs have the same number and type of args and "
                "kwargs as the ones you used when tracing."
            )
        return flat

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        text = self._graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {text}\nGraph signature: {self._graph_signature}\n"
            f"Range constraints: {self.range_constraints}\n"
        )
