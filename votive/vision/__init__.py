"""Images: transforms, files, box and region operators, data sets and models.

Names, arguments and results are torchvision's. Parts are imported when first asked for, Pillow
when an image file or a PIL image is first touched. Knows tensors and modules; knows no device.
"""

from __future__ import annotations

__all__ = ["datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
