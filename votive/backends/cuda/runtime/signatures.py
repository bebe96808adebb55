"""The functions of the CUDA driver that are used, with the types of their arguments, and what a GPU
tells of itself. Knows names and numbers, calls nothing.
"""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass
from typing import Any

_p, _i, _u, _size, _q = c.c_void_p, c.c_int, c.c_uint, c.c_size_t, c.c_uint64
SIGNATURES: dict[str, list[Any]] = {
    "cuInit": [_u],
    "cuDriverGetVersion": [_p],
    "cuDeviceGetCount": [_p],
    "cuDeviceGet": [_p, _i],
    "cuDeviceGetName": [_p, _i, _i],
    "cuDeviceTotalMem_v2": [_p, _i],
    "cuDeviceGetAttribute": [_p, _i, _i],
    "cuDeviceCanAccessPeer": [_p, _i, _i],
    "cuDevicePrimaryCtxRetain": [_p, _i],
    "cuCtxSetCurrent": [_p],
    "cuCtxPushCurrent_v2": [_p],
    "cuCtxPopCurrent_v2": [_p],
    "cuCtxGetStreamPriorityRange": [_p, _p],
    "cuPointerGetAttribute": [_p, _i, _q],
    "cuCtxSynchronize": [],
    "cuMemAlloc_v2": [_p, _size],
    "cuMemFree_v2": [_q],
    "cuMemGetInfo_v2": [_p, _p],
    "cuMemHostAlloc": [_p, _size, _u],
    "cuMemFreeHost": [_p],
    "cuMemcpyHtoDAsync_v2": [_q, _p, _size, _p],
    "cuMemcpyDtoHAsync_v2": [_p, _q, _size, _p],
    "cuMemcpyDtoDAsync_v2": [_q, _q, _size, _p],
    "cuMemcpyPeerAsync": [_q, _p, _q, _p, _size, _p],
    "cuMemsetD8Async": [_q, c.c_ubyte, _size, _p],
    "cuMemsetD32Async": [_q, _u, _size, _p],
    "cuStreamCreateWithPriority": [_p, _u, _i],
    "cuStreamDestroy_v2": [_p],
    "cuStreamSynchronize": [_p],
    "cuStreamQuery": [_p],
    "cuStreamGetPriority": [_p, _p],
    "cuStreamWaitEvent": [_p, _p, _u],
    "cuStreamBeginCapture_v2": [_p, _i],
    "cuStreamEndCapture": [_p, _p],
    "cuStreamIsCapturing": [_p, _p],
    "cuEventCreate": [_p, _u],
    "cuEventDestroy_v2": [_p],
    "cuEventRecord": [_p, _p],
    "cuEventSynchronize": [_p],
    "cuEventQuery": [_p],
    "cuEventElapsedTime_v2": [_p, _p, _p],
    "cuModuleLoadData": [_p, _p],
    "cuModuleUnload": [_p],
    "cuModuleGetFunction": [_p, _p, c.c_char_p],
    "cuFuncSetAttribute": [_p, _i, _i],
    "cuFuncGetAttribute": [_p, _i, _p],
    "cuLaunchKernel": [_p, _u, _u, _u, _u, _u, _u, _u, _p, _p, _p],
    "cuLaunchKernelEx": [_p, _p, _p, _p],
    "cuGraphInstantiateWithFlags": [_p, _p, c.c_ulonglong],
    "cuGraphLaunch": [_p, _p],
    "cuGraphExecDestroy": [_p],
    "cuGraphDestroy": [_p],
    "cuGraphGetNodes": [_p, _p, _p],
    "cuGraphDebugDotPrint": [_p, c.c_char_p, _u],
    "cuProfilerStart": [],
    "cuProfilerStop": [],
    "cuGetErrorName": [_i, _p],
    "cuGetErrorString": [_i, _p],
}
# What may take long; other threads run meanwhile.
SLOW = frozenset(
    ["cuModuleLoadData", "cuMemHostAlloc", "cuMemFreeHost", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"]
)
# Older drivers know these under their first names.
OLDER = {"cuEventElapsedTime_v2": "cuEventElapsedTime"}

ATTRIBUTES = {
    "multi_processor_count": 16,
    "warp_size": 10,
    "max_threads_per_block": 1,
    "max_threads_per_multi_processor": 39,
    "regs_per_multiprocessor": 82,
    "shared_memory_per_block": 8,
    "shared_memory_per_block_optin": 97,
    "shared_memory_per_multiprocessor": 81,
    "L2_cache_size": 38,
    "clock_rate": 13,
    "memory_clock_rate": 36,
    "memory_bus_width": 37,
    "major": 75,
    "minor": 76,
    "is_integrated": 18,
    "pci_bus_id": 33,
    "pci_device_id": 34,
}


@dataclass(frozen=True)
class Properties:
    """What a GPU is, under torch's names."""

    name: str
    total_memory: int
    major: int
    minor: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    is_integrated: int
    pci_bus_id: int
    pci_device_id: int


class _Attribute(c.Structure):
    _fields_ = [("id", c.c_int), ("pad", c.c_int), ("value", c.c_int * 16)]


class Launch(c.Structure):
    _fields_ = [
        ("grid", _u * 3),
        ("block", _u * 3),
        ("shared", _u),
        ("stream", _p),
        ("attributes", c.POINTER(_Attribute)),
        ("count", _u),
    ]


# May start before the launch ahead of it on the stream has ended.
DEPENDENT = _Attribute(6)
DEPENDENT.value[0] = 1
# Starts when all its programs can run at the same time, and not before.
COOPERATIVE = _Attribute(2)
COOPERATIVE.value[0] = 1
