"""The compiler: programs traced to graphs of operators, which rewrites make faster. What users call stands here."""

from . import replay as _replay  # noqa: F401  # enters itself
from .api import compile, disable, is_compiling, reset
from .explain import explain
from .marks import mark_dynamic, mark_static, maybe_mark_dynamic

__all__ = [
    "compile",
    "disable",
    "explain",
    "is_compiling",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "reset",
]
