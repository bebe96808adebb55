"""`torch.return_types`: the classes of results with names."""

from __future__ import annotations

from ...ops import results

# Classes that are made when their operator is first called.
results.results("aminmax", "min", "max")
results.results("frexp", "mantissa", "exponent")
_PUBLIC = {name: kind for name, kind in results.TYPES.items() if not name.startswith("_")}
globals().update(_PUBLIC)
globals().update({f"{name}_out": kind for name, kind in _PUBLIC.items()})
all_return_types = list(_PUBLIC.values())


def pytree_register_structseq(cls: type) -> None:
    """Results with names are tuples to trees already."""
    if not issubclass(cls, results.Results):
        raise TypeError(f"pytree_register_structseq: takes a class of results, got {cls.__name__}.")


__all__ = ["all_return_types", "pytree_register_structseq"]
__all__ += [*_PUBLIC, *(f"{name}_out" for name in _PUBLIC)]
