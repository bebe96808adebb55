"""The operators that may be computed on the CPU. What is not listed here must have a kernel for the numbers that
kernels compute with (not for doubles and complex numbers): a kernel that refuses without reason is noticed.
"""

from __future__ import annotations

# Operators whose kernels refuse some arguments.
SOMETIMES = {
    "_into_window": "windows that overlap",
    "_move_statistics": "half types",
    "_normal": "means and deviations that are tensors",
    "_rope": "cosines and sines that lie differently",
    "all": "bytes, whose result is a byte",
    "linear": "integers",
    "logsumexp": "integers",
    "matmul": "integers",
    "put": "another dtype than the tensor's",
    "_whole_product": "integers",
}
# Operators without a kernel in WGSL: linear algebra, rare functions, and what is rare in models.
_NONE = """
_adaptive_avg_pool _adaptive_avg_pool_transpose _adaptive_max_pool _addbmm _affine_grid _affine_grid_transpose _bag
_bag_argmax _bincount _binomial _cauchy _cdist _cholesky _cholesky_inverse _cholesky_solve _choose _cofactor _cross
_delay_feedback _det _eigh _fold _fractional_max_pool _frexp _geometric _geqrf _grid_sample _grid_sample_backward
_group_norm _group_norm_backward _histc _interleave_indices _inv _isin _lag_products _ldl_factor _ldl_solve _lfilter
_lstsq _lu_factor _masked_scatter _masked_select _matrix_exp _median _multinomial _new_randperm _nonzero _pad
_pad_transpose _pinv _poisson _polyphase _polyphase_transposed _qr _recurrence _reflect _resample
_resample_transpose _row_order _sample _searchsorted _slogdet _solve _solve_triangular _svd _unfold _unique airy_ai
bessel_j0 bessel_j0_backward_input bessel_j1 bessel_j1_backward_input bessel_y0 bessel_y0_backward_input bessel_y1
bessel_y1_backward_input chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
digamma_backward_input hermite_polynomial_h hermite_polynomial_he i0 i0_backward_input i0e i0e_backward_input i1
i1_backward_input i1e i1e_backward_input igamma igammac laguerre_polynomial_l legendre_polynomial_p log_ndtr
modified_bessel_i0 modified_bessel_i0_backward_input modified_bessel_i1 modified_bessel_i1_backward_input
modified_bessel_k0 modified_bessel_k0_backward_input modified_bessel_k1 modified_bessel_k1_backward_input ndtri
nextafter polygamma polygamma_backward_input scaled_modified_bessel_k0 scaled_modified_bessel_k0_backward_x
scaled_modified_bessel_k1 scaled_modified_bessel_k1_backward_x shifted_chebyshev_polynomial_t
shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w spherical_bessel_j0
zeta
"""
WITHOUT_KERNEL = frozenset(SOMETIMES) | frozenset(_NONE.split())
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


def rounded(name: str) -> float:
    """How exact a kernel can be where it has fewer digits than the CPU."""
    if name.endswith("batch_norm"):
        return 2e-4  # of means that are 10^4 times as large as the distances from them
    return 3e-2 if name.startswith(TWINS) else 0.0
