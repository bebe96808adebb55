"""States of all ranks in one folder: each rank writes what it holds, any number of ranks reads it."""

from __future__ import annotations

from .background import async_save
from .files import load, save
from .folders import StepFolders
from .state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)

__all__ = [
    "StateDictOptions", "StepFolders", "async_save", "get_model_state_dict", "get_optimizer_state_dict",
    "get_state_dict", "load", "save", "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip
