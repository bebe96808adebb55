"""`Trainer` and what it is made of: feed, history, checkpoints, progress, charts; and a language
model from a text file.

Knows models, optimizers and data by what they can do; knows no device's internals.
"""

from . import callbacks as callbacks
from . import chart as chart
from . import corpus as corpus
from . import feed as feed
from . import interruption as interruption
from . import png as png
from . import progress as progress
from . import svg as svg
from .callbacks import Callback, EarlyStopping
from .chart import sparkline
from .checkpoints import CheckpointError, Checkpoints
from .history import History
from .language import Trained, train_language_model
from .recipe import Recipe
from .trainer import Trainer

__all__ = [
    "Callback",
    "CheckpointError",
    "Checkpoints",
    "EarlyStopping",
    "History",
    "Recipe",
    "Trained",
    "Trainer",
    "sparkline",
    "train_language_model",
]
