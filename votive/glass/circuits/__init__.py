"""Circuits: which parts of a decoder write for which, by gradients, by running without them, or by search.

Built on the named places of `votive.glass.sites`; knows no family.
"""

from .acdc import acdc
from .direct import direct_logits
from .edge_run import EdgeRun, faithfulness, patch_paths
from .edge_scores import EdgeScores, eap
from .graph import Circuit, Graph, graph

__all__ = ["Circuit", "EdgeRun", "EdgeScores", "Graph", "acdc", "direct_logits", "eap", "faithfulness", "graph"]
__all__ += ["patch_paths"]
