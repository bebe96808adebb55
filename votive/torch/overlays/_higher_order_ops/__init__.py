"""`torch._higher_order_ops`: operators that take functions, as far as libraries import them."""

from __future__ import annotations

from .associative_scan import associative_scan

__all__ = ["associative_scan"]
