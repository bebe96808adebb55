"""What is done with gradients on their way between ranks."""

from __future__ import annotations

from . import ddp_comm_hooks as ddp_comm_hooks
