"""Tables of 8-bit codes whose rows become numbers when they are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import nn
from ....core import affine
from ....nn import functional as NF
from ....ops.registry import F
from ....surface.quantized_functions import per_channel_quantized
from ....surface.quantized_tensor import QuantizedTensor
from ....tensor import Tensor
from .observed import quantized_weight

if TYPE_CHECKING:
    from ....nn.module import Module


class EmbeddingPackedParams(nn.Module):
    """The codes of a table, with a scale and a zero for each row."""

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = affine.quint8) -> None:
        super().__init__()
        if dtype is not affine.quint8:
            raise NotImplementedError(f"tables are quint8 here, got {dtype!r}.")
        self.dtype = dtype
        codes = F.zeros((num_embeddings, embedding_dim), dtype=dtype.codes)
        scales, zeros = F.ones(num_embeddings), F.zeros(num_embeddings)
        self.set_weight(per_channel_quantized(codes, scales, zeros, 0))

    def set_weight(self, weight: Tensor) -> None:
        """Take another table."""
        if not isinstance(weight, QuantizedTensor) or weight.dtype is not affine.quint8 or weight._axis != 0:
            raise RuntimeError("a table is a quint8 tensor with scales along its rows.")
        self._packed_weight = weight

    def _weight(self) -> QuantizedTensor:
        return self._packed_weight

    def rows(self, indices: Tensor) -> Tensor:
        """Some rows as numbers."""
        w = self._packed_weight
        codes = NF.embedding(indices, w._codes).to(w.q_per_channel_scales().dtype)
        scale, zero = (v[indices].unsqueeze(-1) for v in (w.q_per_channel_scales(), w.q_per_channel_zero_points()))
        out: Tensor = ((codes - zero) * scale).float()
        return out

    def forward(self, x: Any) -> Any:
        return x

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        taken = dict(state_dict)
        taken.pop(prefix + "dtype", None)
        weight = taken.pop(prefix + "_packed_weight", None)
        if weight is None:
            rest[2].append(prefix + "_packed_weight")
        else:
            self.set_weight(weight)
        super()._load_from_state_dict(taken, prefix, *rest)

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(nn.Module):
    """A table of codes.

    >>> votive.ao.nn.quantized.Embedding(10, 12)(votive.tensor([9, 6, 5])).shape
    votive.Size([3, 12])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        _weight: Tensor | None = None,
        dtype: Any = affine.quint8,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.dtype = dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            self.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        return self._packed_params.rows(indices)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, dtype={self.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Tensor) -> None:
        """Take another table."""
        if tuple(w.shape) != (self.num_embeddings, self.embedding_dim):
            raise AssertionError(
                f"the table has shape {(self.num_embeddings, self.embedding_dim)}, got {tuple(w.shape)}."
            )
        self._packed_params.set_weight(w)

    def weight(self) -> QuantizedTensor:
        """The codes."""
        return self._packed_params._weight()

    @classmethod
    def _codes_of(cls, mod: Module) -> QuantizedTensor:
        observer: Any = getattr(mod, "weight_fake_quant", None)
        if observer is None:
            if getattr(mod, "qconfig", None) is None or mod.qconfig.weight is None:
                raise AssertionError("Embedding: the module has no qconfig with an observer for its weight")
            observer = mod.qconfig.weight()
            observer(mod.weight.detach())
        if observer.dtype is not affine.quint8 or observer.qscheme is not affine.per_channel_affine_float_qparams:
            raise AssertionError(
                "Embedding quantization is only supported with float_qparams_weight_only_qconfig, "
                f"got {observer.dtype} and {observer.qscheme}."
            )
        return quantized_weight(mod.weight, observer)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The table that an embedding becomes."""
        if getattr(mod, "max_norm", None) is not None:
            raise AssertionError("Embedding: max_norm writes into the table, and codes are not written.")
        made = cls(mod.num_embeddings, mod.embedding_dim, mod.padding_idx)
        made.set_weight(cls._codes_of(mod))
        return made


class EmbeddingBag(Embedding):
    """Sums, means or maxima over rows of a table of codes."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "sum",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        dtype: Any = affine.quint8,
    ) -> None:
        if max_norm is not None or scale_grad_by_freq or sparse or norm_type != 2.0:
            raise NotImplementedError("EmbeddingBag: max_norm, scale_grad_by_freq and sparse are for training.")
        super().__init__(num_embeddings, embedding_dim, None, _weight, dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(
        self, indices: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        # The rows that are needed, numbered anew, are the table.
        needed, where = F.unique(indices, return_inverse=True)
        table = self._packed_params.rows(needed)
        how = {"per_sample_weights": per_sample_weights, "include_last_offset": self.include_last_offset}
        out: Tensor = NF.embedding_bag(where.reshape(indices.shape), table, offsets, mode=self.mode, **how)
        return out

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        if getattr(mod, "max_norm", None) is not None:
            raise AssertionError("EmbeddingBag: max_norm writes into the table, and codes are not written.")
        last = mod.include_last_offset
        made = cls(mod.num_embeddings, mod.embedding_dim, mode=mod.mode, include_last_offset=last)
        made.set_weight(cls._codes_of(mod))
        return made
