"""What autocast may do to an operator; the declarations say what it does to each, per device.

    lower     floating-point arguments are cast to the autocast dtype: products, convolutions
    float32   they are cast to float32: what loses too much in 16 bits
    widest    they are cast to the widest dtype among them
    off       they stay, and so do those of the operators inside
    refused   the operator raises an error: no dtype would be right
    (absent)  the operator runs in the dtypes it gets

The policies are those of torch 2.13 (ATen/autocast_mode.cpp for the CPU, autocast_mode.h for CUDA), so that a program
gets the same dtypes here; a few operators were added because torch writes them with listed ones and votive does not,
and `off` marks the opposite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Policy = Literal["lower", "float32", "widest", "off", "refused"]
Policies = Mapping[str, Policy]

DEVICES = ("cpu", "cuda", "remote", "webgpu")
LOWER: Policies = {"cpu": "lower", "cuda": "lower"}
FLOAT32: Policies = {"cpu": "float32", "cuda": "float32"}


def policed(device: str) -> str:
    """The device whose policies hold on a device: those of the GPU for one that is elsewhere, or of another maker.

    >>> from votive.ops.autocast_policy import policed
    >>> policed("remote"), policed("cpu")
    ('cuda', 'cpu')
    """
    return "cuda" if device in ("remote", "webgpu") else device
