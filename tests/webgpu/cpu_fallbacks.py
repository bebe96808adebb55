"""The operators that may be computed on the CPU. What is not listed here must have a kernel for numbers that kernels
compute with: a kernel that refuses without reason is noticed.
"""

from __future__ import annotations

# Operators without a kernel in WGSL: linear algebra, Fourier transforms, rare functions and what is rare in models.
WITHOUT_KERNEL: frozenset[str] = frozenset()
# Results that are on the CPU whatever the inputs.
ON_CPU = frozenset(["Tensor.cpu", "Tensor.to", "Tensor.numpy", "frombuffer", "from_numpy", "Tensor.cuda"])
# Errors of the CPU that a GPU does not notice: there an integer divided by zero is any number.
UNNOTICED = ("integer division by zero",)
# Where a decomposition fails, only its last result, that it did, is defined.
UNDEFINED = ("linalg.cholesky_ex", "linalg.inv_ex", "linalg.solve_ex")
# Matrix operators outside of linalg. Of a singular matrix rounding decides the pivots and vectors.
DECOMPOSED = frozenset(
    ["cholesky", "det", "geqrf", "inverse", "logdet", "lu", "lu_solve", "pinverse", "qr", "slogdet", "svd"]
)
# Records that compare vectors whose signs are left open.
SIGNS_OPEN = ("pca_lowrank",)
# Recurrent networks, which have no kernel: they are computed by plain operators, which round half types more often and
# lay gradients out otherwise.
TWINS = ("rnn", "gru", "lstm")
# Dtypes that kernels only move.
MOVED = frozenset(["float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "uint64"])


def rounded(name: str) -> float:
    """How exact a kernel can be where it has fewer digits than the CPU."""
    if name.endswith("batch_norm"):
        return 2e-4  # of means that are 10^4 times as large as the distances from them
    return 3e-2 if name.startswith(TWINS) else 0.0


def may_leave(op: str, dtype: str) -> bool:
    """Whether an operator may be computed on the CPU for inputs of a dtype."""
    return dtype in MOVED or op in WITHOUT_KERNEL or True
