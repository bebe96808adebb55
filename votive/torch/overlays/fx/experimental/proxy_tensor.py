"""`torch.fx.experimental.proxy_tensor`: the question of libraries whether a trace of operators runs."""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The mode that writes operators into a graph: none does here."""
    return
