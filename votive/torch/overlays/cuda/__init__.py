"""`torch.cuda`: the legacy constructors, and names that only torch has."""

from __future__ import annotations

import votive

from ....core import dtype as dt
from ....core.device import DeviceLike
from ....core.errors import OutOfMemoryError
from ...tensor_types import NAMES, tensor_type
from ...typed_storage import legacy

for _name in NAMES:
    globals()[f"{_name}Tensor"] = tensor_type(_name, "cuda")
_STORAGES = {**NAMES, "ComplexFloat": dt.complex64, "ComplexDouble": dt.complex128}
for _name, _kind in _STORAGES.items():
    globals()[f"{_name}Storage"] = legacy(_name, _kind, "cuda")
has_half = True
has_magma = False


def get_gencode_flags() -> str:
    """Flags for NVCC; no kernel here is compiled by it."""
    return ""


def list_gpu_processes(device: DeviceLike = None) -> str:
    """Which processes use a GPU, as `nvidia-smi` says."""
    import subprocess

    index = votive.cuda.current_device() if device is None else votive.device(device).index or 0
    query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader", "-i", str(index)]
    rows = subprocess.run(query, check=True, capture_output=True, text=True).stdout.split("\n")
    lines = [f"process {pid:>10}    uses {used} GPU memory" for pid, _, used in (r.partition(", ") for r in rows if r)]
    return "\n".join([f"GPU:{index}", *(lines or ["no processes are running"])])


class DeferredCudaCallError(Exception):
    """A call that was kept until CUDA came up failed."""


__all__ = ["DeferredCudaCallError", "OutOfMemoryError", "get_gencode_flags", "has_half", "has_magma"]
__all__ += ["list_gpu_processes"]
__all__ += [f"{name}Tensor" for name in NAMES] + [f"{name}Storage" for name in _STORAGES]
