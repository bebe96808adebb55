"""The glass engine: see, pause, change and re-run every step of a model. Knows no model by name."""

from .address import Address, Pattern
from .capture import Capture, capture
from .console import Console, interact
from .debugger import Breakpoint, Debugger, Event, debug, steps
from .edits import Edit
from .patch import Patch, Receipt, ablate, patch, skip, swap
from .predict import Prediction, predict
from .probe import Frame, Probe
from .session import Session
from .session_diff import SessionDiff
from .session_file import Replay, SessionMismatch, model_hash
from .session_tree import Outlook, SessionNode
from .statistics import Statistics, statistics
from .targets import NoMatch
from .tree import Node, tree

__all__ = [
    "Address", "Breakpoint", "Capture", "Console", "Debugger", "Edit", "Event", "Frame", "NoMatch",
    "Node", "Outlook", "Patch", "Pattern", "Prediction", "Probe", "Receipt", "Replay", "Session",
    "SessionDiff", "SessionMismatch", "SessionNode", "Statistics", "ablate", "capture", "debug",
    "interact", "model_hash", "patch", "predict", "skip", "statistics", "steps", "swap", "tree",
]  # fmt: skip
