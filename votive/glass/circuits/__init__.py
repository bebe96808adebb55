"""Circuits: which parts of a decoder write for which, by gradients, by running without them, or by search.

Built on the named places of `votive.glass.sites`; knows no family.

>>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
...     num_attention_heads=2)
>>> model = votive.models.LlamaForCausalLM(config).eval()
>>> votive.glass.circuits.graph(model).writers
['embed', 'layers.0.head.0', 'layers.0.head.1', 'layers.0.mlp']
"""

from .acdc import acdc
from .attribution_graph import attribution_graph
from .direct import direct_logits
from .edge_run import EdgeRun, Faithfulness, averages, faithfulness, patch_paths
from .edge_scores import EdgeScores, eap
from .graph import Circuit, Graph, graph
from .qk import qk_attribution
from .scrub import Claim, Scrubbed, resample_ablation, scrub
from .traced_graph import AttributionGraph, Node

__all__ = ["AttributionGraph", "Circuit", "EdgeRun", "EdgeScores", "Faithfulness", "Graph", "Node", "acdc"]
__all__ += ["attribution_graph", "averages", "direct_logits", "eap", "faithfulness", "graph", "patch_paths"]
__all__ += ["Claim", "Scrubbed", "qk_attribution", "resample_ablation", "scrub"]
