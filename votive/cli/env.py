"""`votive env`: what is installed and what it can do."""

from __future__ import annotations

import argparse
from typing import Any

from . import Commands, command
from .terminal import print_json


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "env",
        description="Show versions, kernels, threads, devices, operators and bundled models.",
        examples="  votive env\n  votive env --json",
    )
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Print what `gathered` found."""
    from .. import config

    found = gathered()
    if args.json:
        print_json(found)
        return 0
    print(config.show())
    print()
    for name, version in found["packages"].items():
        print(f"{name:<16} {version or 'not installed'}")
    print()
    print(f"devices          {', '.join(found['devices'])}")
    webgpu = found["webgpu"]
    for k, adapter in enumerate(webgpu["adapters"]):
        shown = f"{adapter.get('device')} ({adapter.get('adapter_type')}, {adapter.get('backend_type')})"
        print(f"{'webgpu' if not k else '':<16} {shown}{', used' if not k else ''}")
    if not webgpu["adapters"]:
        print(f"webgpu           {webgpu['reason']}")
    print(f"operators        {found['operators']} public")
    print(f"model families   {', '.join(found['models']['families'])}")
    print(f"bundled models   {', '.join(found['models']['bundled']) or 'none'}")
    return 0


def gathered() -> dict[str, Any]:
    """Versions, devices, threads and counts."""
    import os
    import platform

    from .. import config
    from .._version import __version__
    from ..backends.base import TABLE
    from ..backends.cpu.native import loader
    from ..models import bundled, families
    from .explain import operators

    return {
        "votive": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": config.get_num_threads(),
        "native": {
            "available": loader.module is not None,
            "level": loader.module.level if loader.module is not None else None,
            "reason": loader.reason,
        },
        "packages": {n: _version(n) for n in _PACKAGES},
        "webgpu": _webgpu(),
        "devices": sorted({device for _, device in TABLE}),
        "operators": len(operators()),
        "models": {"families": families(), "bundled": bundled()},
    }


def _webgpu() -> dict[str, Any]:
    """The adapters of WebGPU, or why there are none."""
    from ..core.errors import WebGpuError
    from ..webgpu import get_adapters

    try:
        found = get_adapters()
    except WebGpuError as e:
        return {"adapters": [], "reason": str(e).removeprefix("webgpu: ").rstrip(".")}
    return {"adapters": found, "reason": "" if found else "no adapter was found"}


# What some commands use and may be absent.
_PACKAGES = ("numpy", "ml_dtypes", "rich", "tokenizers", "jinja2", "huggingface_hub")


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
