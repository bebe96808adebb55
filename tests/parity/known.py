"""What the comparison leaves out, and why. Tables only; test_opinfo.py fails on needless rows."""

from __future__ import annotations

# (operator, mode): why votive differs from torch here. The operator is an OpInfo's name, with
# ":variant" if it has one; the mode is one of harness.MODES.
EXCLUDED: dict[tuple[str, str], str] = {
    ("masked.logaddexp", "gradgrad"): "torch gives nan where both are masked out; 0 here",
    ("svd_lowrank", "forward"): "the signs of vectors are up to the random projection",
    ("pca_lowrank", "forward"): "the signs of vectors are up to the random projection",
    ("linalg.norm:subgradients_at_zero", "gradgrad"): "0 for NaN where the norm has a kink",
    ("as_strided_scatter", "grad"): "torch zeroes what lies outside the window instead of inside",
    ("as_strided_scatter", "gradgrad"): "torch zeroes what lies outside the window, not inside",
    ("gather", "errors"): "arguments are converted one by one, so their overlap is lost on the way",
}

# Operators whose gradient is defined on constrained inputs (Hermitian, triangular, normalised):
# compared through OpInfo's gradcheck_wrapper, which projects the input first. For all others the
# raw gradient has to equal torch's.
PROJECTED: dict[str, str] = {}

# Sums of large products that cancel: (atol, rtol) in float32 as torch's own tests of them
# have it (OpInfo decorators).
ROUNDING: dict[str, tuple[float, float]] = {
    "nn.functional.conv_transpose3d": (1e-4, 1.3e-6),
    "nn.functional.scaled_dot_product_attention": (5e-5, 5e-6),
}

# Memory with undefined content: only dtype, shape and strides mean something.
UNINITIALISED = frozenset(
    {
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    }
)

# Factorisations unique up to signs or phases: compared after the sample's output_process_fn_grad,
# which removes that freedom (absolute values, U @ Vh).
GAUGE = frozenset({"svd", "linalg.svd", "linalg.eig", "linalg.eigh"})

# Operators returning indices that promise no particular one among equal elements (unless asked for
# a stable order); the number is the position of `dim` after the input.
TIES = {"topk": 1, "kthvalue": 1, "median": 0, "nanmedian": 0, "mode": 0, "sort": 0, "argsort": 0}

# torch's in-place form silently resizes an input that would have to broadcast.
GROWS = frozenset({"addbmm"})

# Operators that make no sense outside torch: name pattern -> reason. Listed by `--missing -v` only.
OUT_OF_SCOPE = {
    "_[!_]*": "internal",
    "jiterator_*": "CUDA run-time compiler",
    "torch.*": "internal overloads",
    "native_*": "internal overloads",
    "max_pool2d_with_indices_backward": "internal",
    "*_copy": "internal, for functionalisation",
    "unsafe_*": "internal",
    "grid_sampler_*": "internal overloads of grid_sample",
    "constant_pad_nd": "internal overload of pad",
    "hash_tensor": "internal",
    "nonzero_static": "compiler support",
}
