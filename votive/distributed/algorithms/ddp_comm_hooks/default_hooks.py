"""Hooks that average a bucket: as it is, or in a half type, which sends half of the bytes.

`model.register_comm_hook(process_group, hook)`: the state of these hooks is the group, None for that of all ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core import dtype as dt
from ....futures import Future
from ....nn.parallel.buckets import GradBucket
from ....tensor import Tensor
from ...group import ProcessGroup
from ...reductions import all_reduce
from ...world import group_of

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip

Hook = Callable[[Any, GradBucket], Future[Any]]


def averaged(group: ProcessGroup | None, tensor: Tensor) -> Future[Any]:
    """The Future of the mean of all ranks' tensors, which is written into this one.

    >>> from votive.distributed.algorithms.ddp_comm_hooks.default_hooks import averaged
    >>> def mean():
    ...     return averaged(None, votive.full((1,), votive.distributed.get_rank() + 1.0)).wait().item()
    >>> votive.distributed.simulate(mean, 2)
    [1.5, 1.5]
    """
    found = group_of(group)
    # Before the sum, so that half types do not overflow.
    tensor.div_(found.size())
    work = all_reduce(tensor, group=found, async_op=True)
    assert work is not None
    return work.get_future().then(lambda f: f.value()[0])


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """The mean, as without any hook.

    >>> bucket = votive.nn.parallel.buckets.GradBucket(0, [votive.ones(2)], last=True)
    >>> hooks = votive.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> votive.distributed.simulate(lambda: hooks.allreduce_hook(None, bucket).wait().tolist(), 1)
    [[0.0, 0.0]]
    """
    return averaged(process_group, bucket.buffer())


def _compressed(process_group: ProcessGroup | None, bucket: GradBucket, kind: dt.dtype) -> Future[Any]:
    buffer = bucket.buffer()
    return averaged(process_group, buffer.to(kind)).then(lambda f: buffer.copy_(f.value()))


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """The mean, sent as float16.

    >>> votive.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook.__name__
    'fp16_compress_hook'
    """
    return _compressed(process_group, bucket, dt.float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """The mean, sent as bfloat16, which has float32's range.

    >>> votive.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook.__name__
    'bf16_compress_hook'
    """
    return _compressed(process_group, bucket, dt.bfloat16)


def _wrapped(hook: Hook, kind: dt.dtype) -> Hook:
    def compressed(state: Any, bucket: GradBucket) -> Future[Any]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(kind))

        def back(f: Future[Any]) -> Tensor:
            found = f.value()
            return buffer.copy_(found[0] if isinstance(found, (list, tuple)) else found)

        return hook(state, bucket).then(back)

    return compressed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook, which is given the bucket as float16.

    >>> hooks = votive.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> callable(hooks.fp16_compress_wrapper(hooks.allreduce_hook))
    True
    """
    return _wrapped(hook, dt.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook, which is given the bucket as bfloat16.

    >>> hooks = votive.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> callable(hooks.bf16_compress_wrapper(hooks.allreduce_hook))
    True
    """
    return _wrapped(hook, dt.bfloat16)
