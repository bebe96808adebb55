"""Groups of some of the ranks, and what ranks ask of groups. Knows no collectives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .backends import backend_of
from .check import Call, line_of_caller
from .group import ProcessGroup
from .store import PrefixStore
from .world import GroupMember, group_of, is_member, needed


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some ranks. All ranks call it, unless `use_local_synchronization`; others get `NON_GROUP_MEMBER`.

    >>> def in_pairs():
    ...     group = votive.distributed.new_group([0, 1])
    ...     return group.size() if votive.distributed.get_rank() < 2 else group
    >>> votive.distributed.simulate(in_pairs, 3)
    [2, 2, -100]
    """
    found = needed()
    if pg_options is not None:
        raise ValueError("new_group: pg_options are of one backend of torch's; leave them out.")
    own = found.group.rank()
    members = list(range(found.group.size())) if ranks is None else [int(r) for r in ranks]
    if len(set(members)) != len(members):
        raise ValueError(f"new_group: ranks {members} name a rank twice.")
    if not members or not all(0 <= r < found.group.size() for r in members):
        raise ValueError(f"new_group: ranks {members} are not among 0..{found.group.size() - 1}.")
    if sort_ranks and not use_local_synchronization:
        members.sort()
    shown = found.backend if backend is None else backend_of(backend)[0]
    name = f"{'-'.join(map(str, members))}" if use_local_synchronization else str(next(found.count))
    if use_local_synchronization:
        name += f"/{sum(n.partition('/')[0] == name for n in found.groups)}"
    call = Call("new_group", str(members), str(members), line_of_caller())
    transport = None
    if own in members or not use_local_synchronization:
        transport = found.group.part(call, members if own in members else None, name, use_local_synchronization)
    if transport is None:
        return GroupMember.NON_GROUP_MEMBER
    limit = found.group.timeout if timeout is None else timeout
    made = ProcessGroup(transport, members, name, shown, limit, PrefixStore(name, found.store))
    made.group_desc = group_desc or name
    found.groups[name] = made
    return made


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[Any]]:
    """Groups of `group_size` ranks each that follow one another, of all or of a group: the own one, and all.

    >>> votive.distributed.simulate(lambda: votive.distributed.new_subgroups(2)[0].ranks, 4)
    [[0, 1], [0, 1], [2, 3], [2, 3]]
    """
    ranks = get_process_group_ranks(group)
    size = len(ranks)
    if group_size is None:
        raise ValueError("new_subgroups: give group_size=; how many GPUs a machine has is not asked here.")
    if group_size < 1 or group_size > size or size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    lists = [ranks[at : at + group_size] for at in range(0, size, group_size)]
    # Ranks outside of a group that is given do not call this.
    return _subgroups(lists, timeout, backend, pg_options, group_desc, group is not None)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of the ranks in each list, none of them in two: the own one, and all.

    >>> by = votive.distributed.new_subgroups_by_enumeration
    >>> votive.distributed.simulate(lambda: by([[0, 2], [1]])[0].ranks, 3)
    [[0, 2], [1], [0, 2]]
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    every = [r for ranks in ranks_per_subgroup_list for r in ranks]
    if len(set(every)) != len(every):
        raise ValueError("a rank is in two of the groups.")
    return _subgroups(ranks_per_subgroup_list, timeout, backend, pg_options, group_desc, False)


def _subgroups(
    lists: Sequence[Sequence[int]],
    timeout: timedelta | None,
    backend: str | None,
    pg_options: Any,
    group_desc: str | None,
    local: bool,
) -> tuple[Any, list[Any]]:
    mine, made = None, []
    for ranks in lists:
        one = new_group(ranks, timeout, backend, pg_options, local, group_desc)
        made.append(one)
        if get_rank() in ranks:
            mine = one
    return mine, made


def get_rank(group: Any = None) -> int:
    """The number of this rank in a group; -1 outside of it.

    >>> votive.distributed.simulate(votive.distributed.get_rank, 3)
    [0, 1, 2]
    """
    return group_of(group).rank() if is_member(group) else -1


def get_world_size(group: Any = None) -> int:
    """How many ranks a group has; -1 outside of it.

    >>> votive.distributed.simulate(votive.distributed.get_world_size, 2)
    [2, 2]
    """
    return group_of(group).size() if is_member(group) else -1


def get_backend(group: Any = None) -> str:
    """What moves the bytes of a group, as the program named it.

    >>> votive.distributed.simulate(votive.distributed.get_backend, 1)
    ['threads']
    """
    if not is_member(group):
        raise ValueError("Invalid process group specified")
    return group_of(group).backend


def get_pg_count() -> int:
    """How many groups there are, that of all ranks among them.

    >>> votive.distributed.simulate(votive.distributed.get_pg_count, 2)
    [1, 1]
    """
    return len(needed().groups)


def get_process_group_ranks(group: Any) -> list[int]:
    """The numbers among all of a group's ranks.

    >>> votive.distributed.simulate(lambda: votive.distributed.get_process_group_ranks(None), 2)
    [[0, 1], [0, 1]]
    """
    return list(group_of(group).ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The number among all of a rank of a group.

    >>> votive.distributed.simulate(lambda: votive.distributed.get_global_rank(votive.distributed.group.WORLD, 1), 2)
    [1, 1]
    """
    if not 0 <= group_rank < group.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return group.global_rank(group_rank)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in a group of a rank among all.

    >>> votive.distributed.simulate(lambda: votive.distributed.get_group_rank(votive.distributed.group.WORLD, 1), 2)
    [1, 1]
    """
    return group.group_rank(global_rank, "global_rank")


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine, from LOCAL_RANK.

    >>> votive.distributed.get_node_local_rank(fallback_rank=0)
    0
    """
    for name in ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank.")
    return int(fallback_rank)
