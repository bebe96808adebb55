"""What walks over graphs and notes something at each node."""

from . import shape_prop

__all__ = ["shape_prop"]
