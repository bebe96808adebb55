"""The glass engine: see, pause, change and re-run every step of a model. Knows no model by name."""

from importlib import import_module
from typing import TYPE_CHECKING

from ..core.mode import only_shown
from . import circuits
from . import recompute as recompute
from .address import Address, Pattern
from .attention_maps import AttentionMap, AttentionMaps, attention_maps
from .attribution import Attribution, logit_attribution
from .capture import Capture, capture
from .check_sites import SiteCheck, WrongSite, check_sites
from .console import Console, interact
from .debugger import Breakpoint, Debugger, Event, debug, steps
from .difference import Difference
from .edits import Edit
from .factored_matrix import FactoredMatrix, composition
from .feature_maps import FeatureMaps, feature_maps
from .grad_cam import GradCam, grad_cam
from .gradients import Gradients, gradient_times_activation
from .head_weights import Weights, weights
from .health import Health, Reading
from .heatmap import Heatmap
from .labelled import Labelled
from .layer_statistics import LayerStatistics, layer_statistics
from .lens import Lens, logit_lens
from .lockstep import Lockstep, lockstep
from .means import means
from .parts import Parts, find_parts
from .patch import Patch, ablate, patch, skip, swap
from .patch_attention import PatchAttention, patch_attention
from .pixels import Pixels
from .plots import Bars, Lines
from .predict import Prediction, predict
from .probe import Frame, Probe
from .profile import Cost, Profile, Span, profile
from .quantization_error import QuantizationError, quantization_error
from .receipt import Receipt
from .saliency import Saliency, saliency
from .session import Session
from .session_diff import SessionDiff
from .session_file import Replay, SessionMismatch, model_hash
from .session_tree import Outlook, SessionNode
from .sites import sites
from .speech import Alignment, Mels, alignment, mels
from .statistics import Statistics, statistics
from .sweep import Sweep, sweep
from .taint import Unread
from .targets import NoMatch
from .tree import Node, tree
from .tuned_lens import TunedLens, train_tuned_lens
from .watch import BadValue, Finding, Watch, watch

__all__ = [
    "Address", "Alignment", "AttentionMap", "AttentionMaps", "Attribution", "BadValue", "Bars",
    "Breakpoint", "Capture", "Console", "Cost", "Debugger", "Difference", "Edit", "Event",
    "FactoredMatrix", "FeatureMaps", "Finding", "Frame", "GradCam", "Gradients", "Health", "Heatmap",
    "Labelled", "LayerStatistics", "Lens", "Lines", "Lockstep", "Mels", "NoMatch", "Node", "Outlook", "Parts",
    "Patch", "PatchAttention", "Pattern", "Pixels", "Prediction", "Probe", "Profile", "QuantizationError", "Reading",
    "Receipt", "Replay", "Saliency", "Session", "SessionDiff", "SessionMismatch", "SessionNode", "SiteCheck",
    "Span", "Statistics", "Sweep", "TunedLens", "Unread", "Watch", "Weights", "WrongSite", "ablate", "alignment",
    "attention_maps", "capture", "check_sites", "circuits", "composition", "debug", "feature_maps",
    "find_parts", "grad_cam", "gradient_times_activation", "interact", "layer_statistics", "lockstep",
    "logit_attribution", "logit_lens", "means", "mels", "model_hash", "only_shown", "patch", "patch_attention",
    "predict", "profile", "quantization_error", "saliency", "sites", "skip", "statistics", "steps", "swap", "sweep",
    "train_tuned_lens", "tree", "watch", "weights",
]  # fmt: skip

if TYPE_CHECKING:
    from . import features as features
    from . import probes as probes
    from . import steering as steering
    from .features import splice as splice

# Loaded when they are asked for: packages, and names of theirs.
_PACKAGES = {"features": "", "probes": "", "steering": "", "splice": "features"}


def __getattr__(name: str) -> object:
    if name not in _PACKAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = _PACKAGES[name]
    return getattr(import_module(f"{__name__}.{package}"), name) if package else import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES})
