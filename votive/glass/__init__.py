"""The glass engine: see, pause, change and re-run every step of a model. Knows no model by name."""

from .address import Address, Pattern
from .capture import Capture, capture
from .edits import Edit
from .patch import Patch, Receipt, ablate, patch, skip, swap
from .probe import Frame, Probe
from .statistics import Statistics, statistics
from .targets import NoMatch
from .tree import Node, tree

__all__ = [
    "Address", "Capture", "Edit", "Frame", "NoMatch", "Node", "Patch", "Pattern", "Probe",
    "Receipt", "Statistics", "ablate", "capture", "patch", "skip", "statistics", "swap", "tree",
]  # fmt: skip
