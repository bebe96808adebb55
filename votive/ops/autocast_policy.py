"""What autocast does to each operator, per device; names and policies only.

    lower     floating-point arguments are cast to the autocast dtype: products, convolutions
    float32   they are cast to float32: what loses too much in 16 bits
    widest    they are cast to the widest dtype among them
    off       they stay, and so do those of the operators inside
    refused   the operator raises an error: no dtype would be right
    (absent)  the operator runs in the dtypes it gets

The lists are those of torch 2.13 (ATen/autocast_mode.cpp for the CPU, autocast_mode.h for CUDA), so
that a program gets the same dtypes here; a few names were added because torch writes them with
listed ones and votive does not, and `off` marks the opposite. A declaration may give its own
policies as `autocast={"cpu": "lower", ...}`.
"""

from __future__ import annotations

Policies = dict[str, str]

_PRODUCTS = """
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc
    matmul mm bmm linear addmm baddbmm addbmm linalg.vecdot prelu scaled_dot_product_attention
"""
_LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss huber_loss kl_div
    l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss
    poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
"""

TABLE: dict[str, dict[str, str]] = {
    "cpu": {
        "lower": _PRODUCTS,
        "float32": _LOSSES
        + """
            binary_cross_entropy cross_entropy ctc_loss
            avg_pool3d max_pool3d adaptive_avg_pool3d adaptive_max_pool3d fractional_max_pool2d
            fractional_max_pool3d max_unpool1d max_unpool2d max_unpool3d grid_sample
            cdist polar prod quantile nanquantile stft trace view_as_complex
            cholesky cholesky_inverse cholesky_solve geqrf inverse lu_solve orgqr ormqr pinverse qr
            svd triangular_solve linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig
            linalg.eigh linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.inv
            linalg.inv_ex linalg.lstsq linalg.matrix_rank linalg.qr linalg.solve linalg.svd
            linalg.svdvals linalg.tensorinv linalg.tensorsolve
            fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fft2 fft.ifft2 fft.rfft2
            fft.irfft2 fft.fftn fft.ifftn fft.rfftn fft.irfftn
        """,
        "widest": "cat stack index_copy",
        "off": "dot vdot mv block_diag local_response_norm",
    },
    "cuda": {
        "lower": _PRODUCTS + "addmv addr mv einsum chain_matmul linalg.multi_dot",
        "float32": _LOSSES
        + """
            acos asin cosh erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt sinh softplus
            tan cumprod cumsum prod sum logsumexp softmax log_softmax
            layer_norm group_norm rms_norm norm linalg.vector_norm linalg.matrix_norm
            cosine_similarity cross_entropy dist cdist pdist renorm interpolate
            ldexp mvlgamma normalize pairwise_distance square
        """,
        "widest": "addcdiv addcmul atan2 bilinear cross dot vdot grid_sample index_put tensordot scatter_add",
        "off": "trace scatter scatter_reduce",
        "refused": "binary_cross_entropy",
    },
}


def _by_name() -> dict[str, Policies]:
    found: dict[str, Policies] = {}
    for device, lists in TABLE.items():
        for policy, names in lists.items():
            for name in names.split():
                found.setdefault(name, {})[device] = policy
    return found


BY_NAME = _by_name()


def policies_of(record: str) -> Policies | None:
    """The policies of the operator with this name in the registry."""
    return BY_NAME.get(record.removeprefix("nn.functional."))
