"""What ONNX's operators on shapes, indices and new tensors mean."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .read import Attributes, reads, whole

A = Attributes


@reads("Constant")
def constant(a: A) -> Any:
    for name, dtype in (
        ("value_float", dt.float32),
        ("value_floats", dt.float32),
        ("value_int", dt.int64),
        ("value_ints", dt.int64),
    ):
        if a(name) is not None:
            return F.tensor(a(name), dtype=dtype)
    if a("value") is None:
        raise NotImplementedError("Constant: only numbers are supported.")
    return a("value")


@reads("ConstantOfShape")
def constant_of_shape(a: A, shape: Tensor) -> Any:
    value = a("value")
    if value is None:
        return F.zeros(whole(shape))
    return F.full(whole(shape), value.reshape(-1)[0].item(), dtype=value.dtype)


@reads("Shape")
def shape(a: A, x: Tensor) -> Any:
    return F.tensor(list(x.shape)[a("start", 0) : a("end")], dtype=dt.int64)


@reads("Size")
def size(a: A, x: Tensor) -> Any:
    return F.tensor(x.numel(), dtype=dt.int64)


@reads("Reshape")
def reshape(a: A, x: Tensor, size: Tensor | None = None) -> Any:
    wanted = whole(size) if size is not None else list(a("shape"))
    if not a("allowzero", 0):
        wanted = [x.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    return x.reshape(wanted)


@reads("Flatten")
def flatten(a: A, x: Tensor) -> Any:
    axis = a("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    first = 1
    for n in x.shape[:axis]:
        first *= n
    return x.reshape(first, x.numel() // first if first else 0)


@reads("Transpose")
def transpose(a: A, x: Tensor) -> Any:
    return x.permute(tuple(a("perm", list(range(x.ndim))[::-1])))


@reads("Squeeze")
def squeeze(a: A, x: Tensor, axes: Tensor | None = None) -> Any:
    named = whole(axes) if axes is not None else a("axes")
    if named is None:
        return F.squeeze(x)
    for d in named:
        if x.shape[d] != 1:
            raise ValueError(f"Squeeze: dimension {d} of {tuple(x.shape)} is not 1.")
    return F.squeeze(x, tuple(int(d) for d in named))


@reads("Unsqueeze")
def unsqueeze(a: A, x: Tensor, axes: Tensor | None = None) -> Any:
    named = whole(axes) if axes is not None else list(a("axes"))
    total = x.ndim + len(named)
    for d in sorted(n % total for n in named):
        x = x.unsqueeze(d)
    return x


@reads("Expand")
def expand(a: A, x: Tensor, size: Tensor) -> Any:
    return F.broadcast_to(x, F.broadcast_shapes(tuple(x.shape), tuple(whole(size))))


@reads("Concat")
def concat(a: A, *xs: Tensor) -> Any:
    return F.cat(list(xs), a("axis", 1))


@reads("Split")
def split(a: A, x: Tensor, sizes: Tensor | None = None) -> Any:
    axis = a("axis", 0)
    parts = whole(sizes) if sizes is not None else a("split")
    if parts is None:
        count = a("num_outputs") or a.outputs
        each = -(-x.shape[axis] // count)
        parts = [each] * (count - 1) + [x.shape[axis] - each * (count - 1)]
    return tuple(F.split(x, parts, axis))


@reads("Slice")
def slice_(a: A, x: Tensor, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Any:
    begin = whole(starts) if starts is not None else list(a("starts"))
    end = whole(ends) if ends is not None else list(a("ends"))
    dims = whole(axes) if axes is not None else list(a("axes", range(len(begin))))
    step = whole(steps) if steps is not None else [1] * len(begin)
    for d, lo, hi, by in zip(dims, begin, end, step, strict=True):
        n = x.shape[d]
        first, last, stride = slice(lo, hi, by).indices(n) if by > 0 else _backwards(lo, hi, by, n)
        if stride > 0:
            x = x[(slice(None),) * (d % x.ndim) + (slice(first, max(first, last), stride),)]
        else:
            places = (
                F.arange(first, last, stride, dtype=dt.int64, device=x.device)
                if first > last
                else F.zeros(0, dtype=dt.int64)
            )
            x = F.index_select(x, d, places)
    return x


def _backwards(lo: int, hi: int, by: int, n: int) -> tuple[int, int, int]:
    lo = lo + n if lo < 0 else lo
    hi = hi + n if hi < 0 else hi
    return min(max(lo, -1), n - 1), min(max(hi, -1), n - 1), by


@reads("Gather")
def gather(a: A, x: Tensor, index: Tensor) -> Any:
    axis = a("axis", 0) % x.ndim
    where = F.to(index, dt.int64)
    where = F.where(where < 0, where + x.shape[axis], where)
    flat = F.index_select(x, axis, where.reshape(-1))
    return flat.reshape((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


@reads("GatherElements")
def gather_elements(a: A, x: Tensor, index: Tensor) -> Any:
    axis = a("axis", 0)
    where = F.to(index, dt.int64)
    return F.gather(x, axis, F.where(where < 0, where + x.shape[axis], where))


@reads("GatherND")
def gather_nd(a: A, x: Tensor, index: Tensor) -> Any:
    batch = a("batch_dims", 0)
    parts = list(F.unbind(F.to(index, dt.int64), -1))
    lead = []
    for d in range(batch):
        sizes = [1] * parts[0].ndim
        sizes[d] = x.shape[d]
        lead.append(F.arange(x.shape[d], dtype=dt.int64, device=x.device).reshape(sizes))
    return x[tuple(lead + parts)]


def _combined(x: Tensor, index: tuple[Any, ...], updates: Tensor, how: str) -> Any:
    if how == "none":
        return F.index_put(x, index, updates)
    if how == "add":
        return F.index_put(x, index, updates, True)
    kind = {"mul": "prod", "max": "amax", "min": "amin"}[how]
    places = F.arange(x.numel(), device=x.device).reshape(x.shape)[index]
    flat = F.scatter_reduce(
        x.reshape(-1), 0, places.reshape(-1), F.broadcast_to(updates, places.shape).reshape(-1), kind
    )
    return flat.reshape(x.shape)


@reads("ScatterND")
def scatter_nd(a: A, x: Tensor, index: Tensor, updates: Tensor) -> Any:
    parts = tuple(F.unbind(F.to(index, dt.int64), -1))
    return _combined(x, parts, updates, a("reduction", "none"))


@reads("ScatterElements", "Scatter")
def scatter_elements(a: A, x: Tensor, index: Tensor, updates: Tensor) -> Any:
    axis, how = a("axis", 0), a("reduction", "none")
    where = F.to(index, dt.int64)
    where = F.where(where < 0, where + x.shape[axis], where)
    if how == "none":
        return F.scatter(x, axis, where, updates)
    kind = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[how]
    return F.scatter_reduce(x, axis, where, updates, kind)


@reads("TensorScatter")
def tensor_scatter(a: A, cache: Tensor, update: Tensor, where: Tensor | None = None) -> Any:
    axis, batch = a("axis", -2) % cache.ndim, cache.shape[0]
    made = cache.clone()
    starts = [0] * batch if where is None else whole(where)
    for i, start in enumerate(starts):
        places = F.arange(start, start + update.shape[axis], device=cache.device)
        places = F.remainder(places, cache.shape[axis]) if a("mode", "linear") == "circular" else places
        made[i] = F.index_copy(made[i], axis - 1, places, update[i])
    return made


@reads("NonZero")
def nonzero(a: A, x: Tensor) -> Any:
    return F.nonzero(x).t()


@reads("Range")
def range_(a: A, start: Tensor, limit: Tensor, delta: Tensor) -> Any:
    return F.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


@reads("Tile")
def tile(a: A, x: Tensor, times: Tensor) -> Any:
    return F.tile(x, whole(times))


@reads("Pad")
def pad(a: A, x: Tensor, pads: Tensor | None = None, value: Tensor | None = None, axes: Tensor | None = None) -> Any:
    amounts = whole(pads) if pads is not None else list(a("pads"))
    dims = [d % x.ndim for d in whole(axes)] if axes is not None else list(range(x.ndim))
    n, mode = len(dims), a("mode", "constant")
    fill = value.reshape(-1)[0].item() if value is not None and value.numel() else a("value", 0)
    for i, d in enumerate(dims):
        before, after = amounts[i], amounts[n + i]
        if before < 0 or after < 0:
            keep = x.shape[d] + min(before, 0) + min(after, 0)
            x = F.narrow(x, d, max(-before, 0), keep)
            before, after = max(before, 0), max(after, 0)
        if before or after:
            x = _padded(x, d, before, after, mode, fill)
    return x


def _padded(x: Tensor, d: int, before: int, after: int, mode: str, fill: Any) -> Any:
    size = x.shape[d]
    if mode == "constant":
        shape = list(x.shape)
        parts = []
        for count in (before, after):
            shape[d] = count
            parts.append(F.full(shape, fill, dtype=x.dtype, device=x.device))
        return F.cat([parts[0], x, parts[1]], d)
    places = F.arange(-before, size + after, device=x.device)
    if mode == "edge":
        places = F.clamp(places, 0, size - 1)
    elif mode == "wrap":
        places = F.remainder(places, size)
    else:
        period = max(2 * (size - 1), 1)
        places = F.remainder(places, period)
        places = F.where(places >= size, period - places, places)
    return F.index_select(x, d, places)


@reads("Trilu")
def trilu(a: A, x: Tensor, k: Tensor | None = None) -> Any:
    shift = int(k) if k is not None else 0
    return F.triu(x, shift) if a("upper", 1) else F.tril(x, shift)


@reads("EyeLike")
def eye_like(a: A, x: Tensor) -> Any:
    from .load import dtype_of

    dtype = dtype_of(a("dtype")) if a("dtype") else x.dtype
    rows, columns = x.shape
    places = F.arange(rows).unsqueeze(1) + a("k", 0)
    return F.to(places == F.arange(columns), dtype)


@reads("OneHot")
def one_hot(a: A, index: Tensor, depth: Tensor, values: Tensor) -> Any:
    count, axis = int(depth), a("axis", -1)
    where = F.to(index, dt.int64)
    where = F.where(where < 0, where + count, where)  # what is still outside is nowhere
    axis = axis + index.ndim + 1 if axis < 0 else axis
    sizes = [1] * (index.ndim + 1)
    sizes[axis] = count
    hot = where.unsqueeze(axis) == F.arange(count).reshape(sizes)
    return F.where(hot, values[1], values[0])


@reads("DepthToSpace")
def depth_to_space(a: A, x: Tensor) -> Any:
    b, (n, c, h, w) = a("blocksize"), x.shape
    if a("mode", "DCR") == "DCR":
        return x.reshape(n, b, b, c // (b * b), h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c // (b * b), h * b, w * b)
    return x.reshape(n, c // (b * b), b, b, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, c // (b * b), h * b, w * b)


@reads("SpaceToDepth")
def space_to_depth(a: A, x: Tensor) -> Any:
    b, (n, c, h, w) = a("blocksize"), x.shape
    order = (0, 3, 5, 1, 2, 4) if a("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return x.reshape(n, c, h // b, b, w // b, b).permute(order).reshape(n, c * b * b, h // b, w // b)


@reads("Compress")
def compress(a: A, x: Tensor, condition: Tensor) -> Any:
    axis = a("axis")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    return F.index_select(x, axis, F.nonzero(condition).reshape(-1))


@reads("ReverseSequence")
def reverse_sequence(a: A, x: Tensor, lengths: Tensor) -> Any:
    time, batch = a("time_axis", 0), a("batch_axis", 1)
    n = x.shape[time]
    t = F.arange(n).reshape([-1 if d == time else 1 for d in range(x.ndim)])
    size = lengths.reshape([-1 if d == batch else 1 for d in range(x.ndim)])
    places = F.where(t < size, size - 1 - t, t)
    return F.gather(x, time, F.broadcast_to(places, x.shape))


@reads("Unique")
def unique(a: A, x: Tensor) -> Any:
    import numpy as np

    from ..surface.interchange import from_numpy

    array, axis = x.detach().cpu().numpy(), a("axis")
    values, first, inverse, counts = np.unique(array, True, True, True, axis=axis)
    if not a("sorted", 1):
        order = np.argsort(first)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        values = np.take(values, order, axis or 0)
        first, counts, inverse = first[order], counts[order], back[inverse]
    found = (np.asarray(v) for v in (values, first, inverse.reshape(-1), counts))
    return tuple(from_numpy(np.ascontiguousarray(v)) for v in found)[: a.outputs]


@reads("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")
def random(a: A, *xs: Tensor) -> Any:
    from .load import dtype_of

    if a.op == "Bernoulli":
        return F.to(F.bernoulli(xs[0]), dtype_of(a("dtype")) if a("dtype") else xs[0].dtype)
    if a.op == "Multinomial":
        drawn = F.multinomial(F.softmax(xs[0], -1), a("sample_size", 1), True)
        return F.to(drawn, dtype_of(a("dtype", 6)))
    shape = tuple(xs[0].shape) if xs else tuple(a("shape"))
    dtype = dtype_of(a("dtype")) if a("dtype") else xs[0].dtype if xs else dt.float32
    if a.op.startswith("RandomNormal"):
        return F.randn(shape, dtype=dtype) * a("scale", 1.0) + a("mean", 0.0)
    return F.rand(shape, dtype=dtype) * (a("high", 1.0) - a("low", 0.0)) + a("low", 0.0)
