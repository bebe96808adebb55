"""`torch._guards`: whether tensors are fake ones of torch's tracers, which there are none of here."""

from __future__ import annotations

__all__ = ["detect_fake_mode"]


def detect_fake_mode(_inputs: object = None) -> None:
    """The mode that made fake tensors among the inputs: None, since tensors without values are those of "meta"."""
    return
