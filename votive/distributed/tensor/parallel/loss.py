"""`loss_parallel`: cross entropy of scores that are cut along the classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..state import here


@contextmanager
def loss_parallel() -> Iterator[None]:
    """Compute cross entropy, inside of the block, where scores lie in shards along the classes: no rank gets all.

    >>> from votive.distributed.tensor import distribute_tensor, Shard
    >>> from votive.distributed.tensor.parallel import loss_parallel
    >>> def loss():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     scores = distribute_tensor(votive.zeros(3, 4), mesh, [Shard(1)]).requires_grad_()
    ...     targets = distribute_tensor(votive.tensor([0, 1, 3]), mesh)
    ...     with loss_parallel():
    ...         found = votive.nn.functional.cross_entropy(scores, targets)
    ...         found.backward()
    ...     return round(found.full_tensor().item(), 4), scores.grad.placements
    >>> votive.distributed.simulate(loss, 2)[0]
    (1.3863, (Shard(dim=1),))
    """
    before, here.loss_parallel = here.loss_parallel, True
    try:
        yield
    finally:
        here.loss_parallel = before
