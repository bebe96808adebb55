"""What goes into an exported graph and what comes out of it, by name. Data without behaviour."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any


class InputKind(enum.Enum):
    """Where an input of a graph comes from."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """What becomes of an output of a graph."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class SymIntArgument:
    """A size, by the name of its node."""

    name: str


@dataclass
class ConstantArgument:
    """A value that is always the same."""

    name: str
    value: Any


@dataclass
class InputSpec:
    """One input; `target` is the name of the parameter, buffer or constant."""

    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None


@dataclass
class OutputSpec:
    """One output."""

    kind: OutputKind
    arg: Any
    target: str | None


@dataclass
class ExportBackwardSignature:
    """Gradients among the outputs; graphs of programs without a loss have none."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of a graph in order, and views of them by kind."""

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple(s.target for s in self.input_specs if s.kind is kind and s.target is not None)

    def _names(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind and s.target is not None}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Names of the buffers that are not saved."""
        return tuple(s.target or "" for s in self.input_specs if s.kind is InputKind.BUFFER and s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Names of tensors that belong to the program and are neither."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """What callers give: names of nodes, or values that are always the same."""
        found = [s.arg for s in self.input_specs if s.kind is InputKind.USER_INPUT]
        return tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in found)

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """What callers get: names of nodes, or values that are always the same."""
        found = [s.arg for s in self.output_specs if s.kind is OutputKind.USER_OUTPUT]
        return tuple(a.value if isinstance(a, ConstantArgument) else a.name for a in found)

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """Node -> parameter."""
        return self._names(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """Node -> buffer."""
        return self._names(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """Node -> constant."""
        return self._names(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Nothing: buffers are written in place, by nodes of the graph."""
        return {}

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """Nothing: inputs are written in place, by nodes of the graph."""
        return {}

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Nothing: the graph computes forward alone."""
        return None

    @property
    def assertion_dep_token(self) -> None:
        """Nothing: guards are looked at before the graph runs."""
        return None

    def __str__(self) -> str:
        lines = ["", "# inputs"]
        for s in self.input_specs:
            target = "" if s.target is None else f" target={s.target!r}"
            kept = "" if s.persistent is None else f" persistent={s.persistent}"
            lines.append(f"{s.arg.name}: {s.kind.name}{target}{kept}")
        lines += ["", "# outputs"]
        lines += [f"{s.arg.name}: {s.kind.name}" for s in self.output_specs]
        return "\n".join([*lines, ""])
