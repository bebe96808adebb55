"""`Trainer` and what it is made of: feed, history, checkpoints, progress, charts; a language
model from a text file; fine-tuning of models that exist.

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
from .embedding import ranking_loss
from .finetune import classify, dpo, embed, grpo, sft
from .history import History
from .language import Trained, train_language_model
from .policy import grpo_loss
from .preference import dpo_loss
from .recipe import Recipe
from .settings import Settings
from .trainer import Trainer
from .tuning import ClassifyRecipe, DPORecipe, EmbedRecipe, GRPORecipe, SFTRecipe, Tuning

__all__ = [
    "Callback",
    "CheckpointError",
    "Checkpoints",
    "ClassifyRecipe",
    "DPORecipe",
    "EarlyStopping",
    "EmbedRecipe",
    "GRPORecipe",
    "History",
    "Recipe",
    "SFTRecipe",
    "Settings",
    "Trained",
    "Trainer",
    "Tuning",
    "classify",
    "dpo",
    "dpo_loss",
    "embed",
    "grpo",
    "grpo_loss",
    "ranking_loss",
    "sft",
    "sparkline",
    "train_language_model",
]
