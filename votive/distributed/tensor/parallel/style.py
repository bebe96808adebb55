"""Styles: how the parameters of a module lie on a mesh, and what goes into its calls and comes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ....nn.layers.linear import Linear
from ....nn.module import Module
from ....nn.parameter import Parameter
from ....tensor import Tensor
from ...device_mesh import DeviceMesh
from ..api import distribute_module, distribute_tensor
from ..dtensor import DTensor
from ..placement_types import Placement, Replicate, Shard


class ParallelStyle(ABC):
    """How a module is spread over a mesh; a style of one's own implements `_apply(module, mesh)`.

    >>> votive.distributed.tensor.parallel.ColwiseParallel()
    ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), use_local_output=True)
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module: ...


def brought(x: Any, mesh: DeviceMesh, have: Placement | None, want: Placement | None) -> Any:
    """A value that lies as said, a plain tensor as `have`, as it is wanted; no tensor stays as it is."""
    if not isinstance(x, Tensor) or have is None:
        return x
    if not isinstance(x, DTensor):
        x = DTensor.from_local(x, mesh, (have,), run_check=False)
    return x if want is None or x.placements == (want,) else x.redistribute(placements=(_in(want, x),))


def _in(p: Placement, x: DTensor) -> Placement:
    return Shard(p.dim % x.ndim) if isinstance(p, Shard) else p


def _given(x: Any, mesh: DeviceMesh, want: Placement, local: bool) -> Any:
    """What a call gives, as it is wanted; a plain tensor of this rank's part if `local`."""
    if not isinstance(x, DTensor):
        return x
    if x.placements != (_in(want, x),):
        x = x.redistribute(placements=(_in(want, x),))
    return x.to_local() if local else x


def parameter(module: Module, name: str, mesh: DeviceMesh, placement: Placement, source: int | None) -> None:
    """Let a parameter of a module lie on a mesh."""
    value = module._parameters.get(name)
    if value is None or isinstance(value, DTensor):
        return
    made = Parameter(distribute_tensor(value.detach(), mesh, [placement], src_data_rank=source), value.requires_grad)
    module.register_parameter(name, made)


def _is_table(module: Module) -> bool:
    from ....nn.layers.embedding import Embedding

    return isinstance(module, Embedding)


class _Cut(ParallelStyle):
    """What both ways to cut a product share."""

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or self._input,)
        self.output_layouts = (output_layouts or self._output,)
        self.use_local_output = use_local_output

    _input: Placement
    _output: Placement

    def _wants(self, module: Module) -> Placement:
        raise NotImplementedError

    def _cuts(self, module: Module) -> dict[str, Placement]:
        raise NotImplementedError

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        cuts, wanted = self._cuts(module), self._wants(module)

        def partition(name: str, part: Module, mesh: DeviceMesh) -> None:
            for key, placement in cuts.items():
                parameter(part, key, mesh, placement, self.src_data_rank)

        return distribute_module(
            module,
            device_mesh,
            partition,
            lambda mod, inputs, mesh: (brought(inputs[0], mesh, self.input_layouts[0], wanted), *inputs[1:]),
            lambda mod, out, mesh: _given(out, mesh, self.output_layouts[0], self.use_local_output),
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Cut):
    """A Linear cut along its outputs, or an Embedding along its features.

    >>> from votive.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    >>> def shape():
    ...     layer = parallelize_module(votive.nn.Linear(4, 6), votive.distributed.init_device_mesh("cpu", (2,)),
    ...                                ColwiseParallel())
    ...     return tuple(layer(votive.ones(1, 4)).shape)
    >>> votive.distributed.simulate(shape, 2)
    [(1, 3), (1, 3)]
    """

    _input, _output = Replicate(), Shard(-1)

    def _wants(self, module: Module) -> Placement:
        return Replicate()

    def _cuts(self, module: Module) -> dict[str, Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(0), "bias": Shard(0)}
        if _is_table(module):
            return {"weight": Shard(1)}
        raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")


class RowwiseParallel(_Cut):
    """A Linear cut along its inputs, or an Embedding along its rows: ranks add their results up.

    >>> from votive.distributed.tensor.parallel import RowwiseParallel, parallelize_module
    >>> def shape():
    ...     layer = parallelize_module(votive.nn.Linear(4, 6), votive.distributed.init_device_mesh("cpu", (2,)),
    ...                                RowwiseParallel())
    ...     return tuple(layer(votive.ones(1, 2)).shape)
    >>> votive.distributed.simulate(shape, 2)
    [(1, 6), (1, 6)]
    """

    _input, _output = Shard(-1), Replicate()

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts=input_layouts, output_layouts=output_layouts, use_local_output=use_local_output)
        self._said = input_layouts is not None

    def _wants(self, module: Module) -> Placement:
        return Replicate() if _is_table(module) else Shard(-1)

    def _cuts(self, module: Module) -> dict[str, Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(1), "bias": Replicate()}
        if _is_table(module):
            if not self._said:
                self.input_layouts = (Replicate(),)  # positions are whole, unless said otherwise
            return {"weight": Shard(0)}
        raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")


class SequenceParallel(ParallelStyle):
    """A norm or dropout that computes on a part of the positions: parameters are whole, inputs in shards.

    >>> from votive.distributed.tensor.parallel import SequenceParallel, parallelize_module
    >>> def shape():
    ...     norm = parallelize_module(votive.nn.LayerNorm(4), votive.distributed.init_device_mesh("cpu", (2,)),
    ...                               SequenceParallel())
    ...     return tuple(norm(votive.ones(1, 3, 4)).shape)
    >>> votive.distributed.simulate(shape, 2)[0]
    (1, 6, 4)
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def partition(name: str, part: Module, mesh: DeviceMesh) -> None:
            for key in list(part._parameters):
                parameter(part, key, mesh, Replicate(), self.src_data_rank)

        def prepare(mod: Module, inputs: Any, mesh: DeviceMesh) -> Any:
            x = inputs[0]
            if not isinstance(x, Tensor):
                raise ValueError(f"expecting input of {mod} to be a votive.Tensor or DTensor, but got {type(x)}")
            return (brought(x, mesh, self.sequence_sharding[0], self.sequence_sharding[0]), *inputs[1:])

        return distribute_module(
            module,
            device_mesh,
            partition,
            prepare,
            lambda mod, out, mesh: out.to_local() if self.use_local_output and isinstance(out, DTensor) else out,
        )

    def __repr__(self) -> str:
        dim = self.sequence_sharding[0].dim
        return f"SequenceParallel(sequence_dim={dim}, use_local_output={self.use_local_output})"


Layouts = Placement | Sequence[Placement | None] | None


def _listed(layouts: Layouts) -> tuple[Placement | None, ...] | None:
    if layouts is None:
        return None
    return (layouts,) if isinstance(layouts, Placement) else tuple(layouts)


class PrepareModuleInput(ParallelStyle):
    """What goes into a module's calls becomes distributed tensors that lie as wanted.

    >>> from votive.distributed.tensor import Replicate, Shard
    >>> from votive.distributed.tensor.parallel import PrepareModuleInput, parallelize_module
    >>> def shape():
    ...     style = PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate())
    ...     part = parallelize_module(votive.nn.Identity(), votive.distributed.init_device_mesh("cpu", (2,)), style)
    ...     return part(votive.ones(2, 3)).placements
    >>> votive.distributed.simulate(shape, 2)[0]
    (Replicate(),)
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = _listed(input_layouts), _listed(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.input_kwarg_layouts = dict(input_kwarg_layouts or {})
        self.desired_input_kwarg_layouts = dict(desired_input_kwarg_layouts or {})
        if set(self.input_kwarg_layouts) != set(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have the same keys!")

    def _one(self, x: Any, have: Placement | None, want: Placement | None, mesh: DeviceMesh) -> Any:
        x = brought(x, mesh, have, want)
        return x.to_local() if self.use_local_output and isinstance(x, DTensor) and have is not None else x

    def _hook(self, mesh: DeviceMesh, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.input_layouts is not None:
            if len(args) != len(self.input_layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            assert self.desired_input_layouts is not None
            pairs = zip(args, self.input_layouts, self.desired_input_layouts, strict=True)
            args = tuple(self._one(x, have, want, mesh) for x, have, want in pairs)
        for name, have in self.input_kwarg_layouts.items():
            if name in kwargs:
                kwargs = {**kwargs, name: self._one(kwargs[name], have, self.desired_input_kwarg_layouts[name], mesh)}
        return args, kwargs

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        prepare = self._hook
        module.register_forward_pre_hook(lambda _, args, kwargs: prepare(device_mesh, args, kwargs), with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts="
            f"{self.desired_input_layouts}, input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """What comes out of a module's calls becomes distributed tensors that lie as wanted, or this rank's parts.

    >>> from votive.distributed.tensor import Replicate, Shard
    >>> from votive.distributed.tensor.parallel import PrepareModuleOutput, parallelize_module
    >>> def shape():
    ...     style = PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
    ...     part = parallelize_module(votive.nn.Identity(), votive.distributed.init_device_mesh("cpu", (2,)), style)
    ...     return tuple(part(votive.ones(2, 3)).shape)
    >>> votive.distributed.simulate(shape, 2)[0]
    (4, 3)
    """

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True
    ) -> None:
        self.output_layouts, self.desired_output_layouts = _listed(output_layouts), _listed(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts or ()) != len(self.desired_output_layouts or ()):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _hook(self, mesh: DeviceMesh, out: Any) -> Any:
        given = out if isinstance(out, tuple) else (out,)
        if len(given) != len(self.output_layouts or ()):
            raise ValueError("module outputs and output_layouts should have same length!")
        made = []
        for x, have, want in zip(given, self.output_layouts or (), self.desired_output_layouts or (), strict=True):
            x = brought(x, mesh, have, want)
            made.append(x.to_local() if self.use_local_output and isinstance(x, DTensor) and have is not None else x)
        return tuple(made) if isinstance(out, tuple) else made[0]

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        module.register_forward_hook(lambda mod, inputs, out: self._hook(device_mesh, out))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, desired_output_layouts="
            f"{self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` in one.

    >>> from votive.distributed.tensor import Replicate, Shard
    >>> style = votive.distributed.tensor.parallel.PrepareModuleInputOutput(input_layouts=Shard(0),
    ...     desired_input_layouts=Replicate(), output_layouts=Replicate(), desired_output_layouts=Shard(0))
    >>> style.prepare_module_output.use_local_output
    True
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self) -> str:
        return f"PrepareModuleInputOutput({self.prepare_module_input}, {self.prepare_module_output})"
