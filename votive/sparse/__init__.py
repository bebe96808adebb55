"""Sparse tensors in coordinate (COO), compressed (CSR, CSC) and block-compressed (BSR, BSC) layouts.

>>> a = votive.eye(3).to_sparse()
>>> votive.sparse.mm(a, votive.ones(3, 2))
tensor([[1., 1.],
        [1., 1.],
        [1., 1.]])
"""

from __future__ import annotations

from . import rules
from .construct import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from .convert import sparse_mask, to_dense, to_sparse
from .functions import addmm, as_sparse_gradcheck, log_softmax, mm, sampled_addmm, softmax, solve, spdiags, spsolve, sum
from .interop import from_scipy, to_scipy
from .invariants import check_sparse_tensor_invariants
from .rules.products import hspmm, smm, sspaddmm
from .tensor import CompressedTensor, CooTensor, SparseTensor

dsmm = spmm = mm
hsmm = hspmm
saddmm = addmm

__all__ = [
    "CompressedTensor",
    "CooTensor",
    "SparseTensor",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "dsmm",
    "from_scipy",
    "hsmm",
    "hspmm",
    "log_softmax",
    "mm",
    "rules",
    "saddmm",
    "sampled_addmm",
    "smm",
    "softmax",
    "solve",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "sparse_mask",
    "spdiags",
    "spmm",
    "spsolve",
    "sspaddmm",
    "sum",
    "to_dense",
    "to_scipy",
    "to_sparse",
]
