"""Features of models: sparse autoencoders and their kin, trained, spliced in and shown. Knows no model by name."""

from .coder import SAE
from .config import SAEConfig
from .dashboard import Dashboard, FeatureView, dashboard
from .formats import load, load_gemma_scope, load_saelens, save_gemma_scope, save_saelens
from .losses import Losses, losses
from .measures import Quality, measure
from .splice import Splice, splice, steer
from .store import ActivationStore, Rows, collect
from .training import SAETrainer, SAETraining

__all__ = [
    "SAE",
    "ActivationStore",
    "Dashboard",
    "FeatureView",
    "Losses",
    "Quality",
    "Rows",
    "SAEConfig",
    "SAETrainer",
    "SAETraining",
    "Splice",
    "collect",
    "dashboard",
    "load",
    "load_gemma_scope",
    "load_saelens",
    "losses",
    "measure",
    "save_gemma_scope",
    "save_saelens",
    "splice",
    "steer",
]
