"""Tensors in blocks of few bits: bytes with a format, which compute where an operator takes blocks as they are.

Rows can be taken, moved and saved; products and tables read blocks directly, gradients go through them to the other
factor. Whatever else is asked raises and says to dequantize: nothing becomes numbers behind the user's back.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..core import dtype as dt
from ..core.blocks import block_dtype, by_name
from ..core.dtype import dtype as Dtype
from ..core.errors import UnsupportedError, received
from ..dispatch.wrapped import OwnSpec
from ..ops.operator import Operator
from ..ops.registry import F
from ..tensor import Tensor
from .wrapped import Rule, Wrapped


class BlockTensor(Wrapped):
    """A tensor whose dtype is a block format; `blocks` are its bytes."""

    _advice = "use .dequantize()."
    _kind = "block"
    _precedence = 1
    _traced = ("_bytes",)
    _rules: ClassVar[dict[str, Rule]] = {}
    _bytes: Tensor  # (..., bytes of a row)
    _format: block_dtype
    _flipped: bool  # the last two dimensions are seen exchanged
    _wide: Dtype  # what its numbers are where nothing else tells

    def _parts(self) -> tuple[Tensor, ...]:
        return (self._bytes,)

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs.get("out") is not None:
            raise UnsupportedError(f"{name}: out= is not taken with {cls._describe(args)} tensors; use copy_().")
        return super()._call(name, op, args, kwargs)

    @classmethod
    def _describe(cls, args: tuple[Any, ...]) -> str:
        return next((a._format.name for a in args if isinstance(a, BlockTensor)), "block")

    @property
    def blocks(self) -> Tensor:
        """The bytes: a uint8 tensor whose rows are those of this tensor.

        >>> votive.ones(2, 32).to(votive.q8_0).blocks.shape
        votive.Size([2, 34])
        """
        return self._bytes

    @property
    def compute_dtype(self) -> Dtype:
        """The dtype of its numbers where nothing else tells: of rows that an embedding takes, and of `dequantize()`.

        >>> votive.ones(2, 32).to(votive.q8_0).compute_dtype
        votive.float32
        """
        return self._wide

    def computing_in(self, dtype: Dtype) -> BlockTensor:
        """The same blocks, with numbers of another dtype; `Module.to` and `half()` do this."""
        return self if dtype is self._wide else like(self, self._bytes, wide=dtype)

    def dequantize(self, dtype: Dtype | None = None) -> Tensor:
        """The numbers that the blocks stand for, rounded once to `dtype`.

        >>> votive.ones(2, 32).to(votive.q8_0).dequantize()[0, :2]
        tensor([0.9999, 0.9999])
        """
        out: Tensor = F._block_decode(self._bytes, self._format, dtype or self._wide)
        return out.transpose(-1, -2) if self._flipped else out

    @property
    def nbytes(self) -> int:
        return self._bytes.nbytes

    def detach(self) -> Any:
        return like(self, self._bytes)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        if requires_grad:
            raise RuntimeError(f"requires_grad_: codes of {self._format.name} have no gradient; {self._advice}")
        return self

    def data_ptr(self) -> int:
        return self._bytes.data_ptr()

    def untyped_storage(self) -> Any:
        return self._bytes.untyped_storage()

    def storage_offset(self) -> int:
        return self._bytes.storage_offset() * self._format.block_size // self._format.block_bytes

    def stride(self, dim: int | None = None) -> Any:
        strides = self._spec.strides
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._bytes.is_contiguous() and not self._flipped

    def is_shared(self) -> bool:
        return self._bytes.is_shared()

    def share_memory_(self) -> Any:
        self._bytes.share_memory_()
        return self

    def tolist(self) -> Any:
        return self.dequantize().tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        marks = {k: v for k, v in self.__dict__.items() if k in ("_is_param", "_is_buffer")}
        return _rebuild, (self._bytes, self._format.name, self._flipped, self._wide, marks)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            out = like(self, self._bytes.clone())
            out.__dict__.update({k: v for k, v in self.__dict__.items() if k in ("_is_param", "_is_buffer")})
            memo[id(self)] = out
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        text = repr(self.dequantize().detach()) if self._bytes.device.type != "meta" else "tensor(...)"
        device = "" if self.device.type == "cpu" else f", device='{self.device}'"
        shape = f", size={tuple(self.shape)}" if self.numel() > 1000 or not self.numel() else ""
        begin = text.partition(", device=")[0].rstrip(")").partition(", size=")[0]
        start = "Parameter containing:\n" if self.__dict__.get("_is_param") else ""
        return f"{start}{begin}{device}{shape}, dtype={self._format!r})"


def from_blocks(
    data: Tensor, format: block_dtype | str, *, flipped: bool = False, compute_dtype: Dtype = dt.float32
) -> BlockTensor:
    """A tensor over bytes of blocks, (..., bytes of a row), without copying them."""
    kind = by_name(format) if isinstance(format, str) else format
    if not isinstance(data, Tensor) or data.dtype is not dt.uint8 or data.ndim < 1:
        raise TypeError(f"from_blocks: blocks are a uint8 tensor of rows, got {received(data)}.")
    shape = (*data.shape[:-1], kind.row_elements(data.shape[-1]))
    out: BlockTensor = object.__new__(BlockTensor)
    out._bytes, out._format, out._flipped, out._wide = data, kind, flipped, compute_dtype
    seen = (*shape[:-2], shape[-1], shape[-2]) if flipped else shape
    out._begin(seen, kind, data.device)
    out._spec = OwnSpec(seen, kind, data.device, _strides(data, kind, flipped))
    return out


def like(x: BlockTensor, data: Tensor, *, flipped: bool | None = None, wide: Dtype | None = None) -> BlockTensor:
    """A tensor as another is, over other bytes."""
    return from_blocks(
        data, x._format, flipped=x._flipped if flipped is None else flipped, compute_dtype=wide or x._wide
    )


def _strides(data: Tensor, format: block_dtype, flipped: bool) -> tuple[int, ...]:
    """Steps in elements: rows lie whole blocks apart."""
    steps = [s * format.block_size // format.block_bytes for s in data.stride()[:-1]]
    return (*steps[:-1], 1, steps[-1]) if flipped else (*steps, 1)


def _rebuild(data: Tensor, format: str, flipped: bool, wide: Dtype, marks: dict[str, bool]) -> BlockTensor:
    out = from_blocks(data, format, flipped=flipped, compute_dtype=wide)
    out.__dict__.update(marks)
    return out


def encoded(x: Tensor, format: block_dtype) -> BlockTensor:
    """Any tensor in blocks of a format; its codes are chosen by rounding, without knowledge of what it is for."""
    if isinstance(x, BlockTensor):
        if x._format is format:
            return x
        x = x.dequantize(dt.float32)
    if not x.dtype.is_floating_point:
        raise UnsupportedError(f"to: {format.name} is made from floating-point numbers, got {x.dtype}.")
    import numpy as np

    from ..backends.common.blocks.encode import encode
    from ..config import get_num_threads
    from .interchange import _own

    array = np.asarray(x.detach().cpu().to(dt.float32).numpy())
    data = _own(encode(array, format, threads=get_num_threads()), "cpu")
    return from_blocks(F.to(data, x.device), format, compute_dtype=x.dtype)


from . import block_rows, block_rules  # noqa: E402, F401 - fill the table of rules
