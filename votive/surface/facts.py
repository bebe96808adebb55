"""What a tensor says of itself: shape, dtype, device, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.device import device
from ..core.errors import dim_range
from ..core.layout import Size, is_channels_last, wrap_dim
from ..core.memory_format import channels_last, channels_last_3d, contiguous_format, layout, memory_format, strided
from ..core.storage import Storage
from ..ops.registry import F
from .fields import Fields

if TYPE_CHECKING:
    from ..tensor import Tensor


class Facts(Fields):
    """The part of Tensor that looks at its layout and storage."""

    @property
    def shape(self) -> Size:
        return self._spec.layout.size

    @property
    def dtype(self) -> dt.dtype:
        return self._spec.dtype

    @property
    def device(self) -> device:
        return self._spec.device

    @property
    def ndim(self) -> int:
        return self._spec.ndim

    def dim(self) -> int:
        return self._spec.ndim

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self._spec.layout.size
        if self.ndim == 0:
            dim_range("size", dim, 0, ())
        return self._spec.shape[wrap_dim("size", dim, self.ndim, self._spec.shape)]

    def stride(self, dim: int | None = None) -> Any:
        if dim is None:
            return self._spec.strides
        return self._spec.strides[wrap_dim("stride", dim, self.ndim, self._spec.shape)]

    def storage_offset(self) -> int:
        return self._offset

    def numel(self) -> int:
        return self._spec.numel

    nelement = numel

    def element_size(self) -> int:
        return self._spec.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self._spec.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._spec.nbytes

    def data_ptr(self) -> int:
        if self._spec.numel == 0:
            return 0
        return self._storage.data_ptr() + self._offset * self._spec.dtype.itemsize

    def dispose(self) -> None:
        """Let go of the memory, the history and the gradient now. Whoever uses the tensor afterwards gets an error;
        views of the memory keep it, and so does what backward has kept of it.

        >>> x = votive.ones(3)
        >>> x.dispose()
        >>> x
        tensor(disposed)
        """
        from .disposal import dispose

        dispose(self)

    def untyped_storage(self) -> Storage:
        return self._storage

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked, see `pin_memory`."""
        return bool(self._spec.numel) and self._storage.is_pinned()

    def record_stream(self, stream: Any) -> None:
        """Let the memory, once this tensor is gone, wait for what a stream was given until then.

        Memory is handed out again in the order of the stream it was made on; a tensor that another
        stream uses needs this.
        """
        backend = BACKENDS[self._spec.device.type]
        if not hasattr(backend, "record_stream"):
            raise NotImplementedError(f"record_stream: takes tensors of a GPU, got one on {self._spec.device}.")
        backend.record_stream(self._storage, stream)

    def is_contiguous(self, memory_format: memory_format = contiguous_format) -> bool:
        if memory_format is contiguous_format:
            return self._spec.layout.contiguous
        if memory_format not in (channels_last, channels_last_3d):
            raise RuntimeError(f"is_contiguous: unsupported memory format {memory_format}.")
        if self.ndim != (4 if memory_format is channels_last else 5):
            return False
        return is_channels_last(self._spec.shape, self._spec.strides)

    def is_floating_point(self) -> bool:
        return self._spec.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self._spec.dtype.is_complex

    def is_signed(self) -> bool:
        return self._spec.dtype.is_signed

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether both are the same window on the same memory."""
        return (
            self._storage.root is tensor._storage.root
            and self._offset == tensor._offset
            and self._spec.layout is tensor._spec.layout
        )

    def is_inference(self) -> bool:
        return self._inference

    # Lazily conjugated and negated views (`surface/pending.py`) say which they are.
    _flip = ""

    def is_conj(self) -> bool:
        return self._flip == "conj"

    def is_neg(self) -> bool:
        return self._flip == "neg"

    def resolve_conj(self) -> Self:
        return F.resolve_conj(self) if self._flip else self

    def resolve_neg(self) -> Self:
        return F.resolve_neg(self) if self._flip else self

    @property
    def is_cuda(self) -> bool:
        return self._spec.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        return self._spec.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self._spec.device.type == "meta"

    is_sparse = False
    is_sparse_csr = False
    is_nested = False
    is_quantized = False

    @property
    def layout(self) -> layout:
        return strided

    def get_device(self) -> int:
        return -1 if self._spec.device.index is None else self._spec.device.index

    @property
    def _version(self) -> int:
        return self._storage.version

    @property
    def _writes(self) -> int:
        """In-place writes to the memory, also those that `_version` leaves out."""
        return self._storage.writes
