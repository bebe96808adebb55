"""Whether NCCL works on this machine: `python scripts/nccl_check.py`, with `votive launch -n N` on N GPUs.

Each collective is compared with what the host gives. With fewer GPUs than ranks NCCL cannot connect them; GPU tensors
then go by MPI and the host (`--staged`), which is checked in its place. Ends with code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import votive
import votive.distributed as dist
from votive.distributed.transports import nccl

KINDS = (votive.float32, votive.float16, votive.bfloat16, votive.int64, votive.tensor(True).dtype, votive.complex64)


def cases(kind: votive.dtype) -> dict[str, Callable[[str], Any]]:
    """What is compared: functions of the device that give a tensor."""
    rank, count = dist.get_rank(), dist.get_world_size()

    def drawn(where: str, *shape: int) -> Any:
        numbers = votive.arange(float(votive.Size(shape).numel())).view(shape) % 5 + rank
        return numbers.to(kind).to(where)

    def all_reduce(where: str) -> Any:
        x = drawn(where, 1000)
        dist.all_reduce(x)
        return x

    def beside(where: str) -> Any:
        x = drawn(where, 1 << 16)
        work = dist.all_reduce(x, async_op=True)
        assert work is not None
        work.wait()
        return x + x

    def reduce(where: str) -> Any:
        x = drawn(where, 100)
        dist.reduce(x, 0)
        return x if rank == 0 else None

    def broadcast(where: str) -> Any:
        x = drawn(where, 100)
        dist.broadcast(x, count - 1)
        return x

    def all_gather(where: str) -> Any:
        out = votive.empty(count * 8, dtype=kind, device=where)
        dist.all_gather_into_tensor(out, drawn(where, 8))
        return out

    def reduce_scatter(where: str) -> Any:
        out = votive.empty(8, dtype=kind, device=where)
        dist.reduce_scatter_tensor(out, drawn(where, 8 * count))
        return out

    def all_to_all(where: str) -> Any:
        out = votive.empty(count * 8, dtype=kind, device=where)
        dist.all_to_all_single(out, drawn(where, 8 * count))
        return out

    def scatter(where: str) -> Any:
        x = votive.empty(8, dtype=kind, device=where)
        dist.scatter(x, list(drawn(where, count, 8)) if rank == 0 else None, 0)
        return x

    def gather(where: str) -> Any:
        rows = [votive.empty(8, dtype=kind, device=where) for _ in range(count)]
        dist.gather(drawn(where, 8), rows if rank == 0 else None, 0)
        return votive.stack(rows) if rank == 0 else None

    def ring(where: str) -> Any:
        found = votive.empty(8, dtype=kind, device=where)
        if count == 1:
            return None
        ops = [dist.P2POp(dist.isend, drawn(where, 8), (rank + 1) % count),
               dist.P2POp(dist.irecv, found, (rank - 1) % count)]  # fmt: skip
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return found

    return {f.__name__: f for f in (all_reduce, beside, reduce, broadcast, all_gather, reduce_scatter, all_to_all,
                                    scatter, gather, ring)}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--staged", action="store_true", help="by MPI and the host, on as few GPUs as there are")
    staged = parser.parse_args().staged
    if not votive.cuda.is_available():
        sys.exit("nccl_check: there is no GPU.")
    if not staged and not nccl.library.load():
        sys.exit(f"nccl_check: {nccl.library.reason}.")
    alone = "WORLD_SIZE" not in os.environ
    backend = "mpi" if staged else "nccl"
    if alone:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    else:
        dist.init_process_group(backend)
    rank, count = dist.get_rank(), dist.get_world_size()
    gpus = votive.cuda.device_count()
    if not staged and dist.get_node_local_rank(0) >= gpus:
        sys.exit(f"nccl_check: rank {rank} has no GPU of its own; there are {gpus}. Use --staged.")
    votive.cuda.set_device(dist.get_node_local_rank(0) % gpus)
    if rank == 0:
        by = "MPI and the host" if staged else "NCCL " + ".".join(map(str, nccl.library.version()))
        print(f"{count} ranks by {by} on {votive.cuda.get_device_name()}")
    wrong = 0
    for kind in KINDS:
        for name, case in cases(kind).items():
            wanted, found = case("cpu"), case("cuda")
            same = found is None or votive.allclose(found.cpu().to(votive.complex128), wanted.to(votive.complex128))
            wrong += not same
            if not same or rank == 0:
                print(f"rank {rank}  {name:15} {kind!s:17} {'the same' if same else 'DIFFERS'}")
    x = votive.ones(1 << 24, device="cuda")
    for _ in range(3):
        dist.all_reduce(x)
    votive.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(10):
        dist.all_reduce(x)
    votive.cuda.synchronize()
    if rank == 0:
        print(f"all_reduce of 64 MiB: {(time.perf_counter() - start) * 100:.3f} ms")
    dist.destroy_process_group()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
