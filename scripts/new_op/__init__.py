"""Writes a new operator: declaration, kernels and catalog record, small but working, ready to be filled in.

Run as `python -m votive.new_op NAME` in a checkout of the repository.
"""

from .command import main

__all__ = ["main"]
