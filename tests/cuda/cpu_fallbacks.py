"""The operators that may be computed on the CPU, and why. What is not listed here must have a
kernel: a kernel that refuses without reason is noticed.
"""

from __future__ import annotations

import re
from typing import Any

from .device import EMULATED

# Operators without a kernel of their own.
WITHOUT_KERNEL = frozenset(
    [
        "_eig",
        "_ldl_factor",
        "_ldl_solve",
        # Made by the compiler's rules for the CPU only.
        "_linear_cross_entropy",
        "_row_region",
        # Blocks as attention reads them, writing blocks, and layers of 8 bits.
        "_block_attention",
        "_block_encode",
        "_int8_conv",
        "_int8_linear",
        "_int8_linear_dynamic",
        "_quantize_affine",
    ]
)
# Operators whose kernels refuse some arguments.
SOMETIMES: dict[str, str] = {
    "_lstsq": "less than full rank, by the driver 'gelsy'",
    "_convolution": "integers, and samples of 2^31 elements",
    "_convolution_transpose": "integers, and nothing",
    "_convolution_weight": "integers",
}
# Results that are on the CPU whatever the inputs.
ON_CPU = frozenset(["Tensor.cpu", "Tensor.to", "Tensor.numpy", "frombuffer", "from_numpy"])
# Errors of the CPU that a GPU does not notice: there an integer divided by zero is any number.
UNNOTICED = ("integer division by zero",)
# Operators that rename an error of a scatter; a GPU tells it later, under the scatter's name.
RENAMED = frozenset(["index_reduce"])
# Where a decomposition fails, only its last result, that it did, is defined.
UNDEFINED = ("linalg.cholesky_ex", "linalg.inv_ex", "linalg.solve_ex")
# Matrix operators outside of linalg. Of a singular matrix rounding decides the pivots and vectors.
DECOMPOSED = frozenset(
    ["cholesky", "det", "geqrf", "inverse", "logdet", "lu", "lu_solve", "pinverse", "qr", "slogdet", "svd"]
)
# Records that compare vectors whose signs are left open.
SIGNS_OPEN = ("pca_lowrank",)
# Operators whose kernels refuse complex numbers.
COMPLEX = frozenset(["_normal"])


def rounded(name: str, sample: Any) -> float:
    """How exact a GPU can be where it has fewer digits than the CPU."""
    if name in ("nn.functional.batch_norm", "batch_norm") and "low=9900" in repr(sample):
        # The CPU keeps a mean in twice the digits, the GPU, as torch does there, in float32: this
        # one is 10^4 times as large as the distances from it.
        return 2e-4
    if name == "_scaled_mm" and not EMULATED:
        return 2e-3  # tensor cores add products of float8 with some 14 bits
    return 0.0


def empty(record: Any, sample: Any) -> bool:
    """Whether a sample holds nothing: some size is 0."""
    text = repr(sample)
    nothing = re.search(r"shape=\((\d+, )*0,", text) or re.search(r"shape=\((\d+, )+0\)", text)
    return bool(nothing)


def may_leave(op: str, given: str) -> bool:
    """Whether an operator may leave the GPU for inputs of which `given` tells all that is known."""
    return op in WITHOUT_KERNEL or (op in COMPLEX and "complex" in given) or op in SOMETIMES
