"""Shapes, dtypes and layouts of what each node gives, found by running the graph."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.dtype import dtype
from ...core.layout import Size
from ...core.memory_format import channels_last, contiguous_format, memory_format
from ...tensor import Tensor
from ..interpreter import Interpreter
from ..node import Node, map_aggregate


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The metadata of a tensor; without contiguity the memory format is None."""
    known = None
    if include_contiguity:
        for form in (contiguous_format, channels_last):
            if result.is_contiguous(memory_format=form):
                known = form
                break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), known, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and keeps, in each node's `meta`, the `tensor_meta` and the `type` of its result.

    >>> traced = votive.fx.symbolic_trace(lambda x: x.sum(0))
    >>> result = votive.fx.passes.shape_prop.ShapeProp(traced).propagate(votive.ones(2, 3))
    >>> [node.meta["tensor_meta"].shape for node in traced.graph.nodes]
    [votive.Size([2, 3]), votive.Size([3]), votive.Size([3])]
    """

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = False

        def note(v: object) -> Any:
            nonlocal found
            if isinstance(v, Tensor):
                found = True
                return extract_tensor_metadata(v)
            return v

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run on arguments, and give what the graph gives."""
        return super().run(*args)
