"""What representations know, how alike they are and what taught them. Knows rows and addresses, no model by name."""

from .erasure import Eraser, ErasureFitter, erase, fit_eraser
from .influence import Influence, tracin
from .interchange import Subspace, interchange, train_das
from .layers import ProbeResults, Values, gather, probe_layers, probe_values
from .linear import LinearProbe, fit
from .similarity import Similarity, cka, rsa, similarity, svcca

__all__ = [
    "ErasureFitter",
    "Eraser",
    "Influence",
    "LinearProbe",
    "ProbeResults",
    "Similarity",
    "Subspace",
    "Values",
    "cka",
    "erase",
    "fit",
    "fit_eraser",
    "gather",
    "interchange",
    "probe_layers",
    "probe_values",
    "rsa",
    "similarity",
    "svcca",
    "tracin",
    "train_das",
]
