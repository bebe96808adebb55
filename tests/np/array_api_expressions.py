"""Expressions of the array-API standard, by family, over the arrays that `array_api_check.variables` makes.

A is float64 3x4, B float32 of 4, I int32 3x4, U uint8 of 6, M two 3x3 matrices, S a symmetric one, C complex128 3x4,
T bool 3x4, E float64 0x3, Z without dimensions, R a float64 line, D distinct integers.
"""

from __future__ import annotations

EXPRESSIONS: dict[str, list[str]] = {}


def family(name: str, text: str) -> None:
    EXPRESSIONS[name] = [line.strip() for line in text.strip().splitlines()]


family(
    "creation",
    """
    xp.arange(5)
    xp.arange(2, 9, 3)
    xp.arange(0., 1., .25)
    xp.arange(3, dtype=xp.float32)
    xp.arange(5, 0, -2)
    xp.asarray(3)
    xp.asarray([1, 2])
    xp.asarray([1.5])
    xp.asarray([True])
    xp.asarray([1j])
    xp.asarray([1, 2], dtype=xp.float32)
    xp.asarray(A, copy=True)
    xp.asarray(A, copy=False)
    xp.empty((2, 3)).shape
    xp.empty_like(I).dtype
    xp.eye(3)
    xp.eye(2, 3, k=1)
    xp.eye(3, k=-5)
    xp.full((2,), 3)
    xp.full((2,), 3.5)
    xp.full((2,), True)
    xp.full((2,), 1j)
    xp.full((), 3, dtype=xp.int8)
    xp.full_like(I, 4)
    xp.full_like(A, 4, dtype=xp.int16)
    xp.linspace(0, 1, 5)
    xp.linspace(0, 1, 4, endpoint=False)
    xp.linspace(0, 3, 1)
    xp.linspace(1, 2, 3, dtype=xp.float32)
    xp.meshgrid(R, R)
    xp.meshgrid(R, R, indexing="ij")
    xp.ones((2, 2))
    xp.ones_like(T)
    xp.tril(A)
    xp.triu(A, k=1)
    xp.tril(M, k=-1)
    xp.zeros(3, dtype=xp.uint8)
    xp.zeros_like(C)
    xp.from_dlpack(A)
    xp.zeros((2, 3), dtype=xp.bool)
    xp.ones(0)
    xp.linspace(0, 1, 0)
    xp.arange(0)
    xp.linspace(0j, 1 + 1j, 3)
    """,
)


family(
    "dtypes",
    """
    xp.astype(A, xp.int32)
    xp.astype(I, xp.bool)
    xp.astype(T, xp.float32)
    xp.astype(A, xp.float64, copy=False)
    xp.can_cast(xp.int32, xp.int64)
    xp.can_cast(xp.float64, xp.float32)
    xp.can_cast(I, xp.int64)
    xp.finfo(xp.float32).bits
    xp.finfo(xp.float32).eps
    xp.finfo(xp.float64).max
    xp.finfo(xp.complex64).smallest_normal
    xp.finfo(xp.float64).min
    xp.iinfo(xp.int8).max
    xp.iinfo(xp.uint64).max
    xp.iinfo(xp.int16).bits
    xp.iinfo(xp.int16).min
    xp.isdtype(xp.float32, "real floating")
    xp.isdtype(xp.int8, ("integral", "bool"))
    xp.isdtype(xp.uint8, "unsigned integer")
    xp.isdtype(xp.float64, xp.float64)
    xp.result_type(xp.int8, xp.uint8)
    xp.result_type(A, B)
    xp.result_type(I, 3)
    xp.result_type(B, 1.0)
    xp.result_type(xp.float32, xp.complex64)
    xp.broadcast_arrays(A, B)
    xp.broadcast_to(B, (2, 4))
    xp.broadcast_to(Z, (2, 2))
    xp.result_type(B, Z)
    xp.result_type(B, 1j)
    """,
)


family(
    "manipulation",
    """
    xp.concat([A, A])
    xp.concat([A, A], axis=1)
    xp.concat([I, I], axis=None)
    xp.concat((B, A[0, :]))
    xp.concat([E, E])
    xp.expand_dims(A, axis=0)
    xp.expand_dims(A, axis=-1)
    xp.flip(A)
    xp.flip(A, axis=1)
    xp.flip(A, axis=(0, 1))
    xp.moveaxis(M, 0, -1)
    xp.moveaxis(M, (0, 1), (1, 2))
    xp.permute_dims(M, (2, 0, 1))
    xp.repeat(U, 2)
    xp.repeat(A, 2, axis=0)
    xp.repeat(R, xp.asarray([1, 0, 2, 1, 3]))
    xp.reshape(A, (4, 3))
    xp.reshape(A, (-1,))
    xp.reshape(A, (2, -1), copy=True)
    xp.reshape(E, (3, 0))
    xp.reshape(Z, (1, 1))
    xp.roll(A, 1)
    xp.roll(A, (1, 2), axis=(0, 1))
    xp.roll(A, -1, axis=1)
    xp.squeeze(A[None, ...], 0)
    xp.stack([A, A])
    xp.stack([B, B], axis=1)
    xp.tile(A, (2, 1))
    xp.tile(B, (2, 2))
    xp.unstack(A)
    xp.unstack(A, axis=1)
    xp.reshape(A, (3, 4), copy=False)
    xp.roll(E, 1, axis=0)
    """,
)


family(
    "indexing",
    """
    A[0, 0]
    A[0, :]
    A[..., 1]
    A[:, ::2]
    A[::-1, :]
    A[:, 3:0:-1]
    A[None, 0, :]
    A[T]
    A[-1, -1]
    M[0, ..., None]
    A[1:1, :]
    Z[()]
    Z[...]
    xp.take(A, xp.asarray([0, 2]), axis=0)
    xp.take(B, xp.asarray([3, 1]))
    xp.take_along_axis(A, xp.argsort(A, axis=1), axis=1)
    xp.take_along_axis(A, xp.asarray([[0], [1], [2]]), axis=1)
    A[xp.asarray([0, 1]), xp.asarray([1, 2])]
    A[xp.asarray([0, 2]), 1]
    xp.where(T, A, 0.0)
    xp.where(T, A, A * 2)
    xp.where(T, 1, I)
    xp.nonzero(I)
    xp.nonzero(T)
    xp.count_nonzero(I)
    xp.count_nonzero(I, axis=1, keepdims=True)
    xp.argmax(A)
    xp.argmax(A, axis=0)
    xp.argmin(A, axis=-1, keepdims=True)
    xp.argmax(U)
    xp.searchsorted(xp.sort(R), R)
    xp.searchsorted(xp.sort(R), R, side="right")
    xp.searchsorted(R, B[:1] * 1.0, sorter=xp.argsort(R))
    """,
)


family(
    "sorting",
    """
    xp.sort(A)
    xp.sort(A, axis=0)
    xp.sort(A, descending=True)
    xp.sort(U, descending=True)
    xp.sort(R, stable=False)
    xp.argsort(A)
    xp.argsort(D, descending=True)
    xp.argsort(U, stable=True)
    xp.argsort(U, descending=True, stable=True)
    xp.argsort(A, axis=0)
    xp.sort(E, axis=0)
    xp.unique_values(D)
    xp.unique_counts(U)
    xp.unique_inverse(I)
    xp.unique_all(U).counts
    xp.unique_all(U).indices
    xp.unique_all(I).inverse_indices
    xp.unique_inverse(A).inverse_indices
    xp.unique_values(E)
    """,
)


family(
    "statistics",
    """
    xp.sum(A)
    xp.sum(A, axis=0)
    xp.sum(A, axis=(0, 1), keepdims=True)
    xp.sum(U)
    xp.sum(I, dtype=xp.float64)
    xp.sum(E)
    xp.sum(C, axis=1)
    xp.sum(B)
    xp.prod(A, axis=1)
    xp.prod(U)
    xp.prod(E, axis=0)
    xp.max(A)
    xp.max(I, axis=0)
    xp.min(A, axis=1, keepdims=True)
    xp.max(U)
    xp.min(B)
    xp.mean(A)
    xp.mean(A, axis=1)
    xp.mean(C)
    xp.mean(B)
    xp.std(A)
    xp.std(A, axis=0, correction=1)
    xp.var(A, axis=(0, 1))
    xp.var(B, correction=1.5)
    xp.var(A, axis=1, keepdims=True)
    xp.cumulative_sum(B)
    xp.cumulative_sum(A, axis=1, include_initial=True)
    xp.cumulative_prod(R)
    xp.cumulative_sum(U)
    xp.cumulative_prod(A, axis=0, dtype=xp.float64, include_initial=True)
    xp.all(T)
    xp.any(T, axis=1)
    xp.all(I, axis=0, keepdims=True)
    xp.any(E)
    xp.all(E)
    xp.diff(R)
    xp.diff(A, axis=0)
    xp.diff(A, n=2)
    xp.diff(R, prepend=R[:1], append=R[:2])
    xp.diff(U)
    xp.max(A, axis=(0, 1))
    xp.sum(Z)
    xp.sum(A, axis=())
    """,
)


family(
    "clip",
    """
    xp.clip(A, 0.0, 1.0)
    xp.clip(I, -1, 2)
    xp.clip(A, xp.asarray(0.5), None)
    xp.clip(A, None, 0.25)
    xp.clip(A)
    xp.clip(B, 0, 1)
    xp.clip(A, min=0)
    xp.clip(A, A - 1, A + 1)
    xp.clip(U, 2, 5)
    xp.clip(E, 0., 1.)
    xp.clip(A, max=A[0, :])
    """,
)


family(
    "linear algebra",
    """
    A @ xp.matrix_transpose(A)
    A @ xp.astype(B, xp.float64)
    xp.matmul(M, M)
    xp.matmul(R, R)
    xp.matrix_transpose(M)
    A.T
    M.mT
    xp.tensordot(A, A, axes=((0, 1), (0, 1)))
    xp.tensordot(A, xp.matrix_transpose(A), axes=1)
    xp.tensordot(R, R, axes=0)
    xp.vecdot(A, A)
    xp.vecdot(C, C)
    xp.linalg.cholesky(S)
    xp.linalg.cholesky(S, upper=True)
    xp.linalg.cross(M, M[::-1, ...])
    xp.linalg.det(M)
    xp.linalg.diagonal(M, offset=1)
    xp.linalg.eigh(S).eigenvalues
    xp.linalg.eigvalsh(S)
    xp.linalg.inv(M)
    xp.linalg.matmul(M, M)
    xp.linalg.matrix_norm(M)
    xp.linalg.matrix_norm(M, ord=1, keepdims=True)
    xp.linalg.matrix_norm(M, ord="nuc")
    xp.linalg.matrix_norm(M, ord=2)
    xp.linalg.matrix_norm(M, ord=-2)
    xp.linalg.matrix_norm(M, ord=xp.inf)
    xp.linalg.matrix_power(M, 3)
    xp.linalg.matrix_power(M, -1)
    xp.linalg.matrix_power(M, 0)
    xp.linalg.matrix_rank(M)
    xp.linalg.matrix_rank(A, rtol=0.1)
    xp.linalg.outer(R, R)
    xp.linalg.pinv(A)
    xp.linalg.pinv(M, rtol=1e-10)
    abs(xp.linalg.qr(A).R)
    xp.linalg.qr(A, mode="complete").Q.shape
    xp.linalg.slogdet(M)
    xp.linalg.solve(M, M)
    xp.linalg.solve(S, xp.linalg.diagonal(S))
    xp.linalg.svd(A).S
    xp.linalg.svd(A, full_matrices=False).U.shape
    xp.linalg.svdvals(A)
    xp.linalg.trace(M)
    xp.linalg.trace(M, offset=-1, dtype=xp.float64)
    xp.linalg.vecdot(A, A)
    xp.linalg.vector_norm(A)
    xp.linalg.vector_norm(A, axis=0, ord=1)
    xp.linalg.vector_norm(A, axis=1, ord=xp.inf, keepdims=True)
    xp.linalg.vector_norm(A, ord=0)
    xp.linalg.vector_norm(A, ord=3.5)
    xp.linalg.vector_norm(M, axis=(0, 2), ord=-xp.inf)
    xp.linalg.tensordot(A, A)
    xp.linalg.matrix_transpose(A)
    xp.linalg.vector_norm(C)
    xp.linalg.det(xp.astype(S, xp.float32))
    """,
)


family(
    "fft",
    """
    xp.fft.fft(C)
    xp.fft.fft(C, n=3, axis=0)
    xp.fft.fft(C, norm="ortho")
    xp.fft.ifft(C)
    xp.fft.fftn(C)
    xp.fft.fftn(C, s=(2, 2), axes=(0, 1))
    xp.fft.ifftn(C, norm="forward")
    xp.fft.rfft(A)
    xp.fft.rfft(B)
    xp.fft.irfft(C)
    xp.fft.irfft(C, n=5)
    xp.fft.rfftn(A)
    xp.fft.irfftn(C)
    xp.fft.hfft(C)
    xp.fft.ihfft(A)
    xp.fft.fftfreq(5)
    xp.fft.fftfreq(4, d=0.5)
    xp.fft.rfftfreq(5)
    xp.fft.fftshift(A)
    xp.fft.fftshift(A, axes=0)
    xp.fft.ifftshift(R)
    xp.fft.fft(xp.astype(C, xp.complex64)).dtype
    xp.fft.rfft(B).dtype
    xp.fft.fftfreq(5, dtype=xp.float32)
    """,
)


family(
    "object",
    """
    len(A.shape)
    A.ndim
    A.size
    I.dtype
    A.device == A.device
    bool(Z)
    float(Z)
    int(Z)
    complex(Z)
    [1, 2, 3][xp.asarray(1)]
    -A
    +A
    abs(C)
    ~I
    ~T
    A.T
    2 + I
    2.5 * A
    3 - A
    1 / A
    7 // I[:, :0]
    2 ** A
    A ** 2
    I % 3
    I & 3
    5 | I
    I ^ 1
    I << 1
    I >> 1
    A < 0.5
    A == A
    I != 3
    True & T
    I + 2
    B * 2
    B + 1.0
    C * 1j
    U * 3
    xp.astype(A, xp.float32) + B
    A.to_device(A.device)
    A.__array_namespace__().__name__ and 1
    A.__dlpack_device__()
    """,
)
