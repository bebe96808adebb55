"""`torch.distributed` as torch shows it where it was built without: votive trains in one process."""

from __future__ import annotations

__all__ = [
    "get_rank",
    "get_world_size",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
]


def is_available() -> bool:
    """Whether several processes can work together: not here, so libraries take their way for one process."""
    return False


def is_initialized() -> bool:
    """Whether a group of processes was set up."""
    return False


def is_nccl_available() -> bool:
    """Whether NCCL is there."""
    return False


def is_gloo_available() -> bool:
    """Whether Gloo is there."""
    return False


def is_mpi_available() -> bool:
    """Whether MPI is there."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return False


def get_rank(group: object = None) -> int:
    """The number of this process among all."""
    raise ValueError("Default process group has not been initialized: votive trains in one process.")


def get_world_size(group: object = None) -> int:
    """How many processes there are."""
    raise ValueError("Default process group has not been initialized: votive trains in one process.")
