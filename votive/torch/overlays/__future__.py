"""`torch.__future__`: how conversions of modules treat their parameters."""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether `module.to()` makes new parameters: it gives the old ones new memory."""
    return False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Ask for new parameters; only False is here."""
    if value:
        raise NotImplementedError("Parameters keep their identity here: module.to() gives them new memory.")


def get_swap_module_params_on_conversion() -> bool:
    """Whether `module.to()` swaps parameters: it gives the old ones new memory."""
    return False


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Ask for swapping; only False is here."""
    if value:
        raise NotImplementedError("Parameters keep their identity here: module.to() gives them new memory.")
