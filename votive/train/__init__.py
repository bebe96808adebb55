"""`Trainer` and what it is made of: feed, history, checkpoints, progress, charts.

Knows models, optimizers and data by what they can do; knows no device's internals.
"""

from . import callbacks as callbacks
from . import chart as chart
from . import feed as feed
from . import interruption as interruption
from . import png as png
from . import progress as progress
from . import svg as svg
from .callbacks import Callback, EarlyStopping
from .chart import sparkline
from .checkpoints import Checkpoints
from .history import History
from .trainer import Trainer

__all__ = ["Callback", "Checkpoints", "EarlyStopping", "History", "Trainer", "sparkline"]
