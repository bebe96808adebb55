"""The types that declarations speak of, by one import. For type checkers only: at run time it holds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable as Callable
    from collections.abc import Iterable as Iterable
    from collections.abc import Iterator as Iterator
    from collections.abc import Sequence as Sequence
    from typing import TypeAlias
    from typing import Unpack as Unpack

    from ..core.device import DeviceLike as DeviceLike
    from ..core.device import device
    from ..core.dtype import dtype as dtype
    from ..core.layout import Shape as Shape
    from ..core.layout import Spec as Spec
    from ..core.memory_format import layout as layout
    from ..core.memory_format import memory_format as memory_format
    from ..core.rng import Generator as Generator
    from ..formula.expr import Expr as Expr
    from ..formula.expr import Number as Number
    from ..tensor import Tensor as Tensor
    from .options import TensorOptions as TensorOptions
    from .registry import Context as Context
    from .registry import Op as Op

    # The names of schemas, and what they mean here.
    Ints: TypeAlias = int | Sequence[int]
    Operand: TypeAlias = Tensor | Number
    Device: TypeAlias = device
