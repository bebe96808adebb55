"""The compiler: programs traced to graphs of operators, which rewrites make faster. What users call stands here."""

from . import replay as _replay  # noqa: F401  # enters itself
from .api import compile, disable, is_compiling, reset
from .explain import explain

__all__ = ["compile", "disable", "explain", "is_compiling", "reset"]
