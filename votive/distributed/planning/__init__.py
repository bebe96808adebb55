"""What a training would hold, send and take, before any rank is started."""

from __future__ import annotations

from .forecast import Forecast, Plan, Sent, Stage, dry_run
from .machines import MACHINES, Machine, machine_named, measured_here

__all__ = ["MACHINES", "Forecast", "Machine", "Plan", "Sent", "Stage", "dry_run", "machine_named", "measured_here"]
