"""The names of backends, and which of them are there. Knows no groups."""

from __future__ import annotations

from ..core.similar import did_you_mean

# The names that programs use, and what moves the bytes here: all CPU names mean MPI.
# NCCL moves GPU tensors; ranks find one another, and move all else, by MPI there too.
BACKENDS = {"mpi": "mpi", "gloo": "mpi", "nccl": "mpi", "threads": "threads"}


class Backend(str):
    """The name of a backend, in small letters.

    >>> votive.distributed.Backend("MPI") == votive.distributed.Backend.MPI
    True
    """

    __slots__ = ()
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    THREADS = "threads"
    backend_list = ("undefined", *BACKENDS)

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {type(name).__name__}.")
        return super().__new__(cls, name.lower())


def backend_of(name: str | None) -> tuple[str, str]:
    """What a program calls the backend, and what it is here.

    >>> votive.distributed.backends.backend_of("cpu:gloo,cuda:nccl")
    ('cpu:gloo,cuda:nccl', 'mpi')
    """
    if name is None:
        return "mpi", "mpi"
    given = str(name).lower()
    # "cpu:gloo,cuda:nccl" names one for each kind of device.
    parts = dict(p.split(":", 1) for p in given.split(",") if ":" in p)
    chosen = parts.get("cpu") or parts.get("cuda") or given
    if chosen not in BACKENDS:
        raise ValueError(
            f"Unknown backend {name!r}; use mpi (or gloo, which means the same here), nccl or threads."
            + did_you_mean(chosen, list(BACKENDS))
        )
    return given, BACKENDS[chosen]


def is_available() -> bool:
    """Whether several processes can work together.

    >>> votive.distributed.is_available()
    True
    """
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py and an MPI library are there.

    >>> votive.distributed.is_mpi_available() in (True, False)
    True
    """
    from .transports.mpi import mpi_available

    return mpi_available()


def is_gloo_available() -> bool:
    """Whether a program that asks for "gloo" gets a backend for CPU tensors: MPI, here.

    >>> votive.distributed.is_gloo_available() == votive.distributed.is_mpi_available()
    True
    """
    return is_mpi_available()


def is_nccl_available() -> bool:
    """Whether NVIDIA's NCCL can be loaded; ranks meet by MPI, and GPU tensors go by NCCL.

    >>> votive.distributed.is_nccl_available() in (True, False)
    True
    """
    from .transports.nccl import nccl_available

    return nccl_available()


def is_backend_available(backend: str) -> bool:
    """Whether a backend of this name can be used.

    >>> votive.distributed.is_backend_available("threads"), votive.distributed.is_backend_available("smoke")
    (True, False)
    """
    kind = BACKENDS.get(str(backend).lower())
    if str(backend).lower() == "nccl":
        return is_nccl_available() and is_mpi_available()
    return kind == "threads" or (kind == "mpi" and is_mpi_available())


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process.

    >>> votive.distributed.is_torchelastic_launched()
    False
    """
    import os

    return "TORCHELASTIC_RUN_ID" in os.environ


def get_default_backend_for_device(device: object) -> str:
    """The backend for tensors of a device: MPI, or NCCL for those on GPUs where it is there.

    >>> votive.distributed.get_default_backend_for_device("cpu")
    'mpi'
    """
    from ..core.device import device as place

    kind = place(device).type
    return "nccl" if kind == "cuda" and is_nccl_available() else "mpi"


def supports_complex(reduce_op: object) -> bool:
    """Whether complex numbers can be reduced so.

    >>> votive.distributed.supports_complex(votive.distributed.ReduceOp.MAX)
    False
    """
    return getattr(reduce_op, "name", "") in ("SUM", "AVG", "PRODUCT")
