"""`votive.distributed`: several processes that compute together, on MPI and NCCL, by torch's names.

Nothing of it is loaded before it is used; MPI starts with `init_process_group`.
"""

from __future__ import annotations

from typing import Any as _Any

from .backends import (
    Backend,
    get_default_backend_for_device,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    supports_complex,
)
from .collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    scatter,
)
from .device_mesh import DeviceMesh, init_device_mesh
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError
from .group import ProcessGroup
from .groups import (
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from .memory import memory_by_rank
from .messages import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .reduce_op import ReduceOp
from .reductions import all_reduce, all_reduce_coalesced, reduce, reduce_scatter, reduce_scatter_tensor
from .simulation import simulate
from .store import DEFAULT_TIMEOUT as default_pg_timeout
from .store import FileStore, HashStore, PrefixStore, Store
from .tcp_store import TCPStore
from .timeline import export_timeline
from .work import Work
from .world import GroupMember, destroy_process_group, group, init_process_group, is_initialized

__all__ = [
    "Backend", "DeviceMesh", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore",
    "GroupMember", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "TCPStore", "Work",
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "export_timeline", "gather",
    "gather_object", "get_backend", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_device_mesh", "init_process_group",
    "irecv", "is_available", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "isend", "memory_by_rank", "monitored_barrier", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list", "simulate",
    "supports_complex",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    # What few programs use is found when first asked for.
    from importlib import import_module

    if name in ("algorithms", "checkpoint", "fsdp", "optim", "pipelining", "planning", "tensor"):
        return import_module(f"{__name__}.{name}")
    if name in ("Plan", "dry_run"):
        return getattr(import_module(f"{__name__}.planning"), name)
    if name == "GradBucket":
        return import_module("..nn.parallel.buckets", __name__).GradBucket
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
